package prior

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fieldsOf draws entries of g and looks at them through noise of variance sigma.
func fieldsOf(g GaussBernoulli, sigma float64, n int) (lambda, sigmas []float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	lambda, sigmas = make([]float64, n), make([]float64, n)
	for i := range lambda {
		if rng.Float64() < g.Density {
			lambda[i] = g.SignalMean + math.Sqrt(g.SignalVar)*rng.NormFloat64()
		}
		lambda[i] += math.Sqrt(sigma) * rng.NormFloat64()
		sigmas[i] = sigma
	}
	return lambda, sigmas
}

// evidence is the log-likelihood of the fields under g.
func evidence(g GaussBernoulli, lambda, sigma []float64) float64 {
	total := 0.0
	for i, l := range lambda {
		total += g.LogNorm(l, sigma[i])
	}
	return total
}

func TestRefitFindsTheLikeliestPrior(t *testing.T) {
	truth := GaussBernoulli{Density: 0.2, SignalMean: 0.7, SignalVar: 2}
	for _, sigma := range []float64{1e-8, 1e-3, 0.1} {
		lambda, sigmas := fieldsOf(truth, sigma, 2000)
		g := GaussBernoulli{Density: 0.7, SignalVar: 0.2, Learn: Density | SignalMean | SignalVar}
		change := 1.0
		for range 100 {
			var next Learner
			next, change = g.Refit(lambda, sigmas, 1)
			g = next.(GaussBernoulli)
		}
		if change > 1e-4 {
			t.Errorf("Σ = %g: still moving by %g standard errors", sigma, change)
		}
		for _, r := range [][2]float64{{g.Density, 0.2}, {g.SignalMean, 0.7}, {g.SignalVar, 2}} {
			if math.Abs(r[0]/r[1]-1) > 0.25 {
				t.Errorf("Σ = %g: %+v, drawn from %+v", sigma, g, truth)
			}
		}
		best := evidence(g, lambda, sigmas)
		for _, f := range []float64{0.97, 1.03} {
			a, b, c := g, g, g
			a.Density, b.SignalMean, c.SignalVar = f*a.Density, f*b.SignalMean, f*c.SignalVar
			for _, other := range []GaussBernoulli{a, b, c} {
				if e := evidence(other, lambda, sigmas); e > best {
					t.Errorf("Σ = %g: %+v is likelier than the fit %+v, by %g", sigma, other, g, e-best)
				}
			}
		}
	}
}

func TestRefitLearnsOnlyWhatIsAsked(t *testing.T) {
	lambda, sigmas := fieldsOf(GaussBernoulli{Density: 0.2, SignalVar: 1}, 0.01, 1000)
	start := GaussBernoulli{Density: 0.5, SignalMean: 0.3, SignalVar: 4}
	for _, learn := range []Parameters{0, Density, SignalMean, SignalVar} {
		next, _ := start.Learning(learn).Refit(lambda, sigmas, 1)
		got := next.(GaussBernoulli)
		if (got.Density != start.Density) != (learn == Density) ||
			(got.SignalMean != start.SignalMean) != (learn == SignalMean) ||
			(got.SignalVar != start.SignalVar) != (learn == SignalVar) {
			t.Errorf("learning %b: from %+v to %+v", learn, start, got)
		}
	}
}

// A step moves the given part of the way.
func TestRefitStep(t *testing.T) {
	lambda, sigmas := fieldsOf(GaussBernoulli{Density: 0.2, SignalVar: 1}, 0.01, 1000)
	start := GaussBernoulli{Density: 0.5, SignalVar: 4, Learn: Density | SignalVar}
	all, _ := start.Refit(lambda, sigmas, 1)
	part, _ := start.Refit(lambda, sigmas, 0.25)
	want := start.Density + 0.25*(all.(GaussBernoulli).Density-start.Density)
	if got := part.(GaussBernoulli).Density; math.Abs(got-want) > 1e-12 {
		t.Errorf("density %g, want %g", got, want)
	}
}

// Fields that say nothing, or nothing but zero, must leave a valid prior.
func TestRefitDegenerate(t *testing.T) {
	inf := math.Inf(1)
	for name, fields := range map[string][2][]float64{
		"no entries":     {nil, nil},
		"no information": {{0, 0}, {inf, inf}},
		"all zero":       {{0, 0, 0}, {1e-10, 1e-10, 1e-10}},
		"all equal":      {{3, 3, 3}, {1e-300, 1e-300, 1e-300}},
		"huge":           {{1e150, -1e150}, {1, 1}},
	} {
		var g Learner = GaussBernoulli{Density: 0.3, SignalVar: 1, Learn: Density | SignalMean | SignalVar}
		for range 20 {
			var change float64
			g, change = g.Refit(fields[0], fields[1], 1)
			if err := g.(GaussBernoulli).Validate(); err != nil || math.IsNaN(change) {
				t.Fatalf("%s: %+v, change %g: %v", name, g, change, err)
			}
		}
	}
}

func TestLearnedMixtureSettles(t *testing.T) {
	truth := Mixture{Components: []Component{{0.2, 2, 0.3}, {0.3, -1, 0.1}}}
	rng := rand.New(rand.NewPCG(5, 6))
	const n, noise = 3000, 0.01
	lambda, sigma := make([]float64, n), make([]float64, n)
	for i := range lambda {
		lambda[i], sigma[i] = truth.Sample(rng)+math.Sqrt(noise)*rng.NormFloat64(), noise
	}
	var p Learner = Mixture{Components: []Component{{0.05, 1, 1}, {0.05, -0.5, 1}}, Learn: true}
	change := math.Inf(1)
	for range 60 {
		p, change = p.Refit(lambda, sigma, 1)
	}
	if change > 1e-2 {
		t.Errorf("still moves by %g standard errors", change)
	}
	for j, want := range truth.Components {
		got := p.(Mixture).Components[j]
		if math.Abs(got.Weight-want.Weight) > 0.04 || math.Abs(got.Mean-want.Mean) > 0.08 {
			t.Errorf("component %d: %+v, want %+v", j, got, want)
		}
	}
}

// Where all entries that are not zero have one value their variance is hidden in the fields. It is found in tens of steps all the same.
func TestOneValueIsFoundSoon(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	const n, sigma = 2000, 1e-6
	lambda, variances := make([]float64, n), make([]float64, n)
	for i := range lambda {
		lambda[i], variances[i] = math.Sqrt(sigma)*rng.NormFloat64(), sigma
		if i%10 == 0 {
			lambda[i]++
		}
	}
	var fit Learner = GaussBernoulli{Density: 0.2, SignalVar: 1, Learn: Density | SignalMean | SignalVar}
	for step := range 40 {
		next, change := fit.Refit(lambda, variances, 1)
		if fit = next; change < 1e-3 {
			t.Logf("%d steps: %v", step+1, fit)
			return
		}
	}
	t.Errorf("not settled after 40 steps: %v", fit)
}

// One Gaussian in place of a mixture has its density, and its mean and variance.
func TestMixtureAsOne(t *testing.T) {
	m := Mixture{Components: []Component{{Weight: 0.1, Mean: 2, Var: 1}, {Weight: 0.3, Mean: -1, Var: 0.5}}}
	g := m.AsOne()
	if math.Abs(g.Density-0.4) > 1e-12 || math.Abs(g.Mean()-m.Mean()) > 1e-12 || math.Abs(g.Variance()-m.Variance()) > 1e-12 {
		t.Errorf("%+v: mean %g, variance %g, expected %g, %g", g, g.Mean(), g.Variance(), m.Mean(), m.Variance())
	}
}
