// Package quadrature integrates the one-dimensional densities of the gain
// channel to double precision, whatever their width.
package quadrature

import (
	"math"
)

const (
	// tail is the depth below the mode's log-density at which the integral is
	// cut. The density is log-concave, so at worst it decays exponentially and
	// what lies outside carries a fraction tail² e^-tail ≈ 1e-15 of the variance.
	tail = 42

	// smallStep is the relative offset u/s* below which log1p(v)-v is summed as
	// a power series: exact to 1e-19 with the terms below, and faster.
	smallStep = 1.0 / 128
)

// GainMoments returns the log-normaliser, the mean and the centred variance of
// the density proportional to
//
//	s^n exp(-τ s²/2 + B s)   on [lo, hi], 0 < lo < hi, n ≥ 0, τ ≥ 0,
//
// the posterior of a calibration variable with a uniform prior (Gabrié et al.,
// "Gain calibration setting and update functions"; the paper writes it with
// 1/σˢ = τ and mˢ/σˢ = B). The log-normaliser is log ∫ s^n e^{-τs²/2+Bs} ds,
// without the prior's density.
//
// The variance is good to 1e-12 relative. The mean is good to 1e-12 standard
// deviations or one unit in the last place, whichever is larger. Finite input
// never gives a NaN.
func GainMoments(n, tau, b, lo, hi float64) (logNorm, mean, variance float64) {
	var l, m, v [1]float64
	GainMomentsBatch(l[:], m[:], v[:], []float64{n}, []float64{tau}, []float64{b}, 0, 0, lo, hi)
	return l[0], m[0], v[0]
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

// offsetDensity is the log-density relative to its value at the (clipped) mode,
// as a function of the offset u = s - mode. Working in u keeps the digits that s
// itself no longer has when the posterior is 1e-9 wide.
type offsetDensity struct{ n, tau, slope, mode float64 }

// at returns h(mode+u) - h(mode) = slope·u - τu²/2 + n(log1p(u/mode) - u/mode).
func (d *offsetDensity) at(u float64) float64 {
	quadratic := u * (d.slope - 0.5*d.tau*u)
	if d.n == 0 {
		return quadratic
	}
	v := u / d.mode
	if math.Abs(v) < smallStep {
		return quadratic + d.n*log1pTail(v)
	}
	return quadratic + d.n*(math.Log1p(v)-v)
}

// log1pTail is log1p(v) - v for |v| < smallStep, by its power series.
func log1pTail(v float64) float64 {
	return v * v * (-1.0/2 + v*(1.0/3+v*(-1.0/4+v*(1.0/5+v*(-1.0/6+v*(1.0/7+v*(-1.0/8+v*(1.0/9))))))))
}

// reach returns how far from the mode, towards side ±1 and at most limit, the
// density stays above e^-tail of its peak, or a little farther: there the
// logarithm's part is bounded by a parabola, and the quadratic is solved.
// Towards 0 that parabola is the logarithm's own at the mode. Away from 0,
// log1p(v)-v ≤ -v²/(2+4v/3), whose denominator is largest at the end of what is
// looked at; so every bound gives a closer one.
func (d *offsetDensity) reach(limit, side float64) float64 {
	slope, curvature := side*d.slope, d.n/(d.mode*d.mode)
	if side < 0 || d.n == 0 {
		return min(limit, parabolaReach(slope, d.tau+curvature))
	}
	u := limit
	for range 3 {
		bound := parabolaReach(slope, d.tau+curvature/(1+2.0/3*(u/d.mode)))
		if bound >= u {
			break
		}
		u = bound
	}
	return u
}

// parabolaReach is where slope·u - curvature·u²/2 has fallen to -tail.
func parabolaReach(slope, curvature float64) float64 {
	if slope >= 0 && curvature == 0 {
		return math.Inf(1)
	}
	root := math.Sqrt(slope*slope + 2*tail*curvature)
	if math.IsInf(root, 1) {
		root = math.Hypot(slope, math.Sqrt(2*tail)*math.Sqrt(curvature))
	}
	if slope < 0 {
		return 2 * tail / (root - slope)
	}
	return (slope + root) / curvature
}

// steepness is the absolute derivative of the log-density at offset u.
func (d *offsetDensity) steepness(u float64) float64 {
	return math.Abs(d.slope - d.tau*u - d.n*u/(d.mode*(d.mode+u)))
}

// log1pCubic is log1p(v) - v + v²/2.
func log1pCubic(v float64) float64 {
	if math.Abs(v) < 0.05 {
		return v * v * v * (1.0/3 + v*(-1.0/4+v*(1.0/5+v*(-1.0/6+v*(1.0/7+v*(-1.0/8+v*(1.0/9+v*(-1.0/10+v*(1.0/11-v/12)))))))))
	}
	return math.Log1p(v) - v + 0.5*v*v
}

func clampFinite(v float64) float64 {
	return min(max(v, -math.MaxFloat64), math.MaxFloat64)
}
