package theory

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/figure"
)

// se is one call of calamp se offline or calamp se online.
type se struct {
	theory
	online     bool
	warmUp     int // samples that are solved together first
	iterations int
	exactly    bool // --iterations was given
	tol        float64
	fixedPoint bool
	sensors    int
	seed       uint64
	overlay    string
	overTruth  string
}

// SECommand is calamp se.
func SECommand(a *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "se offline|online",
		Short: "Predict the errors that AMP will reach: state evolution",
		Long: `Predict, before any reading is taken, the mean square errors of cal-AMP on signals
and calibration, iteration by iteration, for large random matrices: state
evolution, by quadrature.`,
		Example: `  calamp se offline --alpha 0.6 --p 2 --density 0.2 --noise-var 1e-8 --plot SE.svg
  calamp se online --alpha 0.6 --p 10 --density 0.2 --noise-var 1e-8 --csv`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usage("of what?").WithHint("calamp se offline, all signals at once, or calamp se online, one after the other")
			}
			return console.Usage("unknown state evolution %q, expected offline or online", args[0])
		},
	}
	cmd.AddCommand(seMode(a, false), seMode(a, true))
	for _, c := range cmd.Commands() {
		c.Flags().SortFlags = false
	}
	return cmd
}

const seAbout = `
The model flags say what is true. A solver that is given another model is
predicted too: --assume-density and the like; then mse_x_scaled is the error
after the best common factor, v the variance that the solver states, and
q, m, q_hat, chi_hat are the other order parameters.

--overlay draws AMP over the prediction: the trace of calamp solve --trace, whose
posterior variances are the errors when the model is right; a table with columns
%s, mse_x, mse_s and, for error bars, mse_x_err, mse_s_err; or a result R.npz,
with its posterior variances, or with --truth P.npz its errors after the best
common factor.`

func seMode(a *console.Console, online bool) *cobra.Command {
	s := &se{theory: newTheory(a), online: online, iterations: 50, tol: 1e-8, sensors: 100000}
	name, what, index, signals := "offline", "all signals at once", "iteration", "signals, P"
	example := `  calamp se offline --alpha 0.6 --p 2 --density 0.2 --noise-var 1e-8 --plot SE.svg
  calamp se offline --alpha 0.6 --p 2 --assume-density 0.3 --fixed-point`
	long := `Predict cal-AMP on all signals at once. The columns of --csv are

  iteration,mse_x,m_hat,mse_s

with mse_x after the iteration, and mse_s of the s found during it; with --offset,
mse_o of the offsets follows. --json has an
estimate of the error of every number.

With --quantised, --sign, --counts, --noise or --noise-at averages are over random
sensors, with standard errors. Photons need --z-mean: a solver takes what signals
have in common out of W, and knows it.
`
	if online {
		name, what, index, signals = "online", "one signal after the other", "sample", "samples, one after the other"
		s.iterations, s.tol = 200, 1e-6
		example = `  calamp se online --alpha 0.6 --p 10 --density 0.2 --noise-var 1e-8 --csv`
		long = `Predict online cal-AMP: signals come one after the other, and each inherits what
the ones before taught of the gains. The columns of --csv are

  sample,iteration,mse_x,m_hat,mse_s

Every sample is iterated until it has converged; with --iterations T, exactly T
times. With --offset, mse_o follows, the error on the offsets. What is random in a sensor's past is sampled, by a quasi-Monte Carlo
method: --json has standard errors.
`
	}
	cmd := &cobra.Command{
		Use:     name,
		Short:   "Predict cal-AMP on " + what,
		Long:    long + fmt.Sprintf(seAbout, index),
		Example: example,
		Args:    s.noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Flags()) },
	}
	flags := cmd.Flags()
	s.registerSize(flags, signals)
	s.truth.Register(flags)
	s.groups.Register(flags)
	flags.BoolVar(&s.knownGains, "known-gains", false, "the gains are known: ordinary compressed sensing")
	flags.Var(option.Count(&s.iterations, 1), "iterations", "iterations")
	if online {
		flags.Lookup("iterations").Usage = "iterations of each sample, exactly; by default until it has converged, at most"
		flags.Var(option.Number(&s.tol, option.Between(1e-12, 0.1)), "tol", "relative distance to the fixed point at which a sample has converged")
		flags.Var(option.Count(&s.sensors, 16), "sampled-sensors", "sensors that are sampled when the solver is given another model")
		option.Seed(flags, &s.seed, "seed of what is sampled")
	} else {
		flags.Var(option.Number(&s.tol, option.Between(1e-12, 0.1)), "tol", "relative accuracy of every average")
		s.registerNetwork(flags)
		flags.BoolVar(&s.fixedPoint, "fixed-point", false, "find where the iterations end, too")
		s.registerRows(flags)
		s.registerJoint(flags)
	}
	s.registerReadings(flags)
	s.registerSpectrum(flags)
	s.registerComplex(flags)
	s.registerOffset(flags)
	if online {
		flags.Var(option.Count(&s.warmUp, 1), "warm-up", "samples that are solved together first, which --phase free (default 4) and --offset (10) need;\nthey are the first sample of what is printed")
	}
	s.registerStated(flags)
	s.registerOutputs(flags)
	flags.StringVar(&s.overlay, "overlay", "", "draw AMP over the prediction: a trace or table .csv, or a result .npz")
	flags.StringVar(&s.overTruth, "truth", "", "the problem .npz whose X0 and s0 are the truth of an overlaid .npz")
	return cmd
}

