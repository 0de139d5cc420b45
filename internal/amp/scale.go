package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/operator"
)

const (
	// scaleRange bounds one scale step: the likelihood is flat along the scale, so
	// a far jump would rest on the priors of an early, poor estimate.
	scaleRange = 0.1

	// nearPeak is the last of a scale step's steps, in widths of the evidence. The next one would be about its square, a hundredth of
	// what the scale of a run that ends may be off by.
	nearPeak = 3e-3
)

// scaleEvidence is the evidence along the global scale: when all estimates of
// the signals are multiplied by c,
//
//	Φ(c) = Σ_µ (1-π_µ) log ∫ q̃(s; τ_µ, c B_µ) ds - ½ c² (Q + S) + κ log c,
//	Q = Σ (1-π)ω²/D,   S = Σ x̂(λ-x̂)/Σ,   κ = Σ V g²,
//
// of which the first term and Q are the channel's (here those of a gain), and
// where a sensor that is broken with probability π has the weight 1-π, at its
// present value: exact in Φ' at c = 1, and a lower bound of Φ elsewhere (Jensen).
//
// The likelihood is unchanged by (X, s) → (cX, cs), so the plain recursion
// moves along this direction only as fast as the priors push. At a fixed point
// of the recursion Wᵀg = (λ-x̂)/Σ, hence Σ g ω = S - κ and Φ'(1) = 0: the
// maximum leaves fixed points where they are, for any prior. κ log c is the
// volume of the signals' space. Not in the paper.
type scaleEvidence struct {
	channel   channel.Calibrating
	sensors   *channel.Block // with π, the probability that a sensor is broken
	quadratic float64        // Q + S
	volume    float64        // κ
	threads   int
	w         operator.Operator // whose ranks, if it has any, divide the densities; nil where not all of them ask for one

	// tangent, where it is not nil, is in place of the channel's own part.
	tangent func(c float64) (first, second float64)
}

// slope returns Φ'(c) and Φ”(c).
func (s *scaleEvidence) slope(c float64) (first, second float64) {
	if s.tangent != nil {
		first, second = s.tangent(c)
	} else {
		first, second = s.channel.ScaleDerivatives(c, s.sensors)
	}
	return first - c*s.quadratic + s.volume/c, second - s.quadratic - s.volume/(c*c)
}

// settle takes the present scale for one at which the iteration has its fixed point: there Φ'(1) = 0,
// which gives Q + S from κ and from what the sensors say. Their own sums are that only
// to the relative size of the last change of x̂, and Q is as much larger than the slopes
// that matter as the signals' power is than the noise.
func (s *scaleEvidence) settle() {
	s.quadratic = 0
	s.quadratic, _ = s.slope(1)
}

// width is the standard deviation of log c that the curvature at c = 1 stands
// for: right when Φ is quadratic, and a length scale in any case.
func (s *scaleEvidence) width() float64 {
	_, curvature := s.slope(1)
	return widthFrom(curvature)
}

