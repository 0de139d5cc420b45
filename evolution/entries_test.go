package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// TestEntriesOfAnyPrior: Gaussian entries by the marginal of their field are those by their law, and others are as sampled.
func TestEntriesOfAnyPrior(t *testing.T) {
	tests.Long(t)
	ctx := context.Background()
	gauss := prior.GaussBernoulli{Density: 0.15, SignalMean: 0.5, SignalVar: 1}
	of := Model{Signal: gauss, Gain: channel.Uniform(0.7, 1.4), NoiseVar: 1e-6, Alpha: 0.6, P: 5}
	by, err := Offline(ctx, of, &Options{Iterations: 10})
	if err != nil {
		t.Fatal(err)
	}
	of.Entries = gauss
	marginal, err := Offline(ctx, of, &Options{Iterations: 10})
	if err != nil {
		t.Fatal(err)
	}
	for k, s := range marginal.Steps {
		if want := by.Steps[k].MSEX; math.Abs(s.MSEX.Value/want.Value-1) > 1e-7 {
			t.Errorf("iteration %d: %v by the marginal, %v by the law", k+1, s.MSEX, want)
		}
	}
	belief := Belief{Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}
	for _, entries := range []interface {
		prior.Slabbed
		prior.Sampler
	}{prior.NonNegative{Density: 0.3, SignalMean: 0.5, SignalVar: 1}, prior.Laplace{Density: 0.2, SignalVar: 2}} {
		m := Model{Entries: entries, Gain: belief.Gain, NoiseVar: belief.NoiseVar, Alpha: 0.8, P: 4}
		p, err := Offline(ctx, m, &Options{Iterations: 12})
		if err != nil {
			t.Fatal(err)
		}
		sampled, err := MonteCarlo(ctx, Sampled{Truth: belief.TruthWith(entries), Prior: entries, Channel: belief.Channel(), Alpha: m.Alpha, P: m.P, Matched: true}, &MonteCarloOptions{Iterations: 12})
		if err != nil {
			t.Fatal(err)
		}
		for k, s := range p.Steps {
			if other := sampled[k].MSEX; math.Abs(s.MSEX.Value/other.Value-1) > 0.05 {
				t.Errorf("%T, iteration %d: %v, sampled %v", entries, k+1, s.MSEX, other)
			}
		}
		m.OffsetSD = 1
		if _, err := Offline(ctx, m, nil); err == nil {
			t.Errorf("%T with offsets: no error", entries)
		}
	}
}
