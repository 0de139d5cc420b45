package amp

import (
	"math"
	"testing"

	"github.com/calamp/calamp/prior"
)

// Vector AMP hovers where four windows in a row leave signals and gains within a tenth of their standard deviations of where they were before, and
// not where it moves on, or where most of the signals is unknown.
func TestHovering(t *testing.T) {
	const n, m = 100, 4
	for _, c := range []struct {
		name     string
		step     func(window int) float64 // of every entry, in standard deviations
		variance float64
		hovers   bool
	}{
		{"to and fro", func(w int) float64 { return 0.09 * float64(w%2) }, 1e-4, true},
		{"moves on", func(w int) float64 { return 0.09 * float64(w) }, 1e-4, false},
		{"unknown", func(int) float64 { return 0 }, 0.9, false},
	} {
		e := &State{}
		e.extent = extent{M: m, N: n, P: 1, columns: 1}
		e.X, e.SumC, e.S, e.SVar = make([]float64, n), []float64{n * c.variance}, make([]float64, m), []float64{1e-4, 1e-4, 1e-4, 1e-4}
		e.Broken, e.model = make([]float64, m), Model{Prior: prior.Gaussian(0, 1)}
		p := &standstill{vector: &vamp{}}
		windows := 0
		for windows < 8 {
			for i := range e.X {
				e.X[i] = c.step(windows) * math.Sqrt(c.variance)
			}
			for mu := range e.S {
				e.S[mu] = 1 + 0.01*c.step(windows)
			}
			if windows++; p.hovers(e, false) {
				break
			}
		}
		if hovers := windows < 8; hovers != c.hovers || hovers && windows != hoversFor+1 {
			t.Errorf("%s: hovers %v after %d windows", c.name, hovers, windows)
		}
	}
}
