package prior

import (
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/mat"
)

// MaxVectorSignals bounds the sum over which of the P entries are non-zero.
const MaxVectorSignals = 10

// PosteriorVector implements [Vector]: closed form for the Gaussian prior, a
// sum over the 2^P supports otherwise (P ≤ 10).
//
// On a support S the entries outside are zero and those inside are Gaussian
// with precision A_SS + I/v; its log-weight is
//
//	|S| log ρ + (P-|S|) log(1-ρ) + ½ hᵀ(A_SS+I/v)⁻¹h - ½ |S| x̄²/v - ½ log det(I + v A_SS),  h = (Aλ)_S + x̄/v.
func (g GaussBernoulli) PosteriorVector(mean, covariance, field, precision []float64) (logNorm float64, err error) {
	p := len(mean)
	if len(field) != p || len(covariance) != p*p || len(precision) != p*p {
		panic("calamp: PosteriorVector: slices of different sizes")
	}
	if g.Density == 1 {
		full := uint(1)<<p - 1
		s, err := g.support(full, p, field, precision)
		if err != nil {
			return 0, err
		}
		copy(mean, s.mean)
		copy(covariance, s.covariance)
		return s.logWeight, nil
	}
	if p > MaxVectorSignals {
		return 0, fmt.Errorf("the sparse vector posterior sums over 2^P supports and is limited to P ≤ %d, found P = %d", MaxVectorSignals, p)
	}

	supports := make([]supportPosterior, 1<<p)
	top := math.Inf(-1)
	for set := range supports {
		s, err := g.support(uint(set), p, field, precision)
		if err != nil {
			return 0, err
		}
		supports[set] = s
		top = max(top, s.logWeight)
	}
	var total float64
	clear(mean)
	for _, s := range supports {
		w := math.Exp(s.logWeight - top)
		total += w
		for k := range mean {
			mean[k] += w * s.mean[k]
		}
	}
	for k := range mean {
		mean[k] /= total
	}
	clear(covariance)
	for _, s := range supports {
		w := math.Exp(s.logWeight-top) / total
		for k := range p {
			for l := range p {
				covariance[k*p+l] += w * (s.covariance[k*p+l] + (s.mean[k]-mean[k])*(s.mean[l]-mean[l]))
			}
		}
	}
	return top + math.Log(total), nil
}

type supportPosterior struct {
	logWeight        float64
	mean, covariance []float64 // P and P×P, zero outside the support
}

func (g GaussBernoulli) support(set uint, p int, field, precision []float64) (supportPosterior, error) {
	out := supportPosterior{mean: make([]float64, p), covariance: make([]float64, p*p)}
	size := bits.OnesCount(set)
	out.logWeight = float64(size) * math.Log(g.Density)
	if size < p {
		out.logWeight += float64(p-size) * math.Log1p(-g.Density)
	}
	if size == 0 {
		return out, nil
	}
	members := make([]int, 0, size)
	for k := range p {
		if set>>k&1 == 1 {
			members = append(members, k)
		}
	}
	a := mat.NewSymDense(size, nil)
	h := mat.NewVecDense(size, nil)
	for i, k := range members {
		h.SetVec(i, field[k]+g.SignalMean/g.SignalVar)
		for j := i; j < size; j++ {
			a.SetSym(i, j, 0.5*(precision[k*p+members[j]]+precision[members[j]*p+k]))
		}
		a.SetSym(i, i, a.At(i, i)+1/g.SignalVar)
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return out, fmt.Errorf("the field's precision is not positive definite")
	}
	var m mat.VecDense
	if err := chol.SolveVecTo(&m, h); err != nil {
		return out, err
	}
	var inverse mat.SymDense
	if err := chol.InverseTo(&inverse); err != nil {
		return out, err
	}
	n := float64(size)
	out.logWeight += 0.5 * (mat.Dot(h, &m) - n*g.SignalMean*g.SignalMean/g.SignalVar - chol.LogDet() - n*math.Log(g.SignalVar))
	for i, k := range members {
		out.mean[k] = m.AtVec(i)
		for j, l := range members {
			out.covariance[k*p+l] = inverse.At(i, j)
		}
	}
	return out, nil
}
