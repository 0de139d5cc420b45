package diagnosis

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
)

const (
	// narrowed is the posterior variance of s, relative to the prior's, above
	// which nothing was learned.
	narrowed = 0.9

	// unexplained is how many times the error that the noise alone causes is
	// no longer explained by it, and recovered the part of the signals' own
	// power below which they count as recovered anyway.
	unexplained = 30
	recovered   = 1e-3

	// namedFactor is the factor by which the variances of s must have been widened
	// for it to be reported.
	namedFactor = 1.5

	// edgeExcess is how many standard deviations outside its range a sensor's
	// likelihood must have its maximum; by chance that happens to one in 10⁴.
	edgeExcess = 4

	// tracesWithin is the standard error of the precisions of vector AMP, relative, from which on error bars are no longer
	// known to a tenth: as measured, these were off by 2 (independent entries) to 18 times as much (condition 10⁴), since an
	// iteration that contracts by a factor c makes an error 1/(1-c) times as large.
	tracesWithin = 0.005
	tracesGrow   = 20
)

// Warnings lists what the user should know before trusting the result.
func (r *Run) Warnings() []Warning {
	var all []Warning
	for _, w := range []*Warning{
		r.warnSignals(),
		r.warnMeasurements(),
		r.warnSingle(),
		r.warnSilent(),
		r.warnBroken(),
		r.warnOutliers(),
		r.warnClipped(),
		r.warnCommonMode(),
		r.warnUnmeasured(),
		r.warnMatrixMean(),
		r.warnOverconfident(),
		r.warnCorrelated(),
		r.warnNothingLearned(),
		r.warnUnexplained(),
		r.warnEdges(),
		r.warnRows(),
		r.warnRounded(),
		r.warnParts(),
		r.warnScale(),
		r.warnRange(),
		r.warnKnowledge(),
		r.warnPhases(),
		r.warnShifts(),
		r.warnScaleContradicted(),
		r.warnOnlyNoise(),
		r.warnUnrecovered(),
		r.warnNetwork(),
		r.warnUnlike(),
		r.warnOffsets(),
		r.warnFewForOffsets(),
		r.warnCommonEntries(),
		r.warnUnequal(),
		r.warnNoiseAt(),
		r.warnTraces(),
		r.warnColumns(),
		r.warnOverlap(),
		r.warnGaussian(),
		r.warnFits(),
		r.warnCommonMisfit(),
		r.warnDrift(),
	} {
		if w != nil {
			all = append(all, *w)
		}
	}
	if slices.ContainsFunc(all, func(w Warning) bool { return w.Code == OnlyNoise }) {
		all = slices.DeleteFunc(all, func(w Warning) bool { return slices.Contains(fromNoise, w.Code) })
	}
	return all
}

// fromNoise are the warnings that follow where there is nothing but noise: about gains and sensors of which nothing can be found, and a run
// that does not settle on them.
var fromNoise = []string{
	SignalNotConverged, NothingLearned, ManyBroken, SensorBroken, OutlyingReadings, UnexplainedVariance, SensorAtEdge,
	RangeNotLearned, ScaleFromGains, ScaleFromNoise, GaussianSignals,
}

// warnClipped tells of readings that stop at a limit that was not given: taken as they are, they are wrong by as much as is cut off.
func (r *Run) warnClipped() *Warning {
	if channel.LimitOf(r.model().Channel) > 0 {
		return nil
	}
	if text := r.clipping(); text != "" {
		return &Warning{Code: ClippedReadings, Message: text}
	}
	return nil
}

// warnCorrelated is about signals that share more than chance gives them: error bars were
// widened for it, and gains and signals perhaps moved jointly.
func (r *Run) warnCorrelated() *Warning {
	share, factor := r.Solver.Widening()
	joint := r.Plan.Has("joint moves") && r.Converged
	what := fmt.Sprintf("the signals are correlated: one pattern has a share %.3g of the calibrated readings' power", share)
	switch {
	case math.IsInf(factor, 1):
		what += ", which can hardly be separated from the gains: s is reported with its prior variance"
	case factor > namedFactor:
		what += fmt.Sprintf(", so errors do not average over signals: the readings' information on s was divided by %.2g", factor)
	case joint:
		return &Warning{Code: SignalsAlike, Message: fmt.Sprintf("all sensors read the signals in nearly the same proportions (%.3g of the readings' power): gains and the signals' common part can hardly be separated; they were updated jointly, and the error bars hold only as far as the model does", r.proportional())}
	default:
		return nil
	}
	if joint {
		what += fmt.Sprintf("; all sensors read them in nearly the same proportions (%.3g of the power), and gains were updated jointly with their common part", r.proportional())
	}
	return &Warning{Code: SignalsAlike, Message: what}
}

