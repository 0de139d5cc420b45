package channel

import (
	"math"
	"math/cmplx"
	"testing"
)

// TestSetPosterior: statistics with which a posterior is about normal, whatever of s is unknown.
func TestSetPosterior(t *testing.T) {
	for name, c := range map[string]struct {
		prior ComplexPrior
		mean  complex128
	}{
		"amplitude and phase": {ComplexPrior{Lo: 0.5, Hi: 1.5}, cmplx.Rect(1.1, 0.7)},
		"amplitude":           {ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)}, 1.1},
		"phase":               {ComplexPrior{Lo: 1, Hi: 1}, cmplx.Rect(1, 0.7)},
	} {
		stats := make([]float64, c.prior.Width())
		c.prior.SetPosterior(stats, c.mean, 1e-6)
		if mean, variance := c.prior.Posterior(stats); cmplx.Abs(mean-c.mean) > 1e-5 || math.Abs(variance-1e-6) > 1e-8 {
			t.Errorf("%s: the posterior is %v with variance %.3g", name, mean, variance)
		}
	}
}

// TestLogScaled: what statistics say of s times a factor, against a sum over amplitudes and phases.
func TestLogScaled(t *testing.T) {
	for name, p := range map[string]ComplexPrior{
		"uniform":    {Lo: 0.5, Hi: 1.5, Concentration: 4},
		"normal":     {Lo: 0.5, Hi: 1.5, Center: 1, Precision: 10},
		"log-normal": {Lo: 0.5, Hi: 1.5, Center: 1, Precision: 10, Log: true},
	} {
		stats := ComplexStats(30, cmplx.Rect(38, 0.4), 2)
		sum := func(c float64) float64 {
			const cells = 300
			total := 0.0
			for i := range cells {
				r := p.Lo + (p.Hi-p.Lo)*(float64(i)+0.5)/cells
				for j := range cells {
					s := cmplx.Rect(r, 2*math.Pi*float64(j)/cells)
					was := s / complex(c, 0)
					total += math.Exp(p.Amplitude().LogDensity(r) + p.Concentration*real(s)/r + 4*math.Log(r/c) - 30*square(was) + 2*dot(was, fieldOf(stats)) - 40)
				}
			}
			return math.Log(total)
		}
		for _, c := range []float64{0.7, 1.1} {
			got, want := p.LogScaled(stats, c)-p.LogScaled(stats, 1), sum(c)-sum(1)
			if math.Abs(got-want) > 1e-4 {
				t.Errorf("%s, times %g: %.8g, want %.8g", name, c, got, want)
			}
		}
	}
}
