package prior

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRefitOfOtherPriors: what is learned from fields comes near what they were drawn from, is likelier than it, and parameters
// that are fixed stay.
func TestRefitOfOtherPriors(t *testing.T) {
	positive := func(density, mean, variance float64, learn Parameters) NonNegative {
		return NonNegative{Density: density, SignalMean: mean, SignalVar: variance, Learn: learn}
	}
	for name, c := range map[string]struct {
		truth Sampler
		start Learner
	}{
		"half Gaussians":          {NonNegative{Density: 0.2, SignalMean: 0, SignalVar: 2}, positive(0.6, 0.3, 0.2, Density|SignalMean|SignalVar)},
		"far from zero":           {NonNegative{Density: 0.2, SignalMean: 3, SignalVar: 0.5}, positive(0.6, 0, 1, Density|SignalMean|SignalVar)},
		"nearly exponential":      {NonNegative{Density: 0.3, SignalMean: -4, SignalVar: 4}, positive(0.1, 0, 1, Density|SignalMean|SignalVar)},
		"mean given":              {NonNegative{Density: 0.2, SignalMean: 1, SignalVar: 2}, positive(0.6, 1, 0.2, Density|SignalVar)},
		"mean given, below zero":  {NonNegative{Density: 0.4, SignalMean: -1, SignalVar: 2}, positive(0.6, -1, 0.5, Density|SignalVar)},
		"variance given":          {NonNegative{Density: 0.2, SignalMean: 1, SignalVar: 2}, positive(0.6, 0, 2, Density|SignalMean)},
		"density given":           {NonNegative{Density: 0.2, SignalMean: 1, SignalVar: 2}, positive(0.2, 0, 1, SignalMean|SignalVar)},
		"Laplace":                 {Laplace{Density: 0.2, SignalVar: 2}, Laplace{Density: 0.6, SignalVar: 0.3}.Learning(Density | SignalVar)},
		"Laplace, variance given": {Laplace{Density: 0.2, SignalVar: 2}, Laplace{Density: 0.6, SignalVar: 2}.Learning(Density)},
		"Laplace, all of it open": {Laplace{Density: 0.9, SignalVar: 1}, Laplace{Density: 0.1, SignalVar: 30}.Learning(Density | SignalVar)},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			const n, noise = 2000, 0.01
			lambda, sigma := make([]float64, n), make([]float64, n)
			square := 0.0 // of those drawn
			for i := range lambda {
				x := c.truth.Sample(rng)
				square += x * x / n
				lambda[i], sigma[i] = x+math.Sqrt(noise)*rng.NormFloat64(), noise
			}
			p, change := c.start, math.Inf(1)
			for range 100 {
				p, change = p.Refit(lambda, sigma, 1)
			}
			if err := p.Validate(); err != nil || change > 1e-2 {
				t.Errorf("%+v still moves by %g standard errors: %v", p, change, err)
			}
			if a, b := SumLogNorm(p, lambda, sigma), SumLogNorm(c.truth, lambda, sigma); a < b {
				t.Errorf("%+v is less likely than what entries were drawn from, by %g", p, b-a)
			}
			if got, want := p.(Sparse).NonZero(), c.truth.(Sparse).NonZero(); math.Abs(got-want) > 0.05 {
				t.Errorf("density %g, want %g", got, want)
			}
			if got, want := Square(p), square; c.start.LearnsScale() && math.Abs(got/want-1) > 0.1 {
				t.Errorf("mean square %g, want %g", got, want)
			}
			// In other units, the same.
			scaled := c.start.(Scalable).Scaled(1e6).(Learner)
			for i := range lambda {
				lambda[i], sigma[i] = 1e6*lambda[i], 1e12*sigma[i]
			}
			for range 100 {
				scaled, _ = scaled.Refit(lambda, sigma, 1)
			}
			if got, want := Square(scaled), 1e12*Square(p); math.Abs(got/want-1) > 1e-6 {
				t.Errorf("mean square %g in other units, want %g", got, want)
			}
		})
	}
}

// TestRefitOfOtherPriorsDegenerate: fields that say nothing, or nothing but zero, leave a valid prior.
func TestRefitOfOtherPriorsDegenerate(t *testing.T) {
	inf := math.Inf(1)
	for name, fields := range map[string][2][]float64{
		"no entries":     {nil, nil},
		"no information": {{0, 0}, {inf, inf}},
		"all zero":       {{0, 0, 0}, {1e-10, 1e-10, 1e-10}},
		"all equal":      {{3, 3, 3}, {1e-300, 1e-300, 1e-300}},
		"below zero":     {{-3, -4, -5}, {1e-3, 1e-3, 1e-3}},
		"huge":           {{1e150, -1e150}, {1, 1}},
	} {
		for _, p := range []Learner{
			NonNegative{Density: 0.3, SignalMean: 0, SignalVar: 1}.Learning(Density | SignalMean | SignalVar),
			NonNegative{Density: 0.3, SignalMean: 1, SignalVar: 1}.Learning(Density | SignalVar),
			NonNegative{Density: 0.3, SignalMean: 0, SignalVar: 1}.Learning(Density | SignalMean),
			Laplace{Density: 0.3, SignalVar: 1}.Learning(Density | SignalVar),
		} {
			for range 20 {
				var change float64
				p, change = p.Refit(fields[0], fields[1], 1)
				if err := p.Validate(); err != nil || math.IsNaN(change) {
					t.Fatalf("%s: %+v, change %g: %v", name, p, change, err)
				}
			}
		}
	}
}
