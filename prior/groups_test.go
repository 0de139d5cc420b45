package prior

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// someGroups are three groups of nine entries, not in order, and fields of two signals.
func someGroups(t testing.TB) (g Groups, lambda, sigma []float64) {
	t.Helper()
	g, err := ByGroup([]int{2, 0, 1, 1, 0, 2, 2, 2, 1}, []GaussBernoulli{{Density: 1, SignalMean: 0.5, SignalVar: 4}, {Density: 0.3, SignalMean: 0, SignalVar: 1}, {Density: 0.05, SignalMean: -1, SignalVar: 0.2}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4, 0))
	for range 18 {
		lambda, sigma = append(lambda, rng.NormFloat64()), append(sigma, math.Exp(rng.NormFloat64()-2))
	}
	sigma[4] = math.Inf(1)
	return g, lambda, sigma
}

// Groups are what the priors of the entries are, one by one; of a group alone, what it is.
func TestGroupsAreTheirEntries(t *testing.T) {
	g, lambda, sigma := someGroups(t)
	mean, variance := make([]float64, 18), make([]float64, 18)
	g.Posterior(mean, variance, lambda, sigma)
	sum, m, v, square := 0.0, 0.0, 0.0, 0.0
	for i, l := range lambda {
		one := g.At(i % 9)
		var x, c [1]float64
		one.Posterior(x[:], c[:], lambda[i:i+1], sigma[i:i+1])
		if math.Abs(x[0]-mean[i]) > 1e-15 || math.Abs(c[0]-variance[i]) > 1e-15 {
			t.Errorf("entry %d: %g, %g, alone %g, %g", i, mean[i], variance[i], x[0], c[0])
		}
		sum += one.LogNorm(l, sigma[i])
		m, v = m+one.Mean()/18, v+one.Variance()/18
		square += one.(GaussBernoulli).square() / 18
	}
	for _, pair := range [][2]float64{{g.SumLogNorm(lambda, sigma), sum}, {g.Mean(), m}, {g.Variance(), v}, {g.Square(), square}} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("%g, entry by entry %g", pair[0], pair[1])
		}
	}
	if got := At(g.kinds[1], 7); got != g.kinds[1] {
		t.Errorf("a prior that is the same everywhere is %v at 7", got)
	}
	below, upTo := g.CDF(math.Inf(1), 0.3, 0.5)
	if math.Abs(below-1) > 1e-14 || math.Abs(upTo-1) > 1e-14 {
		t.Errorf("all values are below +Inf with probability %g, %g", below, upTo)
	}
	scaled := g.Scaled(3).(Groups)
	if got := scaled.At(1).(GaussBernoulli); got != (GaussBernoulli{Density: 1, SignalMean: 1.5, SignalVar: 36}) {
		t.Errorf("three times as large: %+v", got)
	}
	same, err := g.WithValues(g.Values())
	if err != nil || same.(Groups).Name() != g.Name() || scaled.Name() == g.Name() {
		t.Errorf("names %q, %q, %v", same.(Groups).Name(), scaled.Name(), err)
	}
}

// Learning one group is learning its entries alone, but for the ballast; groups that share, learn together.
func TestGroupsLearn(t *testing.T) {
	g, lambda, sigma := someGroups(t)
	all := Density | SignalMean | SignalVar
	next, change := g.Learning(all).Refit(lambda, sigma, 0.7)
	if !(change > 0) {
		t.Errorf("change %g", change)
	}
	for j, kind := range g.kinds {
		f := g.gather(j, lambda, sigma)
		alone := []sample{newSample(kind, f.lambda, f.sigma)}
		for range refitSteps {
			maximise(all, groupBallast, alone)
		}
		if got, want := next.(Groups).kinds[j], kind.towards(alone[0].g, 0.7); got != want {
			t.Errorf("group %d: %+v, alone %+v", j, got, want)
		}
	}

	// The same distribution under two names is one, and fixed variances stay.
	of := []int{0, 1, 0, 0, 1, 1, 0, 1, 0}
	two, err := ByGroup(of, []GaussBernoulli{{Density: 0.5, SignalMean: 0.2, SignalVar: 1}, {Density: 0.5, SignalMean: 0.2, SignalVar: 1}})
	if err != nil {
		t.Fatal(err)
	}
	two.Shared = []int{3, 3}
	shared, _ := two.Learning(all).Refit(lambda, sigma, 1)
	single, err := ByGroup(make([]int, 9), two.kinds[:1])
	if err != nil {
		t.Fatal(err)
	}
	one, _ := single.Learning(all).Refit(lambda, sigma, 1)
	want := one.(Groups).kinds[0]
	for j, got := range shared.(Groups).kinds {
		for k, v := range got.Values() {
			if math.Abs(v-want.Values()[k]) > 1e-12 {
				t.Errorf("shared group %d: %+v, as one %+v", j, got, want)
			}
		}
	}
	two.kinds[1].SignalVar = 9
	two.Shared = []int{0, 0}
	given, _ := two.Learning(Density|SignalMean).Refit(lambda, sigma, 1)
	a, b := given.(Groups).kinds[0], given.(Groups).kinds[1]
	if a.Density != b.Density || a.SignalMean != b.SignalMean || a.SignalVar != 1 || b.SignalVar != 9 {
		t.Errorf("shared, with variances given: %+v, %+v", a, b)
	}
}

