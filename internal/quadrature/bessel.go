package quadrature

import "math"

const (
	// From besselFar on the Bessel functions I₀ and I₁ are summed by their asymptotic series: of
	// besselTerms terms the last is below 1e-17 there. Below, by their power series,
	// whose terms are all positive.
	besselFar   = 25
	besselTerms = 24

	// Beyond besselVeryFar fewer terms are enough.
	besselVeryFar = 200
	veryFarTerms  = 8
)

// circular is what the integral of exp(R cos φ) over an angle φ gives, for R ≥ 0.
type circular struct {
	scaled     float64 // I₀(R) e^{-R}
	ratio      float64 // A = I₁(R)/I₀(R), the mean of cos φ
	complement float64 // 1-A, which has its own digits
}

func newCircular(r float64) circular {
	switch {
	case math.IsInf(r, 1):
		return circular{ratio: 1}
	case r < besselFar:
		return nearCircular(r)
	}
	// Abramowitz and Stegun 9.7.1: a are the terms of I₀, -b those of I₁, in units of
	// e^R/√(2πR). But for the first, which cancel, all of a+b are positive.
	terms := besselTerms
	if r > besselVeryFar {
		terms = veryFarTerms
	}
	zero, difference := 1.0, 0.0
	a, b := 1.0, -1.0
	for k := 1; k <= terms; k++ {
		odd := float64(2*k - 1)
		step := 1 / (8 * float64(k) * r)
		a *= odd * odd * step
		b *= (odd*odd - 4) * step
		zero += a
		difference += a + b
	}
	c := circular{scaled: zero / math.Sqrt(2*math.Pi*r), complement: difference / zero}
	c.ratio = 1 - c.complement
	return c
}

// nearCircular sums the power series (Abramowitz and Stegun 9.6.10).
func nearCircular(r float64) circular {
	q := 0.25 * r * r
	zero, one := 1.0, 1.0 // of I₀, and of I₁/(R/2)
	for k, a := 1.0, 1.0; ; k++ {
		a *= q / (k * k)
		zero += a
		one += a / (k + 1)
		if a <= 1e-18*zero {
			break
		}
	}
	c := circular{scaled: zero * math.Exp(-r), ratio: 0.5 * r * one / zero}
	c.complement = 1 - c.ratio
	return c
}

// slope is A'(R) = 1 - A/R - A², the variance of cos φ.
func (c circular) slope(r float64) float64 {
	switch {
	case r < 1e-4:
		return 0.5
	case r > besselVeryFar: // the series of the three terms, which cancel
		q := 1 / r
		return q * q * (0.5 + q*(0.25+q*(0.375+q*0.78125)))
	}
	return max(0, c.complement*(1+c.ratio)-c.ratio/r)
}
