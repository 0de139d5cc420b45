package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// TestTable: interpolated values are those that are computed, between nodes and at the ends. With steps of 0.37 and all of P = 1, 3,
// 10, 30 and widths 0.02, 0.1, 0.5, 0.9 the worst is that of P = 30, 0.1.
func TestTable(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		p     int
		width float64
	}{{1, 0.9}, {3, 0.02}, {10, 0.5}, {30, 0.1}} {
		g := channel.Uniform(1-c.width, 1+c.width)
		table := NewTable(c.p, g, 1e-7)
		worst, where := 0.0, 0.0
		for x := 0.0; x < 16; x += 1.37 {
			delta := math.Exp(-x)
			got, want := table.at(delta, nil), bayesAverages(c.p, g, delta, 1e-7, nil)
			for _, r := range []float64{got.chiHat.Value / want.chiHat.Value, got.mseS.Value / want.mseS.Value} {
				if off := math.Abs(r - 1); !(off <= worst) {
					worst, where = off, x
				}
			}
		}
		t.Logf("P = %d, 1 ± %g: within %.1e, worst at δ = e^-%g", c.p, c.width, worst, where)
		if !(worst < 5e-5) {
			t.Errorf("P = %d, 1 ± %g: %g off at δ = e^-%g", c.p, c.width, worst, where)
		}
	}
}

// TestTableOfAnotherModel: a table is not taken for one of other gains.
func TestTableOfAnotherModel(t *testing.T) {
	m := Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4, Alpha: 0.6, P: 3}
	table := NewTable(m.P+1, m.Gain, 1e-4)
	if _, err := Offline(context.Background(), m, &Options{Table: table}); err == nil {
		t.Error("a table of another P was taken")
	}
}
