package kernel

import "math"

// Layout of a group of [GainShapes]: for every field its Lanes values.
const (
	ShapeMode      = iota // within the range
	ShapeSlope            // of the log-density there
	ShapeInverse          // 1/mode
	ShapeCurvature        // n/mode², the logarithm's part of the curvature
	ShapeWidth            // standard deviation of the Gaussian that touches at the mode
	ShapeSkew             // n (width/mode)³
	ShapeRoom             // from the mode to the nearer end of the range
	ShapeLeft             // ends of what must be integrated, as offsets
	ShapeRight            // from the mode
	ShapeSteepness        // larger slope at these ends, times half their distance
	ShapeFields
)

// Tail is the depth below the mode's log-density at which integrals are cut.
// The density is log-concave, so at worst it decays exponentially and what lies
// outside carries a fraction Tail² e^-Tail ≈ 1e-15 of the variance.
const Tail = 42

// GainShapes finds where on [lo, hi] the densities s^n e^{-τs²/2+Bs} are, for a
// multiple of Lanes sensors.
func GainShapes(n, tau, b []float64, lo, hi float64, out []float64) {
	n, b, out = n[:len(tau)], b[:len(tau)], out[:len(tau)*ShapeFields]
	if active != Go {
		gainShapes(n, tau, b, lo, hi, out)
	}
	for i := range tau {
		// Squares of extreme values are out of range in the vector version.
		if active == Go || !(math.Abs(b[i]) < 1e120 && tau[i] < 1e120 && n[i] < 1e120) {
			plainGainShape(n[i], tau[i], b[i], lo, hi, out[i/Lanes*ShapeFields*Lanes+i%Lanes:])
		}
	}
}

func plainGainShape(n, tau, b, lo, hi float64, out []float64) {
	mode := min(max(GainMode(n, tau, b), lo), hi)
	inverse := 1 / mode
	d := gainDensity{
		tau: tau, inverse: inverse, curvature: n * inverse * inverse,
		slope: gainSlope(n, tau, b, mode),
	}
	width := 1 / math.Sqrt(tau+d.curvature)
	t := width * inverse
	left, right := -d.reach(mode-lo, -1), d.reach(hi-mode, +1)
	for i, v := range [ShapeFields]float64{
		ShapeMode: mode, ShapeSlope: d.slope, ShapeInverse: inverse, ShapeCurvature: d.curvature,
		ShapeWidth: width, ShapeSkew: n * t * t * t, ShapeRoom: min(mode-lo, hi-mode),
		ShapeLeft: left, ShapeRight: right,
		ShapeSteepness: 0.5 * (right - left) * max(d.steepness(left), d.steepness(right)),
	} {
		out[i*Lanes] = v
	}
}

// GainMode is the unconstrained maximum of n log s - τs²/2 + Bs over s > 0: the
// positive root of τs² - Bs - n, in the form that does not cancel.
func GainMode(n, tau, b float64) float64 {
	if tau == 0 && b >= 0 {
		return math.Inf(1) // increasing; flat when n = B = 0, any point will do
	}
	root := math.Hypot(b, 2*math.Sqrt(n)*math.Sqrt(tau))
	if b >= 0 {
		return 0.5*(b/tau) + 0.5*(root/tau)
	}
	return n / (0.5 * (root - b))
}

// gainSlope is n/s - τs + B, its terms summed exactly: near an interior mode
// they cancel, and what is left still shifts the mean when τ is large.
func gainSlope(n, tau, b, s float64) float64 {
	p := tau * s
	pErr := math.FMA(tau, s, -p)
	q := n / s
	qErr := math.FMA(-q, s, n) / s
	s1, e1 := twoSum(b, -p)
	s2, e2 := twoSum(s1, q)
	return s2 + (e1 + e2 - pErr + qErr)
}

// twoSum returns a+b rounded, and the rounding error (Knuth).
func twoSum(a, b float64) (sum, err float64) {
	sum = a + b
	bb := sum - a
	return sum, (a - (sum - bb)) + (b - bb)
}

// gainDensity is the log-density around its mode, as a function of the offset u:
// slope·u - τu²/2 + n (log1p(u/mode) - u/mode).
type gainDensity struct{ tau, slope, inverse, curvature float64 }

// reach returns how far from the mode, towards side ±1 and at most limit, the
// density stays above e^-Tail of its peak, or a little farther: there the
// logarithm's part is bounded by a parabola, and the quadratic is solved.
// Towards 0 that parabola is the logarithm's own at the mode. Away from 0,
// log1p(v)-v ≤ -v²/(2+4v/3), whose denominator is largest at the end of what is
// looked at; so the first bound gives a closer one.
func (d *gainDensity) reach(limit, side float64) float64 {
	if side < 0 {
		return min(limit, parabolaReach(-d.slope, d.tau+d.curvature))
	}
	u := limit
	for range 3 {
		u = min(u, parabolaReach(d.slope, d.tau+d.curvature/(1+2.0/3*(u*d.inverse))))
	}
	return u
}

// parabolaReach is where slope·u - curvature·u²/2 has fallen to -Tail.
func parabolaReach(slope, curvature float64) float64 {
	if slope >= 0 && curvature == 0 {
		return math.Inf(1)
	}
	root := math.Sqrt(slope*slope + 2*Tail*curvature)
	if math.IsInf(root, 1) {
		root = math.Hypot(slope, math.Sqrt(2*Tail)*math.Sqrt(curvature))
	}
	if slope < 0 {
		return 2 * Tail / (root - slope)
	}
	return (slope + root) / curvature
}

// steepness is the absolute derivative of the log-density at offset u.
func (d *gainDensity) steepness(u float64) float64 {
	return math.Abs(d.slope - u*(d.tau+d.curvature/(1+u*d.inverse)))
}
