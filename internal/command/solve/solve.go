// Package solve is the commands that recover signals and gains from readings:
// calamp solve and calamp demo.
package solve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/internal/report"
	"github.com/calamp/calamp/operator"
)

// solve is one call of calamp solve.
type solve struct {
	*console.Console
	model    option.Model
	prior    option.SignalPrior
	groups   option.Groups
	solver   option.Solver
	anchor   option.Anchor
	faults   option.Faults
	offset   option.Offset
	sensors  option.RowSensors
	belong   option.Together
	joint    option.Joint
	phases   option.Phases
	parts    option.Parts
	names    option.ArrayNames
	ranks    option.Ranks
	spectrum option.SpectrumCache
	doubt    doubt
	out      string
	trace    string
	report   string
	learned  string // --save-model
	json     bool
	others   bool        // --compare
	memory   memory.Size // for W
	stated   []string    // the flags that the result depends on

	progress string
	limit    time.Duration // --time-limit; 0 for none

	live   *Live           // who watches from the same process, or nil
	within context.Context // of who called Run, or nil
}

// jsonProgress is --progress json.
const jsonProgress = "json"

// Command is calamp solve.
func Command(a *console.Console) *cobra.Command { return newSolve(a).command() }

func newSolve(a *console.Console) *solve {
	return &solve{Console: a, model: option.DefaultModel, solver: option.NewSolver()}
}

