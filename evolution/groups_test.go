package evolution_test

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/prior"
)

// Groups with equal parameters give the results of one group, in every kind of state evolution.
func TestEqualGroups(t *testing.T) {
	one := evolution.Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalMean: 0.5, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-3, Alpha: 0.6, P: 2}
	groups := one
	groups.Signal = prior.GaussBernoulli{}
	groups.Groups = []evolution.Group{{Fraction: 0.3, Signal: one.Signal}, {Fraction: 0.7, Signal: one.Signal}}
	if v, want := groups.SecondMoment(), one.SecondMoment(); math.Abs(v-want) > 1e-15 || math.Abs(groups.Density()-0.2) > 1e-15 {
		t.Errorf("E x² = %g, alone %g", v, want)
	}
	var orthogonal evolution.Spectrum
	if err := orthogonal.UnmarshalText([]byte("orthogonal")); err != nil {
		t.Fatal(err)
	}
	ctx, opt := context.Background(), &evolution.Options{Iterations: 8}
	for name, run := range map[string]func(m evolution.Model) (*evolution.Trajectory, error){
		"AMP": func(m evolution.Model) (*evolution.Trajectory, error) { return evolution.Offline(ctx, m, opt) },
		"vector AMP": func(m evolution.Model) (*evolution.Trajectory, error) {
			return evolution.Vector(ctx, m, orthogonal, opt)
		},
	} {
		a, err := run(one)
		if err != nil {
			t.Fatal(err)
		}
		b, err := run(groups)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range a.Steps {
			if off := math.Abs(b.Steps[i].MSEX.Value/s.MSEX.Value - 1); off > 1e-10 {
				t.Errorf("%s, iteration %d: %v, alone %v", name, i+1, b.Steps[i].MSEX, s.MSEX)
			}
		}
	}
	groups.Groups[0].Fraction = 0.4
	if err := groups.Validate(); err == nil {
		t.Error("fractions that sum to 1.1 are valid")
	}
}

// A group of which nothing is to be known does not count: of zeros, almost.
func TestGroupOfZeros(t *testing.T) {
	signal := prior.GaussBernoulli{Density: 0.5, SignalVar: 2}
	m := evolution.Model{
		Groups: []evolution.Group{{Fraction: 0.25, Signal: signal}, {Fraction: 0.75, Signal: prior.GaussBernoulli{Density: 1, SignalVar: 1e-14}}},
		Gain:   channel.Uniform(0.9, 1.1), NoiseVar: 1e-2, Alpha: 0.5, P: 1,
	}
	// The same problem with a quarter of the entries: W has entries of variance 1/N, so signals of
	// a quarter as many of them have a quarter of the power.
	small := evolution.Model{Signal: prior.GaussBernoulli{Density: 0.5, SignalVar: 0.5}, Gain: m.Gain, NoiseVar: 1e-2, Alpha: 2, P: 1}
	a, err := evolution.Offline(context.Background(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := evolution.Offline(context.Background(), small, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range b.Steps {
		if off := math.Abs(a.Steps[i].MSEX.Value/s.MSEX.Value - 1); off > 1e-6 {
			t.Fatalf("iteration %d: %v, of the others alone %v", i+1, a.Steps[i].MSEX, s.MSEX)
		}
	}
}
