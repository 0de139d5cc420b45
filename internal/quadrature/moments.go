// Package quadrature integrates the one-dimensional densities of the gain
// channel to double precision, whatever their width.
package quadrature

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

const (
	// tail is the depth below the mode's log-density at which the integral is
	// cut. The density is log-concave, so at worst it decays exponentially and
	// what lies outside carries a fraction tail² e^-tail ≈ 1e-15 of the variance.
	tail = 42

	// nodes suffices for a Gaussian cut at ±√(2·tail) standard deviations and
	// for an exponential cut at tail lengths, both to 1e-14.
	nodes = 48

	// A posterior inside its range and nearly Gaussian, as most are once
	// something has been learned, needs fewer nodes: Gauss–Hermite quadrature
	// of what the logarithm adds to the Gaussian. The range must be 9 standard
	// deviations away, and the skewness n (sd/s*)³ small.
	hermiteNodes = 16
	hermiteReach = 9
	hermiteSkew  = 0.02

	// smallStep is the relative offset u/s* below which log1p(v)-v is summed as
	// a power series: exact to 1e-19 with the terms below, and faster.
	smallStep = 1.0 / 128
)

var (
	nodeX, nodeW       = legendre()
	hermiteX, hermiteW = hermite()
)

// hermite is the rule for ∫ f(x) e^{-x²/2} dx.
func hermite() (x, w [hermiteNodes]float64) {
	quad.Hermite{}.FixedLocations(x[:], w[:], math.Inf(-1), math.Inf(1))
	for i := range x {
		x[i] *= math.Sqrt2
		w[i] *= math.Sqrt2
	}
	return x, w
}

func legendre() (x, w [nodes]float64) {
	quad.Legendre{}.FixedLocations(x[:], w[:], -1, 1)
	return x, w
}

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
	mode := min(max(GainMode(n, tau, b), lo), hi)
	slope := gainSlope(n, tau, b, mode)
	peak := n*math.Log(mode) + mode*(b-0.5*tau*mode)
	if math.IsNaN(slope) || math.Abs(slope) > math.MaxFloat64/4 || tau > math.MaxFloat64/4 {
		// So steep that double precision sees a point mass.
		return clampFinite(peak), mode, 0
	}
	d := offsetDensity{n: n, tau: tau, slope: slope, mode: mode}
	if sd, ok := d.nearlyGaussian(lo, hi); ok {
		mass, first, second := d.integrateGaussian(sd)
		return clampFinite(peak + math.Log(mass)), mode + first, second
	}
	left := -d.reach(mode-lo, -1)
	right := d.reach(hi-mode, +1)
	mass, first, second := d.integrate(left, right)
	return clampFinite(peak + math.Log(mass)), min(max(mode+first, lo), hi), second
}

// GainMomentsBatch is [GainMoments] for a block of sensors, whose statistics
// and results have one length; extraTau and extraB, a calibration prior's, are
// added to every τ and B. It allocates nothing.
func GainMomentsBatch(logNorm, mean, variance, n, tau, b []float64, extraTau, extraB, lo, hi float64) {
	for mu := range tau {
		logNorm[mu], mean[mu], variance[mu] = GainMoments(n[mu], tau[mu]+extraTau, b[mu]+extraB, lo, hi)
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
// density stays above e^-tail of its peak. Dropping the (negative) logarithmic
// term gives a first bound in closed form; from there Newton's method on a
// concave function approaches the answer from outside, monotonically.
func (d *offsetDensity) reach(limit, side float64) float64 {
	slope := side * d.slope
	root := math.Sqrt(slope*slope + 2*tail*d.tau)
	if math.IsInf(root, 1) {
		root = math.Hypot(slope, math.Sqrt(2*tail)*math.Sqrt(d.tau))
	}
	u := limit
	if slope < 0 {
		u = min(u, 2*tail/(root-slope))
	} else if d.tau > 0 {
		u = min(u, (slope+root)/d.tau)
	}
	if d.n == 0 {
		return u
	}
	for range 60 {
		excess := d.at(side*u) + tail
		if excess > -1 {
			break
		}
		derivative := slope - d.tau*u - d.n*u/(d.mode*(d.mode+side*u))
		u -= excess / derivative
	}
	return u
}

// nearlyGaussian returns the width of the Gaussian that touches the density at
// its mode, where integrateGaussian is as accurate as integrate.
func (d *offsetDensity) nearlyGaussian(lo, hi float64) (sd float64, ok bool) {
	sd = 1 / math.Sqrt(d.tau+d.n/(d.mode*d.mode))
	room := min(d.mode-lo, hi-d.mode)
	t := sd / d.mode
	return sd, room > hermiteReach*sd && d.n*t*t*t < hermiteSkew && hermiteReach*t < 0.5
}

// integrateGaussian is integrate by Gauss–Hermite quadrature with weight
// e^{-u²/2sd²}.
func (d *offsetDensity) integrateGaussian(sd float64) (mass, mean, variance float64) {
	var weight [hermiteNodes]float64
	var sum, first float64
	for i, x := range hermiteX {
		u := sd * x
		// The Gaussian cancels the quadratic term and the quadratic part of the
		// logarithm exactly; what is left is small, and so is its rounding.
		v := u / d.mode
		w := hermiteW[i] * math.Exp(u*d.slope+d.n*log1pCubic(v))
		weight[i] = w
		sum += w
		first += w * x
	}
	first /= sum
	var second float64
	for i, x := range hermiteX {
		second += weight[i] * (x - first) * (x - first)
	}
	return sd * sum, sd * first, sd * sd * (second / sum)
}

// log1pCubic is log1p(v) - v + v²/2.
func log1pCubic(v float64) float64 {
	if math.Abs(v) < 0.05 {
		return v * v * v * (1.0/3 + v*(-1.0/4+v*(1.0/5+v*(-1.0/6+v*(1.0/7+v*(-1.0/8+v*(1.0/9+v*(-1.0/10+v*(1.0/11-v/12)))))))))
	}
	return math.Log1p(v) - v + 0.5*v*v
}

// integrate returns the mass, the mean and the centred variance of e^at(u) over
// [left, right] by Gauss–Legendre quadrature.
func (d *offsetDensity) integrate(left, right float64) (mass, mean, variance float64) {
	half, mid := 0.5*(right-left), 0.5*(right+left)
	var weight [nodes]float64
	var sum, first float64
	for i, x := range nodeX {
		// Offsets from the middle, in units of the half-width: no underflow.
		w := nodeW[i] * math.Exp(d.at(mid+half*x))
		weight[i] = w
		sum += w
		first += w * x
	}
	first /= sum
	var second float64
	for i, x := range nodeX {
		second += weight[i] * (x - first) * (x - first)
	}
	return half * sum, mid + half*first, half * half * (second / sum)
}

func clampFinite(v float64) float64 {
	return min(max(v, -math.MaxFloat64), math.MaxFloat64)
}
