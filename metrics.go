package calamp

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"
)

// Metrics compares a result with the truth. Fields are NaN where the truth
// that they need is not known; [Score] documents each.
type Metrics struct {
	XMSE          float64 // mean squared error of X
	XMSEScaled    float64 // the same after multiplying X by Scale
	XOneMinusNCC  float64 // 1 - |<X, X0>|/(‖X‖‖X0‖), over all entries of all signals
	SMSE          float64 // mean squared error of s
	SMSEScaled    float64 // the same after multiplying s by Scale
	SOneMinusCNCC float64 // 1 - |correlation| of s and s0, means subtracted
	Scale         float64 // the factor c that brings (X, s) closest to the truth

	// Of complex signals and gains Scale is |c|, PhaseShift the argument of c in radians, and errors of s are
	// those of complex numbers; 0 for real ones.
	PhaseShift float64
}

// Score compares estimates x (N×P) and s (M) with the truth. Blind calibration
// fixes the common scale of signals and calibration only through the priors, so
// errors are given as they are and after multiplying both by the one factor
// that minimises the error of X (of s, where X is not known).
//
// The correlation of s is centred: with a narrow range of s the plain one is
// nearly 1 for any estimate. One minus a correlation is computed from the
// difference of the normalised vectors, and keeps its digits near zero.
func Score(x *mat.Dense, s []float64, truth Truth) Metrics {
	nan := math.NaN()
	m := Metrics{XMSE: nan, XMSEScaled: nan, XOneMinusNCC: nan, SMSE: nan, SMSEScaled: nan, SOneMinusCNCC: nan, Scale: nan}
	if truth.X != nil {
		a, b := entries(x), entries(truth.X)
		m.Scale = scaleTo(a, b)
		m.XMSE = meanSquaredError(a, b, 1)
		m.XMSEScaled = meanSquaredError(a, b, m.Scale)
		m.XOneMinusNCC = oneMinusNCC(a, b)
	}
	if truth.S != nil {
		if truth.X == nil {
			m.Scale = scaleTo(s, truth.S)
		}
		m.SMSE = meanSquaredError(s, truth.S, 1)
		m.SMSEScaled = meanSquaredError(s, truth.S, m.Scale)
		m.SOneMinusCNCC = oneMinusNCC(centred(s), centred(truth.S))
	}
	return m
}

// Score compares the result with the truth: [Score], or [ScoreComplex] where gains are complex.
func (r *Result) Score(truth Truth) Metrics {
	if r.Phase != nil {
		return ScoreComplex(r.X, r.ComplexS(), truth)
	}
	return Score(r.X, r.S, truth)
}

// entries are those of a matrix, row by row, to be read only.
func entries(m *mat.Dense) []float64 {
	if raw := m.RawMatrix(); raw.Stride == raw.Cols {
		return raw.Data
	}
	return flat(m)
}

// flat returns a copy of the entries of a matrix, row by row.
func flat(m *mat.Dense) []float64 {
	rows, cols := m.Dims()
	out := make([]float64, 0, rows*cols)
	for i := range rows {
		out = append(out, m.RawRowView(i)...)
	}
	return out
}

// scaleTo is the c that minimises ‖c a - b‖; 0 for a zero estimate.
func scaleTo(a, b []float64) float64 {
	var aa, ab float64
	for i, v := range a {
		aa += v * v
		ab += v * b[i]
	}
	if aa == 0 {
		return 0
	}
	return ab / aa
}

func meanSquaredError(a, b []float64, scale float64) float64 {
	total := 0.0
	for i, v := range a {
		d := scale*v - b[i]
		total += d * d
	}
	return total / float64(len(a))
}

