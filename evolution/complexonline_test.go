package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

func complexStream(g channel.ComplexPrior) ComplexModel {
	return ComplexModel{Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: g, NoiseVar: 1e-6, Alpha: 0.7, P: 1}
}

// TestComplexOnline: the first samples are an offline problem; amplitudes of which all phases are known are real gains of twice as many readings.
func TestComplexOnline(t *testing.T) {
	free := complexStream(channel.ComplexPrior{Lo: 1, Hi: 1})
	free.P = 5
	run := func(m ComplexModel, opt *ComplexOnlineOptions) []Sample {
		t.Helper()
		out, err := ComplexOnline(context.Background(), m, opt)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := run(free, &ComplexOnlineOptions{WarmUp: 4, Points: 1024})
	free.P = 4
	want, err := ComplexOffline(context.Background(), free, &ComplexOptions{Iterations: 60})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]Number{
		"x": {got[0].Last().MSEX, want.Steps[59].MSEX}, "s": {got[0].Last().MSES, want.Steps[59].MSES},
	} {
		if a, b := pair[0], pair[1]; math.Abs(a.Value-b.Value) > 4*math.Hypot(a.Err, b.Err)+0.01*b.Value {
			t.Errorf("%s of the batch %v, offline %v", what, a, b)
		}
	}
	if second := got[1].Last(); len(got) != 2 || second.MSES.Value > 0.9*got[0].Last().MSES.Value {
		t.Errorf("%d samples, the second teaches nothing: %v after %v", len(got), second.MSES, got[0].Last().MSES)
	}
	again := run(free, &ComplexOnlineOptions{WarmUp: 4, Points: 1024})
	if again[0].Last() != got[0].Last() {
		t.Error("not the same numbers for the same seed")
	}
	if _, err := ComplexOnline(context.Background(), free, nil); err == nil {
		t.Error("free phases from single samples")
	}
}
