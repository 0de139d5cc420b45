// Package prior holds what is known of one signal entry before the readings,
// and the input functions of AMP that follow from it: the posterior mean and
// variance of an entry seen through a Gaussian field. It describes entries, and does not depend on
// sensors or on how the field came about.
//
// A field N(x; λ, Σ) summarises what all readings say about an entry (paper,
// eq. "input update functions"). Σ is +Inf where nothing was measured.
package prior

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Prior is the distribution of a signal entry. A user's own is one type with these
// methods. Solvers find out what else it can do from the further interfaces of
// this package that it implements: [Scalable], [Sparse], [Learner], [Vector],
// [Distribution].
type Prior interface {
	// Validate reports a parameter that describes no distribution.
	Validate() error

	// Mean and Variance are those of the prior; AMP starts there.
	Mean() float64
	Variance() float64

	// Posterior writes, for every i, the mean and the (centred) variance of the
	// density proportional to p(x) N(x; λ[i], Σ[i]). All slices have one
	// length. Σ[i] > 0, and +Inf means no information. Called from
	// several goroutines at once.
	Posterior(mean, variance, lambda, sigma []float64)

	// LogNorm returns log ∫ p(x) N(x; λ, Σ)/N(0; 0, Σ) dx, the log-mass left
	// after multiplying by exp(-(x-λ)²/2Σ). At Σ = +Inf it is 0.
	LogNorm(lambda, sigma float64) float64
}

// Scalable is a prior that gives the distribution of c·x.
type Scalable interface {
	Prior
	Scaled(c float64) Prior
}

// Sparse is a prior that may have an atom at zero.
type Sparse interface {
	Prior
	NonZero() float64 // the probability of not being zero, in (0, 1]
}

// Slabbed is a prior whose non-zero entries have a mean and a variance that are parameters,
// or a variance alone, and of which each parameter can be learned.
type Slabbed interface {
	Sparse
	Learner
	Slab() (mean, variance float64)

	// WithSlab is the prior with another mean, where it is a parameter, and another variance.
	WithSlab(mean, variance float64) Slabbed

	// SlabSD is how well so many non-zero entries determine the two.
	SlabSD(entries float64) (ofMean, ofVar float64)

	// Parameters are those that it has, and Learned those of them that are learned.
	// Learning is the prior of which these are, as far as it has them.
	Parameters() Parameters
	Learned() Parameters
	Learning(which Parameters) Slabbed
}

// Shaped is a prior whose entries are not Gaussian where they are not zero.
type Shaped interface {
	Scalable

	// AsOne is the prior of zero or one Gaussian that has the same density, and the same mean and variance of entries that are not zero.
	AsOne() GaussBernoulli

	// WithDensity is the prior with the same slab, and that probability of an entry not to be zero. What is learned of the
	// slab still is where no entry is zero, and nothing elsewhere.
	WithDensity(density float64) Shaped
}

// ofSlab is what is left of parameters that are learned in [Shaped.WithDensity].
func ofSlab(learned Parameters, density float64) Parameters {
	if density < 1 {
		return 0
	}
	return learned &^ Density
}

// Parametric is a prior whose parameters are a few numbers, which a stream keeps in
// its state while they are learned.
type Parametric interface {
	Prior

	// Values are the parameters, always the same number in the same order.
	Values() []float64

	// WithValues is the prior with other parameters, or the error of those that
	// describe no distribution.
	WithValues(v []float64) (Prior, error)
}

// Named is a prior that is identified by a line of text, which the state
// file of a stream holds: a state is good for one model. What is learned is not in it.
type Named interface {
	Prior
	Name() string
}

// Summer is a prior that sums LogNorm over many entries faster than one by one.
type Summer interface {
	Prior
	SumLogNorm(lambda, sigma []float64) float64
}

// SumLogNorm is the sum of LogNorm over all entries.
func SumLogNorm(p Prior, lambda, sigma []float64) float64 {
	switch p := p.(type) {
	case Summer:
		return p.SumLogNorm(lambda, sigma)
	case pieces:
		return sumLogNorm(p, lambda, sigma)
	}
	total := 0.0
	for i, l := range lambda {
		total += p.LogNorm(l, sigma[i])
	}
	return total
}

// Vector is implemented by priors whose posterior is known for P signals'
// entries at once, seen through a correlated field; full-covariance cal-AMP
// (paper, Algorithm 1) needs it.
type Vector interface {
	Prior

	// Correlates reports whether it is so for this number of signals, and why not.
	Correlates(signals int) error

	// PosteriorVector writes the mean (P) and covariance (P×P, row-major) of
	// the density proportional to ∏ₖ p(xₖ) · N(x; λ, A⁻¹), where precision is A
	// (P×P, row-major, positive semidefinite) and field is Aλ. It returns
	// log ∫ ∏ₖ p(xₖ) exp(-½xᵀAx + (Aλ)ᵀx) dx, and an error if it cannot (P too
	// large, a singular system).
	PosteriorVector(mean, covariance, field, precision []float64) (logNorm float64, err error)
}

// Distribution is implemented by priors that know the whole posterior of an
// entry, for [calamp.Result.Ranks].
type Distribution interface {
	Prior

	// CDF returns the probabilities of values below x, and of values up to x,
	// under p(x) N(x; λ, Σ). They differ where the posterior has an atom.
	CDF(x, lambda, sigma float64) (below, upTo float64)
}

// Sampler is implemented by priors that entries can be drawn from.
type Sampler interface {
	Prior
	Sample(rng *rand.Rand) float64
}

// validPositive reports a parameter that is not a finite positive number.
func validPositive(name string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("%s must be positive and finite, found %g", name, v)
	}
	return nil
}
