package quadrature

import "math"

const (
	// From besselFar on the Bessel functions I₀ and I₁ are summed by their asymptotic series: of
	// besselTerms terms the last is below 1e-17 there. Below, by their power series,
	// whose terms are all positive.
	besselFar   = 25
	besselTerms = 24
	nearTerms   = 52

	// Beyond besselVeryFar few terms are enough for 1-A and its derivative, too.
	besselVeryFar = 200
)

// farTerms are fewer terms of the asymptotic series, that are enough from some R on: the next is below 1e-16 of 1-A.
var farTerms = [...]struct {
	from  float64
	terms int
}{{50, 14}, {besselVeryFar, 8}, {2000, 6}}

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
	// All but the first coefficients are positive, and of that only the sum is needed.
	x, terms := 1/r, farNeeded(r)
	zero, difference := twoPolynomials(x, farZero[:terms], farDifference[:terms])
	zero, difference = 1+zero*x, difference*x
	c := circular{scaled: zero * math.Sqrt(x/(2*math.Pi)), complement: difference / zero}
	c.ratio = 1 - c.complement
	return c
}

// farNeeded is how many terms of the asymptotic series count.
func farNeeded(r float64) int {
	terms := besselTerms
	for _, level := range farTerms {
		if r >= level.from {
			terms = level.terms
		}
	}
	return terms
}

// farZero and farDifference are the coefficients of 1/R, 1/R², … in the asymptotic series of I₀, and of I₀ - I₁, in units of
// e^R/√(2πR) (Abramowitz and Stegun 9.7.1).
var farZero, farDifference = farSeries()

func farSeries() (zero, difference [besselTerms]float64) {
	a, b := 1.0, -1.0 // terms of I₀, and of -I₁
	for k := range besselTerms {
		odd, eight := float64(2*k+1), float64(8*(k+1))
		a *= odd * odd / eight
		b *= (odd*odd - 4) / eight
		zero[k], difference[k] = a, a+b
	}
	return zero, difference
}

// nearZero and nearOne are the coefficients of 1, R²/4, (R²/4)², … in the power series of I₀, and of I₁/(R/2) (Abramowitz and Stegun 9.6.10).
var nearZero, nearOne = nearSeries()

func nearSeries() (zero, one [nearTerms]float64) {
	a := 1.0
	for k := range zero {
		if k > 0 {
			a /= float64(k * k)
		}
		zero[k], one[k] = a, a/float64(k+1)
	}
	return zero, one
}

func nearCircular(r float64) circular {
	q := 0.25 * r * r
	terms := nearNeeded(r)
	zero, one := twoPolynomials(q, nearZero[:terms], nearOne[:terms])
	c := circular{scaled: zero * math.Exp(-r), ratio: 0.5 * r * one / zero}
	c.complement = 1 - c.ratio
	return c
}

// nearNeeded is how many terms of the power series count: the next is below 1e-18 of the sum (TestCircular).
func nearNeeded(r float64) int { return min(nearTerms, 12+2*int(0.8*r)) }

// twoPolynomials are Σ a_k x^k and Σ b_k x^k, of the same even number of terms; even and odd powers side by side.
func twoPolynomials(x float64, a, b []float64) (ofA, ofB float64) {
	var a0, a1, b0, b1 float64
	b = b[:len(a)]
	for k := len(a) - 2; k >= 0; k -= 2 {
		a0, a1 = math.FMA(a0, x*x, a[k]), math.FMA(a1, x*x, a[k+1])
		b0, b1 = math.FMA(b0, x*x, b[k]), math.FMA(b1, x*x, b[k+1])
	}
	return math.FMA(a1, x, a0), math.FMA(b1, x, b0)
}

// slope is A'(R) = 1 - A/R - A², the variance of cos φ.
func (c circular) slope(r float64) float64 {
	switch {
	case r < 1e-4:
		return 0.5
	case r > 1e4: // the series of the three terms, which cancel
		q := 1 / r
		return q * q * (0.5 + q*(0.25+q*(0.375+q*0.78125)))
	}
	return max(0, c.complement*(1+c.ratio)-c.ratio/r)
}