func (r *Run) warnSignals() *Warning {
	if r.Settings.Tol < 0 || r.Outcome == amp.Cancelled {
		return nil
	}
	w := Warning{Code: SignalNotConverged}
	for k := range r.signals() {
		if !r.SignalConverged(k * r.state.Columns()) {
			w.Signals = append(w.Signals, k)
		}
	}
	if len(w.Signals) == 0 {
		return nil
	}
	if r.Outcome == amp.Diverged {
		w.Message = fmt.Sprintf("%d of %d signals did not converge: the estimates diverged", len(w.Signals), r.signals())
		return &w
	}
	k := w.Signals[0]
	w.Message = fmt.Sprintf("%d of %d signals did not converge; the first is signal %d, with a relative change of %.2g in the last iteration", len(w.Signals), r.signals(), k, r.Solver.Change[k*r.state.Columns()])
	return &w
}

func (r *Run) warnMeasurements() *Warning {
	alpha, signals := float64(r.usable())/float64(r.state.N), r.blind() && r.state.Each > r.state.Columns()
	var least, counting, density float64
	switch p := r.model().Prior.(type) {
	case interface{ GaussBernoulliPrior() prior.GaussBernoulli }:
		g := p.GaussBernoulliPrior()
		density, counting = g.Density, recovery.AlphaMin(g.Density, r.state.Each)
		if r.state.Offsets() {
			counting = recovery.OffsetAlphaMin(g.Density, r.state.Each)
		}
		if r.joint() {
			return r.warnJointMeasurements(alpha, counting)
		}
		if alpha >= recovery.MostAlphaCS(density) && (!signals || alpha >= counting) {
			return nil // nearly always, and α_CS takes integrals
		}
		least = recovery.AlphaCS(g)
	case interface {
		ComplexPrior() prior.ComplexGaussBernoulli
	}:
		g := p.ComplexPrior()
		density, least = g.Density, recovery.ComplexAlphaCS(g)
		if gains, ok := r.calibration().(channel.Turning); ok {
			counting = recovery.ComplexAlphaMin(g.Density, r.state.Each/r.state.Columns(), gains.Unknowns())
		}
		if r.joint() {
			return r.warnJointMeasurements(alpha, counting)
		}
	default:
		return nil
	}
	text := fmt.Sprintf("α_CS = %.4g is needed at density %.3g even with known gains", least, density)
	if signals {
		text = fmt.Sprintf("the counting bound for %s is α_min = %.4g, and %s", r.readingsOfSensor(), counting, text)
		least = max(least, counting)
	}
	if alpha >= least {
		return nil
	}
	return &Warning{
		Code:    TooFewMeasurements,
		Message: fmt.Sprintf("α = M/N = %.4g is below what exact recovery needs: %s", alpha, text),
	}
}

// usable is the number of rows that say something of the signals. Where many are called broken it is the model that is in doubt, and
// they count.
func (r *Run) usable() int {
	if r.shared() {
		return r.usableRows()
	}
	usable := r.state.M - len(r.Silent)
	if !r.manyBroken() {
		usable -= len(r.BrokenSensors())
	}
	return usable
}

func (r *Run) warnSingle() *Warning {
	if _, together := channel.SmoothOf(r.calibration()); together || !r.blind() || r.signals() > 1 || r.shared() {
		return nil
	}
	return &Warning{Code: SingleSignal, Message: "one signal hardly determines the gains; give more signals from the same sensors"}
}

func (r *Run) warnSilent() *Warning {
	if len(r.Silent) == 0 {
		return nil
	}
	what, s := "no usable reading", "their s is"
	switch zero := len(r.Zero); {
	case zero == len(r.Silent):
		what = "only readings of exactly zero, which are taken as missing"
	case zero > 0:
		what += fmt.Sprintf(", %d of them since they read exactly zero throughout, which is taken as missing", zero)
	}
	if len(r.Silent) == 1 {
		s = "its s is"
	}
	return &Warning{Code: SilentSensor, Message: fmt.Sprintf("%s %s; %s the prior mean", sensors(r.Silent), what, s), Sensors: r.Silent}
}

// sensors is "sensor 3 has", or "4 sensors (first: 3) have".
func sensors(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("sensor %d has", list[0])
	}
	return fmt.Sprintf("%d sensors (first: sensor %d) have", len(list), list[0])
}

