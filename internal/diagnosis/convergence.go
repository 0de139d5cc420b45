package diagnosis

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

const (
	// agreement below which a fixed point is rejected, and below which its
	// variances are called too small: see [Run.agreement]. Where W was
	// ill-conditioned enough for errors ten times too large, it was 0.6 to 0.7;
	// with independent entries it is 1.
	leastAgreement = 0.7
	right          = 0.9

	// misfitExcess is how many times larger than expected residuals are where
	// the model does not explain the readings.
	misfitExcess = 3

	// swinging is the relative change below which all but single entries are at
	// rest.
	swinging = 1e-2

	// creeping is the relative change of a run of vector AMP that is on its last way, and stalled
	// a mean square residual, relative to the noise, that no such run has: where it was stuck,
	// it was 10⁴ and more.
	creeping = 1e-3
	stalled  = 10

	// spread is the largest singular value of W, relative to that of
	// independent entries, from which on it is a cause.
	spread = 1.15
)

// agreement is 1 at a fixed point of AMP when W has independent entries: it
// compares the distance between signals and fields with their variances, where
// a wrong noise variance, which misfit sees, makes no difference. Where W is
// ill-conditioned the fixed point is too sure of itself, and it is less.
func (r *Run) agreement() float64 {
	if r.Settings.Covariance == solver.Full || r.Solver.Integrated().Sites {
		return 1 // its fields are not kept, or they are what the posterior leaves beside a site
	}
	c := r.state.Confidence()
	return max(c, c/r.state.Misfit())
}

// chance is how far below 1 the agreement can be for few entries.
func (r *Run) chance() float64 { return 1 - 6*math.Sqrt(2/float64(r.state.N*r.state.P)) }

// Judge says how a run ended, in a sentence. An iteration that converged where it
// does not agree with itself has not converged to anything that can be used: it is doubtful.
func (r *Run) Judge(outcome amp.Outcome) (doubtful bool, reason string) {
	done := r.Solver.Iterations
	switch outcome {
	case amp.Cancelled:
		return false, fmt.Sprintf("the run was cancelled after %d iterations", done)
	case amp.Diverged:
		reason = fmt.Sprintf("the estimates diverged at iteration %d; the last finite ones are returned", done)
	case amp.Converged:
		if ratio := r.flatness(); ratio > falselySure {
			r.FalselySure = true
			return true, fmt.Sprintf("the iteration reached a fixed point after %d steps, but some combinations of the signals' entries hardly reach any reading through this W, and vector AMP states too small variances for them: linear algebra gives at least %.2g times as much; try --algorithm amp, or other rows", done, ratio)
		}
		if text := r.unchecked(); text != "" {
			return true, text
		}
		if r.vector() && r.warnFewForOffsets() != nil {
			return true, fmt.Sprintf("the iteration reached a fixed point after %d steps, but what offsets do to all of %d signals is not followed: errors may be far larger than their variances say; give at least %d signals, or leave out sensors of which single readings are missing", done, r.state.P, offsetSignals)
		}
		if text := r.rowsUnlike(); text != "" {
			return true, fmt.Sprintf("the iteration reached a fixed point after %d steps, but %s", done, text)
		}
		a := r.agreement()
		if a >= min(leastAgreement, r.chance()) {
			return false, fmt.Sprintf("every signal met its tolerance in the last %d of %d iterations", amp.SettledFor, done)
		}
		doubtful = true
		reason = fmt.Sprintf("the iteration reached a fixed point after %d steps, but the estimates are further off than their variances allow (agreement %.2g, expected 1)", done, a)
		if math.IsNaN(a) {
			reason = fmt.Sprintf("the iteration reached a fixed point after %d steps, but no reading is left that depends on the signals", done)
		}
	default:
		if reason = r.limitReason(); r.Settings.Tol < 0 {
			return false, reason
		}
	}
	if cause := r.cause(); cause != "" {
		reason += "; likely cause: " + cause
	}
	return doubtful, reason
}

