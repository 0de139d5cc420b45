package quadrature

import "math"

// NormalBound is how many standard deviations either side of the mean of a
// Gaussian hold the probability level, in (-1, 1): negative ones give the
// quantiles below the mean.
func NormalBound(level float64) float64 { return math.Sqrt2 * math.Erfinv(level) }

// TruncatedNormal returns what is left of N(u, 1) above zero: the logarithm of
// its mass Φ(u), its mean, and its variance, each to full relative precision
// however far in the tail: where u → -∞ the mean is 1/|u| and the variance 1/u².
func TruncatedNormal(u float64) (logMass, mean, variance float64) {
	if u > 0 {
		hazard := math.Exp(-0.5*u*u) / (math.Sqrt(2*math.Pi) * 0.5 * math.Erfc(-u/math.Sqrt2))
		mean = u + hazard
		return math.Log1p(-0.5 * math.Erfc(u/math.Sqrt2)), mean, 1 - hazard*mean
	}
	logRatio, mean, variance := HalfLine(u)
	return logRatio - 0.5*u*u - halfLog2Pi, mean, variance
}

// HalfLine integrates exp(-x²/2 + ux) over x ≥ 0: the logarithm of the integral,
// which is Mills' ratio Φ(u)/φ(u), and the mean and variance of that density,
// those of [TruncatedNormal]. Nothing cancels in the tail u → -∞, where the
// integral is 1/|u|.
func HalfLine(u float64) (logIntegral, mean, variance float64) {
	x := -u
	if x < farTail {
		mass := 0.5 * math.Erfc(x/math.Sqrt2)
		hazard := math.Exp(-0.5*x*x-halfLog2Pi) / mass
		mean = u + hazard
		return math.Log(mass) + 0.5*x*x + halfLog2Pi, mean, 1 - hazard*mean
	}
	// Laplace's continued fraction of Mills' ratio (Abramowitz and Stegun
	// 26.2.14), 1/R = x + 1/(x + 2/(x + 3/(x + …))), from the far end: k1 = 1/mean,
	// and the variance in a form without its cancellation.
	k1, k2, k3 := x, x, x
	for j := 12 + math.Ceil(400/(x*x)); j >= 2; j-- {
		k1, k2, k3 = x+j/k1, k1, k2
	}
	mean = 1 / k1
	return -math.Log(x + mean), mean, (x + 4/k2 - 3/k3) / (k2 * k1 * k1)
}

var halfLog2Pi = 0.5 * math.Log(2*math.Pi)

// farTail is where the direct formulas have lost three digits and the continued
// fraction needs fewer than a hundred terms.
const farTail = 2.5
