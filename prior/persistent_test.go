package prior

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Samples that have nothing in common have the prior that each has by itself.
func TestPersistentBeginsUnrelated(t *testing.T) {
	const n = 40
	rng := rand.New(rand.NewPCG(1, 2))
	entry := GaussBernoulli{Density: 0.2, SignalMean: 0.3, SignalVar: 2, Learn: Density | SignalMean | SignalVar}
	p := Persisting(n, entry).(Persistent)
	lambda, sigma := make([]float64, n), make([]float64, n)
	for i := range lambda {
		lambda[i], sigma[i] = 2*rng.NormFloat64(), math.Exp(rng.NormFloat64())
	}
	of := func() []float64 { return make([]float64, n) }
	x, c, y, d := of(), of(), of(), of()
	p.Posterior(x, c, lambda, sigma)
	entry.Posterior(y, d, lambda, sigma)
	for i := range x {
		if math.Abs(x[i]-y[i]) > 1e-14 || math.Abs(c[i]-d[i]) > 1e-14 {
			t.Errorf("entry %d: %g ± %g, expected %g ± %g", i, x[i], c[i], y[i], d[i])
		}
	}
	back, err := p.WithValues(p.Values())
	if err != nil || !slices.Equal(back.(Persistent).Values(), p.Values()) {
		t.Errorf("%v: %v", err, back)
	}
	if _, err := p.WithValues(p.Values()[1:]); err == nil {
		t.Error("values of fewer entries were taken")
	}
	if p.Stay[0] = 1.2; p.Validate() == nil {
		t.Error("an entry that stays with a probability of 1.2 is no error")
	}
}

// From samples that are seen well it is learned how long entries stay, and in all samples what they are drawn from.
func TestPersistentIsLearned(t *testing.T) {
	const n, density, stay, noise = 400, 0.2, 0.95, 1e-4
	rng := rand.New(rand.NewPCG(3, 4))
	p := Persisting(n, GaussBernoulli{Density: 0.5, SignalVar: 1, Learn: Density | SignalVar}).(Persistent)
	there := make([]bool, n)
	for i := range there {
		there[i] = rng.Float64() < density
	}
	lambda, sigma := make([]float64, n), slices.Repeat([]float64{noise}, n)
	for k := range 60 {
		for i, on := range there {
			if on {
				there[i] = rng.Float64() < stay
			} else {
				there[i] = rng.Float64() < (1-stay)*density/(1-density)
			}
			if lambda[i] = math.Sqrt(noise) * rng.NormFloat64(); there[i] {
				lambda[i] += math.Sqrt(3) * rng.NormFloat64()
			}
		}
		step := 2 / float64(k+2)
		next, _ := p.Refit(lambda, sigma, step)
		p = next.(Persistent).Next(lambda, sigma, step, 1).(Persistent)
	}
	if math.Abs(p.Stay[0]-stay) > 0.02 || math.Abs(p.Kinds.Kinds()[0].Density-density) > 0.05 || math.Abs(p.Kinds.Kinds()[0].SignalVar/3-1) > 0.15 {
		t.Errorf("τ %.3f, density %.3f, variance %.3g", p.Stay[0], p.Kinds.Kinds()[0].Density, p.Kinds.Kinds()[0].SignalVar)
	}
	for i, pi := range p.Support {
		if math.Abs(lambda[i]) > 0.3 && pi < 0.99 {
			t.Errorf("entry %d is there with the probability %g", i, pi)
		}
	}
}