const (
	// mostlyBroken is the part of the sensors that read whose loss leaves no result.
	mostlyBroken = 0.5

	// unmoved is the posterior variance of signals, relative to the prior's, above which
	// nothing was learned of them.
	unmoved = 0.9

	// unmovedByCounts is the same where counts leave most of the signals open, and their noise is known: three of them 0.7 to 0.92. Runs that have not begun have 0.97 to 1.03 (see waiting of
	// internal/amp).
	unmovedByCounts = 0.95
)

// NothingRecovered says in a sentence why a run that converged has no result; empty
// where it has one.
func (r *Run) NothingRecovered() string {
	if !r.Converged || r.Solver.Iterations == 0 {
		return ""
	}
	if w := r.warnNothingLearned(); w != nil {
		if text := r.unmixed(); text != "" {
			return text
		}
	}
	if w := r.warnOnlyNoise(); w != nil {
		return w.Message
	}
	reading, broken := r.state.M-len(r.Silent), 0
	for mu := range r.state.M {
		if r.isBroken(mu) {
			broken++
		}
	}
	if float64(broken) > mostlyBroken*float64(reading) {
		return fmt.Sprintf("%d of the %d sensors that read seem broken, and were left out: the remaining estimate is no answer; most likely W, the noise variance, the range of s or the signals' prior is wrong", broken, reading)
	}
	open := unmoved
	if _, counts := channel.CountsOf(r.model().Channel); counts {
		open = unmovedByCounts
	}
	if before, after := r.model().Prior.Variance(), r.unknownOf(r.state.C); after >= open*before {
		return fmt.Sprintf("the iteration reached a fixed point at which the signals are unknown: their posterior variance is %.3g, their prior variance %.3g", after, before)
	}
	if text := r.uncheckedFew(); text != "" {
		return text
	}
	return r.phasesOpen()
}

// cause looks for what keeps AMP from converging.
func (r *Run) cause() string {
	if text := r.extreme(); text != "" {
		return text
	}
	if r.Outcome == amp.AtLimit && r.Limit < fewIterations {
		return fmt.Sprintf("only %d iterations were allowed (--max-iter)", r.Limit)
	}
	if text := r.wrongInput(); text != "" {
		return text
	}
	if r.Outcome == amp.AtLimit {
		return r.slowness()
	}
	return ""
}

// wrongInput looks for a cause in W and in the readings.
func (r *Run) wrongInput() string {
	if text := r.unmixed(); text != "" {
		return text
	}
	if text := r.meanExcess(); text != "" {
		return text + " those of independent entries of mean zero, and they were not removed"
	}
	if text := r.illConditioned(); text != "" {
		return text
	}
	if share := r.proportional(); share > amp.MostInCommon {
		return fmt.Sprintf("this W hardly distinguishes the signals: all sensors read them in nearly the same proportions (%.3g of the readings' power), so gains and the signals' common part cannot be separated; signals that differ more would help, or a W with a smaller mean", share)
	}
	if text := r.clipping(); text != "" {
		return text
	}
	if fit := r.state.Misfit(); fit > misfitExcess {
		return fmt.Sprintf("the residuals are %.2g times what noise and posterior variances explain: the noise variance is too small, or sensors are faulty", math.Sqrt(fit))
	}
	return ""
}

// residual is the mean square of ŝy - ω over the noise variance; 0 where there is none.
func (r *Run) residual() float64 {
	noise := r.noise()
	if !(noise > 0) {
		return 0
	}
	e, total, count := r.state, 0.0, 0.0
	for j, g := range e.G {
		if mu := e.SensorOf(j); !math.IsNaN(e.Y[j]) && !r.isBroken(mu) {
			d := e.S[mu]*e.Reading(j) - e.Omega[j] - e.V[j]*g // after the reading: ω + Vg
			total += d * d * (noise / e.Noise(j))
			count++
		}
	}
	return total / max(1, count) / noise
}

