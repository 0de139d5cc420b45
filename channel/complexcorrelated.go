package channel

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/calamp/calamp/internal/cholesky"
)

// Correlates implements [Correlated].
func (c ComplexGain) Correlates() error { return nil }

// OutputCorrelated implements [Correlated]. V is the covariance of all columns, and commutes with multiplication by i (see package joint): with D = V + Δ/2
// it is ½ of what a complex matrix 𝐃 does to their pairs, so that
//
//	τ = y*𝐃⁻¹y = ½ yᵀD⁻¹y,   B = y*𝐃⁻¹ω = ½ [yᵀD⁻¹ω + i (iy)ᵀD⁻¹ω],
//	g = D⁻¹(ŝy - ω),   ∂g = ½ Cˢ [D⁻¹y yᵀD⁻¹ + D⁻¹(iy)(iy)ᵀD⁻¹] - D⁻¹.
func (c ComplexGain) OutputCorrelated(s *Sensor) {
	in := inners.Get()
	defer inners.Put(in)
	clear(s.G)
	clear(s.DG)
	s.inherit()
	s.Quadratic = 0
	whole := *s
	whole.Y = slices.Clone(s.Y)
	for k := 0; k < len(s.Y); k += complexColumns { // one part that is missing is both
		if missing(pair(s.Y, k)) {
			whole.Y[k], whole.Y[k+1] = math.NaN(), math.NaN()
		}
	}
	ok := in.invert(&whole, c.Noise(), 1)
	var turned []float64 // D⁻¹(iy)
	logDet := 0.0
	if ok {
		turned = make([]float64, len(in.y))
		for i := 0; i < len(turned); i += complexColumns {
			turned[i], turned[i+1] = -in.dy[i+1], in.dy[i]
		}
		s.Stats[complexPrecision] += 0.5 * cholesky.Dot(in.y, in.dy)
		s.Stats[complexField] += 0.5 * cholesky.Dot(in.dy, in.omega)
		s.Stats[complexField+1] += 0.5 * cholesky.Dot(turned, in.omega)
		s.Stats[complexReadings] += float64(len(in.present) / complexColumns)
		s.Quadratic = cholesky.Dot(in.omega, in.dw)
		logDet = 0.5 * in.logDet
	}
	m := c.Prior.moments(s.Stats, 1)
	s.S, s.Phase, s.SVar = cmplx.Abs(m.Mean), cmplx.Phase(m.Mean), m.Var
	s.LogZ = m.LogMass + c.Prior.logDensity(m.Peak) - c.Prior.logNorm()
	if !ok {
		return
	}
	p, n := len(s.Y), len(in.present)
	re, im := real(m.Mean), imag(m.Mean)
	for i, k := range in.present {
		s.G[k] = re*in.dy[i] + im*turned[i] - in.dw[i]
		if s.DG == nil {
			continue
		}
		for j, l := range in.present {
			s.DG[k*p+l] = 0.5*m.Var*(in.dy[i]*in.dy[j]+turned[i]*turned[j]) - in.inverse[i*n+j]
		}
	}
	r := cmplx.Abs(m.Peak)
	square := r*r*2*s.Stats[complexPrecision] - 4*dot(m.Peak, fieldOf(s.Stats)) + s.Quadratic // (sy-ω)ᵀD⁻¹(sy-ω) at the peak, and that of the past
	s.LogZ += 2*s.Stats[complexReadings]*math.Log(r) - 0.5*square - logDet
}
