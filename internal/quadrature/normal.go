package quadrature

import "math"

// TruncatedNormal returns what is left of N(u, 1) above zero: the logarithm of
// its mass Φ(u), its mean, and its variance, each to full relative precision
// however far in the tail: where u → -∞ the mean is 1/|u| and the variance 1/u².
func TruncatedNormal(u float64) (logMass, mean, variance float64) {
	x := -u
	if x < farTail {
		mass := 0.5 * math.Erfc(x/math.Sqrt2)
		hazard := math.Exp(-0.5*x*x) / (math.Sqrt(2*math.Pi) * mass)
		mean = u + hazard
		if u > 0 {
			return math.Log1p(-0.5 * math.Erfc(u/math.Sqrt2)), mean, 1 - hazard*mean
		}
		return math.Log(mass), mean, 1 - hazard*mean
	}
	// Laplace's continued fraction of Mills' ratio (Abramowitz and Stegun
	// 26.2.14), 1/R = x + 1/(x + 2/(x + 3/(x + …))), from the far end: k1 = 1/mean,
	// and the variance in a form without its cancellation.
	k1, k2, k3 := x, x, x
	for j := 12 + math.Ceil(400/(x*x)); j >= 2; j-- {
		k1, k2, k3 = x+j/k1, k1, k2
	}
	mean = 1 / k1
	logMass = -0.5*x*x - 0.5*math.Log(2*math.Pi) - math.Log(x+mean)
	return logMass, mean, (x + 4/k2 - 3/k3) / (k2 * k1 * k1)
}

// farTail is where the direct formulas have lost three digits and the continued
// fraction needs fewer than a hundred terms.
const farTail = 2.5