func (s *se) run(flags *pflag.FlagSet) error {
	s.exactly = option.Given(flags, "iterations")
	if err := cmp.Or(s.complete(flags), s.checkComplex(flags)); err != nil {
		return err
	}
	switch {
	case !s.complex && s.offset == 0 && s.zMean == 0 && s.warmUp > 0:
		return console.Usage("--warm-up is for complex samples, and for offsets and readings of one sign (--z-mean): others are learned from one by one")
	case s.complex && s.online && s.phases.Free() && s.warmUp == 0:
		s.warmUp = option.WarmUpPhases
	}
	if err := cmp.Or(
		s.checkSize(), s.checkOutputs(s.overlay, s.overTruth), s.loadGroups(), s.readSpectrum(),
		s.checkJoint(flags), s.checkTogether(), s.takeReadings(flags),
	); err != nil {
		return err
	}
	drawn, err := s.loadOverlay()
	if err != nil {
		return err
	}
	ctx, stop := console.Interruptible()
	defer stop()
	s.truth.NoteAssumption(s.Console, flags)
	res, err := s.predict(ctx)
	if err != nil && ctx.Err() == nil {
		return &console.Exit{Code: console.WrongUsage, Err: err}
	}
	if err := s.put(res, drawn); err != nil {
		return err
	}
	return s.ending(ctx, res)
}

// prediction is what came out, offline with a single sample.
type prediction struct {
	samples []predicted
	fixed   *predicted // of one step
	cut     bool       // a number was not finite, and the rest is left out
}

// predicted is the iteration of one sample.
type predicted struct {
	steps     []evolution.Overlaps
	converged bool
}

// stepsOf puts matched state evolution into the form of the general one, where
// only these three are used.
func stepsOf(steps []evolution.Step) []evolution.Overlaps {
	out := make([]evolution.Overlaps, len(steps))
	for i, s := range steps {
		out[i] = evolution.Overlaps{MSEX: s.MSEX, MHat: s.MHat, MSES: s.MSES, MSEO: s.MSEO}
	}
	return out
}

func (s *se) predict(ctx context.Context) (*prediction, error) {
	bar := s.Progress()
	defer bar.Done()
	res := &prediction{}
	var err error
	if s.online {
		err = s.predictOnline(ctx, res, bar)
	} else {
		err = s.predictOffline(ctx, res, bar)
	}
	res.truncate()
	return res, err
}

func (s *se) predictOffline(ctx context.Context, res *prediction, bar *console.Progress) error {
	opt := &evolution.Options{Iterations: s.iterations, Tol: s.tol, Progress: func(done int) {
		bar.Show(fmt.Sprintf("state evolution, iteration %d", done), float64(done)/float64(s.iterations))
	}}
	var steps []evolution.Overlaps
	var err error
	if s.mismatched {
		steps, err = evolution.OfflineMismatched(ctx, s.mismatch(), opt)
	} else {
		predict := func() (*evolution.Trajectory, error) { return evolution.Offline(ctx, s.matched(), opt) }
		if s.joint {
			predict = func() (*evolution.Trajectory, error) { return evolution.JointOffline(ctx, s.jointModel(), opt) }
		} else if s.complex {
			predict = func() (*evolution.Trajectory, error) {
				return evolution.ComplexOffline(ctx, s.complexModel(), &evolution.ComplexOptions{Iterations: s.iterations, Spectrum: s.vector, Progress: opt.Progress})
			}
		} else if !s.vector.Independent() {
			predict = func() (*evolution.Trajectory, error) { return evolution.Vector(ctx, s.matched(), s.vector, opt) }
		}
		var t *evolution.Trajectory
		if t, err = predict(); t != nil {
			steps = stepsOf(t.Steps)
		}
	}
	if len(steps) > 0 {
		res.samples = []predicted{{steps: steps}}
	}
	if err != nil || !s.fixedPoint {
		return err
	}
	bar.Show("fixed point", 0.99)
	return s.predictEnd(ctx, res)
}

