package theory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/replica"
)

// threshold is one call of calamp threshold.
type threshold struct {
	theory
	densities densityGrid
	target    float64
	tol       float64
	n, m      int // of the problem at hand; 0 where they were not given
}

// densityGrid is a flag's value lo,hi,n: n densities from lo to hi.
type densityGrid struct {
	lo, hi float64
	n      int
}

func (g *densityGrid) String() string {
	if g.n == 0 {
		return ""
	}
	return fmt.Sprintf("%g,%g,%d", g.lo, g.hi, g.n)
}

func (g *densityGrid) Type() string { return "lo,hi,n" }

func (g *densityGrid) Set(text string) error {
	words := strings.Split(text, ",")
	wrong := errors.New("expected lo,hi,n with 0 < lo < hi ≤ 1 and at least 2 points")
	if len(words) != 3 {
		return wrong
	}
	lo, errLo := strconv.ParseFloat(strings.TrimSpace(words[0]), 64)
	hi, errHi := strconv.ParseFloat(strings.TrimSpace(words[1]), 64)
	n, errN := strconv.Atoi(strings.TrimSpace(words[2]))
	if errLo != nil || errHi != nil || errN != nil || !(lo > 0 && lo < hi && hi <= 1) || n < 2 {
		return wrong
	}
	g.lo, g.hi, g.n = lo, hi, n
	return nil
}

// list is the densities, or the one of the model.
func (g *densityGrid) list(single float64) []float64 {
	if g.n == 0 {
		return []float64{single}
	}
	out := make([]float64, g.n)
	for i := range out {
		out[i] = g.lo + (g.hi-g.lo)*float64(i)/float64(g.n-1)
	}
	return out
}

// ThresholdCommand is calamp threshold.
func ThresholdCommand(a *console.Console) *cobra.Command {
	t := &threshold{theory: newTheory(a), target: 1e-5, tol: 1e-4}
	t.truth.NoiseVar = 0
	cmd := &cobra.Command{
		Use:   "threshold",
		Short: "Say how many sensors it takes",
		Long: `Compute the numbers of sensors for each entry of a signal, α = M/N, at which things
change for large random matrices:

  alpha_min       counting bound ρP/(P-1): below it noiseless signals cannot be recovered exactly
  alpha_cs        cal-AMP's limit were the gains known, without noise
  alpha_cal       cal-AMP's limit: from here on state evolution reaches the target error
  alpha_it        with noise: from here on the state of small error is the better one
  alpha_informed  with noise: from here on there is such a state
  alpha_enough    with noise: from here on cal-AMP's error is at most twice that of known gains,
                  below which no method falls; inf where it never is, 0 where it always is

The answer is a sentence: how many sensors that takes, for each entry or, with --n, in all, and with --m, whether you
have them. It is about the larger of alpha_enough and alpha_cs with noise, and about alpha_cal without.

With another --spectrum than iid alpha_cal is that of vector AMP, to 1e-3 unless --tol says
otherwise, and alpha_it and alpha_informed are left open. What known gains allow without noise
does not depend on the spectrum.

Between alpha_it and alpha_cal the signals could be recovered, but not by cal-AMP.
Where the error falls continuously with α, there is no alpha_it. With narrow gains
a loose target is met below alpha_min.

With --offset the counting bound is ρP/(P-2), alpha_cal is that of the diagonal ansatz, which solvers use, averages are over
a sequence of points (alpha_cal_err is their error), and alpha_it and alpha_informed are open.

With --quantised, --sign, --counts, --noise or --noise-at alpha_cal is an average over random sensors
(alpha_cal_err is its error), the bounds are those of readings as they are, and the rest is open.

With --prior network:… the flags of signals describe the latents, the counting bound is that of the latents that are not zero,
alpha_cs and alpha_enough are of the same network, and alpha_it and alpha_informed are open.
With --prior nonnegative or laplace alpha_it and alpha_informed are not computed.

With --joint entries are zero in all signals or in none; alpha_cs, alpha_cal and alpha_enough are those of a
solver that knows it, and alpha_it and alpha_informed are open.

With --complex the counting bound is 2ρP/(2P-d) with d = 1 where only the amplitude or the phase of s is
unknown, and 2 where both are, and averages are over a sequence of points: alpha_cal_err is their error.`,
		Example: `  calamp threshold --density 0.1 --p 8 --s-range 0.7,1.4 --noise-var 1e-3 --n 256 --m 200
  calamp threshold --density 0.2 --p 3 --s-range 0.9,1.1 --json
  calamp threshold --density 0.2 --p 3 --noise-var 1e-8 --spectrum condition:100
  calamp threshold --densities 0.05,0.95,20 --p 3 --plot T.svg
  calamp threshold --prior network:0.2:relu --density 0.3 --p 5 --s-range 0.7,1.3`,
		Args: t.noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd.Flags()) },
	}
	flags := cmd.Flags()
	option.Signals(flags, &t.p, "signals, P")
	t.registerRows(flags)
	t.registerJoint(flags)
	t.truth.Register(flags)
	t.registerNetwork(flags)
	t.registerSpectrum(flags)
	t.registerComplex(flags)
	t.registerOffset(flags)
	t.registerReadings(flags)
	flags.Var(option.Count(&t.n, 1), "n", "entries of a signal: say how many sensors it takes")
	flags.Var(option.Count(&t.m, 1), "m", "sensors that there are, to compare; needs --n")
	flags.Var(&t.densities, "densities", "a curve: n densities from lo to hi, in place of --density")
	flags.Var(option.Number(&t.target, option.Inside01),
		"target", "error that counts as recovery, in units of --signal-var; of E x² where signals come out of a network")
	flags.Var(option.Number(&t.tol, option.Between(1e-7, 0.1)),
		"tol", "error allowed on alpha_cal")
	t.registerOutputs(flags)
	return cmd
}

