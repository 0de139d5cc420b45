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
		shrink(a, p, n, nil)
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

// Of signals that do not differ, but for a little, the covariance says so with few rows, too: what they do not differ in would be taken for what tells the gains.
func TestShrinkLeavesSignalsThatHardlyDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	for _, c := range []struct {
		p, n int
		own  float64 // standard deviation of what each has by itself
	}{{8, 60, 1e-3}, {40, 60, 1e-2}, {100, 60, 1e-3}} {
		a := make([]float64, c.p*c.p)
		for range c.n {
			row, amplitude := make([]float64, c.p), rng.NormFloat64()
			for k := range row {
				row[k] = amplitude*float64(1-2*(k%2)) + c.own*rng.NormFloat64() // of either sign
			}
			for k := range c.p {
				for l := range c.p {
					a[k*c.p+l] += row[k] * row[l] / float64(c.n)
				}
			}
		}
		shrink(a, c.p, float64(c.n), nil)
		difference := a[0] + a[c.p+1] + 2*a[1] // of signals of opposite signs
		if want := 2 * c.own * c.own; !(difference > 0.3*want && difference < 3*want) {
			t.Errorf("%+v: the difference of two signals has the variance %.3g, expected %.3g", c, difference, want)
		}
	}
}

// What signals do not have in common is found where it is far below the noise, too, in a few steps, and where there is nothing it ends at the least.
func TestRefitFindsWhatIsBelowTheNoise(t *testing.T) {
	const p, n, noise = 8, 2000, 1e-5
	for _, own := range []float64{0, 1e-6} {
		rng := rand.New(rand.NewPCG(5, 6))
		r := NewRows(n, p, 1, Isotropic(p, 1, 0, 1))
		centre, size := make([]float64, n*p), make([]float64, n)
		for i := range n {
			amplitude := rng.NormFloat64()
			for k := range p {
				centre[k*n+i] = amplitude + math.Sqrt(own+noise)*rng.NormFloat64()
			}
			size[i] = p / noise
		}
		change := 0.0
		for range 60 {
			r.Update(Field{Shape: Round(p), Size: size, Centre: centre, Onward: make([]float64, n*p)})
			change = r.Refit(Learns{}, 0.7)
		}
		found := r.Prior.Cov[0] - r.Prior.Cov[1]
		t.Logf("own %g: %.3g, change %.2g", own, found, change)
		if math.Abs(found-own) > 3e-7 || change > 1e-6 {
			t.Errorf("own variance %g found as %.3g, with a last change of %.2g", own, found, change)
		}
	}
}
