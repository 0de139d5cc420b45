// Package vector computes functions of one sensor or entry for four of them at a time:
// it knows formulas, and nothing of priors, channels and matrices. There are logarithms
// and exponentials, place and integrals of the posterior of a gain, and the posterior of
// a Gauss–Bernoulli entry; in generated assembly for AVX2 with FMA, and in plain Go for
// other machines, for the noasm build tag, and to test the assembly against.
package vector

//go:generate sh -c "cd ../simd/gen && go run . -out ../../vector/functions_amd64.s -stubs ../../vector/functions_amd64.go -pkg vector"

import (
	"math"

	"github.com/calamp/calamp/internal/simd"
)

var active, _ = simd.Active()

// Lanes is how many sensors or entries the functions below take at a time.
const Lanes = 4

// Layout of a group of [GainIntegrals]: for every field its Lanes values.
const (
	GainSlope     = iota // of the log-density at the mode
	GainHalfTau          // τ/2
	GainCount            // n
	GainInverse          // 1/mode
	GainMiddle           // of the interval, as an offset from the mode
	GainHalfWidth        // of the interval
	GainFields
)

// Layout of a group of results of [GainIntegrals].
const (
	GainMass   = iota // Σ w e^h(u)
	GainFirst         // mean of x
	GainSecond        // centred variance of x
	GainResults
)

// GainIntegrals sums, by the rule with nodes x and weights w,
//
//	e^h(u),   h(u) = slope·u - τu²/2 + n (log1p(u/mode) - u/mode),   u = middle + halfWidth·x,
//
// and finds the mean and variance of x under it, for groups of Lanes sensors.
// The number of nodes is a multiple of four. The parameters of a group are
// d[g*GainFields*Lanes:], its results out[g*GainResults*Lanes:]; scratch has
// 2*Lanes values a node. The exponent is good to a few units in its last place, and so
// is its exponential. A sensor's result does not depend on the other sensors of its
// group.
func GainIntegrals(x, w []float64, groups int, d, scratch, out []float64) {
	if active == simd.Go {
		plainGainIntegrals(x, w, groups, d, scratch, out)
		return
	}
	gainIntegrals(x, w[:len(x)], groups, d[:groups*GainFields*Lanes], scratch[:2*len(x)*Lanes], out[:groups*GainResults*Lanes])
}

// MostPower is the largest n that [GainPowers] takes: with a larger one the rounding
// error of 1 + u/mode, to the power n, would show in the results.
const MostPower = 64

// MostRatio is the largest ratio of the ends of the range that [GainPowers] takes: to
// the power MostPower it is still within the range of float64.
const MostRatio = 1e4

// GainPowers is [GainIntegrals] for sensors that all have the same small whole number
// n; it multiplies where that takes logarithms. In the place of GainSlope it expects
// the slope minus n/mode.
func GainPowers(x, w []float64, n, groups int, d, scratch, out []float64) {
	if active == simd.Go {
		plainGainPowers(x, w, n, groups, d, scratch, out)
		return
	}
	gainPowers(x, w[:len(x)], n, groups, d[:groups*GainFields*Lanes], scratch[:2*len(x)*Lanes], out[:groups*GainResults*Lanes])
}

// plainGainPowers is the version in plain Go, which takes logarithms nevertheless.
func plainGainPowers(x, w []float64, n, groups int, d, scratch, out []float64) {
	for at := range groups * Lanes {
		p := gainParameters(d, at)
		p[GainSlope] += float64(n) * p[GainInverse]
		p[GainCount] = float64(n)
		plainGainIntegral(x, w, &p, scratch, out[at/Lanes*GainResults*Lanes+at%Lanes:])
	}
}

func plainGainIntegrals(x, w []float64, groups int, d, scratch, out []float64) {
	for at := range groups * Lanes {
		p := gainParameters(d, at)
		plainGainIntegral(x, w, &p, scratch, out[at/Lanes*GainResults*Lanes+at%Lanes:])
	}
}

// gainParameters returns the parameters of one sensor.
func gainParameters(d []float64, at int) (p [GainFields]float64) {
	for i := range p {
		p[i] = d[(at/Lanes*GainFields+i)*Lanes+at%Lanes]
	}
	return p
}

func plainGainIntegral(x, w []float64, p *[GainFields]float64, scratch, out []float64) {
	var sum, first, second float64
	for i, x := range x {
		u := p[GainMiddle] + float64(p[GainHalfWidth]*x)
		h := u * (p[GainSlope] - float64(p[GainHalfTau]*u))
		if n := p[GainCount]; n != 0 {
			h += float64(n * log1pTail(u*p[GainInverse]))
		}
		weight := w[i] * math.Exp(max(h, -708)) // as the vector versions have it: an interval far too wide leaves some weight
		scratch[i] = weight
		sum += weight
		first += float64(weight * x)
	}
	first /= sum
	for i, x := range x {
		second += float64(scratch[i] * (x - first) * (x - first))
	}
	for i, v := range [GainResults]float64{GainMass: sum, GainFirst: first, GainSecond: second / sum} {
		out[i*Lanes] = v
	}
}

