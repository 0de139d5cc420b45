package vector

import (
	"math"

	"github.com/calamp/calamp/internal/simd"
)

// Layout of a group of [GainShapes]: for every field its Lanes values.
const (
	ShapeMode      = iota // the density's maximum on the range
	ShapeSlope            // of the log-density at the mode; 0 inside the range, up to rounding
	ShapeInverse          // 1/mode
	ShapeCurvature        // n/mode², the logarithm's part of the curvature
	ShapeWidth            // standard deviation of the Gaussian with the same curvature at the mode
	ShapeSkew             // n (width/mode)³
	ShapeRoom             // distance from the mode to the nearer end of the range
	ShapeNarrow           // 1 where the series below is good to 1e-13, else 0

	// Moments of a narrow posterior by the series in ShapeWidth/ShapeMode: its
	// mass relative to the density at the mode, its mean as an offset from
	// the mode, its variance. See gainSeries.
	ShapeSeriesMass
	ShapeSeriesMean
	ShapeSeriesVariance

	// The following are written by [GainEnds] only.
	ShapeLeft  // ends of the interval to be integrated,
	ShapeRight // as offsets from the mode
	ShapeRule  // the first of a ladder of rules that is good enough
	ShapeFields
)

// A posterior is narrow where the ends of its range are at least NarrowReach standard deviations away, beyond which is 1e-19 of it, and
// skewness and relative width are below narrowSkew and narrowWidth.
const (
	NarrowReach = 9
	narrowSkew  = 5e-8
	narrowWidth = 0.01
)

// Tail is how far below its maximum the log-density may fall before an integral is
// cut. The density is log-concave: at worst it decays exponentially, and what lies
// beyond the cut has a fraction Tail² e^-Tail ≈ 1e-13 of the variance.
const Tail = 37

// GainShapes finds place and width of the densities s^n e^{-τs²/2+Bs} on [lo, hi], and
// the moments of narrow ones, for a number of sensors that is a multiple of Lanes.
// [GainEnds] adds what must be integrated of the others.
func GainShapes(n, tau, b []float64, lo, hi float64, out []float64) {
	n, b, out = n[:len(tau)], b[:len(tau)], out[:len(tau)*ShapeFields]
	if active != simd.Go {
		gainShapes(n, tau, b, lo, hi, out)
	}
	for i, tau := range tau {
		if active == simd.Go || tooLarge(n[i], tau, b[i]) {
			plainGainShape(n[i], tau, b[i], lo, hi, out[i/Lanes*ShapeFields*Lanes+i%Lanes:])
		}
	}
}

func plainGainShape(n, tau, b, lo, hi float64, out []float64) {
	mode := min(max(GainMode(n, tau, b), lo), hi)
	inverse := 1 / mode
	curvature := n * inverse * inverse
	width := 1 / math.Sqrt(tau+curvature)
	t, slope := width*inverse, gainSlope(n, tau, b, mode)
	skew := n * t * t * t
	mass, mean, variance := gainSeries(slope*width, t, skew)
	room, isNarrow := min(mode-lo, hi-mode), 0.0
	if room > NarrowReach*width && skew < narrowSkew && t < narrowWidth && InDoublePrecision(slope, tau) {
		isNarrow = 1
	}
	for i, v := range [ShapeLeft]float64{
		ShapeMode: mode, ShapeSlope: slope, ShapeInverse: inverse, ShapeCurvature: curvature,
		ShapeWidth: width, ShapeSkew: skew, ShapeRoom: room, ShapeNarrow: isNarrow,
		ShapeSeriesMass: width * mass, ShapeSeriesMean: width * mean, ShapeSeriesVariance: width * width * variance,
	} {
		out[i*Lanes] = v
	}
}

// InDoublePrecision reports whether a posterior with such a slope at its mode is more than a point mass there.
func InDoublePrecision(slope, tau float64) bool {
	return math.Abs(slope) <= math.MaxFloat64/4 && !(tau > math.MaxFloat64/4)
}

