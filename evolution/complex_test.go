package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// The references come with the equations, to three digits.
func TestComplexOffline(t *testing.T) {
	for name, c := range map[string]struct {
		gain channel.ComplexPrior
		x, s float64
	}{
		"phase known":          {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)}, 6.16e-7, 1.45e-6},
		"phase only":           {channel.ComplexPrior{Lo: 1, Hi: 1}, 6.16e-7, 1.34e-6},
		"phase only, κ = 5":    {channel.ComplexPrior{Lo: 1, Hi: 1, Concentration: 5}, 6.16e-7, 1.34e-6},
		"both, uniform":        {channel.ComplexPrior{Lo: 0.5, Hi: 1.5}, 8.00e-7, 3.24e-6},
		"both, von Mises κ=20": {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}, 8.00e-7, 3.24e-6},
	} {
		m := ComplexModel{Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-6, Alpha: 0.6, P: 4}
		tr, err := ComplexOffline(context.Background(), m, &ComplexOptions{Iterations: 40, Points: 1024})
		if err != nil {
			t.Fatal(err)
		}
		last := tr.Steps[len(tr.Steps)-1]
		t.Logf("%s: x %v, s %v, steps %d", name, last.MSEX, last.MSES, len(tr.Steps))
		if math.Abs(last.MSEX.Value/c.x-1) > 0.01 || math.Abs(last.MSES.Value/c.s-1) > 0.05 {
			t.Errorf("%s: x %v, s %v; want %g, %g", name, last.MSEX, last.MSES, c.x, c.s)
		}
	}
}
