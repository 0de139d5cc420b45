package operator_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/operator"
)

// TestCoherence: neighbouring columns of rows that are smoothed by (1, r) have the cosine r/(1+r²); independent ones are near what chance makes.
func TestCoherence(t *testing.T) {
	const m, n = 300, 200
	for _, r := range []float64{0, 0.6} {
		rng := rand.New(rand.NewPCG(1, 0))
		w := make([]float64, 0, m*n)
		for range m {
			before := rng.NormFloat64()
			for range n {
				v := rng.NormFloat64()
				w = append(w, v+r*before)
				before = v
			}
		}
		table, err := operator.NewDense(m, n, w)
		if err != nil {
			t.Fatal(err)
		}
		c, err := operator.CoherenceOf(table, 1)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case r == 0 && !(c.Nearest > 0.7*c.Chance && c.Nearest < 1.3*c.Chance && math.Abs(c.Chance-math.Sqrt(2*math.Log(n)/m)) < 0.03):
			t.Errorf("independent entries: %+v", c)
		case r > 0 && math.Abs(c.Nearest-r/(1+r*r)) > 0.1:
			t.Errorf("smoothed with %g: %+v", r, c)
		}
	}
}
