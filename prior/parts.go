package prior

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// part is a piece of an entry's posterior: an atom at zero, a Gaussian, a
// Gaussian on a half-line.
type part struct {
	log            float64 // logarithm of its weight, up to a constant
	mean, variance float64
}

// combine mixes parts, and leaves their weights in place of the logarithms. The variance is a sum of positive terms,
//
//	Σ π v + Σ_{i<j} πᵢ πⱼ (mᵢ-mⱼ)².
func combine(parts []part) (mean, variance float64) {
	_, total := weigh(parts)
	for i, p := range parts {
		weight := p.log / total
		mean += weight * p.mean
		variance += weight * p.variance
		for _, q := range parts[:i] {
			d := p.mean - q.mean
			variance += weight * (q.log / total) * d * d
		}
	}
	return mean, variance
}

// weigh turns logarithms of weights into weights, the largest 1, and returns its logarithm
// and their sum.
func weigh(parts []part) (top, total float64) {
	top = math.Inf(-1)
	for _, p := range parts {
		top = max(top, p.log)
	}
	for i := range parts {
		parts[i].log = math.Exp(parts[i].log - top)
		total += parts[i].log
	}
	return top, total
}

// spike is the atom at zero, which every field leaves its weight: the reference
// of the other parts' evidence ∫ p(x) exp(-x²/2Σ + xλ/Σ) dx.
func spike(weight float64) part { return part{log: math.Log(weight)} }

// halfLine is the part with the density exp(-x²/2v + xm/v) on x ≥ 0, times
// exp(log). side = -1 mirrors it.
func halfLine(log, m, v, side float64) part {
	sd := math.Sqrt(v)
	u := m / sd
	logIntegral, mean, variance := quadrature.HalfLine(u)
	p := part{log + math.Log(sd) + logIntegral, sd * mean, v * variance}
	if u > untouched {
		p.mean = m // to the last digit
	}
	p.mean *= side
	return p
}

// untouched is how many standard deviations from the end a Gaussian does not
// notice it.
const untouched = 9

// pieces is a prior whose posterior is a mixture of parts.
type pieces interface {
	Mean() float64
	Variance() float64

	// parts appends the posterior's parts to into, with their evidence relative
	// to exp(-λ²/2Σ); Σ is finite.
	parts(into []part, lambda, sigma float64) []part
}

// posterior is [Prior.Posterior] of such a prior.
func posterior(p pieces, mean, variance, lambda, sigma []float64) {
	var buffer [8]part
	for i, l := range lambda {
		if math.IsInf(sigma[i], 1) {
			mean[i], variance[i] = p.Mean(), p.Variance()
			continue
		}
		mean[i], variance[i] = combine(p.parts(buffer[:0], l, sigma[i]))
	}
}

// logNorm is [Prior.LogNorm] of such a prior.
func logNorm(p pieces, lambda, sigma float64) float64 {
	return sumLogNorm(p, []float64{lambda}, []float64{sigma})
}

// sumLogNorm is [SumLogNorm] of such a prior.
func sumLogNorm(p pieces, lambda, sigma []float64) (total float64) {
	var buffer [8]part
	for i, l := range lambda {
		if !math.IsInf(sigma[i], 1) {
			top, weights := weigh(p.parts(buffer[:0], l, sigma[i]))
			total += top + math.Log(weights) - 0.5*l*(l/sigma[i])
		}
	}
	return total
}
