// Package quadrature integrates one-dimensional densities, first of all the posterior
// of a gain, to double precision whatever their width: it knows their formulas, and
// nothing of priors, channels and iterations.
package quadrature

import (
	"math"

	"github.com/calamp/calamp/internal/vector"
)

// smallStep is the relative offset v = u/s* below which log1p(v)-v is computed as a
// power series. With the terms used below that is faster, and exact to 1e-19.
const smallStep = 1.0 / 128

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
	atMean := clamp(m[0]*(b-0.5*tau*m[0]), -math.MaxFloat64, math.MaxFloat64)
	return clamp(l[0]+atMean, -math.MaxFloat64, math.MaxFloat64), m[0], v[0]
}

// GainMode is where n log s - τs²/2 + Bs has its maximum over all s > 0.
func GainMode(n, tau, b float64) float64 { return vector.GainMode(n, tau, b) }

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
	return quadratic + d.n*log1pLess(u/d.mode)
}

// log1pLess is log1p(v) - v.
func log1pLess(v float64) float64 {
	if math.Abs(v) < smallStep {
		return log1pTail(v)
	}
	return math.Log1p(v) - v
}

// log1pTail is log1p(v) - v for |v| < smallStep, by its power series.
func log1pTail(v float64) float64 {
	return v * v * (-1.0/2 + v*(1.0/3+v*(-1.0/4+v*(1.0/5+v*(-1.0/6+v*(1.0/7+v*(-1.0/8+v*(1.0/9))))))))
}

// log1pCubic is log1p(v) - v + v²/2.
func log1pCubic(v float64) float64 {
	if math.Abs(v) < 0.05 {
		return v * v * v * (1.0/3 + v*(-1.0/4+v*(1.0/5+v*(-1.0/6+v*(1.0/7+v*(-1.0/8+v*(1.0/9+v*(-1.0/10+v*(1.0/11-v/12)))))))))
	}
	return math.Log1p(v) - v + 0.5*v*v
}

// clamp is min(max(v, lo), hi) for numbers that are not NaN. The built-in functions
// also treat NaN and signed zeros correctly, which takes longer than all the rest.
func clamp(v, lo, hi float64) float64 {
	if v < lo {
		return lo
	}
	if v > hi {
		return hi
	}
	return v
}