// log1pTail is log(1+v) - v without cancellation: with s = v/(2+v), where v is
// small, it is 2 (atanh(s) - s) - s v.
func log1pTail(v float64) float64 {
	if math.Abs(v) >= 0.4 {
		return math.Log1p(v) - v
	}
	s := v / (2 + v)
	z := s * s
	series := 1.0 / 27
	for k := 25.0; k >= 3; k -= 2 {
		series = 1/k + float64(z*series)
	}
	return s * (float64(2*z*series) - v)
}

// Padded is count, rounded up to whole groups of Lanes.
func Padded(count int) int { return (count + Lanes - 1) / Lanes * Lanes }

// Log replaces positive normal values, a multiple of Lanes, by their logarithms.
func Log(v []float64) {
	if active != simd.Go {
		logarithms(v)
		return
	}
	for i, x := range v {
		v[i] = math.Log(x)
	}
}

// Exp replaces values up to 709, a multiple of Lanes, by their exponentials, with
// a relative error below 3e-16; below -708 it is e^-708.
func Exp(v []float64) {
	if active != simd.Go {
		exponentials(v)
		return
	}
	for i, x := range v {
		v[i] = math.Exp(max(x, -708))
	}
}

// GaussBernoulli writes the posterior means and variances of entries that are
// zero or, with logarithmic odds logOdds, drawn from N(signalMean, signalVar),
// seen through the fields N(λ, Σ); Σ may be +Inf.
//
// With the slab's posterior mean m and variance u, and its probability π, the mean is
// π m and the variance π u + π(1-π) m². (A difference of second moments would cancel.)
func GaussBernoulli(mean, variance, lambda, sigma []float64, logOdds, signalMean, signalVar float64) {
	if active == simd.Go {
		plainGaussBernoulli(mean, variance, lambda, sigma, logOdds, signalMean, signalVar)
		return
	}
	const together = 4 * Lanes
	n := len(lambda)
	whole := n - n%together
	gaussBernoulli(mean[:whole], variance[:whole], lambda[:whole], sigma[:whole], logOdds, signalMean, signalVar)
	if whole == n {
		return
	}
	var m, v, l, s [together]float64
	for i := range s {
		s[i] = 1
	}
	copy(l[:], lambda[whole:])
	copy(s[:], sigma[whole:n])
	gaussBernoulli(m[:], v[:], l[:], s[:], logOdds, signalMean, signalVar)
	copy(mean[whole:n], m[:])
	copy(variance[whole:n], v[:])
}

func plainGaussBernoulli(mean, variance, lambda, sigma []float64, logOdds, signalMean, signalVar float64) {
	for i, l := range lambda {
		m, u, odds := Slab(l, sigma[i], signalMean, signalVar)
		on, off := logistic(logOdds + odds)
		mean[i] = on * m
		variance[i] = on * (u + float64(off*m*m))
	}
}

// Slab returns the posterior mean and variance of an entry drawn from
// N(signalMean, signalVar) and seen through the field N(λ, Σ), and
// log N(λ; signalMean, signalVar+Σ) - log N(λ; 0, Σ), which the field adds to the
// log-odds that an entry is not zero. Everything is finite at Σ = +Inf.
func Slab(lambda, sigma, signalMean, signalVar float64) (mean, variance, logRatio float64) {
	mean, variance, quadratic, ratio := SlabTerms(lambda, sigma, signalMean, signalVar)
	return mean, variance, 0.5 * (quadratic - math.Log1p(ratio))
}

// SlabTerms is Slab with 2 logRatio = quadratic - log(1+ratio).
func SlabTerms(lambda, sigma, signalMean, signalVar float64) (mean, variance, quadratic, ratio float64) {
	ratio = signalVar / sigma
	if ratio > 1 { // Σ below the prior's variance: divide by the larger one
		inverse := sigma / signalVar
		variance = sigma / (1 + inverse)
		mean = (lambda + float64(signalMean*inverse)) / (1 + inverse)
	} else {
		variance = signalVar / (1 + ratio)
		mean = (float64(lambda*ratio) + signalMean) / (1 + ratio)
	}
	// λ²/Σ - (λ-x̄)²/(v+Σ) over a common denominator: for small v the two terms are
	// nearly equal, and must not be subtracted.
	quadratic = (float64(lambda*lambda*ratio) + float64(2*lambda*signalMean) - float64(signalMean*signalMean)) / (signalVar + sigma)
	return mean, variance, quadratic, ratio
}

// logistic returns 1/(1+e^-ℓ) and its complement, both to full relative
// precision.
func logistic(l float64) (p, complement float64) {
	e := math.Exp(-math.Abs(l))
	larger, smaller := 1/(1+e), e/(1+e)
	if l >= 0 {
		return larger, smaller
	}
	return smaller, larger
}
