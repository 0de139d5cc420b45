package prior

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/vector"
)

// NonNegative is the sparse prior of entries that cannot be negative, such as
// intensities and counts: zero with probability 1-ρ, and otherwise a Gaussian
// cut to the positive half-line,
//
//	p(x) = (1-ρ) δ(x) + ρ N(x; x̄, v)/Φ(x̄/√v) for x ≥ 0   (J. P. Vila and P. Schniter, 2014,
//
// "An empirical-Bayes approach to recovering linearly constrained non-negative
// sparse signals", with one Gaussian). x̄ and v are those of the Gaussian before
// it is cut; x̄ may be negative.
type NonNegative struct {
	Density    float64 // ρ, in (0, 1]
	SignalMean float64 // x̄
	SignalVar  float64 // v > 0
}

// Validate reports a parameter that describes no distribution.
func (n NonNegative) Validate() error { return GaussBernoulli(n).Validate() }

// cut is the mean and variance of an entry that is not zero.
func (n NonNegative) cut() (mean, variance float64) {
	sd := math.Sqrt(n.SignalVar)
	_, mean, variance = quadrature.TruncatedNormal(n.SignalMean / sd)
	return sd * mean, n.SignalVar * variance
}

// Mean implements [Prior].
func (n NonNegative) Mean() float64 {
	mean, _ := n.cut()
	return n.Density * mean
}

// Variance implements [Prior].
func (n NonNegative) Variance() float64 {
	mean, variance := n.cut()
	return n.Density * (variance + (1-n.Density)*mean*mean)
}

// Name implements [Named].
func (n NonNegative) Name() string {
	return fmt.Sprintf("nonnegative density=%g mean=%g variance=%g", n.Density, n.SignalMean, n.SignalVar)
}

// Slab implements [Slabbed]: of the Gaussian before it is cut.
func (n NonNegative) Slab() (mean, variance float64) { return n.SignalMean, n.SignalVar }

// NonZero implements [Sparse]: ρ.
func (n NonNegative) NonZero() float64 { return n.Density }

// Scaled implements [Scalable].
func (n NonNegative) Scaled(c float64) Prior {
	return NonNegative{Density: n.Density, SignalMean: c * n.SignalMean, SignalVar: c * c * n.SignalVar}
}

// parts implements pieces: the slab is exp(-x²/2v + xm/v) with the Gaussian's own
// posterior mean m and variance v, over its normaliser, which is of the same form.
func (n NonNegative) parts(into []part, lambda, sigma float64) []part {
	m, v, _ := vector.Slab(lambda, sigma, n.SignalMean, n.SignalVar)
	sd := math.Sqrt(n.SignalVar)
	logNorm, _, _ := quadrature.HalfLine(n.SignalMean / sd)
	return append(into, spike(1-n.Density), halfLine(math.Log(n.Density)-logNorm-math.Log(sd), m, v, 1))
}

// Posterior implements [Prior].
func (n NonNegative) Posterior(mean, variance, lambda, sigma []float64) {
	posterior(n, mean, variance, lambda, sigma)
}

// LogNorm implements [Prior].
func (n NonNegative) LogNorm(lambda, sigma float64) float64 { return logNorm(n, lambda, sigma) }

// Sample implements [Sampler].
func (n NonNegative) Sample(rng *rand.Rand) float64 {
	if rng.Float64() >= n.Density {
		return 0
	}
	// By the inverse of its distribution function, on the side that keeps digits.
	u := n.SignalMean / math.Sqrt(n.SignalVar)
	tail := rng.Float64() * 0.5 * math.Erfc(-u/math.Sqrt2)
	return max(0, n.SignalMean+math.Sqrt(2*n.SignalVar)*math.Erfcinv(2*tail))
}
