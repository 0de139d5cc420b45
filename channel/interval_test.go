package channel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A quantile is where the CDF is the level, and the CDF's slope is the density:
// its mean, by parts, is that of the posterior.
func TestGainQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Uniform(0.5, 1.5)
		if rapid.Bool().Draw(t, "normal") {
			p = TruncatedNormal(1.1, 0.3, 0.5, 1.5)
		}
		n := float64(rapid.IntRange(0, 20).Draw(t, "n"))
		tau := math.Pow(10, rapid.Float64Range(-2, 16).Draw(t, "log τ"))
		b := tau * rapid.Float64Range(0.3, 1.7).Draw(t, "t")
		level := rapid.Float64Range(0.001, 0.999).Draw(t, "level")
		stats := GainStats(tau, b, n)
		q := p.Quantile(stats, level)
		// One unit in the last place of s moves the CDF by so much.
		_, variance := posteriorOf(p, stats)
		limit := 1e-9 + 1e-15/math.Sqrt(variance)
		if got := p.CDF(stats, q); math.Abs(got-level) > limit {
			t.Fatalf("the CDF at the quantile of %g is %g", level, got)
		}
	})
}

func TestGainCDFByParts(t *testing.T) {
	p := Uniform(0.9, 1.1)
	for _, c := range [][]float64{GainStats(0, 0, 0), GainStats(40, 41, 3), GainStats(2000, 2010, 2), GainStats(1e5, 1.05e5, 10)} {
		const cells = 4000
		mean := p.Hi
		for i := range cells { // midpoints
			mean -= p.CDF(c, p.Lo+(p.Hi-p.Lo)*(float64(i)+0.5)/cells) * (p.Hi - p.Lo) / cells
		}
		if want, _ := posteriorOf(p, c); math.Abs(mean-want) > 1e-8 {
			t.Errorf("%v: mean %.12g from the CDF, %.12g from the moments", c, mean, want)
		}
	}
}

func posteriorOf(p GainPrior, stats []float64) (mean, variance float64) {
	var m, v [1]float64
	p.Posteriors(m[:], v[:], stats)
	return m[0], v[0]
}
