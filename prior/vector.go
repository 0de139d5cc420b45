package prior

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/parallel"
)

// MaxVectorSignals bounds the sum over which of the P entries are non-zero.
const MaxVectorSignals = 10

// Correlates implements [Vector].
func (g GaussBernoulli) Correlates(signals int) error {
	if g.Density < 1 && signals > MaxVectorSignals {
		return fmt.Errorf("full covariances with a sparse prior sum over 2^P supports and are limited to P ≤ %d, found P = %d", MaxVectorSignals, signals)
	}
	return nil
}

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
	supports := 1 << p
	if err := g.Correlates(p); err != nil {
		return 0, err
	}
	if g.Density == 1 {
		supports = 1 // all entries: the others have no weight
	}
	w := vectorWorks.Get()
	defer vectorWorks.Put(w)
	w.resize(p, supports)

	top := math.Inf(-1)
	for set := range supports {
		if w.logWeights[set], err = g.support(w, uint(set), p, field, precision, w.support(set, p)); err != nil {
			return 0, err
		}
		top = max(top, w.logWeights[set])
	}
	var total float64
	clear(mean)
	for i, l := range w.logWeights {
		weight := math.Exp(l - top)
		w.logWeights[i] = weight
		total += weight
		for k, m := range w.support(i, p)[:p] {
			mean[k] += weight * m
		}
	}
	for k := range mean {
		mean[k] /= total
	}
	clear(covariance)
	for i, weight := range w.logWeights {
		weight /= total
		s := w.support(i, p)
		for k := range p {
			for l := range p {
				covariance[k*p+l] += weight * (s[p+k*p+l] + (s[k]-mean[k])*(s[l]-mean[l]))
			}
		}
	}
	return top + math.Log(total), nil
}

// vectorWork is what [GaussBernoulli.PosteriorVector] needs.
type vectorWork struct {
	logWeights []float64 // of the supports, and then their weights
	moments    []float64 // of the supports: mean (P) and covariance (P×P), zero outside the support

	members             []int // of one support
	factor, inverse, mu []float64
}

var vectorWorks parallel.Pool[vectorWork]

func (w *vectorWork) resize(p, supports int) {
	w.logWeights = resized(w.logWeights, supports)
	w.moments = resized(w.moments, supports*(p+p*p))
	w.factor, w.inverse, w.mu = resized(w.factor, p*p), resized(w.inverse, p*p), resized(w.mu, p)
}

func resized(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}

// support returns the place of the moments of support i.
func (w *vectorWork) support(i, p int) []float64 {
	size := p + p*p
	return w.moments[i*size : (i+1)*size]
}

// support writes the moments on one support, a set of bits, or on all entries
// if all are non-zero, and returns its log-weight.
func (g GaussBernoulli) support(w *vectorWork, set uint, p int, field, precision, moments []float64) (logWeight float64, err error) {
	clear(moments)
	members := w.members[:0]
	for k := range p {
		if g.Density == 1 || set>>k&1 == 1 {
			members = append(members, k)
		}
	}
	w.members = members
	size := len(members)
	logWeight = float64(size) * math.Log(g.Density)
	if size < p {
		logWeight += float64(p-size) * math.Log1p(-g.Density)
	}
	if size == 0 {
		return logWeight, nil
	}
	a, mean := w.factor[:size*size], w.mu[:size]
	fields := 0.0 // hᵀ(A_SS+I/v)⁻¹h
	for i, k := range members {
		mean[i] = field[k] + g.SignalMean/g.SignalVar
		for j, l := range members[:i+1] {
			a[i*size+j] = 0.5 * (precision[k*p+l] + precision[l*p+k])
		}
		a[i*size+i] += 1 / g.SignalVar
	}
	if !cholesky.Factor(a, size) {
		return 0, errIndefinite
	}
	cholesky.Solve(a, mean)
	cholesky.Inverse(w.inverse, a, size)
	for i, k := range members {
		fields += mean[i] * (field[k] + g.SignalMean/g.SignalVar)
		moments[k] = mean[i]
		for j, l := range members {
			moments[p+k*p+l] = w.inverse[i*size+j]
		}
	}
	n := float64(size)
	return logWeight + 0.5*(fields-n*g.SignalMean*g.SignalMean/g.SignalVar-cholesky.LogDet(a, size)-n*math.Log(g.SignalVar)), nil
}

var errIndefinite = errors.New("the field's precision is not positive definite")
