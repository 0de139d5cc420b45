package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
)

// scaleRange bounds one scale step: the likelihood is flat along the scale, so
// a far jump would rest on the priors of an early, poor estimate.
const scaleRange = 0.1

// ScaleStep multiplies the signals' estimates by the factor c that maximises
// the evidence along the global scale, and returns it with the standard
// deviation of log c:
//
//	Φ(c) = Σ_µ log ∫ q̃(s; τ_µ, c B_µ) ds - ½ c² (Q + S) + κ log c,
//	Q = Σ ω²/D,   S = Σ x̂(λ-x̂)/Σ,   κ = Σ V g².
//
// The likelihood is unchanged by (X, s) → (cX, cs), so the plain recursion
// moves along this direction only as fast as the priors push. At a fixed point
// of the recursion Wᵀg = (λ-x̂)/Σ, hence Σ g ω = S - κ and Φ'(1) = 0: the step
// leaves fixed points where they are, for any prior. κ log c is the volume of
// the signals' space. Not in the paper.
func (e *Engine) ScaleStep(gain channel.Gain) (c, sd float64) {
	var q, kappa float64
	for j, y := range e.Y {
		if math.IsNaN(y) {
			continue
		}
		q += e.Omega[j] * (e.Omega[j] / (e.V[j] + gain.NoiseVar))
		kappa += e.V[j] * e.G[j] * e.G[j]
	}
	quadratic := q + e.fieldPull
	slopeAt := func(c float64) (first, second float64) {
		first, second = gain.ScaleDerivatives(c, e.Count, e.Tau, e.B)
		return first - c*quadratic + kappa/c, second - quadratic - kappa/(c*c)
	}
	c, curvature := maximise(slopeAt, 1-scaleRange, 1+scaleRange)
	if curvature < 0 {
		sd = 1 / (c * math.Sqrt(-curvature))
	}
	if c != 1 {
		scale(e.X, c)
		scale(e.G, c)
		e.nextPull *= c * c
	}
	return c, sd
}

// maximise finds the zero of a decreasing slope on [lo, hi] by Newton's method
// from 1, guarded by bisection; the maximum may be at an end. It returns the
// curvature there.
func maximise(slope func(float64) (first, second float64), lo, hi float64) (at, curvature float64) {
	c := 1.0
	for range 40 {
		first, second := slope(c)
		curvature = second
		if first > 0 {
			lo = c
		} else {
			hi = c
		}
		next := c - first/second
		if !(second < 0) || !(next > lo && next < hi) {
			next = 0.5 * (lo + hi)
		}
		step := next - c
		c = next
		if math.Abs(step) < 1e-15 {
			break
		}
	}
	return c, curvature
}

func scale(v []float64, c float64) {
	for i := range v {
		v[i] *= c
	}
}
