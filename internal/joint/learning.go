package joint

import "math"

// Learns says which hyperparameters are learned; R always is.
type Learns struct{ Density, Mean bool }

const (
	// A density is kept away from 0 and 1, from where expectation–maximisation never comes back.
	leastDensity = 1e-4

	// leastSquare is the least variance of a signal, relative to the mean of all.
	leastSquare = 1e-12
)

// Refit moves the hyperparameters by the fraction step of the way to the maximum of the expected log-likelihood,
//
//	ρ = Σ π/N,   m = Σ π µ/Σ π,   R = Σ π [S + (µ-m)(µ-m)ᵀ]/Σ π,
//
// the last one shrunk (see [shrink]), and returns how far they moved, in standard errors.
func (r *Rows) Refit(learns Learns, step float64) (change float64) {
	p, q := r.P, &r.Prior
	n := float64(r.N)
	if learns.Density {
		to := min(max(r.count/n, leastDensity), 1-leastDensity)
		change = math.Abs(to-q.Density) / math.Sqrt(q.Density*(1-q.Density)/n+1/(n*n))
		q.Density += step * (to - q.Density)
	}
	if !(r.count > leastDensity*n) {
		return change
	}
	mean := make([]float64, p)
	if learns.Mean {
		for k := range mean {
			mean[k] = r.first[k] / r.count
			change = max(change, math.Abs(mean[k]-q.Mean[k])*math.Sqrt(r.count/max(q.Cov[k*p+k], math.SmallestNonzeroFloat64)))
			q.Mean[k] += step * (mean[k] - q.Mean[k])
		}
	}
	covariance := make([]float64, p*p)
	for k := range p {
		for l := range p {
			covariance[k*p+l] = r.second[k*p+l]/r.count - q.Mean[k]*r.first[l]/r.count - r.first[k]/r.count*q.Mean[l] + q.Mean[k]*q.Mean[l]
		}
	}
	values := r.count * float64(r.Columns) // that each entry of R is estimated from
	shrink(covariance, p, values)
	change = max(change, distance(covariance, q.Cov, p)*math.Sqrt(0.5*values))
	for i, v := range covariance {
		q.Cov[i] += step * (v - q.Cov[i])
	}
	return change
}

// distance is the root mean square difference of two covariances, in units of the standard deviations of their signals: 1 is a difference of the size of a variance
// in every entry.
func distance(a, b []float64, p int) float64 {
	total, count := 0.0, 0.0
	for k := range p {
		for l := range p {
			d := a[k*p+l] - b[k*p+l]
			total += d * d / max(b[k*p+k]*b[l*p+l], math.SmallestNonzeroFloat64)
			count++
		}
	}
	return math.Sqrt(total / count)
}

// shrink draws a sample covariance of n rows to what fewer numbers describe. Correlations are drawn to zero by the oracle approximating
// shrinkage of Y. Chen, A. Wiesel, Y. C. Eldar and A. O. Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE Trans. Signal
// Process. 58, 2010, eq. (23): with T the sample's correlations, of trace p,
//
//	by min(1, [(1-2/p) tr T² + p²] / [(n+1-2/p)(tr T² - p)]),
//
// and variances to their mean, by the part of the spread of their logarithms that chance has, 2/n.
func shrink(a []float64, p int, n float64) {
	mean := trace(a, p) / float64(p)
	if p < 2 || !(mean > 0) {
		return
	}
	variances := make([]float64, p)
	middle := 0.0
	for k := range p {
		variances[k] = max(a[k*p+k], leastSquare*mean)
		middle += math.Log(variances[k]) / float64(p)
	}
	target := math.Log(mean)
	spread, square := 0.0, float64(p)
	for k, v := range variances {
		d := math.Log(v) - middle
		spread += d * d / float64(p-1)
		for l, w := range variances {
			if l != k {
				square += a[k*p+l] / v * (a[k*p+l] / w)
			}
		}
	}
	q := float64(p)
	most := (n + 1 - 2/q) * (square - q)
	part := ((1-2/q)*square + q*q) / max(most, math.SmallestNonzeroFloat64)
	keep := 1 - min(1, part)
	even := min(1, 2/(n*max(spread, math.SmallestNonzeroFloat64)))
	factors := make([]float64, p) // of the standard deviations
	for k, v := range variances {
		factors[k] = math.Exp(0.5 * even * (target - math.Log(v)))
	}
	for k := range p {
		for l := range p {
			if l != k {
				a[k*p+l] *= keep * factors[k] * factors[l]
			}
		}
		a[k*p+k] = variances[k] * factors[k] * factors[k]
	}
}
