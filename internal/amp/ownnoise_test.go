package amp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Read noise and that of photons, learned by scoring from residuals of known variance.
func TestScoringStep(t *testing.T) {
	const count, read, photon = 20000, 0.5, 0.2
	rng := rand.New(rand.NewPCG(1, 38))
	expected, residual := make([]float64, count), make([]float64, count)
	for j := range expected {
		expected[j] = 10 * rng.Float64()
		residual[j] = math.Sqrt(read+photon*expected[j]) * rng.NormFloat64()
	}
	for _, c := range []struct {
		name       string
		free       [2]bool
		from, want [2]float64
	}{
		{"both", [2]bool{true, true}, [2]float64{2, 2}, [2]float64{read, photon}},
		{"photons", [2]bool{false, true}, [2]float64{read, 2}, [2]float64{read, photon}},
		{"read noise", [2]bool{true, false}, [2]float64{3, photon}, [2]float64{read, photon}},
	} {
		now := c.from
		for range 30 {
			var slope [2]float64
			var info [2][2]float64
			for j, e := range expected {
				d := now[0] + now[1]*e
				a := [2]float64{1, e}
				for i := range a {
					slope[i] += 0.5 * a[i] * (residual[j]*residual[j]/(d*d) - 1/d)
					for k := range a {
						info[i][k] += 0.5 * a[i] * a[k] / (d * d)
					}
				}
			}
			step := scoringStep(slope, info, c.free, now)
			for i := range now {
				now[i] = max(now[i]+step[i], 1e-9)
			}
		}
		for i, want := range c.want {
			if math.Abs(now[i]/want-1) > 0.1 {
				t.Errorf("%s: %d was learned as %g, want %g", c.name, i, now[i], want)
			}
		}
	}
	// Where one would become negative it is 0, and the other alone goes on.
	step := scoringStep([2]float64{-10, 1}, [2][2]float64{{1, 0.5}, {0.5, 1}}, [2]bool{true, true}, [2]float64{1, 1})
	if step[0] != -1 || step[1] != 1.5 {
		t.Errorf("the step is %v, want -1 and 1.5", step)
	}
}