// slowness looks for what keeps a run on its way that nothing disturbs.
func (r *Run) slowness() string {
	if w := r.warnOnlyNoise(); w != nil {
		return w.Message + ": they are noise, or this W did not make them, or the sensors are far too few for such signals"
	}
	if left := r.unknown(); left > wellKnown && r.additive() {
		if text := nearThreshold(r.theory(), left); text != "" {
			return text + "; more sensors or signals would help"
		}
	}
	if text := r.otherNetwork(); text != "" {
		return text
	}
	if ratio := r.residual(); r.vector() && ratio > stalled {
		return fmt.Sprintf("the run is stuck: the residuals are %.2g times what the noise explains", math.Sqrt(ratio))
	}
	if from, to, n := r.falling(); n > 0 {
		return fmt.Sprintf("the run was still converging: the change fell from %.2g to %.2g in the last %d iterations; allow more (--max-iter)", from, to, n)
	}
	if worst := slices.Max(r.Solver.Change); r.vector() && worst < creeping {
		return "combinations of entries that hardly matter to any reading still move; the readings are explained, and the error bars hold"
	}
	if slices.Max(r.Solver.Change) < swinging {
		return "single entries keep switching between zero and another value; more iterations, or more damping, may settle them"
	}
	return ""
}

// illConditioned describes a W whose spectrum is not that of independent
// entries, which matters to AMP.
func (r *Run) illConditioned() string {
	if r.vector() || r.integrated() {
		return ""
	}
	w := r.spectrum()
	expected := 1 + math.Sqrt(float64(r.state.Rows())/float64(r.state.N))
	if w.err != nil || !(w.largest > spread*expected) {
		return ""
	}
	return fmt.Sprintf("W is ill-conditioned or its rows or columns are correlated: its largest singular value is %.2g times that of independent entries, its condition number at least %.2g", w.largest/expected, w.largest/w.smallest)
}

// meanExcess describes means of W that were left where they are.
func (r *Run) meanExcess() string {
	w := r.state.W
	// Rows that are orthogonal have no large singular value, whatever their means are.
	if _, orthogonal := operator.Orthogonal(w); orthogonal || r.vector() || r.integrated() || r.Plan.Has("mean removal") {
		return ""
	}
	w = operator.RealOf(w)
	means, err := operator.MeansOf(w, r.state.Threads)
	if err != nil {
		return ""
	}
	return meanExcess(operator.MeanExcess(w, means))
}

func meanExcess(rows, columns float64, rowsExceed, columnsExceed bool) string {
	switch {
	case rowsExceed && columnsExceed:
		return fmt.Sprintf("row and column means of W are %.2g and %.2g times", math.Sqrt(rows), math.Sqrt(columns))
	case rowsExceed:
		return fmt.Sprintf("row means of W are %.2g times", math.Sqrt(rows))
	case columnsExceed:
		return fmt.Sprintf("column means of W are %.2g times", math.Sqrt(columns))
	}
	return ""
}

func (r *Run) warnMatrixMean() *Warning {
	text := r.meanExcess()
	if text == "" {
		return nil
	}
	return &Warning{Code: MatrixMean, Message: text + " those of independent entries of mean zero, for which the algorithm is derived; it may fail to converge"}
}

// warnOverconfident is about an answer that is right, with variances that are not.
func (r *Run) warnOverconfident() *Warning {
	if !r.Converged || r.Solver.Iterations == 0 {
		return nil
	}
	a := r.agreement()
	if !(a < min(right, r.chance())) {
		return nil
	}
	text := r.illConditioned()
	if text == "" {
		return nil
	}
	return &Warning{Code: MatrixSpectrum, Message: text + "; the posterior variances are too small, by a factor of two or so"}
}

// limitReason is how far a run was at its iteration limit.
func (r *Run) limitReason() string {
	if r.Settings.Tol < 0 {
		return fmt.Sprintf("%d iterations were done, as asked, without a test of convergence", r.Limit)
	}
	done, worst := 0, 0.0
	for k, n := range r.Solver.Settled {
		if n >= amp.SettledFor {
			done++
		}
		worst = max(worst, r.Solver.Change[k])
	}
	return fmt.Sprintf("the iteration limit %d was reached with %d of %d signals converged; the largest relative change was %.2g, the tolerance is %.2g", r.Limit, done/r.state.Columns(), r.signals(), worst, r.Solver.Tolerance())
}