func (t *threshold) run(flags *pflag.FlagSet) error {
	if err := cmp.Or(t.complete(flags), t.checkComplex(flags)); err != nil {
		return err
	}
	switch {
	case t.p == 0:
		return console.Usage("--p is needed: the number of signals")
	case t.m > 0 && t.n == 0:
		return console.Usage("--m needs --n: the entries of a signal")
	case t.densities.n > 0 && t.n > 0:
		return console.Usage("--n asks about one density: leave out --densities")
	case t.densities.n > 0 && option.Given(flags, "density"):
		return console.Usage("--density and --densities both say where, give one")
	case t.densities.n == 0 && t.plot != "":
		return console.Usage("--plot draws a curve: give --densities lo,hi,n")
	}
	if err := cmp.Or(
		t.checkOutputs(), t.readSpectrum(), t.checkJoint(flags), t.checkTogether(), t.takeReadings(flags),
	); err != nil {
		return err
	}
	if (!t.vector.Independent() || t.joint && t.correlation > 0) && !option.Given(flags, "tol") {
		t.tol = 1e-3 // it is found by bisection, which takes seconds
	}
	ctx, stop := console.Interruptible()
	defer stop()
	if t.densities.n > 0 { // the density is not assumed, it is all of them
		t.truth.Assumed = slices.DeleteFunc(t.truth.Assumed, func(name string) bool { return name == "density" })
	}
	t.truth.NoteAssumption(t.Console, flags)
	densities := t.densities.list(t.truth.Density)
	list, err := t.compute(ctx, densities)
	_, bug := errors.AsType[*crash.Error](err)
	if err != nil && ctx.Err() == nil && (!bug || len(list) == 0) {
		return &console.Exit{Code: console.WrongUsage, Err: err}
	}
	if err != nil && len(list) == 0 {
		return console.Interruption(ctx, err, "nothing to write yet")
	}
	if err := t.writeAll(t.table(list), func() figure.Figure { return t.figure(list) }, t.object(list), t.answer(list)); err != nil {
		return err
	}
	if bug {
		return err
	}
	return console.Interruption(ctx, nil, fmt.Sprintf("%d of %d densities done", len(list), len(densities)))
}

// limits are the thresholds at one density; NaN or Inf where there is none.
type limits struct {
	density, least, known float64
	cal, ideal, informed  evolution.Number
	enough                evolution.Number // NaN where it was not computed
}

// enoughFactor is how many times the error of known gains is good enough, and enoughTol how well the number of sensors for that is computed.
const (
	enoughFactor = 2
	enoughTol    = 0.01
)

// takes is the α from which on signals and gains are recovered as well as can be asked for. With noise that is no less than the limit of known
// gains: below it signals are not recovered with these either, and an error within twice theirs says nothing.
func (t *threshold) takes(l limits) float64 {
	switch {
	case t.likeKnown(l):
		return l.known
	case t.truth.NoiseVar > 0 && !math.IsNaN(l.enough.Value):
		return l.enough.Value
	}
	return l.cal.Value
}

// likeKnown reports whether noise hides the gains wherever signals are recovered.
func (t *threshold) likeKnown(l limits) bool {
	return t.truth.NoiseVar > 0 && l.enough.Value <= l.known
}

