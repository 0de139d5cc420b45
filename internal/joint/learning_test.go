package joint

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A sample covariance of few rows is shrunk to what they show: independent signals to a multiple of I, those of one amplitude hardly.
func TestShrink(t *testing.T) {
	const p, n = 10, 100
	rng := rand.New(rand.NewPCG(1, 2))
	for _, common := range []float64{0, 0.9} {
		a := make([]float64, p*p)
		for range n {
			row, amplitude := make([]float64, p), rng.NormFloat64()
			for k := range row {
				row[k] = math.Sqrt(common)*amplitude + math.Sqrt(1-common)*rng.NormFloat64()
			}
			for k := range p {
				for l := range p {
					a[k*p+l] += row[k] * row[l] / n
				}
			}
		}
		before := append([]float64(nil), a...)
		shrink(a, p, n)
		for k := range p {
			for l := range k {
				if common == 0 && math.Abs(a[k*p+l]) > 0.05 || common > 0 && math.Abs(a[k*p+l]-before[k*p+l]) > 0.15 {
					t.Errorf("common %g: covariance of %d and %d from %.3f to %.3f", common, k, l, before[k*p+l], a[k*p+l])
				}
			}
		}
	}
}

// The support of rows tells signals that share it from independent ones.
func TestGainTellsSharedSupports(t *testing.T) {
	const n, p, density, sigma = 300, 6, 0.2, 0.3
	rng := rand.New(rand.NewPCG(3, 4))
	for _, shared := range []bool{false, true} {
		lambda, sigmas := make([]float64, n*p), make([]float64, n*p)
		for i := range n {
			there := rng.Float64() < density
			for k := range p {
				on := rng.Float64() < density
				if shared {
					on = there
				}
				j := k*n + i
				sigmas[j] = sigma
				if lambda[j] = math.Sqrt(sigma) * rng.NormFloat64(); on {
					lambda[j] += rng.NormFloat64()
				}
			}
		}
		one := []float64{1, 1, 1, 1, 1, 1}
		gain := Gain(n, p, 1, lambda, sigmas, make([]float64, p), one, 0.1)
		t.Logf("shared %v: %.3g", shared, gain)
		if shared != (gain > 0) || math.Abs(gain) < 10 {
			t.Errorf("shared %v: gain %.3g", shared, gain)
		}
	}
}
