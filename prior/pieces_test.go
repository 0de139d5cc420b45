package prior

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// priorOf is the prior of a row of the golden file.
func priorOf(t *testing.T, kind string, v []float64) Sampler {
	t.Helper()
	switch kind {
	case "nonnegative":
		return NonNegative{Density: v[0], SignalMean: v[1], SignalVar: v[2]}
	case "laplace":
		return Laplace{Density: v[0], SignalVar: v[1]}
	case "mixture":
		var m Mixture
		for ; len(v) > 0; v = v[3:] {
			m.Components = append(m.Components, Component{v[0], v[1], v[2]})
		}
		return m
	}
	t.Fatalf("unknown prior %q", kind)
	return nil
}

// Against quadrature with 60 digits: from Σ = 1e-10 to 40, fields up to 200 of
// their standard deviations from zero, on the wrong side of it, too.
func TestPiecesGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/pieces.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rows []struct {
			Prior          string
			Parameters     []float64
			Lambda, Sigma  float64
			Mean, Variance json.Number
			LogNorm        json.Number `json:"log_norm"`
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	var worstVar, worstMean, worstNorm float64
	for _, r := range file.Rows {
		p := priorOf(t, r.Prior, r.Parameters)
		var mean, variance [1]float64
		p.Posterior(mean[:], variance[:], []float64{r.Lambda}, []float64{r.Sigma})
		wantMean, _ := r.Mean.Float64()
		wantVar, _ := r.Variance.Float64()
		varErr := math.Abs(difference(t, variance[0], r.Variance)) / wantVar
		ulp := math.Nextafter(math.Abs(wantMean), math.Inf(1)) - math.Abs(wantMean)
		meanErr := max(0, math.Abs(difference(t, mean[0], r.Mean))-2*ulp) / math.Sqrt(wantVar)
		normErr := math.Abs(difference(t, p.LogNorm(r.Lambda, r.Sigma), r.LogNorm)) / (1 + r.Lambda*r.Lambda/r.Sigma)
		if !(varErr <= 1e-12 && meanErr <= 1e-12 && normErr <= 1e-13) {
			t.Errorf("%s %v, λ = %g, Σ = %g: variance off by %.2g relative, mean by %.2g sd, log-normaliser by %.2g", r.Prior, r.Parameters, r.Lambda, r.Sigma, varErr, meanErr, normErr)
		}
		worstVar, worstMean, worstNorm = max(worstVar, varErr), max(worstMean, meanErr), max(worstNorm, normErr)
	}
	t.Logf("%d rows, worst: variance %.2g relative, mean %.2g sd beyond two ulp, log-normaliser %.2g", len(file.Rows), worstVar, worstMean, worstNorm)
}

// Without a field the posterior is the prior, whose moments are those of what
// is drawn from it.
func TestPiecesWithoutInformation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []Sampler{
		NonNegative{Density: 0.2, SignalMean: 0, SignalVar: 1},
		NonNegative{Density: 1, SignalMean: -3, SignalVar: 0.5},
		NonNegative{Density: 0.5, SignalMean: 2, SignalVar: 0.3},
		Laplace{Density: 0.2, SignalVar: 3},
		Laplace{Density: 1, SignalVar: 1},
		Mixture{Components: []Component{{0.2, 1, 0.5}, {0.3, -2, 2}}},
	} {
		var mean, variance [1]float64
		p.Posterior(mean[:], variance[:], []float64{5}, []float64{math.Inf(1)})
		if mean[0] != p.Mean() || variance[0] != p.Variance() || p.LogNorm(5, math.Inf(1)) != 0 {
			t.Errorf("%+v: posterior %g ± %g without information, prior %g ± %g", p, mean[0], variance[0], p.Mean(), p.Variance())
		}
		p.Posterior(mean[:], variance[:], []float64{5}, []float64{1e12})
		if math.Abs(mean[0]-p.Mean()) > 1e-9 || math.Abs(variance[0]-p.Variance()) > 1e-9 {
			t.Errorf("%+v: posterior %g ± %g with next to no information, prior %g ± %g", p, mean[0], variance[0], p.Mean(), p.Variance())
		}
		const n = 100000
		var sum, square float64
		for range n {
			x := p.Sample(rng)
			sum += x
			square += (x - p.Mean()) * (x - p.Mean())
		}
		if math.Abs(sum/n-p.Mean()) > 5*math.Sqrt(p.Variance()/n) || math.Abs(square/n/p.Variance()-1) > 0.05 {
			t.Errorf("%+v: drawn with mean %g and variance %g, expected %g and %g", p, sum/n, square/n, p.Mean(), p.Variance())
		}
	}
}

