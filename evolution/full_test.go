package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// The sampled matrices are diagonal, and their diagonals agree with the deterministic
// state evolution, compared one iteration at a time from the same start.
func TestFullMatricesAreDiagonal(t *testing.T) {
	m := Model{Signal: prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: channel.Uniform(0.6, 1.4), NoiseVar: 1e-2, Alpha: 0.9, P: 2}
	want, err := Offline(context.Background(), m, &Options{Iterations: 2})
	if err != nil {
		t.Fatal(err)
	}
	got, err := MonteCarloFull(context.Background(), Full{
		Truth: Matched(m).Teacher.Truth(), Prior: m.Signal, Channel: channel.Gain{Prior: m.Gain, NoiseVar: m.NoiseVar}, Alpha: m.Alpha, P: m.P,
	}, &MonteCarloOptions{Samples: 20000, Iterations: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		w := want.Steps[i]
		for a := range m.P {
			for b := range m.P {
				for _, c := range []struct {
					name string
					got  Matrix
					want float64
				}{{"q̂", g.QHat, w.MHat.Value}, {"m̂", g.MHat, w.MHat.Value}, {"χ̂", g.ChiHat, w.MHat.Value}, {"V", g.V, w.MSEX.Value}} {
					target := 0.0
					if a == b {
						target = c.want
					}
					// V also has the sampling error of the hats, and the second
					// iteration all errors of the first.
					allowed := 4 * c.got.Err.At(a, b)
					if i > 0 || c.name == "V" {
						allowed += 0.02 * c.want
					}
					if d := math.Abs(c.got.Value.At(a, b) - target); d > allowed {
						t.Errorf("iteration %d: %s[%d,%d] = %g ± %g, want %g", i+1, c.name, a, b, c.got.Value.At(a, b), c.got.Err.At(a, b), target)
					}
				}
			}
		}
	}
}
