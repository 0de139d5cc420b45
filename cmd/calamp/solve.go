package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/dataset"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/report"
)

// solve is one call of calamp solve.
type solve struct {
	*app
	model    model
	prior    signalPrior
	solver   solver
	anchor   calamp.Anchor
	faults   sensorFaults
	matrix   string
	readings string
	out      string
	trace    string
	report   string
	json     bool
	others   bool        // --compare
	memory   memory.Size // for W
}

func (a *app) solveCommand() *cobra.Command {
	s := &solve{app: a, model: defaultModel, solver: defaultSolver}
	cmd := &cobra.Command{
		Use:   "solve P.npz",
		Short: "Recover signals and calibration from readings",
		Long: `Recover signals and calibration from the readings of a problem file.

A problem is a .npz with W (M×N) and Y (M×P, or M), one row a sensor; a NaN in Y
is a missing reading. With the truth in it too, X0 (N×P) and s0 (M), errors are
reported. Or give --matrix and --readings. P.npz can be - for standard input.

The result is a .npz with x, x_var (N×P), s, s_var, gain (M), converged (P),
scale_sd, residual (M×P) and broken (M), the probability that a sensor is. y = z/s: the multiplicative gain is 1/s. The
readings do not determine the common scale of x and s: it comes from the model
flags, and scale_sd says how well, or from --anchor.

A model flag that is auto is learned from the readings, and printed with the
result. When none of --density, --signal-mean, --signal-var and --noise-var is
given, all four are auto; when no model flag is given, --s-range is, too, and the
middle of the range is then 1. Otherwise what is not given is assumed, and the
command says so: density 0.2, mean 0, variance 1, s in [0.95, 1.05], noise 1e-6.

--damping 0 --no-scale-step --tol 0 --max-iter t is the published algorithm,
exactly t iterations of it.`,
		Example: `  calamp solve P.npz -o R.npz --density 0.1 --s-range 0.8,1.2 --noise-var 1e-4
  calamp solve --matrix W.npy --readings Y.csv -o R.npz --report R.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("solve takes one problem file, found %d: %s", len(args), strings.Join(args, ", "))
			}
			return nil
		},
		ValidArgsFunction: completeFiles("npz"),
		RunE:              func(cmd *cobra.Command, args []string) error { return s.run(cmd.Flags(), args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&s.out, "output", "o", "", "write the result to this .npz; - for standard output")
	flags.StringVar(&s.matrix, "matrix", "", "the matrix W (.npy), in place of P.npz")
	flags.StringVar(&s.readings, "readings", "", "the readings Y (.npy or .csv), in place of P.npz")
	s.model.registerLearnable(flags, modelFlags...)
	flags.Var(anchor{&s.anchor}, "anchor", "fix the common scale: mean=V, the mean of s, or sensor=ROW:V, the s of a known\nsensor (row of W from 0); can be given for several sensors")
	s.prior.register(flags, gaussBernoulli)
	s.prior.registerLearnable(flags)
	s.solver.register(flags)
	s.faults.register(flags)
	s.memory = memory.Total() / 2
	flags.Var(amount{&s.memory}, "memory", "memory for W, such as 2GiB: a larger --matrix W.npy stays in its file and is read\nin every iteration (default half of what the machine has)")
	flags.Lookup("memory").DefValue = "0"
	flags.StringVar(&s.trace, "trace", "", "write a line for each iteration to this .csv")
	flags.StringVar(&s.report, "report", "", "write a report to this .html")
	flags.BoolVar(&s.others, "compare", false, "answer the same readings in other ways, too: gains ignored, gains known (needs s0 in P.npz),\nsparse recovery and calibration in turn, and the convex program of Gribonval et al.\n(small problems only, with the program clp)")
	flags.BoolVar(&s.json, "json", false, "print one JSON object in place of the summary")
	return cmd
}

// completeFiles offers files of one kind to shell completion, for the only argument.
func completeFiles(kinds ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kinds, cobra.ShellCompDirectiveFilterFileExt
	}
}

func (s *solve) outputs() outputs {
	return outputs{{"-o", s.out}, {"--trace", s.trace}, {"--report", s.report}}
}

func (s *solve) run(flags *pflag.FlagSet, args []string) error {
	s.model.completeLearnable(flags, s.solver.covariance == "diagonal" && s.prior.plain())
	if err := errors.Join(s.prior.complete(flags, &s.model), s.solver.complete(flags), s.faults.complete(flags, &s.solver)); err != nil {
		return err
	}
	if err := s.checkInputs(args); err != nil {
		return err
	}
	if err := s.outputs().check(s.json, append(args, s.matrix, s.readings)...); err != nil {
		return err
	}
	data, err := s.load(args)
	if err != nil {
		return err
	}
	defer data.Close()
	_, p := data.Y.Dims()
	if err := s.model.checkRange(flags, p); err != nil {
		return err
	}
	if err := s.solver.check(&s.model, p); err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if text := s.model.intention(flags); text != "" {
		s.note("%s", text)
	}
	s.model.guess(data.W, data.Y)
	problem := &calamp.Problem{W: data.W, Y: data.Y, Prior: s.model.signal(s.prior.signal(s.prior.of(&s.model))), Channel: s.faults.channel(s.model.channel())}
	opt := s.solver.options()
	opt.Learn, opt.Anchor = s.model.learning(), s.anchor
	res, err := s.solve(ctx, "solving", problem, opt)
	if _, failed := errors.AsType[*operator.ReadError](err); failed {
		return fmt.Errorf("%s: %w", s.matrix, err)
	}
	if err != nil && (res == nil || ctx.Err() == nil) {
		return usage("%s: %w", s.source(args), err)
	}
	s.model.takeResult(res)
	s.prior.takeResult(res.Prior)
	s.warnings(res)
	var others comparisons
	if s.others && err == nil {
		problem.Prior, problem.Channel = s.prior.of(&s.model), s.model.channel() // as learned
		others, err = s.compare(ctx, data, problem, res)
	}
	written, failed := s.writeAll(data, res, others)
	if err := errors.Join(failed, s.print(data, res, others, written)); err != nil {
		return err
	}
	if res.Status != calamp.Cancelled && err != nil {
		return interrupted(ctx, nil, "not all of --compare was done")
	}
	return s.blameAssumed(ending(res, &s.solver, s.out != ""))
}

// blameAssumed adds to a run that did not converge what could be the reason.
func (s *solve) blameAssumed(ending error) error {
	e, ok := errors.AsType[*exit](ending)
	if !ok || e.code != exitNotConverged || len(s.model.Assumed) == 0 {
		return ending
	}
	return e.withHint("%s were assumed; %s learns them", strings.Join(s.model.Assumed, ", "), autoWord)
}

// checkInputs wants exactly one way of giving a problem.
func (s *solve) checkInputs(args []string) error {
	parts := s.matrix != "" || s.readings != ""
	switch {
	case len(args) == 1 && parts:
		return usage("the problem comes from %s, or from --matrix and --readings, not from both", args[0])
	case parts && s.readings == "":
		return usage("--matrix needs --readings with it")
	case parts && s.matrix == "":
		return usage("--readings needs --matrix with it")
	case len(args) == 0 && !parts:
		return usage("no problem to solve").withHint("calamp solve P.npz, or calamp solve --matrix W.npy --readings Y.csv; calamp simulate makes problems")
	}
	return nil
}

// source is the problem in messages.
func (s *solve) source(args []string) string {
	switch {
	case len(args) == 0:
		return s.matrix + ", " + s.readings
	case args[0] == "-":
		return stdinName
	}
	return args[0]
}

const stdinName = "standard input"

func (s *solve) load(args []string) (*dataset.Problem, error) {
	switch {
	case len(args) == 0:
		return dataset.OpenParts(s.matrix, s.readings, int64(s.memory))
	case args[0] == "-":
		return dataset.Read(s.stdin, stdinName)
	}
	return dataset.Load(args[0])
}

// interruptible is a context that ends at Ctrl-C, or when a job's time is up. A
// second one ends the process.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), heeded(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// heeded are the signals without SIGHUP where nohup has had it ignored: asking for
// it would undo that.
func heeded(signals ...os.Signal) []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		signals = slices.DeleteFunc(signals, func(s os.Signal) bool { return s == syscall.SIGHUP })
	}
	return signals
}

// solve runs the solver with a progress bar.
func (a *app) solve(ctx context.Context, what string, p *calamp.Problem, opt *calamp.Options) (*calamp.Result, error) {
	bar := a.progress()
	defer bar.done()
	bar.attach(opt, what)
	return calamp.Solve(ctx, p, opt)
}

func (a *app) warnings(res *calamp.Result) {
	for _, w := range res.Warnings {
		a.warn("%s: %s", w.Code, w.Message)
	}
}

// writeAll writes the files that were asked for, and returns their names. One
// that fails does not keep the others from being written.
func (s *solve) writeAll(data *dataset.Problem, res *calamp.Result, others comparisons) (written []string, err error) {
	files := []struct {
		path  string
		write func() error
	}{
		{s.out, func() error { return dataset.SaveResult(s.out, res) }},
		{s.trace, func() error {
			return s.write(s.trace, func(w io.Writer) error { return writeTrace(w, res.Trace) })
		}},
		{s.report, func() error {
			return s.write(s.report, func(w io.Writer) error { return report.Write(w, s.reportOf(data, res, others)) })
		}},
	}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if e := f.write(); e != nil {
			err = errors.Join(err, e)
		} else if f.path != "-" {
			written = append(written, f.path)
		}
	}
	return written, err
}

func (s *solve) reportOf(data *dataset.Problem, res *calamp.Result, others comparisons) report.Report {
	size := sizeOf(data)
	return report.Report{
		Problem: report.Problem{M: size.M, N: size.N, P: size.P, Missing: size.Missing, Storage: storageName(res.Storage)},
		Model:   slices.Concat(s.prior.fields(), s.model.fields(), s.faults.fields()), Options: s.solver.fields(),
		Result: res, Truth: data.Truth,
		Metrics:   metricsOf(res, data.Truth).fields(),
		Baselines: others.baselines(),
		Version:   buildVersion().Version, Command: s.commandLine(),
	}
}

// commandLine is what was typed, without the folders that are nobody's business.
func (a *app) commandLine() string {
	words := []string{"calamp"}
	for _, word := range a.args {
		if strings.ContainsRune(word, filepath.Separator) {
			word = filepath.Base(word)
		}
		if word == "" || strings.ContainsAny(word, " \t\"'$&|;<>()*?`\\") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// ending is how a run's status ends the command.
func ending(res *calamp.Result, options *solver, wrote bool) error {
	e := &exit{}
	switch res.Status {
	case calamp.Converged:
		return nil
	case calamp.NotConverged:
		if options.exactly() {
			return nil
		}
		e = &exit{code: exitNotConverged, err: fmt.Errorf("not converged: %s", res.Reason)}
	case calamp.Diverged:
		e = &exit{code: exitNotConverged, err: fmt.Errorf("diverged: %s", res.Reason)}
	case calamp.Cancelled:
		e = &exit{code: exitInterrupted, err: fmt.Errorf("interrupted: %s", res.Reason)}
	}
	if wrote {
		e.hint = "the estimates so far were written; the array converged says which signals to trust"
	}
	return e
}
