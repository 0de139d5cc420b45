package channel

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Correlated is implemented by channels that can be given the full covariance
// of a sensor's z over the signals (paper, Algorithm 1).
type Correlated interface {
	Channel

	// OutputCorrelated fills the outputs of s; called from several goroutines.
	OutputCorrelated(s *Sensor)
}

// Sensor is one sensor with P×P covariances, row-major.
type Sensor struct {
	Index int // row of W

	Y, Omega []float64 // P; NaN in Y is a missing reading
	V        []float64 // P×P, covariance of z before the reading

	G  []float64 // P, out
	DG []float64 // P×P, out, negative semidefinite where Z_out is log-concave

	Tau, B, Count, S, SVar, LogZ float64 // out, as in [Block]
	Quadratic                    float64 // out, ωᵀD⁻¹ω
	Broken                       float64 // out, as in [Block]
}

// inner holds D⁻¹y and D⁻¹ω for the readings that are present, D = V + Δ.
type inner struct {
	present  []int
	inverse  mat.SymDense // D⁻¹
	dy, dw   mat.VecDense
	y, omega *mat.VecDense
	logDet   float64 // of 2πD
}

// invert factorises D over the present readings; gain multiplies the readings.
// ok is false when there is none, or D is not positive definite in double precision.
func (s *Sensor) invert(noise, gain float64) (in inner, ok bool) {
	p := len(s.Y)
	for k, y := range s.Y {
		if !math.IsNaN(y) {
			in.present = append(in.present, k)
		}
	}
	n := len(in.present)
	if n == 0 {
		return in, false
	}
	d := mat.NewSymDense(n, nil)
	in.y, in.omega = mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i, k := range in.present {
		in.y.SetVec(i, gain*s.Y[k])
		in.omega.SetVec(i, s.Omega[k])
		for j := i; j < n; j++ {
			d.SetSym(i, j, s.V[k*p+in.present[j]])
		}
		d.SetSym(i, i, d.At(i, i)+noise)
	}
	var chol mat.Cholesky
	if !chol.Factorize(d) {
		return in, false
	}
	// The condition of D is of order one (P variances of one sensor), so a
	// plain inverse loses nothing; the errors only warn of ill conditioning.
	if chol.SolveVecTo(&in.dy, in.y) != nil || chol.SolveVecTo(&in.dw, in.omega) != nil || chol.InverseTo(&in.inverse) != nil {
		return in, false
	}
	in.logDet = chol.LogDet() + float64(n)*math.Log(2*math.Pi)
	return in, true
}

// OutputCorrelated implements [Correlated]: with D = V + Δ,
//
//	τ = yᵀD⁻¹y,   B = yᵀD⁻¹ω,   g = D⁻¹(ŝy - ω),   ∂g = Cˢ D⁻¹yyᵀD⁻¹ - D⁻¹.
func (c Gain) OutputCorrelated(s *Sensor) {
	clear(s.G)
	clear(s.DG)
	in, ok := s.invert(c.NoiseVar, 1)
	s.Tau, s.B, s.Quadratic, s.Count = 0, 0, 0, 0
	if ok {
		s.Count = float64(len(in.present))
		s.Tau = mat.Dot(in.y, &in.dy)
		s.B = mat.Dot(in.y, &in.dw)
		s.Quadratic = mat.Dot(in.omega, &in.dw)
	}
	logNorm, mean, variance := c.Prior.posterior(s.Count, s.Tau, s.B)
	s.S, s.SVar = mean, variance
	s.LogZ = logNorm - c.Prior.logMass() - 0.5*(s.Quadratic+in.logDet)
	s.derivatives(&in, mean, variance)
}

// derivatives fills g and ∂g from the posterior of s.
func (s *Sensor) derivatives(in *inner, mean, variance float64) {
	p := len(s.Y)
	if in.inverse.IsEmpty() {
		return
	}
	for i, k := range in.present {
		s.G[k] = mean*in.dy.AtVec(i) - in.dw.AtVec(i)
		for j, l := range in.present {
			s.DG[k*p+l] = variance*in.dy.AtVec(i)*in.dy.AtVec(j) - in.inverse.At(i, j)
		}
	}
}

// OutputCorrelated implements [Correlated] with known gains.
func (c AWGN) OutputCorrelated(s *Sensor) {
	clear(s.G)
	clear(s.DG)
	s.S, s.SVar = 1, 0
	if c.S != nil {
		s.S = c.S[s.Index]
	}
	s.LogZ = 0
	in, ok := s.invert(c.NoiseVar, s.S)
	if !ok {
		return
	}
	residual := mat.NewVecDense(len(in.present), nil)
	residual.SubVec(in.y, in.omega)
	var dr mat.VecDense
	dr.SubVec(&in.dy, &in.dw)
	s.LogZ = float64(len(in.present))*math.Log(s.S) - 0.5*(mat.Dot(residual, &dr)+in.logDet)
	s.derivatives(&in, 1, 0)
}
