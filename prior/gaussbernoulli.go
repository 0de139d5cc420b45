package prior

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/vector"
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

	Learn Parameters // those that are learned, from these values on
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

// square is E x², ρ(v + x̄²).
func (g GaussBernoulli) square() float64 {
	return g.Density * (g.SignalVar + g.SignalMean*g.SignalMean)
}

// NonZero implements [Sparse]: ρ.
func (g GaussBernoulli) NonZero() float64 { return g.Density }

// Slab implements [Slabbed].
func (g GaussBernoulli) Slab() (mean, variance float64) { return g.SignalMean, g.SignalVar }

// WithSlab implements [Slabbed].
func (g GaussBernoulli) WithSlab(mean, variance float64) Slabbed {
	g.SignalMean, g.SignalVar = mean, variance
	return g
}

// SlabSD implements [Slabbed].
func (g GaussBernoulli) SlabSD(entries float64) (ofMean, ofVar float64) {
	return math.Sqrt(g.SignalVar / entries), g.SignalVar * math.Sqrt(2/entries)
}

// GaussBernoulliPrior is the prior with nothing of it learned. A prior that has one within has the method, too:
// it says whether a prior is of this family, whatever else it is.
func (g GaussBernoulli) GaussBernoulliPrior() GaussBernoulli {
	g.Learn = 0
	return g
}

// Values implements [Parametric]: ρ, x̄ and v.
func (g GaussBernoulli) Values() []float64 {
	return []float64{g.Density, g.SignalMean, g.SignalVar}
}

// WithValues implements [Parametric].
func (g GaussBernoulli) WithValues(v []float64) (Prior, error) {
	if len(v) != 3 {
		return nil, fmt.Errorf("%d values for the three parameters of a Gauss–Bernoulli prior", len(v))
	}
	g.Density, g.SignalMean, g.SignalVar = v[0], v[1], v[2]
	return g, g.Validate()
}

// Scaled implements [Scalable].
func (g GaussBernoulli) Scaled(c float64) Prior { return g.Times(c) }

// Times returns the distribution of c·x.
func (g GaussBernoulli) Times(c float64) GaussBernoulli {
	g.SignalMean, g.SignalVar = c*g.SignalMean, c*c*g.SignalVar
	return g
}

// Posterior implements [Prior].
func (g GaussBernoulli) Posterior(mean, variance, lambda, sigma []float64) {
	logOdds := math.Log(g.Density) - math.Log1p(-g.Density) // +Inf for the Gaussian
	vector.GaussBernoulli(mean, variance, lambda, sigma, logOdds, g.SignalMean, g.SignalVar)
}

// LogNorm implements [Prior].
func (g GaussBernoulli) LogNorm(lambda, sigma float64) float64 {
	_, _, odds := vector.Slab(lambda, sigma, g.SignalMean, g.SignalVar)
	// log[(1-ρ) + ρ e^odds] - λ²/2Σ
	spike := math.Log1p(-g.Density)
	slab := math.Log(g.Density) + odds
	return logAddExp(spike, slab) - 0.5*lambda*(lambda/sigma)
}

// CDF implements [Distribution].
func (g GaussBernoulli) CDF(x, lambda, sigma float64) (below, upTo float64) {
	mean, variance, odds := vector.Slab(lambda, sigma, g.SignalMean, g.SignalVar)
	nonzero := 1.0
	if g.Density < 1 {
		nonzero = 1 / (1 + math.Exp(math.Log1p(-g.Density)-math.Log(g.Density)-odds))
	}
	return withAtom(x, mean, variance, nonzero)
}

// withAtom is the CDF of what is normal with probability nonzero, and else zero.
func withAtom(x, mean, variance, nonzero float64) (below, upTo float64) {
	smooth := nonzero * 0.5 * math.Erfc((mean-x)/math.Sqrt(2*variance))
	switch {
	case x < 0:
		return smooth, smooth
	case x == 0:
		return smooth, smooth + 1 - nonzero
	}
	return smooth + 1 - nonzero, smooth + 1 - nonzero
}

func logAddExp(a, b float64) float64 {
	hi, lo := max(a, b), min(a, b)
	if math.IsInf(hi, -1) {
		return hi
	}
	return hi + math.Log1p(math.Exp(lo-hi))
}

// Sample implements [Sampler]. Both random numbers are used for every entry: the
// values of a signal do not move when only the density changes.
func (g GaussBernoulli) Sample(rng *rand.Rand) float64 {
	on, value := rng.Float64() < g.Density, g.SignalMean+math.Sqrt(g.SignalVar)*rng.NormFloat64()
	if !on {
		return 0
	}
	return value
}