func widthFrom(curvature float64) float64 {
	if curvature < 0 {
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
	s, lo, hi := s.withSupport()
	if rms := newScaleGrid(s, lo, hi, scaleCells).rootMeanSquare(); !math.IsNaN(rms) {
		return rms
	}
	return scaleReach // the numbers are beyond double precision: nothing is known
}

// withSupport is where the mass of e^Φ is, and Φ there: a first grid finds it, and a second one what that was too coarse for.
func (s *scaleEvidence) withSupport() (there *scaleEvidence, lo, hi float64) {
	lo, hi = -s.fall(-1), s.fall(+1)
	s = s.between(lo, hi)
	for range 2 {
		lo, hi = newScaleGrid(s, lo, hi, scaleCells).support()
	}
	return s, lo, hi
}

const (
	// smoothOver is the width in log c up to which Φ' of sensors far from the ends of their range is interpolated, by a polynomial in
	// smoothNodes Chebyshev nodes: without the part that is linear in c, which that has, it is the number of readings times a function that changes by
	// its own size over a factor of e, and the fifth power of a hundredth is left of it.
	smoothOver  = 0.02
	smoothNodes = 5
)

// between is Φ' for t from lo to hi alone, without its slope: of all sensors that no end of the range matters to there it is a polynomial.
func (s *scaleEvidence) between(lo, hi float64) *scaleEvidence {
	edged, ok := s.channel.(channel.Edged)
	if !ok || s.tangent != nil || !(hi-lo < smoothOver) {
		return s
	}
	near, inside := edged.AtEdges(math.Exp(lo), math.Exp(hi), s.sensors)
	if near == nil {
		return s
	}
	var at, value, weight [smoothNodes]float64
	for j := range at {
		sin, cos := math.Sincos((float64(j) + 0.5) * math.Pi / smoothNodes)
		at[j] = math.Exp(0.5*(lo+hi) + 0.5*(hi-lo)*cos)
		value[j], _ = s.channel.ScaleDerivatives(at[j], inside)
		weight[j] = sin
		if j%2 > 0 {
			weight[j] = -sin
		}
	}
	there := *s
	there.tangent = func(c float64) (first, second float64) {
		first, _ = s.channel.ScaleDerivatives(c, near)
		var above, below float64 // the barycentric formula
		for j, node := range at {
			if c == node {
				return first + value[j], 0
			}
			part := weight[j] / (c - node)
			above += part * value[j]
			below += part
		}
		return first + above/below, 0
	}
	return &there
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
	step := 0.1 * s.width()
	for range search.MostDoublings {
		if !(t < scaleReach && drop < scaleDrop) { // so where one is no number
			break
		}
		t += step
		next := side * s.slopeLog(side*t)
		drop = max(0, drop-0.5*step*(slope+next)) // uphill does not count
		slope = next
		step *= 2
	}
	return t
}

// scaleGrid holds e^Φ on equal steps of t = log c.
type scaleGrid struct {
	lo, step float64
	slope    []float64 // dΦ/dt
	weight   []float64
}

func newScaleGrid(s *scaleEvidence, lo, hi float64, cells int) *scaleGrid {
	g := &scaleGrid{lo: lo, step: (hi - lo) / float64(cells), slope: make([]float64, cells+1)}
	operator.Together(s.w, g.slope, s.threads, func(i int) float64 { return s.slopeLog(lo + float64(i)*g.step) })
	g.integrate()
	return g
}

// halved is the grid with half the steps.
func (g *scaleGrid) halved(s *scaleEvidence) *scaleGrid {
	h := &scaleGrid{lo: g.lo, step: 0.5 * g.step, slope: make([]float64, 2*len(g.slope)-1)}
	between := make([]float64, len(g.slope)-1)
	operator.Together(s.w, between, s.threads, func(i int) float64 { return s.slopeLog(h.lo + float64(2*i+1)*h.step) })
	for i, slope := range between {
		h.slope[2*i], h.slope[2*i+1] = g.slope[i], slope
	}
	h.slope[2*len(between)] = g.slope[len(between)]
	h.integrate()
	return h
}

// smooth is by how much the cubic through four slopes may change the integral over a cell.
// Where it is more there is a cliff, beyond which slopes are of any size.
const smooth = 0.01

// integrate turns slopes into weights. Over a cell it takes the trapezoid, and with the
// neighbouring slopes, where Φ is smooth, the cubic: ∫ = h/24 (13(f₁+f₂) - (f₀+f₃)).
func (g *scaleGrid) integrate() {
	phi, top, f := 0.0, 0.0, g.slope
	g.weight = make([]float64, len(f))
	for i := 1; i < len(f); i++ {
		phi += 0.5 * g.step * (f[i-1] + f[i])
		if i > 1 && i < len(f)-1 {
			if bend := g.step / 24 * (f[i-1] + f[i] - (f[i-2] + f[i+1])); math.Abs(bend) <= smooth {
				phi += bend
			}
		}
		g.weight[i] = phi
		top = max(top, phi)
	}
	for i, phi := range g.weight {
		g.weight[i] = math.Exp(phi - top)
	}
}

// support is the part of the grid that carries mass, one cell wider.
func (g *scaleGrid) support() (lo, hi float64) {
	cells := len(g.weight) - 1
	first, last := cells, 0
	for i, w := range g.weight {
		if w > 1e-6 {
			first, last = min(first, i), max(last, i)
		}
	}
	return g.lo + float64(max(first-1, 0))*g.step, g.lo + float64(min(last+1, cells))*g.step
}

// moments are the mean of t and its standard deviation.
func (g *scaleGrid) moments() (mean, sd float64) {
	var mass, first, square float64
	for i, w := range g.weight {
		mass += w
		first += w * (g.lo + float64(i)*g.step)
	}
	mean = first / mass
	for i, w := range g.weight {
		d := g.lo + float64(i)*g.step - mean
		square += w * d * d
	}
	return mean, math.Sqrt(square / mass)
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

// alongScale is the evidence along the scale in the present state; the channel calibrates.
func alongScale(it Iteration) scaleEvidence {
	s := it.state()
	e := scaleEvidence{channel: s.model.Channel.(channel.Calibrating), sensors: &s.sensors, threads: s.Threads}
	e.quadratic, e.volume = it.scaleSums(s.Past.Quadratic+s.fieldPull, s.Past.Volume)
	return e
}

// argmax is the factor that maximises the evidence, within the range of a step. Where
// the channel's part takes long, its tangents serve: at the factor 1, which leaves
// fixed points where they are, too, and then at the factor that this gives.
// The width there comes with it (see [scaleEvidence.width]).
func (s scaleEvidence) argmax() (c, width float64) {
	slow, ok := s.channel.(channel.SlowScale)
	if ok {
		s.tangent = slow.ScaleTangent(1, s.sensors)
	}
	c, curvature := maximise(s.slope, 1-scaleRange, 1+scaleRange, s.rounding(), nearPeak)
	if s.tangent != nil {
		s.tangent = slow.ScaleTangent(c, s.sensors)
		c, curvature = maximise(s.slope, 1-scaleRange, 1+scaleRange, s.rounding(), nearPeak)
	}
	return c, widthFrom(curvature)
}

// rounding is what of a slope near its zero is rounding: it is a difference of sums of the size of Q + S, and wanders by some
// units in the last place of that (two to eight were seen, with a thousand sensors).
func (s *scaleEvidence) rounding() float64 {
	return 8 * 0x1p-52 * (math.Abs(s.quadratic) + math.Abs(s.volume))
}

// scaleEvidence is the evidence in the present state. A prior whose scale is
// learned moves with the signals and says nothing of it: what is left of S is its
// slope, so that the evidence peaks where the estimates are.
func (s *Solver) scaleEvidence() *scaleEvidence {
	e := alongScale(s.Iteration)
	if s.State.ScaleLearned {
		e.quadratic -= s.State.fieldPull
		e.volume -= s.State.fieldPull
	}
	if slow, ok := e.channel.(channel.SlowScale); ok {
		if _, coded := channel.CodedOf(s.State.model.Channel); coded { // hundreds of scales are asked for, and each sensor is an integral
			e.tangent = slow.ScaleTangent(1, e.sensors)
		}
	}
	return &e
}

// PastScaleSD is the standard deviation of the logarithm of the global scale around its present value given a past, with its
// statistics of all sensors: an error common to all of X and s.
func (s *State) PastScaleSD(past Past) float64 {
	e := scaleEvidence{
		channel:   s.model.Channel.(channel.Calibrating),
		sensors:   s.sensorsOf(past),
		quadratic: past.Quadratic, volume: past.Volume, threads: s.Threads,
	}
	return e.spread()
}

// sensorsOf are all sensors with the statistics of a past.
func (s *sensorState) sensorsOf(past Past) *channel.Block {
	return &channel.Block{Stats: past.Stats, S: make([]float64, s.M), Broken: make([]float64, s.M)}
}

// Sums returns what the signals of the last sweep add to Q+S and to κ of a past of
// which that sweep inherited the statistics.
//
// All of it is of that sweep, and so what x̂ is short of its fixed point hardly matters: with
// B = Σ ωy/D and τ = Σ y²/D over samples
//
//	Σ_µ B²/τ - Q = -Σ (ω - ŝy)²/D,   ŝ = B/τ,
//
// where an error of ω meets a residual. At a fixed point what a sample adds to Q + S is Σ_µ ŝ_µ times what it adds to B_µ, and κ; but there
// the error meets ω/D, ten digits more than the slopes by which the evidence tells one scale from another: what each
// sample was short of would stay in the evidence for ever, and fifty samples at a noise of 10⁻¹⁴
// left half of all s outside of their bars.
func (s *Solver) Sums() (quadratic, volume float64) {
	return s.Iteration.scaleSums(s.State.fieldPull, 0)
}

// maximise finds the zero of a decreasing slope on [lo, hi] by Newton's method
// from 1, guarded by bisection; the maximum may be at an end. Slopes of the size of rounding are none, and a step of less than last
// widths is the last. It also returns the slope's slope where it looked last.
func maximise(slope func(float64) (first, second float64), lo, hi, rounding, last float64) (c, second float64) {
	bracket := search.Bracket{Lo: lo, Hi: hi, Falling: true}
	c = 1
	var first float64
	for range 40 {
		first, second = slope(c)
		if math.Abs(first) <= rounding {
			break
		}
		next := bracket.Next(c, first, second)
		step, halved := next-c, next != c-first/second
		c = next
		// Slopes are too noisy to ask for the last digit. Where noise leads Newton's steps out of a bracket that
		// is narrow already, it would only be halved.
		width := 1 / math.Sqrt(-second) // NaN where Φ is convex
		if math.Abs(step) < 1e-15 || math.Abs(step) < last*width || halved && bracket.Hi-bracket.Lo < 1e-8*width {
			break
		}
	}
	return c, second
}
