package layers

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/prior"
)

// Rows are the sum over both supports, and the derivatives of their evidence are the means. Of one signal they are the prior itself.
func TestRows(t *testing.T) {
	const n = 40
	for _, density := range []float64{0.2, 1} {
		for _, p := range []int{1, 3} {
			g := prior.GaussBernoulli{Density: density, SignalMean: 0.3, SignalVar: 2}
			r := newRows(latents{n: n, p: p, threads: 1, prior: g})
			rng := rand.New(rand.NewPCG(1, 2))
			x, c, lambda, sigma := make([]float64, n*p), make([]float64, n*p), make([]float64, n*p), make([]float64, n*p)
			for j := range lambda {
				lambda[j], sigma[j] = 2*rng.NormFloat64(), math.Exp(2*rng.NormFloat64())
			}
			sigma[0] = math.Inf(1)
			if err := r.Update(x, c, lambda, sigma, 0); err != nil {
				t.Fatal(err)
			}
			base := r.LogNorm()
			want, slab := 0.0, prior.GaussBernoulli{Density: 1, SignalMean: 0.3, SignalVar: 2}
			for j := range n {
				on, off := density, 1-density
				for k := range p {
					l, s := lambda[k*n+j], sigma[k*n+j]
					on *= math.Exp(slab.LogNorm(l, s))
					if !math.IsInf(s, 1) {
						off *= math.Exp(-0.5 * l * l / s)
					}
				}
				want += math.Log(on + off)
			}
			if !(math.Abs(base-want) < 1e-10) {
				t.Errorf("density %g, %d signals: %.12g, expected %.12g", density, p, base, want)
			}
			const step = 1e-4
			y, d := make([]float64, n*p), make([]float64, n*p)
			for j := 1; j < n*p; j++ {
				l := lambda[j]
				var at [2]float64
				for i, move := range []float64{-step, step} {
					lambda[j] = l + move
					if err := r.Update(y, d, lambda, sigma, 0); err != nil {
						t.Fatal(err)
					}
					at[i] = r.LogNorm()
				}
				lambda[j] = l
				slope, bend := (at[1]-at[0])/(2*step), (at[1]-2*base+at[0])/(step*step)
				if off := math.Abs((x[j]-l)/sigma[j] - slope); !(off < 1e-5) {
					t.Errorf("entry %d: slope %g, expected %g", j, (x[j]-l)/sigma[j], slope)
				}
				if off := math.Abs((c[j]/sigma[j]-1)/sigma[j] - bend); !(off < 1e-4*(1+math.Abs(bend))) {
					t.Errorf("entry %d: curvature %g, expected %g", j, (c[j]/sigma[j]-1)/sigma[j], bend)
				}
			}
			if p > 1 {
				continue
			}
			g.Posterior(y, d, lambda, sigma)
			for j := range y {
				if math.Abs(y[j]-x[j]) > 1e-12 || math.Abs(d[j]-c[j]) > 1e-12 {
					t.Errorf("entry %d: %g ± %g, expected %g ± %g", j, x[j], c[j], y[j], d[j])
				}
			}
		}
	}
}
