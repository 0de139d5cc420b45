package amp

import (
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/search"
)

// scaleRange bounds one scale step: the likelihood is flat along the scale, so
// a far jump would rest on the priors of an early, poor estimate.
const scaleRange = 0.1

// scaleEvidence is the evidence along the global scale: when all estimates of
// the signals are multiplied by c,
//
//	Φ(c) = Σ_µ (1-π_µ) log ∫ q̃(s; τ_µ, c B_µ) ds - ½ c² (Q + S) + κ log c,
//	Q = Σ (1-π)ω²/D,   S = Σ x̂(λ-x̂)/Σ,   κ = Σ V g²,
//
// where a sensor that is broken with probability π has the weight 1-π, at its
// present value: exact in Φ' at c = 1, and a lower bound of Φ elsewhere (Jensen).
//
// The likelihood is unchanged by (X, s) → (cX, cs), so the plain recursion
// moves along this direction only as fast as the priors push. At a fixed point
// of the recursion Wᵀg = (λ-x̂)/Σ, hence Σ g ω = S - κ and Φ'(1) = 0: the
// maximum leaves fixed points where they are, for any prior. κ log c is the
// volume of the signals' space. Not in the paper.
type scaleEvidence struct {
	gain          channel.Gain
	broken        []float64 // π, probability that a sensor is broken; nil where none is
	count, tau, b []float64
	quadratic     float64 // Q + S
	volume        float64 // κ

	// clipped adds the sensors with clipped readings, which the sums above
	// leave out; nil where there are none.
	clipped func(c float64) (first, second float64)
}

// slope returns Φ'(c) and Φ”(c).
func (s *scaleEvidence) slope(c float64) (first, second float64) {
	first, second = s.gain.ScaleDerivatives(c, s.broken, s.count, s.tau, s.b)
	if s.clipped != nil {
		f, g := s.clipped(c)
		first, second = first+f, second+g
	}
	return first - c*s.quadratic + s.volume/c, second - s.quadratic - s.volume/(c*c)
}

// width is the standard deviation of log c that the curvature at c = 1 stands
// for: right when Φ is quadratic, and a length scale in any case.
func (s *scaleEvidence) width() float64 {
	if _, curvature := s.slope(1); curvature < 0 {
		return 1 / math.Sqrt(-curvature)
	}
	return scaleReach
}

// spread is how far the logarithm of the scale is from its present value, root
// mean square, under the density e^Φ(c). Φ is concave (Prékopa), but at small
// noise far from quadratic: flat until the first sensor meets the end of its
// range, with walls as steep as that sensor is well known. So the density is
// integrated; the curvature at the maximum would be off by factors.
func (s *scaleEvidence) spread() float64 {
	lo, hi := -s.fall(-1), s.fall(+1)
	// The first grid finds where the mass is, the second resolves it.
	for range 2 {
		grid := newScaleGrid(s, lo, hi)
		lo, hi = grid.support()
	}
	if rms := newScaleGrid(s, lo, hi).rootMeanSquare(); !math.IsNaN(rms) {
		return rms
	}
	return scaleReach // the numbers are beyond double precision: nothing is known
}

// slopeLog is dΦ/dt at c = e^t.
func (s *scaleEvidence) slopeLog(t float64) float64 {
	c := math.Exp(t)
	first, _ := s.slope(c)
	return c * first
}

const (
	scaleDrop  = 20  // depth below its peak at which e^Φ is cut
	scaleReach = 1.0 // farthest |log c| that is looked at
	scaleCells = 48
)

// fall returns a distance in t = log c, towards side ±1, at which Φ has fallen
// far below its maximum: steps double, and Φ' is integrated along the way.
func (s *scaleEvidence) fall(side float64) float64 {
	t, drop, slope := 0.0, 0.0, side*s.slopeLog(0)
	for step := 0.1 * s.width(); t < scaleReach && drop < scaleDrop; step *= 2 {
		t += step
		next := side * s.slopeLog(side*t)
		drop = max(0, drop-0.5*step*(slope+next)) // uphill does not count
		slope = next
	}
	return t
}

// scaleGrid holds e^Φ on equal steps of t = log c.
type scaleGrid struct {
	lo, step float64
	weight   [scaleCells + 1]float64
}

func newScaleGrid(s *scaleEvidence, lo, hi float64) *scaleGrid {
	g := &scaleGrid{lo: lo, step: (hi - lo) / scaleCells}
	phi, slope, top := 0.0, s.slopeLog(lo), 0.0
	for i := 1; i <= scaleCells; i++ {
		next := s.slopeLog(lo + float64(i)*g.step)
		phi += 0.5 * g.step * (slope + next)
		slope = next
		g.weight[i] = phi
		top = max(top, phi)
	}
	for i, phi := range g.weight {
		g.weight[i] = math.Exp(phi - top)
	}
	return g
}

// support is the part of the grid that carries mass, one cell wider.
func (g *scaleGrid) support() (lo, hi float64) {
	first, last := scaleCells, 0
	for i, w := range g.weight {
		if w > 1e-6 {
			first, last = min(first, i), max(last, i)
		}
	}
	return g.lo + float64(max(first-1, 0))*g.step, g.lo + float64(min(last+1, scaleCells))*g.step
}