// oneMinusNCC is 1 - |⟨a,b⟩|/(‖a‖‖b‖) = ½‖a/‖a‖ ∓ b/‖b‖‖²; 1 when either is zero.
func oneMinusNCC(a, b []float64) float64 {
	var aa, ab, bb float64
	for i, v := range a {
		aa += v * v
		ab += v * b[i]
		bb += b[i] * b[i]
	}
	if aa == 0 || bb == 0 {
		return 1
	}
	p, q := 1/math.Sqrt(aa), math.Copysign(1/math.Sqrt(bb), ab)
	total := 0.0
	for i, v := range a {
		d := p*v - q*b[i]
		total += d * d
	}
	return 0.5 * total
}

func centred(v []float64) []float64 {
	mean := 0.0
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x - mean
	}
	return out
}

// ScoreComplex is [Score] for complex signals x (N×2P, see [Pairs]) and gains s (M), after the best
// complex factor c.
func ScoreComplex(x *mat.Dense, s []complex128, truth Truth) Metrics {
	nan := math.NaN()
	m := Metrics{XMSE: nan, XMSEScaled: nan, XOneMinusNCC: nan, SMSE: nan, SMSEScaled: nan, SOneMinusCNCC: nan, Scale: nan}
	c := complex128(1)
	if truth.X != nil {
		a, b := complexOf(flat(x)), complexOf(flat(truth.X))
		c = complexScaleTo(a, b)
		m.XMSE = complexError(a, b, 1)
		m.XMSEScaled = complexError(a, b, c)
		m.XOneMinusNCC = complexOneMinusNCC(a, b)
	}
	if s0 := truth.ComplexS(); s0 != nil {
		if truth.X == nil {
			c = complexScaleTo(s, s0)
		}
		m.SMSE = complexError(s, s0, 1)
		m.SMSEScaled = complexError(s, s0, c)
		m.SOneMinusCNCC = complexOneMinusNCC(complexCentred(s), complexCentred(s0))
	}
	m.Scale, m.PhaseShift = cmplx.Abs(c), cmplx.Phase(c)
	return m
}

func complexOf(pairs []float64) []complex128 {
	out := make([]complex128, len(pairs)/2)
	for i := range out {
		out[i] = complex(pairs[2*i], pairs[2*i+1])
	}
	return out
}

// complexScaleTo is the c that minimises ‖c a - b‖; 0 for a zero estimate.
func complexScaleTo(a, b []complex128) complex128 {
	aa, ab := innerProducts(a, b)
	if aa == 0 {
		return 0
	}
	return ab / complex(aa, 0)
}

// innerProducts are ‖a‖² and Σ a* b.
func innerProducts(a, b []complex128) (aa float64, ab complex128) {
	for i, v := range a {
		aa += real(v)*real(v) + imag(v)*imag(v)
		ab += cmplx.Conj(v) * b[i]
	}
	return aa, ab
}

func complexError(a, b []complex128, c complex128) float64 {
	total := 0.0
	for i, v := range a {
		d := c*v - b[i]
		total += real(d)*real(d) + imag(d)*imag(d)
	}
	return total / float64(len(a))
}

// complexOneMinusNCC is 1 - |Σ a*b|/(‖a‖‖b‖), by the difference of the two as oneMinusNCC is.
func complexOneMinusNCC(a, b []complex128) float64 {
	aa, ab := innerProducts(a, b)
	bb, _ := innerProducts(b, b)
	if aa == 0 || bb == 0 || ab == 0 {
		return 1
	}
	p := ab / complex(cmplx.Abs(ab)*math.Sqrt(aa), 0)
	q := complex(1/math.Sqrt(bb), 0)
	total := 0.0
	for i, v := range a {
		d := p*v - q*b[i]
		total += real(d)*real(d) + imag(d)*imag(d)
	}
	return 0.5 * total
}

func complexCentred(v []complex128) []complex128 {
	mean := complex128(0)
	for _, x := range v {
		mean += x
	}
	mean /= complex(float64(len(v)), 0)
	out := make([]complex128, len(v))
	for i, x := range v {
		out[i] = x - mean
	}
	return out
}
