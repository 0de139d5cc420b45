package prior

import (
	"fmt"
	"math"
)

// GaussBernoulli is the sparse prior of the paper (section "Gain calibration
// setting and update functions"): an entry is zero with probability 1-ρ, and
// otherwise drawn from N(x̄, v):
//
//	p(x) = (1-ρ) δ(x) + ρ N(x; x̄, v).
//
// The paper has x̄ = 0 and v = 1. With Density 1 it is a Gaussian.
type GaussBernoulli struct {
	Density    float64 // ρ, in (0, 1]
	SignalMean float64 // x̄, mean of a non-zero entry
	SignalVar  float64 // v > 0, variance of a non-zero entry
}

// Gaussian returns the dense prior N(mean, variance).
func Gaussian(mean, variance float64) GaussBernoulli {
	return GaussBernoulli{Density: 1, SignalMean: mean, SignalVar: variance}
}

// Validate reports a parameter that describes no distribution.
func (g GaussBernoulli) Validate() error {
	if !(g.Density > 0 && g.Density <= 1) {
		return fmt.Errorf("density must be in (0, 1], found %g", g.Density)
	}
	if math.IsNaN(g.SignalMean) || math.IsInf(g.SignalMean, 0) {
		return fmt.Errorf("signal mean must be finite, found %g", g.SignalMean)
	}
	return validPositive("signal variance", g.SignalVar)
}

// Mean is ρ x̄.
func (g GaussBernoulli) Mean() float64 { return g.Density * g.SignalMean }

// Variance is ρ v + ρ(1-ρ) x̄².
func (g GaussBernoulli) Variance() float64 {
	return g.Density * (g.SignalVar + (1-g.Density)*g.SignalMean*g.SignalMean)
}

// Posterior implements [Prior]. With the slab's posterior mean m and variance
// u, and its probability π, the mean is π m and the variance π u + π(1-π) m²
// (no difference of second moments: it would cancel).
func (g GaussBernoulli) Posterior(mean, variance, lambda, sigma []float64) {
	logOdds := math.Log(g.Density) - math.Log1p(-g.Density) // +Inf for the Gaussian
	for i, l := range lambda {
		m, u, odds := g.slab(l, sigma[i])
		on, off := logistic(logOdds + odds)
		mean[i] = on * m
		variance[i] = on*u + on*off*m*m
	}
}

// slab returns the posterior mean and variance of an entry known to be
// non-zero, and log N(λ; x̄, v+Σ) - log N(λ; 0, Σ), what the field adds to the
// log-odds of that. Everything is finite at Σ = +Inf.
func (g GaussBernoulli) slab(lambda, sigma float64) (mean, variance, logRatio float64) {
	ratio := g.SignalVar / sigma
	if ratio > 1 { // Σ below the prior's variance: divide by the larger one
		inverse := sigma / g.SignalVar
		variance = sigma / (1 + inverse)
		mean = (lambda + g.SignalMean*inverse) / (1 + inverse)
	} else {
		variance = g.SignalVar / (1 + ratio)
		mean = (lambda*ratio + g.SignalMean) / (1 + ratio)
	}
	// λ²/Σ - (λ-x̄)²/(v+Σ) over a common denominator, so that the two squares,
	// nearly equal for small v, are never subtracted.
	quadratic := (lambda*lambda*ratio + 2*lambda*g.SignalMean - g.SignalMean*g.SignalMean) / (g.SignalVar + sigma)
	return mean, variance, 0.5 * (quadratic - math.Log1p(ratio))
}

// LogNorm implements [Prior].
func (g GaussBernoulli) LogNorm(lambda, sigma float64) float64 {
	_, _, odds := g.slab(lambda, sigma)
	// log[(1-ρ) + ρ e^odds] - λ²/2Σ
	spike := math.Log1p(-g.Density)
	slab := math.Log(g.Density) + odds
	return logAddExp(spike, slab) - 0.5*lambda*(lambda/sigma)
}

// logistic returns 1/(1+e^-ℓ) and its complement, both to full relative
// precision.
func logistic(l float64) (p, complement float64) {
	if l >= 0 {
		e := math.Exp(-l)
		return 1 / (1 + e), e / (1 + e)
	}
	e := math.Exp(l)
	return e / (1 + e), 1 / (1 + e)
}

func logAddExp(a, b float64) float64 {
	hi, lo := max(a, b), min(a, b)
	if math.IsInf(hi, -1) {
		return hi
	}
	return hi + math.Log1p(math.Exp(lo-hi))
}
