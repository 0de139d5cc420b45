package amp

import "math"

// inheritedField is the Gaussian field that earlier batches of measurements left on the
// signals (P×N each): exp(-precision x²/2 + field x) times the prior (paper,
// "Streaming AMP for online reconstruction in the GLM"). Where there were none it is nil.
type inheritedField struct {
	precision, field []float64
	lambda, sigma    []float64 // workspace: the inherited field and the present one together
}

// InheritField makes the signals start from the field (P×N each, precision and
// precision times mean) that earlier batches left.
func (s *State) InheritField(precision, field []float64) {
	s.field = &inheritedField{precision, field, make([]float64, len(s.X)), make([]float64, len(s.X))}
	s.Reset()
}

// start sets x̂ and C to the posterior that earlier batches left.
func (f *inheritedField) start(s *State) {
	if f == nil {
		return
	}
	clear(s.Lambda)
	for k := range s.P {
		from, to := k*s.N, (k+1)*s.N
		s.posterior(s.X[from:to], s.C[from:to], from)
	}
}

// with is the field of entries that start at from, with what was inherited:
// precisions add, and so do precisions times means.
func (f *inheritedField) with(lambda, sigma []float64, from int) (totalLambda, totalSigma []float64) {
	if f == nil {
		return lambda, sigma
	}
	totalLambda, totalSigma = f.lambda[from:from+len(lambda)], f.sigma[from:from+len(sigma)]
	for i, s := range sigma {
		precision, field := f.precision[from+i], f.field[from+i]
		if !math.IsInf(s, 1) {
			precision += 1 / s
			field += lambda[i] / s
		}
		totalLambda[i], totalSigma[i] = 0, math.Inf(1)
		if precision > 0 {
			totalSigma[i] = 1 / precision
			totalLambda[i] = field / precision
		}
	}
	return totalLambda, totalSigma
}

// AddField adds the field of the last sweep to that of earlier batches: what the
// next batch of measurements inherits.
func (s *State) AddField(precision, field []float64) {
	for i, v := range s.Sigma {
		if !math.IsInf(v, 1) {
			precision[i] += 1 / v
			field[i] += s.Lambda[i] / v
		}
	}
}
