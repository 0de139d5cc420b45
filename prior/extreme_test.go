package prior

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/internal/tests"
)

// TestExtremeFields: whatever the fields are, posteriors end, and are of a distribution; where the arithmetic does not survive, and only there,
// the mean or the variance is no number, which solvers see.
func TestExtremeFields(t *testing.T) {
	tests.Long(t)
	const draws, lots = 64, 60
	rng := rand.New(rand.NewPCG(7, 8))
	number := func() float64 {
		switch rng.IntN(3) {
		case 0:
			return math.Copysign(math.Pow(10, 616*rng.Float64()-308), rng.Float64()-0.5)
		case 1:
			return [...]float64{0, 5e-324, 1e-310, 1e155, -1e155, 1e-155, math.MaxFloat64}[rng.IntN(7)]
		}
		return rng.NormFloat64()
	}
	priors := []Prior{
		GaussBernoulli{Density: 0.2, SignalVar: 1},
		GaussBernoulli{Density: 1, SignalMean: 3, SignalVar: 1e-6},
		GaussBernoulli{Density: 1e-12, SignalVar: 1e30},
		NonNegative{Density: 0.2, SignalMean: 1, SignalVar: 1},
		NonNegative{Density: 1, SignalMean: -30, SignalVar: 1},
		Laplace{Density: 0.2, SignalVar: 1},
		Flat{},
		ComplexGaussBernoulli{Density: 0.2, SignalVar: 1},
		Mixture{Components: []Component{{Weight: 0.2, Var: 1}, {Weight: 0.1, Mean: 5, Var: 1e-4}}},
	}
	lambda, sigma := make([]float64, draws), make([]float64, draws)
	mean, variance := make([]float64, draws), make([]float64, draws)
	for _, p := range priors {
		if err := p.Validate(); err != nil {
			t.Fatalf("%T: %v", p, err)
		}
		for range lots {
			for i := range lambda {
				lambda[i], sigma[i] = number(), max(math.Abs(number()), math.SmallestNonzeroFloat64)
			}
			p.Posterior(mean, variance, lambda, sigma)
			for i, m := range mean {
				const survives = 1e70 // whose square, over another, is a number
				is := true
				for part := range ColumnsOf(p) { // the other column of a complex entry
					j := (i + part*draws/2) % draws
					is = is && math.Abs(lambda[j]) < survives && sigma[j] < survives && sigma[j] > 1/survives
				}
				if is && !(math.Abs(m) <= 1e4*survives && variance[i] < math.Inf(1)) || variance[i] < 0 {
					t.Fatalf("%T %+v: field %g of variance %g: mean %g, variance %g", p, p, lambda[i], sigma[i], m, variance[i])
				}
			}
			SumLogNorm(p, lambda, sigma)
		}
		if ColumnsOf(p) > 1 {
			continue
		}
		var c CommonShift
		for range lots / 10 {
			some := 1 + rng.IntN(4)
			for i := range some {
				lambda[i], sigma[i] = number(), max(math.Abs(number()), math.SmallestNonzeroFloat64)
			}
			c.Posterior(p, mean[:some], variance[:some], lambda[:some], sigma[:some], math.Abs(number()))
		}
	}
}