func (s *solve) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "solve P.npz",
		Short: "Recover signals and calibration from readings",
		Long: `Recover signals and calibration from the readings of a problem file.

A problem is a .npz or .mat with W (M×N) and Y (M×P, or M), one row a sensor; a NaN in Y
is a missing reading. With the truth in it too, X0 (N×P) and s0 (M), errors are
reported. Or give --matrix and --readings. P.npz can be - for standard input.

The result, a .npz or .mat, has x, x_var (N×P), s, s_var, gain (M), converged (P),
scale_sd, residual (M×P) and broken (M), the probability that a sensor is. y = z/s: the multiplicative gain is 1/s.
Where sensors have several rows (--sensors) these have a value a sensor, and gain_row (M) one a row.
With --offset it has offset and offset_var (M), y = z/s + offset; with --gain-smooth or
--gain-basis s_smooth (M), s without scatter, and s_scatter.
s lies between s_lo and s_hi (M) with probability 0.95, the common scale's uncertainty
included, and between s_rel_lo and s_rel_hi at a fixed common scale. The
readings do not determine the common scale of x and s: it comes from the model
flags, and scale_sd says how well, or from --reference.

Each hyperparameter that is not fixed is learned from the readings,
and printed with the result; auto says the same. Where nothing given has a
scale the middle of the range of s is 1. Bare iterations (below) and --covariance
full learn nothing: there density 0.2, mean 0, variance 1, s in [0.95, 1.05] and
noise 1e-6 are assumed, and the command says so. Of one signal the learned range
is no narrower than ±5 %.

--damping 0 --no-scale-step --tol 0 --max-iter t is the published algorithm,
exactly t iterations of it.`,
		Example: `  calamp solve P.npz -o R.npz --density 0.1 --s-range 0.8,1.2 --noise-var 1e-4
  calamp solve --matrix W.npy --readings Y.csv -o R.npz --report R.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && filepath.Ext(args[0]) != ".npz" {
				return fmt.Errorf("solve takes one problem file, found 2; of W and Y in files of their own: --matrix %s --readings %s", args[0], args[1])
			}
			return console.Arguments(0, 1, "one problem file")(cmd, args)
		},
		ValidArgsFunction: option.CompleteFiles("npz", "mat"),
		RunE:              func(cmd *cobra.Command, args []string) error { return s.together(cmd.Flags(), args) },
	}
	flags := cmd.Flags()
	option.Output(flags, &s.out, "write the result to this .npz or .mat; - for standard output")
	s.parts.Register(flags, "the matrix W, in place of P.npz")
	s.names.Register(flags)
	s.doubt.register(flags)
	s.model.RegisterLearnable(flags, option.ModelFlags...)
	s.model.RegisterNoiseAt(flags)
	s.groups.Register(flags)
	flags.Var(&s.anchor, "anchor", option.About("anchor"))
	s.prior.Register(flags, option.GaussBernoulli)
	s.prior.RegisterLearnable(flags)
	s.phases.Learnable = true
	s.phases.Register(flags)
	s.solver.Register(flags)
	s.joint.Register(flags)
	s.faults.Register(flags)
	s.offset.Register(flags)
	s.sensors.Register(flags)
	s.belong.Register(flags)
	s.memory = memory.Total() / 2
	flags.Var(option.Text(&s.memory, option.Wording[memory.Size]{Kind: "size"}), "memory", "memory for W, such as 2GiB: a larger --matrix W.npy stays in its file and is read\nin every iteration (default half of what the machine has, divided by its --mpi ranks);\nfiles whose arrays take more than this, and than four times the file, are refused")
	flags.Lookup("memory").DefValue = "0"
	s.ranks.Register(flags)
	s.spectrum.Register(flags)
	flags.DurationVar(&s.limit, "time-limit", 0, "end after so long, such as 90s, with the best answer until then: exit code 3 unless an\nearlier try has converged; 0 for no limit")
	s.progress = "bar"
	flags.Var(option.Choice(&s.progress, "bar", jsonProgress), "progress", "on standard error, a bar where that is a terminal, or a line of JSON an iteration")
	flags.StringVar(&s.trace, "trace", "", "write a line for each iteration to this .csv")
	option.Report(flags, &s.report, "write a report to this .html")
	flags.StringVar(&s.learned, "save-model", "", "write what was fixed and learned to this .toml, for --model, with error bars as comments; arrays\nlie beside it")
	flags.BoolVar(&s.others, "compare", false, "answer the same readings in other ways, too: gains ignored, gains known (needs s0 in P.npz),\nsparse recovery and calibration in turn, and the convex program of Gribonval et al.\n(small problems only, with the program clp)")
	option.JSON(flags, &s.json, "the summary")
	return cmd
}

func (s *solve) outputs() console.Outputs {
	return console.Outputs{console.File("-o", s.out), console.File("--trace", s.trace), console.File("--report", s.report), console.File("--save-model", s.learned), console.File("--spectrum-cache", s.spectrum.Path), console.File("--matrix-out", s.doubt.matrixOut)}
}

// together is run, on all ranks of --mpi.
func (s *solve) together(flags *pflag.FlagSet, args []string) error {
	return s.ranks.Together(s.Console, facts.BuildVersion().Source(), func() error {
		if s.ranks.On() && !option.Given(flags, "memory") {
			s.memory = s.ranks.Memory() / 2
		}
		return s.run(flags, args)
	})
}

func (s *solve) run(flags *pflag.FlagSet, args []string) error {
	if err := cmp.Or(s.completeModel(flags, args), s.checkInputs(args), s.checkDoubt()); err != nil {
		return err
	}
	err := s.ranks.OfFirst(func() error {
		return s.outputs().Check(s.json, append(slices.Concat(args, s.parts.Files(), s.groups.Files(), s.belong.Files(), s.doubt.derivatives, s.doubt.sensors), s.model.Noise.File, s.model.KnowledgeFile(), s.sensors.File, s.faults.Codes.File())...)
	})
	if err != nil {
		return err
	}
	data, err := s.parts.Problem(s.Console, args, s.names, int64(s.memory), &s.ranks)
	if err != nil {
		return err
	}
	defer data.Close()
	s.stated = facts.Stated(flags, s.Args, func(name string) bool { return !slices.Contains(elsewhere, name) })
	if err := s.phases.CheckProblem(flags, &s.model, &s.groups, data.Known, data.Complex); err != nil {
		return err
	}
	if err := cmp.Or(s.model.CheckNoiseAt(data.Complex), s.model.CheckPhotons(data.Y), s.loadDoubt(data)); err != nil {
		return err
	}
	if data.W, err = s.parts.Basis.Compose(data.W); err != nil {
		return err
	}
	if err := s.spectrum.Use(data.W, &s.ranks); err != nil {
		return err
	}
	_, n := data.W.Dims()
	if err := errors.Join(s.groups.Load(&s.model, s.prior.GroupEntries(n)), s.prior.CheckEntries(n)); err != nil {
		return err
	}
	rows, p := data.Y.Dims()
	sensors, _, err := s.sensors.Load(data, s.others)
	if err != nil {
		return err
	}
	defer memory.Spare(max(n, rows) * p)()
	if err := cmp.Or(
		s.model.LoadKnowledge(flags, data.Known, sensors), s.belong.Load(sensors, data, s.others, s.ranks.On()), s.model.CheckReadings(data.Y),
		s.solver.Check(&s.model, p),
	); err != nil {
		return err
	}
	scale := s.model.HoldScale(&s.anchor, s.groups.On() || s.prior.Fixed(), s.doubt.random != "")
	if err := errors.Join(s.sensors.LoadNoise(&s.model, data), s.loadThresholds(data)); err != nil {
		return err
	}
	joint, err := s.joint.Check(facts.SizeOf(data).P, s.ranks.On())
	if err != nil {
		return err
	}
	ctx, stop := s.context()
	defer stop()
	ctx = s.ranks.Context(ctx)
	s.model.NoteIntention(s.Console, flags, &s.solver, data.W)
	if err := calamp.CheckSizes(data.Y); err != nil {
		return console.Usage("%s: %w", s.source(args), err)
	}
	if err := s.refuseHopeless(data, s.source(args)); err != nil {
		return err
	}
	problem, err := s.problem(data, s.source(args))
	if err != nil {
		return err
	}
	opt := s.solver.Options()
	s.ranks.Settle(&opt.Settings)
	opt.Outliers, opt.Joint = s.faults.Outliers(), joint
	opt.TimeLimit = s.limit
	opt.Retry = s.solver.Retries() && !s.ranks.On()
	opt.Learn, opt.Anchor, opt.Evidence = s.model.Learning(), s.anchor.Anchor, s.trace != ""
	opt.Scale = scale
	opt.MatrixError, opt.Learn.MatrixError = s.doubt.size, s.doubt.random == option.AutoWord
	if opt.Directions, err = s.tests(problem.Sensors != nil); err != nil {
		return err
	}
	if opt.SensorDerivatives, err = s.inBasis("--sensor-derivatives", s.doubt.ofSensors); err != nil {
		return err
	}
	opt.Learn.Offset, opt.Learn.Phases, opt.Learn.PhasesOrFree = s.offset.Learned(), s.phases.Learned, !s.phases.Given()
	if s.progress == jsonProgress {
		tellIterations(s.Stderr, opt)
	}
	s.begin(data, opt)
	res, err := s.solveProblem(ctx, data, problem, opt)
	if _, failed := errors.AsType[*operator.ReadError](err); failed {
		return fmt.Errorf("%s: %w", s.parts.Matrix, err)
	}
	if err != nil && (res == nil || ctx.Err() == nil) {
		return console.Usage("%s: %w", s.source(args), err)
	}
	s.model.TakeResult(res)
	s.prior.TakeResult(res)
	s.groups.TakeResult(&s.model, res.Prior)
	s.offset.TakeResult(res)
	s.belong.TakeResult(res)
	s.phases.TakeResult(res)
	s.end(res)
	showWarnings(s.Console, res)
	var others comparisons
	if s.others && err == nil {
		problem.Prior, problem.Channel, problem.NoiseVar = s.groups.Learned(res.Prior, s.prior.Of(&s.model)), s.model.BeforeDivision(), res.NoiseVar // as learned
		others, err = s.compare(ctx, data, problem, res)
	}
	written, failed := s.writeAll(flags, data, res, others, s.source(args))
	if err := errors.Join(failed, s.print(data, res, others, written), s.spectrum.Err()); err != nil {
		return err
	}
	if res.Status != calamp.Cancelled && err != nil {
		return console.Interruption(ctx, err, "not all of --compare was done")
	}
	return s.blameAssumed(ending(res, &s.solver, s.out != ""))
}

// completeModel takes in what the flags say of the model, and refuses what excludes each other.
func (s *solve) completeModel(flags *pflag.FlagSet, args []string) error {
	s.belong.TakePairs(&s.sensors, args, &s.names)
	if err := cmp.Or(
		errors.Join(s.solver.Complete(flags), s.model.CompleteLearnable(flags, s.solver.Learns()), s.prior.Complete(flags, &s.model, s.solver.Learns()), s.model.TakePhotons(flags, s.solver.Learns())),
		option.CheckExclusions(flags),
		errors.Join(s.faults.Complete(flags, &s.solver), s.belong.Check(flags, &s.model), s.model.CheckNoiseAt(false), s.faults.Codes.CheckSize(&s.model), s.faults.Codes.TakeNoise(flags, &s.model)),
	); err != nil {
		return err
	}
	if s.groups.On() && !s.prior.Grouped() {
		return option.GroupsArePlain()
	}
	return nil
}

// refuseHopeless refuses what no run can solve, before one is begun.
func (s *solve) refuseHopeless(data *dataset.Problem, source string) error {
	if s.ranks.On() || s.solver.Exactly() {
		return nil
	}
	if data.Complex {
		return nil
	}
	if text := diagnosis.Swapped(data.W, data.Y); text != "" {
		return console.Usage("%s: %s", source, text)
	}
	return nil
}

// problem is what is solved.
func (s *solve) problem(data *dataset.Problem, source string) (*calamp.Problem, error) {
	if data.Complex {
		if err := s.model.GuessComplex(data.W, data.Y, &s.phases); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		return &calamp.Problem{
			W: data.W, Y: data.Y, Sensors: data.Sensors, Prior: s.model.ComplexSignal(),
			Channel: s.faults.ComplexChannel(s.belong.ComplexChannel(s.model.ComplexChannel(&s.phases))), Phases: data.Phases,
		}, nil
	}
	if err := s.model.Guess(data.W, s.offset.Readings(data.Y, data.Sensors)); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	signals, err := s.prior.Signal(&s.model, &s.groups)
	return &calamp.Problem{
		W: data.W, Y: data.Y, Sensors: data.Sensors, Prior: signals, Channel: s.faults.Channel(s.offset.Channel(s.belong.Channel(s.model.Channel()), data.Y, data.Sensors)), NoiseVar: s.model.Noise.Each,
	}, err
}

// blameAssumed adds to a run that did not converge what could be the reason.
func (s *solve) blameAssumed(ending error) error {
	e, ok := errors.AsType[*console.Exit](ending)
	if !ok || e.Code != console.NotConverged || len(s.model.Assumed) == 0 {
		return ending
	}
	return e.WithHint("%s were assumed; %s learns them", strings.Join(s.model.Assumed, ", "), option.AutoWord)
}

// checkInputs requires exactly one way of giving a problem.
func (s *solve) checkInputs(args []string) error {
	if err := option.CheckArchive("-o", s.out); err != nil {
		return err
	}
	if s.learned != "" && filepath.Ext(s.learned) != ".toml" {
		return console.Usage("--save-model %s: expected a name that ends in .toml", s.learned)
	}
	parts := s.parts.Matrix != "" || s.parts.Readings != ""
	switch {
	case s.names != nil && (parts || len(args) != 1 || args[0] == "-" || s.ranks.On()):
		return console.Usage("--name is of arrays in a P.npz")
	case len(args) == 1 && s.parts.Matrix != "" && s.parts.Readings == "":
		return console.Usage("--matrix needs --readings with it").WithHint("--readings %s", args[0])
	case len(args) == 1 && parts:
		return console.Usage("the problem comes from %s, or from --matrix and --readings, not from both", args[0])
	case parts && s.parts.Readings == "":
		return console.Usage("--matrix needs --readings with it")
	case parts && s.parts.Matrix == "":
		return console.Usage("--readings needs --matrix with it")
	case s.ranks.On() && len(args) == 1 && args[0] == "-":
		return console.Usage("--mpi reads the problem on every rank, standard input is only the first's: give a file")
	case s.ranks.On() && s.others:
		return console.Usage("--compare is for one process: leave out --mpi")
	case len(args) == 0 && !parts:
		return console.Usage("no problem to solve").WithHint("calamp solve P.npz, or calamp solve --matrix W.npy --readings Y.csv; calamp simulate makes problems")
	}
	return nil
}

// source is the problem in messages.
func (s *solve) source(args []string) string {
	switch {
	case len(args) == 0:
		return s.parts.Matrix + ", " + s.parts.Readings
	case args[0] == "-":
		return option.Stdin
	}
	return args[0]
}

// writeAll writes the files that were asked for, and returns their names. One
// that fails does not keep the others from being written.
func (s *solve) writeAll(flags *pflag.FlagSet, data *dataset.Problem, res *calamp.Result, others comparisons, source string) (written []string, err error) {
	files := []struct {
		path  string
		write func() error
	}{
		{s.out, func() error { return s.saveResult(data, res) }},
		{s.doubt.matrixOut, s.saveMatrix},
		{s.trace, func() error {
			return s.Write(s.trace, func(w io.Writer) error { return writeTrace(w, res.Trace) })
		}},
		{s.report, func() error {
			return s.Write(s.report, func(w io.Writer) error { return report.Write(w, s.reportOf(data, res, others)) })
		}},
		{s.learned, func() error { return s.saveModel(flags, data.W, res, source) }},
	}
	for _, f := range files {
		if f.path == "" || !s.ranks.Only() && f.path != s.out {
			continue
		}
		if e := crash.Guard(f.write); e != nil {
			err = errors.Join(err, e)
		} else if f.path != "-" {
			written = append(written, f.path)
		}
	}
	return written, err
}

// elsewhere are the flags on which the arrays of a result do not depend.
var elsewhere = []string{"output", "trace", "report", "json", "quiet", "progress", "compare", "threads", "memory", "model", "save-model", "matrix", "readings", "name", "spectrum-cache", "matrix-out", "resume", "mpi", "reproducible"}

func (s *solve) saveResult(data *dataset.Problem, res *calamp.Result) error {
	model := struct {
		option.SignalPrior
		option.Model
		fitted
	}{s.prior, s.model, s.doubt.fitted()}
	from, err := facts.Provenance(s.name(), s.stated, data.W, data.Y, model)
	if err != nil {
		return fmt.Errorf("%s: provenance: %w", s.out, err)
	}
	from.Outcome = &dataset.Outcome{Status: res.Status, Reason: res.Reason, Iterations: res.Iterations, Warnings: console.OrEmpty(res.Warnings)}
	if !s.ranks.Only() { // the hash of W took all ranks
		return nil
	}
	further, err := s.parts.Basis.Extra(res.X)
	if err != nil {
		return err
	}
	return dataset.SaveResult(s.out, res, from, slices.Concat(further, s.groups.Extra(), s.belong.Extra(res), s.doubt.extra(res))...)
}

func (s *solve) reportOf(data *dataset.Problem, res *calamp.Result, others comparisons) report.Report {
	size := facts.SizeOf(data)
	return report.Report{
		Problem: report.Problem{M: size.M, N: size.N, P: size.P, Missing: size.Missing, Storage: facts.MatrixName(data.W, res.Storage, res.Arithmetic)},
		Model:   slices.Concat(s.prior.Fields(), s.model.Fields(), s.groups.Fields(), s.phases.Fields(data.Complex), s.faults.Fields(), s.offset.Fields(), s.belong.Fields()),
		Result:  res, ScaleFree: scaleFree(res, s.model), Truth: data.Truth, Signals: s.signalsOf(res.X),
		Metrics:   s.metricsOf(data, res).Fields(),
		Baselines: s.baselinesOf(others), Fit: s.doubt.found, FitNames: s.doubt.names(),
		Version: facts.BuildVersion().Version, Command: s.CommandLine(),
	}
}

// metricsOf compares the signals with the truth, whatever basis they were solved in.
func (s *solve) metricsOf(data *dataset.Problem, res *calamp.Result) facts.Metrics {
	x, err := s.parts.Basis.Signals(res.X)
	if err != nil {
		return nil
	}
	signals := *res
	signals.X = x
	return facts.MetricsOf(&signals, data.Truth)
}

// signalsOf is the signals of coefficients; nil where they are the signals themselves.
func (s *solve) signalsOf(x *mat.Dense) *mat.Dense {
	if s.parts.Basis.Spec == "" {
		return nil
	}
	signals, err := s.parts.Basis.Signals(x)
	if err != nil {
		return nil
	}
	return signals
}

// baselinesOf are the other answers, as signals.
func (s *solve) baselinesOf(others comparisons) []report.Baseline {
	all := others.baselines()
	for i, b := range all {
		if signals := s.signalsOf(b.X); signals != nil {
			all[i].X = signals
		}
	}
	return all
}

// ending is how a run's status ends the command.
func ending(res *calamp.Result, options *option.Solver, wrote bool) error {
	e := &console.Exit{}
	switch res.Status {
	case calamp.Converged:
		w := res.Untrusted()
		if w == nil || options.Exactly() {
			return nil
		}
		return &console.Exit{
			Code: console.NotConverged, Err: fmt.Errorf("converged, but not to be trusted: %s", w.Code),
			Hint: fmt.Sprintf("calamp help %s says why, and what to do", w.Code),
		}
	case calamp.NotConverged:
		if options.Exactly() {
			return nil
		}
		e = &console.Exit{Code: console.NotConverged, Err: fmt.Errorf("not converged: %s", res.Reason)}
	case calamp.TimedOut:
		e = &console.Exit{Code: console.NotConverged, Err: fmt.Errorf("time limit: %s", res.Reason)}
	case calamp.NothingRecovered:
		e = &console.Exit{Code: console.NotConverged, Err: fmt.Errorf("nothing recovered: %s", res.Reason)}
	case calamp.Diverged:
		e = &console.Exit{Code: console.NotConverged, Err: fmt.Errorf("diverged: %s", res.Reason)}
	case calamp.Cancelled:
		e = &console.Exit{Code: console.Interrupted, Err: fmt.Errorf("interrupted: %s", res.Reason)}
	}
	if wrote {
		e.Hint = "the estimates so far were written; the array converged says which signals to trust"
	}
	return e
}

// loadThresholds reads the file of --sign.
func (s *solve) loadThresholds(data *dataset.Problem) error {
	if s.faults.Codes.File() != "" && s.ranks.On() {
		return console.Usage("--sign %s: thresholds of every reading are for one process, leave out --mpi", s.faults.Codes.File())
	}
	return s.faults.Codes.Load(data.Y.Dims())
}
