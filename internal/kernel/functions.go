package kernel

import "math"

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
// The parameters of a group are d[g*GainFields*Lanes:], its results
// out[g*GainResults*Lanes:]; scratch has Lanes values a node. The exponent is
// good to a few units in its last place, and so is its exponential. A sensor's
// result does not depend on its company.
func GainIntegrals(x, w []float64, groups int, d, scratch, out []float64) {
	if active == Go {
		plainGainIntegrals(x, w, groups, d, scratch, out)
		return
	}
	gainIntegrals(x, w[:len(x)], groups, d[:groups*GainFields*Lanes], scratch[:len(x)*Lanes], out[:groups*GainResults*Lanes])
}

func plainGainIntegrals(x, w []float64, groups int, d, scratch, out []float64) {
	for at := range groups * Lanes {
		group, lane := at/Lanes, at%Lanes
		field := func(i int) float64 { return d[(group*GainFields+i)*Lanes+lane] }
		slope, halfTau, n := field(GainSlope), field(GainHalfTau), field(GainCount)
		inverse, middle, half := field(GainInverse), field(GainMiddle), field(GainHalfWidth)
		var sum, first, second float64
		for i, x := range x {
			u := middle + float64(half*x)
			h := u * (slope - float64(halfTau*u))
			if n != 0 {
				h += float64(n * log1pTail(u*inverse))
			}
			weight := w[i] * math.Exp(h)
			scratch[i] = weight
			sum += weight
			first += float64(weight * x)
		}
		first /= sum
		for i, x := range x {
			second += float64(scratch[i] * (x - first) * (x - first))
		}
		for i, v := range [GainResults]float64{GainMass: sum, GainFirst: first, GainSecond: second / sum} {
			out[(group*GainResults+i)*Lanes+lane] = v
		}
	}
}

// log1pTail is log(1+v) - v without cancellation, by its power series where v
// is small.
func log1pTail(v float64) float64 {
	if math.Abs(v) >= 1.0/128 {
		return math.Log1p(v) - v
	}
	return v * v * (-1.0/2 + v*(1.0/3+v*(-1.0/4+v*(1.0/5+v*(-1.0/6+v*(1.0/7+v*(-1.0/8+v*(1.0/9))))))))
}

// Log replaces positive normal values, a multiple of Lanes, by their logarithms.
func Log(v []float64) {
	if active != Go {
		logarithms(v)
		return
	}
	for i, x := range v {
		v[i] = math.Log(x)
	}
}

// GaussBernoulli writes the posterior means and variances of entries that are
// zero or, with logarithmic odds logOdds, drawn from N(signalMean, signalVar),
// seen through the fields N(λ, Σ); Σ may be +Inf.
//
// With the slab's posterior mean m and variance u, and its probability π, the
// mean is π m and the variance π u + π(1-π) m² (no difference of second
// moments: it would cancel).
func GaussBernoulli(mean, variance, lambda, sigma []float64, logOdds, signalMean, signalVar float64) {
	if active == Go {
		plainGaussBernoulli(mean, variance, lambda, sigma, logOdds, signalMean, signalVar)
		return
	}
	n := len(lambda)
	whole := n - n%Lanes
	gaussBernoulli(mean[:whole], variance[:whole], lambda[:whole], sigma[:whole], logOdds, signalMean, signalVar)
	if whole == n {
		return
	}
	var m, v, l, s [Lanes]float64
	s = [Lanes]float64{1, 1, 1, 1}
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
// log N(λ; signalMean, signalVar+Σ) - log N(λ; 0, Σ), what the field adds to
// the log-odds of its not being zero. Everything is finite at Σ = +Inf.
func Slab(lambda, sigma, signalMean, signalVar float64) (mean, variance, logRatio float64) {
	ratio := signalVar / sigma
	if ratio > 1 { // Σ below the prior's variance: divide by the larger one
		inverse := sigma / signalVar
		variance = sigma / (1 + inverse)
		mean = (lambda + float64(signalMean*inverse)) / (1 + inverse)
	} else {
		variance = signalVar / (1 + ratio)
		mean = (float64(lambda*ratio) + signalMean) / (1 + ratio)
	}
	// λ²/Σ - (λ-x̄)²/(v+Σ) over a common denominator, so that the two squares,
	// nearly equal for small v, are never subtracted.
	quadratic := (float64(lambda*lambda*ratio) + float64(2*lambda*signalMean) - float64(signalMean*signalMean)) / (signalVar + sigma)
	return mean, variance, 0.5 * (quadratic - math.Log1p(ratio))
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
