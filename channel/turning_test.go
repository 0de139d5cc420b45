package channel

import (
	"math"
	"math/cmplx"
	"testing"
)

// TestSetPosterior: statistics with which a posterior is about normal.
func TestSetPosterior(t *testing.T) {
	p := ComplexPrior{Lo: 0.5, Hi: 1.5}
	stats, want := make([]float64, p.Width()), cmplx.Rect(1.1, 0.7)
	p.SetPosterior(stats, want, 1e-6)
	if mean, variance := p.Posterior(stats); cmplx.Abs(mean-want) > 1e-5 || math.Abs(variance-1e-6) > 1e-8 {
		t.Errorf("the posterior is %v with variance %.3g", mean, variance)
	}
}