// predictEnd finds the fixed point.
func (s *se) predictEnd(ctx context.Context, res *prediction) error {
	opt := &evolution.Options{Tol: s.tol}
	if s.mismatched {
		o, ok, err := evolution.FixedPointMismatched(ctx, s.mismatch(), opt)
		res.fixed = &predicted{[]evolution.Overlaps{o}, ok}
		return err
	}
	find := evolution.FixedPoint
	if s.joint {
		find = func(ctx context.Context, _ evolution.Model, opt *evolution.Options) (*evolution.Point, error) {
			return evolution.JointFixedPoint(ctx, s.jointModel(), opt)
		}
	}
	if !s.vector.Independent() {
		find = func(ctx context.Context, m evolution.Model, opt *evolution.Options) (*evolution.Point, error) {
			return evolution.VectorFixedPoint(ctx, m, s.vector, opt)
		}
	}
	p, err := find(ctx, s.matched(), opt)
	if p != nil {
		res.fixed = &predicted{stepsOf([]evolution.Step{p.Step}), p.Converged}
	}
	return err
}

func (s *se) predictOnline(ctx context.Context, res *prediction, bar *console.Progress) error {
	progress := func(sample, iteration int) {
		bar.Show(fmt.Sprintf("state evolution, sample %d, iteration %d", sample, iteration), float64(sample-1)/float64(s.p))
	}
	if s.mismatched {
		return s.sampleOnline(ctx, res, progress)
	}
	predict := func() ([]evolution.Sample, error) {
		return evolution.Online(ctx, s.matched(), &evolution.OnlineOptions{
			Tol: s.tol, Iterations: s.iterations, Exactly: s.exactly, Seed: s.seed, Spectrum: s.vector, WarmUp: s.warmUp, Progress: progress,
		})
	}
	if s.complex {
		predict = func() ([]evolution.Sample, error) {
			return evolution.ComplexOnline(ctx, s.complexModel(), &evolution.ComplexOnlineOptions{
				Tol: s.tol, Iterations: s.iterations, Exactly: s.exactly, Seed: s.seed, WarmUp: s.warmUp, Spectrum: s.vector, Progress: progress,
			})
		}
	}
	samples, err := predict()
	for _, sample := range samples {
		res.samples = append(res.samples, predicted{stepsOf(sample.Steps), sample.Converged})
	}
	return err
}

// sampleOnline is the stream of a solver that is given another model. It makes
// a fixed number of iterations: errors that are sampled do not settle to a
// tolerance.
func (s *se) sampleOnline(ctx context.Context, res *prediction, progress func(sample, iteration int)) error {
	iterations := 50
	if s.exactly {
		iterations = s.iterations
	}
	samples, err := evolution.OnlineMismatched(ctx, s.mismatch(), &evolution.MonteCarloOptions{
		Samples: s.sensors, Iterations: iterations, Seed: s.seed, Progress: progress,
	})
	for _, steps := range samples {
		res.samples = append(res.samples, predicted{steps, true})
	}
	return err
}

// truncate leaves out what comes after a number that is not finite.
func (r *prediction) truncate() {
	for i := range r.samples {
		for j, o := range r.samples[i].steps {
			if !finite(o.MSEX, o.MHat, o.MSES, o.MSEO, o.Q, o.M, o.V, o.QHat, o.ChiHat) {
				r.cut = true
				r.samples[i].steps = r.samples[i].steps[:j]
				r.samples = r.samples[:i+1]
				return
			}
		}
	}
}

// steps counts all iterations.
func (r *prediction) steps() int {
	total := 0
	for _, p := range r.samples {
		total += len(p.steps)
	}
	return total
}

