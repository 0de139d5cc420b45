package prior

import (
	"math"
	"testing"
)

// TestCommonShift: for a Gauss–Bernoulli prior the posterior is a sum over supports, which full covariances have.
func TestCommonShift(t *testing.T) {
	g := GaussBernoulli{Density: 0.25, SignalMean: 0.3, SignalVar: 1.2}
	for _, c := range []struct {
		lambda       []float64
		sigma, shift float64
	}{
		{[]float64{0.1, 1.3, -0.4}, 0.2, 0.03},
		{[]float64{0.31, 0.29, 1.7, 0.3}, 1e-4, 0.03},
		{[]float64{0.02, -0.01, 0.9, 0.3, -0.7, 0.01}, 1e-3, 1e-7},
		{[]float64{2, 1, 3}, 0.5, 4},
	} {
		p := len(c.lambda)
		precision, field := make([]float64, p*p), make([]float64, p)
		for k := range p { // (ΣI + b11ᵀ)⁻¹
			for l := range p {
				precision[k*p+l] = -c.shift / (c.sigma * (c.sigma + float64(p)*c.shift))
				if k == l {
					precision[k*p+l] += 1 / c.sigma
				}
			}
		}
		quadratic := 0.0
		sigma := make([]float64, p)
		for k := range p {
			sigma[k] = c.sigma
			for l, v := range c.lambda {
				field[k] += precision[k*p+l] * v
			}
			quadratic += field[k] * c.lambda[k]
		}
		wantMean, want := make([]float64, p), make([]float64, p*p)
		logNorm, err := g.PosteriorVector(wantMean, want, field, precision)
		if err != nil {
			t.Fatal(err)
		}
		// That of c integrates exp(-(x+c-λ)²/2Σ), which leaves √(Σ^P/det) of the other.
		logNorm += -0.5*quadratic - 0.5*math.Log(1+float64(p)*c.shift/c.sigma)
		mean, variance := make([]float64, p), make([]float64, p)
		var s CommonShift
		s.Posterior(g, mean, variance, c.lambda, sigma, c.shift)
		total := sum(want)
		worst := math.Max(math.Abs(s.SumVar-total)/total, math.Abs(s.LogNorm-logNorm)/math.Max(1, math.Abs(logNorm)))
		for k := range p {
			worst = max(worst, math.Abs(mean[k]-wantMean[k])/math.Sqrt(want[k*p+k]), math.Abs(variance[k]-want[k*p+k])/want[k*p+k])
		}
		t.Logf("%v: %.2g, %d nodes", c.lambda, worst, len(s.nodes))
		if !(worst < 1e-10) {
			t.Errorf("%v: off by %.2g", c, worst)
		}
	}
}
