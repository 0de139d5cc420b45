package quadrature

import "math"

// NormalBound is the z for which a Gaussian variable is within z standard deviations
// of its mean with probability level. A negative level, down to -1, gives -z of its
// absolute value; so NormalBound(2p-1) is the quantile of p.
func NormalBound(level float64) float64 { return math.Sqrt2 * math.Erfinv(level) }

// TruncatedNormal is about N(u, 1) restricted to positive values. It returns the
// logarithm of the mass Φ(u), the mean, and the variance, each to full relative
// precision also far in the tail, where for u → -∞ the mean is 1/|u| and the variance
// 1/u².
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
	// Laplace's continued fraction of Mills' ratio R (Abramowitz and Stegun 26.2.14),
	// 1/R = x + 1/(x + 2/(x + 3/(x + …))), is evaluated from its far end. k1, k2 and k3
	// are its first tails; the mean and the variance are formed from them without
	// cancellation.
	k1, k2, k3 := x, x, x
	for j := 12 + math.Ceil(400/(x*x)); j >= 2; j-- {
		k1, k2, k3 = x+j/k1, k1, k2
	}
	mean = 1 / k1
	return -math.Log(x + mean), mean, (x + 4/k2 - 3/k3) / (k2 * k1 * k1)
}

var halfLog2Pi = 0.5 * math.Log(2*math.Pi)

// farTail is -u from which on the continued fraction is used: there the direct
// formulas lose three digits, and it needs fewer than a hundred terms. normal_test.go
// compares both sides with values of 25 digits.
const farTail = 2.5