// The fixed point of learning is the likeliest prior: the likelihood of the fields has no slope
// there, by differences, in any parameter of any group.
func TestGroupsLearnTheLikeliest(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 0))
	const n, signals = 60, 20
	of := make([]int, n)
	for i := range of {
		of[i] = i % 2
	}
	truth, err := ByGroup(of, []GaussBernoulli{{Density: 0.4, SignalMean: 0, SignalVar: 4}, {Density: 0.8, SignalMean: 1, SignalVar: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	lambda, sigma := make([]float64, n*signals), make([]float64, n*signals)
	for j := range lambda {
		sigma[j] = 0.01
		lambda[j] = truth.At(j%n).(Sampler).Sample(rng) + 0.1*rng.NormFloat64()
	}
	start, _ := ByGroup(of, []GaussBernoulli{{Density: 0.5, SignalMean: 0, SignalVar: 1}, {Density: 0.5, SignalMean: 0, SignalVar: 1}})
	var l Learner = start.Learning(Density | SignalMean | SignalVar)
	for range 300 {
		l, _ = l.Refit(lambda, sigma, 1)
	}
	values := l.Values()
	for j, v := range values {
		if off := math.Abs(v - truth.Values()[j]); off > 0.25*(math.Abs(v)+0.2) {
			t.Errorf("parameter %d: %g, drawn with %g", j, v, truth.Values()[j])
		}
		const h = 1e-5
		at := func(x float64) float64 {
			moved := append([]float64(nil), values...)
			moved[j] = x
			p, err := l.WithValues(moved)
			if err != nil {
				t.Fatal(err)
			}
			return SumLogNorm(p, lambda, sigma)
		}
		slope := (at(v+h) - at(v-h)) / (2 * h)
		curvature := (at(v+h) - 2*at(v) + at(v-h)) / (h * h)
		if math.Abs(slope) > 1e-3*math.Sqrt(math.Abs(curvature)) {
			t.Errorf("parameter %d: slope %g with curvature %g", j, slope, curvature)
		}
	}
}

func TestGroupsRefuse(t *testing.T) {
	kinds := []GaussBernoulli{{Density: 1, SignalMean: 0, SignalVar: 1}, {Density: 0.1, SignalMean: 0, SignalVar: 1}}
	for want, of := range map[string][]int{"entry 1 is of group 2": {0, 2}, "group 1 has no entries": {0, 0}} {
		if _, err := ByGroup(of, kinds); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", of, err)
		}
	}
	g, _ := ByGroup([]int{0, 1}, kinds)
	if err := ValidateFor(g, 3); err == nil || !strings.Contains(err.Error(), "for 2 entries, and signals have 3") {
		t.Error(err)
	}
	if err := ValidateFor(kinds[0], 3); err != nil {
		t.Error(err)
	}
	g.kinds[1].SignalVar = -1
	if err := g.Validate(); err == nil || !strings.Contains(err.Error(), "group 1: signal variance") {
		t.Error(err)
	}
	if err := (Groups{}).Validate(); err == nil {
		t.Error("groups that were not made are valid")
	}
}