// gainSeries returns the moments, in units of the width, of
//
//	exp(-z²/2 + e z + s (z³/3 - t z⁴/4 + t² z⁵/5 - t³ z⁶/6 + …)),
//
// a posterior far from the ends of its range, for small t and s = n t³. e is the slope
// at the mode, which is not quite zero since the mode is rounded.
func gainSeries(e, t, s float64) (mass, mean, variance float64) {
	mass = math.Sqrt(2*math.Pi) * (1 + 0.5*e*e + s*(e+5.0/6*s) - s*t*(0.75+2.5*t*t))
	mean = e + s*(1+3*t*t)
	variance = 1 + s*(2*e+4*s) - s*t*(3+15*t*t)
	return mass, mean, variance
}

// Ladder is for the choice among quadrature rules, each with more nodes than the one before: rule r is good enough where the larger slope of
// the log-density at the ends of the interval, times half their distance, is below Steep[r], and where the logarithm's singularity at
// s = 0 is farther than Far[r] from the middle of the interval, in units of half its width. The rules beyond the ends of these lists always are.
type Ladder struct{ Steep, Far []float64 }

// rule is the first that is good enough.
func (l Ladder) rule(n, steepness, middle, half float64) float64 {
	steep, near := 0, 0
	for _, limit := range l.Steep {
		if steepness >= limit {
			steep++
		}
	}
	for _, distance := range l.Far {
		if n != 0 && !(middle > distance*half) {
			near++
		}
	}
	return float64(max(steep, near))
}

// GainEnds adds the intervals to be integrated, and their rules, to the shapes of one group of Lanes
// sensors.
func GainEnds(n, tau, b []float64, lo, hi float64, ladder Ladder, out []float64) {
	n, tau, b, out = n[:Lanes], tau[:Lanes], b[:Lanes], out[:Lanes*ShapeFields]
	if active != simd.Go {
		gainEnds(n, tau, lo, hi, ladder.Steep, ladder.Far, out)
	}
	for i := range tau {
		if active == simd.Go || tooLarge(n[i], tau[i], b[i]) {
			plainGainEnds(n[i], tau[i], lo, hi, ladder, out[i:])
		}
	}
}

func plainGainEnds(n, tau, lo, hi float64, ladder Ladder, out []float64) {
	mode := out[ShapeMode*Lanes]
	d := gainDensity{
		tau: tau, slope: out[ShapeSlope*Lanes],
		inverse: out[ShapeInverse*Lanes], curvature: out[ShapeCurvature*Lanes],
	}
	left, right := -d.reach(mode-lo, -1), d.reach(hi-mode, +1)
	half := 0.5 * (right - left)
	out[ShapeLeft*Lanes], out[ShapeRight*Lanes] = left, right
	out[ShapeRule*Lanes] = ladder.rule(n, half*max(d.steepness(left), d.steepness(right)), mode+0.5*(left+right), half)
}

// tooLarge reports whether a product of squares could overflow in the vector versions,
// which do not scale their numbers.
func tooLarge(n, tau, b float64) bool { return !(math.Abs(b)+tau+n < 1e120) }

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

// gainSlope is n/s - τs + B, with the terms summed without rounding errors: near a mode
// inside the range they cancel, and the small rest shifts the mean when τ is large.
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

// reach returns a distance from the mode, towards side ±1 and at most limit, beyond
// which the density is below e^-Tail of its peak; it may be a little too large. It
// bounds the logarithm's part of the exponent from above by a parabola, and solves the
// quadratic equation. Towards 0 that parabola has the logarithm's curvature at the
// mode. Away from 0, log1p(v)-v ≤ -v²/(2+4v/3), and the denominator is largest at the
// far end: so a first distance gives a better parabola, and with it a second, smaller
// distance.
func (d *gainDensity) reach(limit, side float64) float64 {
	if side < 0 {
		return min(limit, parabolaReach(-d.slope, d.tau+d.curvature))
	}
	u := limit
	for range 2 {
		u = min(u, parabolaReach(d.slope, d.tau+d.curvature/(1+2.0/3*(u*d.inverse))))
	}
	return u
}

// parabolaReach is the u at which slope·u - curvature·u²/2 has fallen to -Tail.
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
