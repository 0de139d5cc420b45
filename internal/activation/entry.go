package activation

import (
	"math"

	"github.com/calamp/calamp/internal/vector"
)

// Entry is the factor between N(u; ω, V) and a field N(x; λ, Σ) on x = f(u) + noise of variance slack: of x itself, not of f(u). V may be 0, where
// u is known, and Σ is +Inf where nothing was measured.
func (f Function) Entry(lambda, sigma, omega, v, slack float64) Moments {
	lambda, a := precisionOf(lambda, sigma, slack)
	var m Moments
	if v > 0 {
		m = f.Factor(lambda, a, omega, v)
	} else {
		m.U, m.X = omega, f.Of(omega)
		m.LogMass = -0.5 * (m.X - lambda) * ((m.X - lambda) * a)
	}
	m.blur(lambda, sigma, a, slack)
	return m
}

// precisionOf is the field N(λ, Σ + slack), with a precision.
func precisionOf(lambda, sigma, slack float64) (l, a float64) {
	switch total := sigma + slack; {
	case math.IsInf(sigma, 1):
		return 0, 0
	case total == 0: // an entry known exactly: as near to that as numbers are
		return lambda, mostPrecision
	default:
		return lambda, 1 / total
	}
}

// blur makes the moments of f(u) those of x given a field on it: x is between the two, and f(u) has the field N(λ, Σ + slack) of precision a.
func (m *Moments) blur(lambda, sigma, a, slack float64) {
	switch {
	case slack == 0:
	case a == 0:
		m.XVar += slack
	default:
		near := slack * a
		m.LogMass += 0.5 * math.Log1p(-near)
		m.X += near * (lambda - m.X)
		m.XVar = near*sigma + (1-near)*(1-near)*m.XVar
	}
}

const mostPrecision = 1e290

// AtOnce is how many entries [Function.Entries] treats at most.
const AtOnce = 64

// Entries is [Function.Entry] of up to AtOnce entries.
func (f Function) Entries(out []Moments, lambda, sigma, omega, v []float64, slack float64) {
	switch {
	case f.Linear():
		linear(out, lambda, sigma, omega, v, slack)
		return
	case f.smooth:
		sigmoids(out, lambda, sigma, omega, v, slack)
		return
	case f.name == Sign.name:
		steps(out, lambda, sigma, omega, v, slack)
		return
	case f.name == HardTanh.name:
		limits(out, lambda, sigma, omega, v, slack)
		return
	}
	var d [AtOnce * vector.HingeFields]float64
	const unit = vector.HingeFields * vector.Lanes
	for i := range vector.Padded(len(out)) {
		at := i/vector.Lanes*unit + i%vector.Lanes
		if i >= len(out) { // any entry
			d[at+vector.HingeV*vector.Lanes] = 1
			continue
		}
		d[at+vector.HingeLambda*vector.Lanes], d[at+vector.HingePrecision*vector.Lanes] = precisionOf(lambda[i], sigma[i], slack)
		d[at+vector.HingeOmega*vector.Lanes], d[at+vector.HingeV*vector.Lanes] = omega[i], v[i]
	}
	vector.Hinge(vector.Padded(len(out))/vector.Lanes, d[:], f.pieces[0].slope)
	for i := range out {
		field := d[i/vector.Lanes*unit+i%vector.Lanes:]
		m := &out[i]
		if m.LogMass = field[vector.HingeLog*vector.Lanes]; math.IsNaN(m.LogMass) {
			*m = f.Entry(lambda[i], sigma[i], omega[i], v[i], slack)
			continue
		}
		m.X, m.XVar = field[vector.HingeX*vector.Lanes], field[vector.HingeXVar*vector.Lanes]
		m.Off, m.UVar = field[vector.HingeOff*vector.Lanes], field[vector.HingeUVar*vector.Lanes]
		m.U = omega[i] + m.Off
		m.blur(field[0], sigma[i], field[vector.HingePrecision*vector.Lanes], slack)
	}
}

// hinge reports whether it is two straight lines that meet at zero.
func (f Function) hinge() bool { return len(f.pieces) == 2 && f.pieces[0].at == f.pieces[1].at }

// linear is [Function.Entries] of the identity, with all logarithms at a time.
func linear(out []Moments, lambda, sigma, omega, v []float64, slack float64) {
	var logs [AtOnce]float64
	for i := range out {
		m := &out[i]
		l, a := precisionOf(lambda[i], sigma[i], slack)
		logs[i] = 1 + a*v[i]
		narrower := 1 / logs[i]
		d := l - omega[i]
		m.Off, m.UVar = a*v[i]*narrower*d, v[i]*narrower
		m.U, m.XVar = omega[i]+m.Off, m.UVar
		m.X, m.LogMass = m.U, -0.5*d*(d*(a*narrower))
		m.blur(lambda[i], sigma[i], a, slack)
	}
	count := vector.Padded(len(out))
	for i := len(out); i < count; i++ {
		logs[i] = 1
	}
	vector.Log(logs[:count])
	for i := range out {
		out[i].LogMass -= 0.5 * logs[i]
	}
}
