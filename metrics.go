package calamp

import (
	"math"

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
		a, b := flat(x), flat(truth.X)
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

// flat returns the entries of a matrix, row by row.
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