func (g *scaleGrid) rootMeanSquare() float64 {
	var mass, square float64
	for i, w := range g.weight {
		t := g.lo + float64(i)*g.step
		mass += w
		square += w * t * t
	}
	return math.Sqrt(square / mass)
}

func (e *Engine) scaleEvidence(gain channel.Gain) scaleEvidence {
	s := scaleEvidence{gain: gain, broken: e.Broken, count: e.Count, tau: e.Tau, b: e.B, quadratic: e.PastQuadratic + e.fieldPull, volume: e.PastVolume}
	if gain.Saturation > 0 {
		s.broken, s.clipped = e.clippedScale(gain)
	}
	for j, y := range e.Y {
		if !math.IsNaN(y) {
			s.quadratic += (1 - s.broken[j/e.P]) * (e.Omega[j] * (e.Omega[j] / (e.V[j] + gain.NoiseVar)))
			s.volume += e.V[j] * e.G[j] * e.G[j]
		}
	}
	if e.border != nil {
		quadratic, volume := e.border.scaleSums()
		s.quadratic += quadratic
		s.volume += volume
	}
	return s
}

// clippedScale takes the sensors with clipped readings out of those whose
// evidence is closed, by weight, and returns theirs.
func (e *Engine) clippedScale(gain channel.Gain) (broken []float64, clipped func(c float64) (first, second float64)) {
	broken = slices.Clone(e.Broken)
	var rows []int
	sensor := func(mu int, c float64) (first, second float64) {
		from, to := mu*e.P, (mu+1)*e.P
		return gain.ClippedScale(c, e.Y[from:to], e.Omega[from:to], e.V[from:to], e.Count[mu], e.Tau[mu], e.B[mu])
	}
	for mu := range broken {
		if gain.ClipsAny(e.Y[mu*e.P : (mu+1)*e.P]) {
			broken[mu] = 1
			rows = append(rows, mu)
		}
	}
	return broken, func(c float64) (first, second float64) {
		for _, mu := range rows {
			f, s := sensor(mu, c)
			first += (1 - e.Broken[mu]) * f
			second += (1 - e.Broken[mu]) * s
		}
		return first, second
	}
}

// tangent is the evidence with the part of the sensors with clipped readings,
// whose integrals take long, replaced by its second order in c - at: at c = 1
// that leaves fixed points where they are, too.
func (s *scaleEvidence) tangent(at float64) *scaleEvidence {
	tangent := *s
	f, g := s.clipped(at)
	tangent.clipped = func(c float64) (first, second float64) { return f + g*(c-at), g }
	return &tangent
}

// ScaleStep multiplies the signals' estimates by the factor that maximises the
// evidence along the global scale, and returns it with the width of the
// evidence there, against which a change of the scale is small or large.
func (e *Engine) ScaleStep(gain channel.Gain) (c, width float64) {
	s := e.scaleEvidence(gain)
	return e.applyScale(&s)
}

func (e *Engine) applyScale(s *scaleEvidence) (c, width float64) {
	if s.clipped == nil {
		c = maximise(s.slope, 1-scaleRange, 1+scaleRange)
	} else {
		c = maximise(s.tangent(1).slope, 1-scaleRange, 1+scaleRange)
		c = maximise(s.tangent(c).slope, 1-scaleRange, 1+scaleRange)
	}
	e.rescale(c)
	return c, s.width()
}

// rescale multiplies the signals' estimates by c.
func (e *Engine) rescale(c float64) {
	scale(e.X, c)
	scale(e.centre, c)
	scale(e.G, c) // the next Onsager term belongs to the new x̂
	if e.border != nil {
		e.border.scale(c)
	}
	e.nextPull *= c * c
	scale(e.PastB, c) // the past is rescaled with the present, see online.go
	e.PastQuadratic *= c * c
}

// ScaleSD is the standard deviation of the logarithm of the global scale around
// its present value: an error common to all of X and s. A prior whose scale is
// learned moves with the signals and says nothing of it: what is left of S is its
// slope, so that the evidence peaks where the estimates are.
func (e *Engine) ScaleSD(gain channel.Gain) float64 {
	s := e.scaleEvidence(gain)
	if e.ScaleLearned {
		s.quadratic -= e.fieldPull
		s.volume -= e.fieldPull
	}
	return s.spread()
}

// maximise finds the zero of a decreasing slope on [lo, hi] by Newton's method
// from 1, guarded by bisection; the maximum may be at an end.
func maximise(slope func(float64) (first, second float64), lo, hi float64) float64 {
	bracket := search.Bracket{Lo: lo, Hi: hi, Falling: true}
	c := 1.0
	for range 40 {
		first, second := slope(c)
		next := bracket.Next(c, first, second)
		step := next - c
		c = next
		// The next step would be smaller by another such factor; slopes are too
		// noisy to ask for the last digit.
		if math.Abs(step) < 1e-15 || second < 0 && math.Abs(step) < 1e-9/math.Sqrt(-second) {
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
