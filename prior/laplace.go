package prior

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Laplace is zero with probability 1-ρ, and otherwise has the heavy-tailed
// two-sided exponential density,
//
//	p(x) = (1-ρ) δ(x) + ρ exp(-|x|/b)/2b,   b = √(v/2),
//
// of variance v. With Density 1 its most likely posterior is the LASSO's; here
// it is used for its posterior mean.
type Laplace struct {
	Density   float64 // ρ, in (0, 1]
	SignalVar float64 // v > 0

	Learn Parameters // those that are learned, from these values on
}

// Validate reports a parameter that describes no distribution.
func (l Laplace) Validate() error {
	if !(l.Density > 0 && l.Density <= 1) {
		return fmt.Errorf("density must be in (0, 1], found %g", l.Density)
	}
	return validPositive("signal variance", l.SignalVar)
}

// Mean implements [Prior].
func (l Laplace) Mean() float64 { return 0 }

// Variance implements [Prior].
func (l Laplace) Variance() float64 { return l.Density * l.SignalVar }

// Name implements [Named]. Where learning starts is forgotten soon, and not in it.
func (l Laplace) Name() string {
	if l.Learn != 0 {
		return "laplace, of " + l.gaussian().Name()
	}
	return fmt.Sprintf("laplace density=%g variance=%g", l.Density, l.SignalVar)
}

// Slab implements [Slabbed].
func (l Laplace) Slab() (mean, variance float64) { return 0, l.SignalVar }

// WithSlab implements [Slabbed].
func (l Laplace) WithSlab(_, variance float64) Slabbed {
	l.SignalVar = variance
	return l
}

// SlabSD implements [Slabbed]: the variance is 2b², and b is known to b/√entries.
func (l Laplace) SlabSD(entries float64) (ofMean, ofVar float64) {
	return 0, 2 * l.SignalVar / math.Sqrt(entries)
}

// AsOne implements [Shaped].
func (l Laplace) AsOne() GaussBernoulli { return l.gaussian().GaussBernoulliPrior() }

// WithDensity implements [Shaped].
func (l Laplace) WithDensity(density float64) Shaped {
	l.Density, l.Learn = density, ofSlab(l.Learn, density)
	return l
}

// NonZero implements [Sparse]: ρ.
func (l Laplace) NonZero() float64 { return l.Density }

// Scaled implements [Scalable].
func (l Laplace) Scaled(c float64) Prior {
	l.SignalVar *= c * c
	return l
}

// scale is b.
func (l Laplace) scale() float64 { return math.Sqrt(0.5 * l.SignalVar) }

// parts implements pieces: on either side exp(-x²/2Σ + |x|m/Σ), m = ±λ - Σ/b.
func (l Laplace) parts(into []part, lambda, sigma float64) []part {
	b := l.scale()
	log := math.Log(l.Density) - math.Log(2*b)
	return append(into, spike(1-l.Density),
		halfLine(log, lambda-sigma/b, sigma, 1),
		halfLine(log, -lambda-sigma/b, sigma, -1))
}

// Posterior implements [Prior].
func (l Laplace) Posterior(mean, variance, lambda, sigma []float64) {
	posterior(l, mean, variance, lambda, sigma)
}

// LogNorm implements [Prior].
func (l Laplace) LogNorm(lambda, sigma float64) float64 { return logNorm(l, lambda, sigma) }

// Sample implements [Sampler].
func (l Laplace) Sample(rng *rand.Rand) float64 {
	on, sign, size := rng.Float64() < l.Density, rng.Float64(), l.scale()*rng.ExpFloat64()
	switch {
	case !on:
		return 0
	case sign < 0.5:
		return -size
	}
	return size
}