func (r *Run) warnUnmeasured() *Warning {
	var first, count int
	for i, measured := range r.measured() {
		if !measured {
			if count == 0 {
				first = i
			}
			count++
		}
	}
	if count == 0 || r.Solver.Iterations == 0 {
		return nil
	}
	return &Warning{
		Code:    UnmeasuredEntry,
		Message: fmt.Sprintf("%d of the %d columns of W are zero at every sensor that reads (first: column %d); the signals' entries there are the prior mean", count, r.state.N, first),
	}
}

// measured says of which entries (N) a sensor that reads has something: all but those of zero columns of W. AMP leaves these an infinite variance Σ of
// their field. Vector AMP has one Σ for a signal, so that the squared norms of columns over the sensors that read are computed instead.
func (r *Run) measured() []bool {
	m, n := r.state.W.Dims()
	out, squares := make([]bool, n), make([]float64, n)
	for i := range out {
		out[i] = !math.IsInf(r.state.Sigma[i], 1)
	}
	matrices, _ := operator.Separate(r.state.W)
	if !r.vector() || matrices != nil || !operator.HasSquares(r.state.W) {
		return out
	}
	reads := make([]float64, m)
	for mu := range reads {
		if !slices.Contains(r.Silent, mu) {
			reads[mu] = 1
		}
	}
	sweep, err := r.state.W.NewSweep(1, 1, r.state.Threads)
	if err != nil {
		return out
	}
	ones := slices.Repeat([]float64{1}, n)
	err = sweep.Run(make([]float64, n), squares, ones, ones, func(first int, _, _, g, d []float64) {
		clear(g)
		copy(d, reads[first:])
	})
	for i := range out {
		out[i] = out[i] && (err != nil || squares[i] > 0)
	}
	return out
}

func (r *Run) warnNothingLearned() *Warning {
	if !r.blind() || r.Solver.Iterations == 0 {
		return nil
	}
	_, before := channel.Typical(r.calibration())
	if r.known() {
		return nil // it may be known better than readings can tell
	}
	after := amp.Mean(r.state.SVar)
	learning, is := amp.PartOf[*amp.Learning](r.Solver)
	blurred := is && learning.Blurred
	if after < narrowed*before && !blurred {
		return nil
	}
	if _, rejected := r.rangeTest(); rejected {
		return nil // gains that differ by less than can be seen
	}
	if blurred {
		return &Warning{
			Code:    RangeNotLearned,
			Message: fmt.Sprintf("the readings do not determine the spread of s: they agree with equal gains, and error bars are those of a spread of %.2g %%, which chance would hide", 100*math.Sqrt(before)/channel.Middle(r.calibration())),
		}
	}
	if r.LearnCalibration {
		lo, hi := r.calibration().Range()
		return &Warning{
			Code:    RangeNotLearned,
			Message: fmt.Sprintf("the readings do not determine the spread of s: they agree with [%.4g, %.4g], and improve the s of no sensor", lo, hi),
		}
	}
	if !r.gainsMatter() && amp.Mean(r.state.C) < unmoved*r.model().Prior.Variance() {
		return nil // there was nothing to learn, and the signals are known
	}
	return &Warning{
		Code:    NothingLearned,
		Message: fmt.Sprintf("the posterior of s is no narrower than its prior: its standard deviation is %.3g, that of the prior %.3g", math.Sqrt(after), math.Sqrt(before)),
	}
}

// gainsMatter reports whether gains that are spread as the prior of s says change calibrated readings by more than the noise does: Var(s) y² > Δ,
// on average. Gains given to lie closer together than that are known, as far as anybody can see.
func (r *Run) gainsMatter() bool {
	_, variance := channel.Typical(r.calibration())
	power, count := 0.0, 0.0
	for j, y := range r.state.Y {
		if !math.IsNaN(y) {
			y = r.state.Reading(j)
			power, count = power+y*y, count+1
		}
	}
	return variance*power > r.noise()*count
}