// ending is how the command ends after everything has been written.
func (s *se) ending(ctx context.Context, res *prediction) error {
	notConverged := func(format string, args ...any) error {
		return &console.Exit{Code: console.NotConverged, Err: fmt.Errorf(format, args...)}
	}
	if ctx.Err() != nil {
		return console.Interruption(ctx, nil, fmt.Sprintf("%s done, %s in all", console.Plural(len(res.samples), "sample"), console.Plural(res.steps(), "iteration")))
	}
	if res.cut {
		return notConverged("the iteration ran away: what comes after iteration %d is not finite", res.steps())
	}
	if res.fixed != nil && !res.fixed.converged {
		return notConverged("the fixed point was not found to the tolerance %g", s.tol)
	}
	for k, p := range res.samples {
		if s.online && !p.converged && !s.exactly {
			return notConverged("sample %d had not converged after %d iterations", k+1, len(p.steps))
		}
	}
	return nil
}

func (s *se) put(res *prediction, drawn *overlay) error {
	return s.writeAll(s.table(res), func() figure.Figure { return s.figure(res, drawn) }, s.object(res), s.summary(res))
}

// quantity is a number of an iteration, by its name in tables and in JSON.
type quantity struct {
	name string
	evolution.Number
}

// quantities are the numbers of an iteration.
func (s *se) quantities(o evolution.Overlaps) []quantity {
	list := []quantity{{"mse_x", o.MSEX}, {"m_hat", o.MHat}, {"mse_s", o.MSES}}
	if s.offset > 0 {
		list = append(list, quantity{"mse_o", o.MSEO})
	}
	if s.mismatched {
		list = append(list, quantity{"mse_x_scaled", s.scaled(o)}, quantity{"q", o.Q}, quantity{"m", o.M}, quantity{"v", o.V}, quantity{"q_hat", o.QHat}, quantity{"chi_hat", o.ChiHat})
	}
	return list
}

// scaled is the error after the best common factor.
func (s *se) scaled(o evolution.Overlaps) evolution.Number {
	return o.MSEXScaled(s.matched().SecondMoment())
}

// table has a row for each iteration; on the screen, online, for each sample.
func (s *se) table(res *prediction) console.Table {
	t := console.Table{Header: []string{"iteration"}}
	if s.online {
		t.Header = []string{"sample", "iteration"}
	}
	for _, q := range s.quantities(evolution.Overlaps{}) {
		t.Header = append(t.Header, q.name)
	}
	lastOnly := s.online && !s.csv && s.out == ""
	for k, p := range res.samples {
		for i, o := range p.steps {
			if lastOnly && i < len(p.steps)-1 {
				continue
			}
			row := []float64{float64(i + 1)}
			if s.online {
				row = []float64{float64(k + 1), float64(i + 1)}
			}
			for _, q := range s.quantities(o) {
				row = append(row, q.Value)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// summary comes after the table.
func (s *se) summary(res *prediction) string {
	var text console.Summary
	if res.fixed != nil {
		o := res.fixed.steps[0]
		text.Line("fixed point", "mse_x %v, m_hat %v, mse_s %v", o.MSEX, o.MHat, o.MSES)
	}
	return text.String()
}

// step is the numbers of an iteration in JSON, with an estimate of the error of each.
func (s *se) step(o evolution.Overlaps) (j console.Object) {
	for _, q := range s.quantities(o) {
		j = append(j, q.name, q.Value, q.name+"_err", q.Err)
	}
	return j
}

// object is what se prints with --json.
func (s *se) object(res *prediction) console.Object {
	kind := "offline"
	if s.online {
		kind = "online"
	}
	j := console.Object{
		"kind", kind, "alpha", s.alpha, "p", s.p, "rows_per_sensor?", s.rowsJSON(), "prior?", s.network.text, "model", s.truth, "assumed_model?", s.statedModel(), "known_gains", s.knownGains,
		"offset_sd?", s.offset, "spectrum?", s.spectrum, "", s.readingsJSON(), "", s.jointJSON(),
	}
	samples := []console.Object{}
	for k, p := range res.samples {
		steps := []console.Object{}
		for i, o := range p.steps {
			steps = append(steps, append(console.Object{"iteration", i + 1}, s.step(o)...))
		}
		if samples = append(samples, console.Object{"sample", k + 1, "converged", p.converged, "iterations", steps}); !s.online {
			j = append(j, "iterations?", steps)
		}
	}
	if s.online {
		j = append(j, "samples?", samples)
	}
	if res.fixed != nil && finite(res.fixed.steps[0].MSEX, res.fixed.steps[0].MHat, res.fixed.steps[0].MSES) {
		j = append(j, "fixed_point", append(s.step(res.fixed.steps[0]), "converged", res.fixed.converged))
	}
	return append(j, "written", s.written())
}
