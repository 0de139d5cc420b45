package diagnosis

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/prior"
)

const (
	// medianSquare is the median of the square of a standard normal number.
	medianSquare = 0.454936423119573

	// offsetRatio is how many times their expected size the typical squared row means of the
	// residuals must be for offsets, beyond what offsetChance standard errors of a median of as
	// many sensors allow (2.33/√M, relative). See docs/log/validation.md for what runs have.
	offsetRatio  = 2
	offsetChance = 6

	// leastForOffset is the number of readings that tell a sensor's mean from their spread, and
	// leastOffsets the number of such sensors for a typical one.
	leastForOffset = 3
	leastOffsets   = 20

	// offsetSignals is the number of signals from which on error bars hold beside offsets: below, what the offsets
	// do to all signals equally makes them too small, by up to 700 times in the mean square with 4 signals.
	offsetSignals = 10

	// mostCommon is the expected number of entries that all signals but one have, or all, from which on it is reported:
	// a shift of such an entry in all signals leaves as many of them zero.
	mostCommon = 0.1
)

// MeanOff compares the mean of so many residuals of a sensor with the sum of their squared deviations from it: the squared t
// statistic, relative to what independent residuals have in the median; not ok where that says nothing. An offset that is not
// in the model is in all residuals of its sensor with the same sign, however much of it was taken for noise.
func MeanOff(n, mean, spread float64) (ratio float64, ok bool) {
	if n < leastForOffset || !(spread > 0) {
		return 0, false
	}
	// The median of t² with ν degrees of freedom is about 1+0.77/ν times that of a normal.
	return mean * mean * n * (n - 1) / spread / (medianSquare * (1 + 0.77/(n-1))), true
}

// FindOffsets is what to do about offsets of real readings.
const FindOffsets = "which can be found with the gains: --offset auto"

// OffsetsIn is the warning of offsets where that is what these ratios say (see [MeanOff]), so many of a sensor, of means over what, with the
// remedy; nil elsewhere.
func OffsetsIn(ratios []float64, each int, what, remedy string) *Warning {
	count := len(ratios)
	if count < leastOffsets {
		return nil
	}
	ratio := median(ratios)
	if !(ratio > offsetRatio+offsetChance*2.33/math.Sqrt(float64(count))) {
		return nil
	}
	return &Warning{Code: Offsets, Message: fmt.Sprintf("%d sensors read too much or too little by the same amount in all %s: the means of their residuals are %.2g times those of chance; the sensors have offsets, y = z/s + o, %s", count/each, what, math.Sqrt(ratio), remedy)}
}

// residualsOf are the number, the mean and the sum of squared deviations of a sensor's residuals: of real readings, or of one part of
// complex ones, without those of some signals.
func (r *Run) residualsOf(mu, part int, without []int) (n, mean, spread float64) {
	var all []float64
	for k := part; k < r.state.Each; k += r.state.Columns() {
		if v := r.state.Residual(mu, k); !math.IsNaN(v) && !slices.Contains(without, k%r.state.P/r.state.Columns()) {
			all = append(all, v)
			mean += v
		}
	}
	n = float64(len(all))
	mean /= max(1, n)
	for _, v := range all {
		spread += (v - mean) * (v - mean)
	}
	return n, mean, spread
}

// warnOffsets tells of offsets that are not in the model.
func (r *Run) warnOffsets() *Warning {
	if r.Solver.Iterations == 0 || r.state.Offsets() || !r.additive() {
		return nil
	}
	var ratios []float64
	for mu := range r.state.M {
		if r.isBroken(mu) {
			continue
		}
		for part := range r.state.Columns() {
			n, mean, spread := r.residualsOf(mu, part, nil)
			if e, constant := r.Solver.Whitened(mu); e != nil {
				n, mean, spread = along(e, constant)
			}
			if ratio, ok := MeanOff(n, mean, spread); ok {
				ratios = append(ratios, ratio)
			}
		}
	}
	remedy := FindOffsets
	if r.complex() {
		remedy = "which are not modelled where readings are complex: subtract a reading that was taken without a signal"
	}
	return OffsetsIn(ratios, r.state.Columns(), "signals", remedy)
}

// warnFewForOffsets tells of error bars that do not hold beside offsets. Where signals are integrated out, so are offsets.
func (r *Run) warnFewForOffsets() *Warning {
	if !r.state.Offsets() || r.integrated() || r.state.Each >= offsetSignals || r.Plan.Has("covariances") {
		return nil
	}
	return &Warning{Code: OffsetsFewSignals, Message: fmt.Sprintf("offsets change all signals in the same way, and error bars leave that out with %s: they are too small, by up to 80 times, and the estimates may be wrong; give at least %d signals, or readings without offsets", r.readingsOfSensor(), offsetSignals)}
}

// warnCommonEntries tells of signals that are not sparse enough for offsets. Where signals are integrated out the error bars have it, and of several rows of a sensor W makes different numbers of one entry.
func (r *Run) warnCommonEntries() *Warning {
	if !r.state.Offsets() || r.integrated() || r.shared() {
		return nil
	}
	density := 1.0
	if p, ok := r.model().Prior.(prior.Sparse); ok {
		density = p.NonZero()
	}
	p := float64(r.state.P)
	expected := float64(r.state.N) * math.Pow(density, p-1) * (density + p*(1-density))
	if !(expected > mostCommon) {
		return nil
	}
	return &Warning{Code: OffsetsCommonEntries, Message: fmt.Sprintf("about %.2g of the %d entries are non-zero in all signals, or in all but one: their common part cannot be separated from offsets of W times it; more signals or sparser ones would help", expected, r.state.N)}
}