// One component is the Gauss–Bernoulli prior.
func TestMixtureOfOneIsGaussBernoulli(t *testing.T) {
	g := GaussBernoulli{Density: 0.3, SignalMean: 0.5, SignalVar: 2}
	m := Mixture{Components: []Component{{0.3, 0.5, 2}}}
	for _, lambda := range []float64{-3, 0, 0.1, 2, 30} {
		var a, b, c, d [1]float64
		g.Posterior(a[:], b[:], []float64{lambda}, []float64{0.1})
		m.Posterior(c[:], d[:], []float64{lambda}, []float64{0.1})
		if math.Abs(a[0]-c[0]) > 1e-14*(1+math.Abs(a[0])) || math.Abs(b[0]-d[0]) > 1e-14 {
			t.Errorf("λ = %g: %g ± %g, Gauss–Bernoulli %g ± %g", lambda, c[0], d[0], a[0], b[0])
		}
	}
}

func TestPiecesValidate(t *testing.T) {
	for _, p := range []interface{ Validate() error }{
		NonNegative{Density: 0, SignalMean: 0, SignalVar: 1},
		NonNegative{Density: 0.1, SignalMean: math.NaN(), SignalVar: 1},
		NonNegative{Density: 0.1, SignalMean: 0, SignalVar: 0},
		Laplace{Density: 0, SignalVar: 1},
		Laplace{Density: 2, SignalVar: 1},
		Laplace{Density: 1, SignalVar: -1},
		Mixture{},
		Mixture{Components: []Component{{0, 0, 1}}},
		Mixture{Components: []Component{{0.6, 0, 1}, {0.6, 0, 1}}},
		Mixture{Components: []Component{{0.6, math.Inf(1), 1}}},
		Mixture{Components: []Component{{0.6, 0, 0}}},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
}

// From a wrong start the update finds the mixture that entries were drawn from,
// and never makes the fields less likely.
func TestMixtureUpdate(t *testing.T) {
	truth := Mixture{Components: []Component{{0.2, 2, 0.3}, {0.3, -1, 0.1}}}
	rng := rand.New(rand.NewPCG(3, 4))
	const n, noise = 5000, 0.01
	lambda, sigma := make([]float64, n), make([]float64, n)
	for i := range lambda {
		lambda[i], sigma[i] = truth.Sample(rng)+math.Sqrt(noise)*rng.NormFloat64(), noise
	}
	sigma[0] = math.Inf(1)
	fit := Mixture{Components: []Component{{0.05, 1, 1}, {0.05, -0.5, 1}}}
	last := math.Inf(-1)
	for range 40 {
		evidence := 0.0
		for i, l := range lambda {
			evidence += fit.LogNorm(l, sigma[i])
		}
		if evidence < last-1e-7 {
			t.Fatalf("evidence fell from %g to %g", last, evidence)
		}
		last = evidence
		fit = fit.Update(lambda, sigma)
	}
	for j, want := range truth.Components {
		got := fit.Components[j]
		if math.Abs(got.Weight-want.Weight) > 0.03 || math.Abs(got.Mean-want.Mean) > 0.05 || math.Abs(got.Var/want.Var-1) > 0.15 {
			t.Errorf("component %d: %+v, want %+v", j, got, want)
		}
	}
	if got := fit.Update(lambda[:1], sigma[:1]); got.Components[0] != fit.Components[0] {
		t.Errorf("learned from nothing: %+v", got)
	}
	gone := Mixture{Components: []Component{{0.1, 1e3, 1e-3}, {0.5, 0, 1}}}.Update(lambda, sigma)
	if c := gone.Components[0]; c.Mean != 1e3 || c.Var != 1e-3 || !(c.Weight > 0) {
		t.Errorf("a component that no entry is of became %+v", c)
	}
}