// sensorsFor is how many sensors it takes for the n entries of a signal; 0 where no number does, or none was asked for.
func (t *threshold) sensorsFor(l limits) int {
	alpha := t.takes(l)
	if t.n == 0 || math.IsNaN(alpha) || math.IsInf(alpha, 0) {
		return 0
	}
	return max(1, int(math.Ceil(alpha*float64(t.n)/float64(max(1, t.rows)))))
}

// answer is the sentence that says how many sensors it takes, for each entry without --n; empty for a curve of densities.
func (t *threshold) answer(list []limits) string {
	if t.densities.n > 0 || len(list) == 0 {
		return ""
	}
	of := console.Plural(t.p, "signal")
	if t.n > 0 {
		of = fmt.Sprintf("%s and %s", console.Plural(t.n, "entry"), of)
	}
	if t.rows > 1 {
		of += fmt.Sprintf(", with %d rows of W a sensor", t.rows)
	}
	alpha, text := t.takes(list[0]), ""
	switch {
	case math.IsInf(alpha, 0) || math.IsNaN(alpha):
		return "no number of sensors is enough for " + of + t.beside() + "\n"
	case t.n == 0:
		text = fmt.Sprintf("%.3g sensors for each entry of %s", alpha, of)
	default:
		text = fmt.Sprintf("%s for %s", console.Plural(t.sensorsFor(list[0]), "sensor"), of)
	}
	if t.likeKnown(list[0]) {
		text += ", as many as with known gains: gains hardly matter beside such noise"
	}
	return text + t.beside() + "\n"
}

// beside is how many sensors there are, where that was said.
func (t *threshold) beside() string {
	if t.m == 0 {
		return ""
	}
	return fmt.Sprintf("; you have %d", t.m)
}

func (t *threshold) compute(ctx context.Context, densities []float64) ([]limits, error) {
	bar := t.Progress()
	defer bar.Done()
	var list []limits
	for i, rho := range densities {
		bar.Show(fmt.Sprintf("density %.3g", rho), float64(i)/float64(len(densities)))
		l, err := t.at(ctx, rho)
		if err != nil {
			return list, err
		}
		list = append(list, l)
	}
	return list, nil
}

func (t *threshold) at(ctx context.Context, rho float64) (l limits, err error) {
	defer crash.Catch(&err)
	if t.joint {
		return t.jointAt(ctx, rho)
	}
	if t.complex {
		return t.complexAt(ctx, rho)
	}
	g := t.truth.Prior()
	g.Density = rho
	none := evolution.Number{Value: math.NaN()}
	opt := &evolution.ThresholdOptions{Target: t.target, Tol: t.tol, OffsetSD: t.offset, Network: t.network.layers, Entries: t.network.entries(g), Readings: t.sensors()}
	l = limits{density: rho, least: recovery.AlphaMin(rho, t.readings()), ideal: none, informed: none, enough: none}
	if l.known, err = t.knownAt(ctx, g, opt); err != nil {
		return l, err
	}
	if opt.Network != nil {
		l.least = recovery.AlphaMin(evolution.Dimension(g, opt.Network), t.readings())
	}
	if t.offset > 0 {
		l.least = recovery.OffsetAlphaMin(rho, t.p)
	}
	if !t.vector.Independent() {
		l.cal, err = evolution.VectorAlphaCal(ctx, g, t.truth.GainPrior(), t.truth.NoiseVar, t.readings(), t.vector, &evolution.ThresholdOptions{Target: t.target, Tol: t.tol})
		return l, err // the replica formula is that of independent entries
	}
	l.cal, err = evolution.AlphaCal(ctx, g, t.truth.GainPrior(), t.before(), t.readings(), opt)
	if err != nil || t.truth.NoiseVar == 0 || t.offset > 0 || t.reads() { // the free energy with offsets is open
		return l, err
	}
	if t.densities.n == 0 { // seconds each
		if l.enough, err = evolution.AlphaEnough(ctx, g, t.truth.GainPrior(), t.truth.NoiseVar, t.readings(), enoughFactor, &evolution.ThresholdOptions{Tol: enoughTol, Network: opt.Network, Entries: opt.Entries}); err != nil {
			return l, err
		}
	}
	if opt.Network != nil || opt.Entries != nil { // the free energy of layers is open, and the threshold that of Gaussian entries
		return l, nil
	}
	tr, err := replica.InformationThreshold(ctx, g, t.truth.GainPrior(), t.truth.NoiseVar, t.readings(), min(1e-6, t.tol))
	if errors.Is(err, replica.ErrNoTransition) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	l.ideal, l.informed = tr.Information, tr.Informed
	return l, nil
}

