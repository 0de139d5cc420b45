// Package prior holds what is known of one signal entry before the readings,
// and the input functions of AMP that follow from it: the posterior mean and
// variance of an entry seen through a Gaussian field.
//
// A field N(x; λ, Σ) summarises what all readings say about an entry (paper,
// eq. "input update functions"). Σ is +Inf where nothing was measured.
package prior

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Prior is the distribution of a signal entry. The solvers need nothing else,
// so a user's own prior is one type with these methods.
type Prior interface {
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

// Vector is implemented by priors whose posterior is known for P signals'
// entries at once, seen through a correlated field; full-covariance cal-AMP
// (paper, Algorithm 1) needs it.
type Vector interface {
	Prior

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
