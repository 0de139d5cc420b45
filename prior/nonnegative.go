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

	Learn Parameters // those that are learned, from these values on
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

// Name implements [Named]. Where learning starts is forgotten soon, and not in it.
func (n NonNegative) Name() string {
	if n.Learn != 0 {
		return "nonnegative, of " + GaussBernoulli(n).Name()
	}
	return fmt.Sprintf("nonnegative density=%g mean=%g variance=%g", n.Density, n.SignalMean, n.SignalVar)
}

// Slab implements [Slabbed]: of the Gaussian before it is cut.
func (n NonNegative) Slab() (mean, variance float64) { return n.SignalMean, n.SignalVar }

// WithSlab implements [Slabbed].
func (n NonNegative) WithSlab(mean, variance float64) Slabbed {
	n.SignalMean, n.SignalVar = mean, variance
	return n
}

// SlabSD implements [Slabbed], by the inverse of the Fisher information: an exponential family in x and x² with natural
// parameters mean/v and -1/(2v), whose information is the covariance of these two. Its moments obey
// E xᵏ = mean E xᵏ⁻¹ + (k-1) v E xᵏ⁻², and E x = mean + √v φ(mean/√v)/Φ(mean/√v).
func (n NonNegative) SlabSD(entries float64) (ofMean, ofVar float64) {
	mean, v := n.SignalMean, n.SignalVar
	a := mean / math.Sqrt(v)
	hazard := math.Exp(-0.5*a*a) * math.Sqrt(2/math.Pi) / math.Erfc(-a/math.Sqrt2)
	m1 := mean + math.Sqrt(v)*hazard
	m2 := mean*m1 + v
	m3 := mean*m2 + 2*v*m1
	m4 := mean*m3 + 3*v*m2
	xx, xy, yy := m2-m1*m1, m3-m1*m2, m4-m2*m2
	det := entries * (xx*yy - xy*xy)
	return v * math.Sqrt((yy-4*mean*xy+4*mean*mean*xx)/det), 2 * v * v * math.Sqrt(xx/det)
}

// AsOne implements [Shaped].
func (n NonNegative) AsOne() GaussBernoulli {
	mean := n.Mean() / n.Density
	return GaussBernoulli{Density: n.Density, SignalMean: mean, SignalVar: n.Variance()/n.Density - (1-n.Density)*mean*mean}
}

// WithDensity implements [Shaped].
func (n NonNegative) WithDensity(density float64) Shaped {
	n.Density, n.Learn = density, ofSlab(n.Learn, density)
	return n
}

// NonZero implements [Sparse]: ρ.
func (n NonNegative) NonZero() float64 { return n.Density }

// Scaled implements [Scalable].
func (n NonNegative) Scaled(c float64) Prior { return n.times(c) }

func (n NonNegative) times(c float64) NonNegative { return NonNegative(GaussBernoulli(n).Times(c)) }

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