// warnUnexplained compares the posterior variances with what noise alone would
// cause if gains and supports were known: C = ρΔ/(w̄(M - ρN)), from Σ = (V+Δ)/(w̄M),
// V = w̄NC and C = ρΣ. For vector AMP it is linear algebra that says so (see [Run.flatness]).
func (r *Run) warnUnexplained() *Warning {
	sparse, ok := r.model().Prior.(prior.Sparse)
	if !ok || r.Solver.Iterations == 0 || !r.additive() {
		return nil
	}
	density, active, own := sparse.NonZero(), float64(r.usable()), sparse.Variance()
	spare := max(active-density*float64(r.state.N), 0.01*active)
	explained := density * r.noise() / (r.state.MeanSquare() * spare)
	w, columns := Warning{Code: UnexplainedVariance}, float64(r.state.Columns())
	worst := 0.0
	for k := range r.signals() {
		if r.oracle != nil {
			explained = r.oracle[k] / float64(r.state.N)
		}
		first := k * r.state.Columns() * r.state.N
		each := r.state.C[first : first+r.state.N]
		found := r.state.SumC[k*r.state.Columns()] / float64(r.state.N) // before error bars were widened
		if c := found * r.unknownOf(each) / amp.Mean(each); c > max(unexplained*explained, recovered*own) {
			w.Signals = append(w.Signals, k)
			worst = max(worst, c)
		}
	}
	if len(w.Signals) == 0 {
		return nil
	}
	if worst < own/4 { // errors of less than half of what they are
		w.Message = fmt.Sprintf("%d of %d signals are known to within %.2g %% of their standard deviation only, where the noise explains %.2g %%", len(w.Signals), r.signals(), 100*math.Sqrt(worst/own), 100*math.Sqrt(explained/own))
		return &w
	}
	w.Message = fmt.Sprintf("%d of %d signals are not recovered: their mean posterior variance is up to %.2g, where the noise explains %.2g and the signals' own variance is %.2g", len(w.Signals), r.signals(), worst*columns, explained*columns, own*columns)
	return &w
}

// edges is by how many standard deviations each s would be outside its range, and these squared, as the iteration left them: error bars that are mended
// later have statistics in the range.
type edges struct{ outside, variance []float64 }

func (r *Run) findEdges() edges {
	e := edges{make([]float64, r.state.M), slices.Clone(r.state.SVar)}
	for mu := range e.outside {
		e.outside[mu] = math.Abs(r.calibration().Excess(r.stats(mu)))
	}
	return e
}

// beyond is the larger of that, with the error bar that s has now, and of how far s itself is outside.
func (r *Run) beyond(mu int) float64 {
	lo, hi := r.calibration().Range()
	s, v := r.state.S[mu], r.state.SVar[mu]
	if !(v > 0) {
		return r.edges.outside[mu]
	}
	return max(math.Abs(s-min(max(s, lo), hi))/math.Sqrt(v), r.edges.outside[mu]*math.Sqrt(min(1, r.edges.variance[mu]/v)))
}

func (r *Run) warnEdges() *Warning {
	if _, rejected := r.rangeTest(); rejected || !r.blind() {
		return nil // a normal distribution has no edge
	}
	if _, together := channel.SmoothOf(r.calibration()); together {
		return nil // its neighbours say what a gain is to be, and not a range: see notSmooth
	}
	if r.LearnCalibration {
		return r.warnOutlying()
	}
	w := Warning{Code: SensorAtEdge}
	worst, at := 0.0, 0
	for mu := range r.state.M {
		x := r.beyond(mu)
		if x > edgeExcess && !r.isBroken(mu) {
			w.Sensors = append(w.Sensors, mu)
			if x > worst {
				worst, at = x, mu
			}
		}
	}
	if len(w.Sensors) == 0 {
		return nil
	}
	lo, hi := r.calibration().Range()
	w.Message = fmt.Sprintf("the likeliest s of %d in %d sensors is outside [%.4g, %.4g]; sensor %d is the furthest, by %.3g of its standard deviations: sensors are faulty, or the range is too narrow", len(w.Sensors), r.state.M, lo, hi, at, worst)
	return &w
}

// warnRounded tells that rounding is no longer small beside the noise.
func (r *Run) warnRounded() *Warning {
	noise := r.GivenNoise
	if !(r.Rounding > 0.01*noise) {
		return nil
	}
	return &Warning{Code: RoundedMatrix, Message: fmt.Sprintf(
		"W was rounded to single precision, as asked: rounding counts as noise of variance %.2g, which was added to the given %.2g; f64 or auto reach further",
		r.Rounding, noise)}
}

// warnTraces tells that the precisions of vector AMP are estimates that scatter.
func (r *Run) warnTraces() *Warning {
	e := r.Solver.Uncertainty()
	if !(e > tracesWithin) {
		return nil
	}
	return &Warning{Code: EstimatedTraces, Message: fmt.Sprintf(
		"the precisions of vector AMP are estimates without a decomposition of W, here right to %.2g %%, and error bars may be off by some %.2g %%; with memory for a decomposition they are exact",
		100*e, 100*tracesGrow*e)}
}
