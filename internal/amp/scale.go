package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
)

// scaleRange bounds one scale step: the likelihood is flat along the scale, so
// a far jump would rest on the priors of an early, poor estimate.
const scaleRange = 0.1

// scaleEvidence is the evidence along the global scale: when all estimates of
// the signals are multiplied by c,
//
//	Φ(c) = Σ_µ log ∫ q̃(s; τ_µ, c B_µ) ds - ½ c² (Q + S) + κ log c,
//	Q = Σ ω²/D,   S = Σ x̂(λ-x̂)/Σ,   κ = Σ V g².
//
// The likelihood is unchanged by (X, s) → (cX, cs), so the plain recursion
// moves along this direction only as fast as the priors push. At a fixed point
// of the recursion Wᵀg = (λ-x̂)/Σ, hence Σ g ω = S - κ and Φ'(1) = 0: the
// maximum leaves fixed points where they are, for any prior. κ log c is the
// volume of the signals' space. Not in the paper.
type scaleEvidence struct {
	gain          channel.Gain
	count, tau, b []float64
	quadratic     float64 // Q + S
	volume        float64 // κ
}

// slope returns Φ'(c) and Φ”(c).
func (s *scaleEvidence) slope(c float64) (first, second float64) {
	first, second = s.gain.ScaleDerivatives(c, s.count, s.tau, s.b)
	return first - c*s.quadratic + s.volume/c, second - s.quadratic - s.volume/(c*c)
}

// sd is the standard deviation of log c at the present scale, 0 where the
// evidence has no maximum nearby.
func (s *scaleEvidence) sd() float64 {
	if _, curvature := s.slope(1); curvature < 0 {
		return 1 / math.Sqrt(-curvature)
	}
	return 0
}

func (e *Engine) scaleEvidence(gain channel.Gain) scaleEvidence {
	s := scaleEvidence{gain: gain, count: e.Count, tau: e.Tau, b: e.B, quadratic: e.fieldPull}
	for j, y := range e.Y {
		if !math.IsNaN(y) {
			s.quadratic += e.Omega[j] * (e.Omega[j] / (e.V[j] + gain.NoiseVar))
			s.volume += e.V[j] * e.G[j] * e.G[j]
		}
	}
	return s
}

// ScaleStep multiplies the signals' estimates by the factor that maximises the
// evidence along the global scale, and returns it.
func (e *Engine) ScaleStep(gain channel.Gain) float64 {
	s := e.scaleEvidence(gain)
	return e.rescale(maximise(s.slope, 1-scaleRange, 1+scaleRange))
}

// ScaleSD is the standard deviation of the logarithm of the global scale, its
// curvature's: an error common to all of X and s.
func (e *Engine) ScaleSD(gain channel.Gain) float64 {
	s := e.scaleEvidence(gain)
	return s.sd()
}

// rescale multiplies x̂, and g with it: the next Onsager term belongs to it.
func (e *Engine) rescale(c float64) float64 {
	scale(e.X, c)
	scale(e.G, c)
	e.nextPull *= c * c
	return c
}

// maximise finds the zero of a decreasing slope on [lo, hi] by Newton's method
// from 1, guarded by bisection; the maximum may be at an end.
func maximise(slope func(float64) (first, second float64), lo, hi float64) float64 {
	c := 1.0
	for range 40 {
		first, second := slope(c)
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
	return c
}

func scale(v []float64, c float64) {
	for i := range v {
		v[i] *= c
	}
}