// knownAt is the limit with known gains and without noise.
func (t *threshold) knownAt(ctx context.Context, g prior.GaussBernoulli, opt *evolution.ThresholdOptions) (float64, error) {
	if opt.Network == nil && opt.Entries == nil {
		return recovery.AlphaCS(g), nil
	}
	n, err := evolution.AlphaCal(ctx, g, evolution.Known(1), 0, 1, opt)
	return n.Value, err
}

func (t *threshold) table(list []limits) console.Table {
	out := console.Table{Header: []string{"density", "alpha_min", "alpha_cs", "alpha_cal"}}
	if t.truth.NoiseVar > 0 {
		out.Header = append(out.Header, "alpha_it", "alpha_informed")
		if t.densities.n == 0 {
			out.Header = append(out.Header, "alpha_enough")
		}
	}
	for _, l := range list {
		row := []float64{l.density, l.least, l.known, l.cal.Value}
		if t.truth.NoiseVar > 0 {
			row = append(row, l.ideal.Value, l.informed.Value)
			if t.densities.n == 0 {
				row = append(row, l.enough.Value)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// limitsJSON has null where there is no threshold.
func (t *threshold) limitsJSON(l limits) console.Object {
	o := console.Object{"density", l.density, "alpha_min", console.Known(l.least), "alpha_cs", console.Known(l.known)}
	put := func(name string, n evolution.Number) {
		value, err := console.Known(n.Value), console.Known(n.Err)
		if value == nil {
			err = nil
		}
		o = append(o, name, value, name+"_err", err)
	}
	put("alpha_cal", l.cal)
	if t.truth.NoiseVar > 0 {
		put("alpha_it", l.ideal)
		put("alpha_informed", l.informed)
		put("alpha_enough", l.enough) // null on a curve
	}
	return o
}

// object is what threshold prints with --json; a curve has points.
func (t *threshold) object(list []limits) console.Object {
	model, points := t.truth, []console.Object{}
	for _, l := range list {
		points = append(points, t.limitsJSON(l))
	}
	single := console.Object{}
	if t.densities.n == 0 {
		single, points = append(points[0], "n?", t.n, "m?", t.m, "sensors_enough?", t.sensorsFor(list[0]), "answer?", strings.TrimSuffix(t.answer(list), "\n")), nil
	} else {
		model.Density = 0
	}
	return console.Object{
		"p", t.p, "rows_per_sensor?", t.rowsJSON(), "prior?", t.network.text, "model", model, "spectrum", t.spectrum, "target", t.target, "offset_sd?", t.offset,
		"", t.readingsJSON(), "", t.jointJSON(), "", single, "points?", points, "written", t.written(),
	}
}

func (t *threshold) figure(list []limits) figure.Figure {
	f := figure.Figure{
		X:   figure.Axis{Label: "density ρ"},
		Y:   figure.Axis{Label: "sensors for each entry, α"},
		Alt: fmt.Sprintf("Thresholds of blind calibration along the density for P = %d, s in [%g, %g], noise variance %g", t.p, t.truth.SRange[0], t.truth.SRange[1], t.truth.NoiseVar),
	}
	rho := make([]float64, len(list))
	for i, l := range list {
		rho[i] = l.density
	}
	line := func(name string, color figure.Color, dashed bool, value func(limits) float64) {
		y := make([]float64, len(list))
		for i, l := range list {
			y[i] = value(l)
		}
		f.Series = append(f.Series, figure.Series{Name: name, X: rho, Y: y, Color: color, Dashed: dashed})
	}
	line("cal-AMP", figure.Blue, false, func(l limits) float64 { return l.cal.Value })
	line("gains known", figure.Green, true, func(l limits) float64 { return l.known })
	if t.readings() > 1 {
		line("counting bound", figure.Neutral, true, func(l limits) float64 { return l.least })
	}
	if t.truth.NoiseVar > 0 {
		line("information-theoretic", figure.Orange, false, func(l limits) float64 { return l.ideal.Value })
	}
	return f
}

// complexAt are the thresholds of complex problems; with noise, too, only those of cal-AMP.
func (t *threshold) complexAt(ctx context.Context, rho float64) (l limits, err error) {
	g, gain := t.truth.ComplexPrior(), t.truth.ComplexGain(&t.phases)
	g.Density = rho
	none := evolution.Number{Value: math.NaN()}
	l = limits{density: rho, least: recovery.ComplexAlphaMin(rho, t.p, gain.Unknowns()), known: recovery.ComplexAlphaCS(g), ideal: none, informed: none, enough: none}
	l.cal, err = evolution.ComplexAlphaCal(ctx, g, gain, t.truth.NoiseVar, t.p, &evolution.ThresholdOptions{Target: t.target, Tol: t.tol})
	return l, err
}
