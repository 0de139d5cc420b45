package activation

import "math"

// Entry is the factor between N(u; ω, V) and a field N(x; λ, Σ) on x = f(u) + noise of variance slack: of x itself, not of f(u). V may be 0, where
// u is known, and Σ is +Inf where nothing was measured.
func (f Function) Entry(lambda, sigma, omega, v, slack float64) Moments {
	total := sigma + slack
	a := 1 / total
	if total == 0 { // an entry known exactly: as near to that as numbers are
		a = mostPrecision
	}
	if math.IsInf(sigma, 1) {
		lambda, a = 0, 0
	}
	var m Moments
	if v > 0 {
		m = f.Factor(lambda, a, omega, v)
	} else {
		m.U, m.X = omega, f.Of(omega)
		m.LogMass = -0.5 * (m.X - lambda) * ((m.X - lambda) * a)
	}
	switch {
	case slack == 0:
	case a == 0:
		m.XVar += slack
	default: // x given f(u) is between the two, and f(u) has the field N(λ, Σ + slack)
		near := slack * a
		m.LogMass += 0.5 * math.Log1p(-near)
		m.X += near * (lambda - m.X)
		m.XVar = near*sigma + (1-near)*(1-near)*m.XVar
	}
	return m
}

const mostPrecision = 1e290
