package prior

import "math"

// Flat says nothing of an entry: the improper density 1, whose posterior is the
// field itself. It has neither mean nor variance of its own, and is for entries
// that readings determine entirely (see [operator.Centred]).
type Flat struct{}

// Validate implements [Prior].
func (Flat) Validate() error { return nil }

// Mean implements [Prior].
func (Flat) Mean() float64 { return 0 }

// Variance implements [Prior].
func (Flat) Variance() float64 { return math.Inf(1) }

// Posterior implements [Prior].
func (Flat) Posterior(mean, variance, lambda, sigma []float64) {
	copy(mean, lambda)
	copy(variance, sigma)
}

// LogNorm implements [Prior].
func (Flat) LogNorm(_, sigma float64) float64 { return 0.5 * math.Log(2*math.Pi*sigma) }
