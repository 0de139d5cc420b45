package field

import (
	"math"
	"testing"

	"github.com/calamp/calamp/prior"
)

// TestWideFields: a field that says nothing leaves what was known before, however wide it is, and a narrow one leaves its own width.
func TestWideFields(t *testing.T) {
	for _, mean := range []float64{0, 3} {
		g := prior.GaussBernoulli{Density: 0.2, SignalMean: mean, SignalVar: 1}
		for _, sigma := range []float64{1e10, 1e15, 1e17, 1e20, 1e60, 1e119} {
			f := Matched(g, sigma)
			a := f.Integrate(1e-8)
			for name, v := range map[string]float64{"variance": a.Variance.Value, "error": a.MSE.Value} {
				if !(math.Abs(v-g.Variance()) <= 1e-6*g.Variance()+10*g.Variance()*g.Variance()/sigma) {
					t.Errorf("mean %g, Σ = %g: %s %g, expected %g", mean, sigma, name, v, g.Variance())
				}
			}
		}
	}
	g := prior.Gaussian(0, 1)
	for _, sigma := range []float64{1e-60, 1e-10, 1, 1e10, 1e60} {
		f := Matched(g, sigma)
		if got, want := f.Integrate(1e-8).MSE.Value, 1/(1+1/sigma); math.Abs(got-want) > 1e-7*want {
			t.Errorf("Gaussian, Σ = %g: %g, expected %g", sigma, got, want)
		}
	}
}
