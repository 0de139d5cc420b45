package evolution

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Streaming follows the streaming reconstructor, mini-AMP (paper, "Streaming AMP
// for online reconstruction in the GLM"): the signals stay the same, and batches of
// new sensors arrive, each sensor with a gain of its own. m.Alpha is the measurement
// rate M/N of one batch. A batch starts from the posterior of x that the earlier
// batches left and runs to its fixed point. Then its field is kept; fields add up,
//
//	A_k = A_{k-1} + α m̂_k,   V = mmse(1/A_k).
//
// One point is returned for each batch; errors include those of the batches
// before. A cancelled run returns the batches done and ctx.Err().
func Streaming(ctx context.Context, m Model, batches int, opt *Options) ([]Point, error) {
	e, err := newEvolution(m, opt)
	if err != nil {
		return nil, err
	}
	if batches < 1 {
		return nil, fmt.Errorf("the number of batches must be positive, found %d", batches)
	}
	var out []Point
	inherited := 0.0 // relative error of the field
	start := m.Signal.Variance()
	for range batches {
		p, err := e.fixedPoint(ctx, start, opt.iterations(defaultLimit))
		if err != nil {
			return out, err
		}
		before := e.field
		e.field += m.Alpha * p.MHat.Value
		// The field's error is that of its terms, and the relative error of V at most as
		// large.
		inherited = (inherited*before + m.Alpha*p.MHat.Err) / e.field
		p.MSEX.Err += inherited * p.MSEX.Value
		out = append(out, *p)
		start = p.MSEX.Value
	}
	return out, nil
}

// VectorGaussian is the fixed point of compressed sensing with known gains when
// the P entries of a row of X are jointly Gaussian, N(0, covariance) (paper,
// Algorithm 1, prior of density 1): V = (C⁻¹ + α (V+Δ)⁻¹)⁻¹. It returns V, P×P.
// In the basis of C's eigenvectors the P directions separate into
// scalar problems with a closed form.
func VectorGaussian(covariance *mat.SymDense, noiseVar, alpha float64) (*mat.SymDense, error) {
	if !(alpha > 0) || !(noiseVar >= 0) {
		return nil, fmt.Errorf("α must be positive and the noise variance not negative, found %g and %g", alpha, noiseVar)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(covariance, true) {
		return nil, fmt.Errorf("the covariance has no eigendecomposition")
	}
	p := covariance.SymmetricDim()
	values := eigen.Values(nil)
	for i, c := range values {
		if !(c >= 0) {
			return nil, fmt.Errorf("the covariance is not positive semidefinite: eigenvalue %g", c)
		}
		values[i] = gaussianError(c, noiseVar, alpha)
	}
	var basis, scaled, v mat.Dense
	eigen.VectorsTo(&basis)
	scaled.Mul(&basis, mat.NewDiagDense(p, values))
	v.Mul(&scaled, basis.T())
	out := mat.NewSymDense(p, nil)
	for i := range p {
		for j := i; j < p; j++ {
			out.SetSym(i, j, 0.5*(v.At(i, j)+v.At(j, i)))
		}
	}
	return out, nil
}

// gaussianError solves 1/E = 1/c + α/(E+Δ), that is E² + E(Δ + (α-1)c) - Δc = 0,
// without cancellation.
func gaussianError(c, noise, alpha float64) float64 {
	b := noise + (alpha-1)*c
	root := math.Hypot(b, 2*math.Sqrt(noise*c))
	if b > 0 {
		return 2 * noise * c / (b + root)
	}
	return 0.5 * (root - b)
}
