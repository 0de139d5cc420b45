package channel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// What a count says given s has the values of integrals in 40 digits (mpmath's quad of z^k N(z; ω, V) λⁿ e^-λ/n! over z > 0).
func TestCountsGolden(t *testing.T) {
	for _, g := range []struct{ n, s, omega, v, unit, logP, mean, variance float64 }{
		{0, 1, 0.5, 0.3, 0.1, -2.89715556686189, -0.71102068834329, 0.0379403957633224},
		{0, 1.2, -1, 0.2, 0.5, -4.60245516479778, 2.52048279206756, 0.0711470676790177},
		{1, 0.9, 0.2, 0.01, 0.1, -1.50823349075731, -0.291075126662713, 0.598620109144503},
		{3, 1, 0.3, 0.5, 0.1, -2.92051512305403, 0.122273933381375, 0.0685653741784276},
		{7, 1.1, 2, 1, 0.25, -2.43936164654727, 0.0670221813445394, 0.345019368720416},
		{30, 0.8, 2.5, 0.001, 0.1, -2.64992643829658, -0.0156756400873259, 0.995218776539737},
		{1000, 1, 90, 400, 0.1, -6.35395842832854, 0.492582236211361, 0.0242954353456288},
		{2, 1, -0.5, 0.1, 0.1, -4.76328315646191, 2.13096792620699, 0.0896195636872034},
		{5, 1, 100, 4, 0.01, -1254.49209648895, -49.9600124361882, 0.000266418060902058},
	} {
		c := &Counts{Unit: g.unit}
		root := math.Sqrt(g.v)
		logP, mean, variance, slope := c.at(0, g.n*g.unit, g.s, g.omega, root)
		if math.Abs(logP-g.logP) > 1e-9*(1+math.Abs(g.logP)) || math.Abs(mean-g.mean) > 1e-8*(1+math.Abs(g.mean)) || math.Abs(variance/g.variance-1) > 1e-6 {
			t.Errorf("%v: %.15g %.15g %.15g", g, logP, mean, variance)
		}
		const h = 1e-5
		above, _, _, _ := c.at(0, g.n*g.unit, g.s+h, g.omega, root)
		below, _, _, _ := c.at(0, g.n*g.unit, g.s-h, g.omega, root)
		if want := (above - below) / (2 * h); math.Abs(slope-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("%v: ∂_s log P = %g, difference quotient %g", g, slope, want)
		}
	}
}

// g and ∂g are the first and second derivative of log Z_out, and the statistics have the moments of s.
func TestCountsAreDerivativesOfTheEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(1, 5).Draw(t, "P")
		c := Counts{Prior: Uniform(0.5, 1.5), Unit: rapid.SampledFrom([]float64{0.02, 0.1, 1}).Draw(t, "unit")}
		y, omega, v := make([]float64, p), make([]float64, p), make([]float64, p)
		for k := range p {
			z := rapid.Float64Range(0, 3).Draw(t, "z")
			y[k] = c.Unit * math.Round(z/rapid.Float64Range(0.6, 1.4).Draw(t, "s")/c.Unit)
			v[k] = rapid.Float64Range(0.01, 1).Draw(t, "V")
			omega[k] = z + rapid.Float64Range(-0.5, 0.5).Draw(t, "error")
		}
		b := outputOf(c, y, omega, v)
		for k := range y {
			first, second := quotients(c, y, omega, v, k)
			second = min(0, second) // log Z_out of a rate z/s need not be concave where s is hardly known
			if math.Abs(first-b.G[k]) > 1e-3*(1+math.Abs(first)) || math.Abs(second-b.DG[k]) > 3e-3*(1+math.Abs(second)) {
				t.Fatalf("%s: g[%d] = %g, ∂g = %g, difference quotients %g and %g", c.Name(), k, b.G[k], b.DG[k], first, second)
			}
		}
		mean, variance := make([]float64, 1), make([]float64, 1)
		c.Prior.Posteriors(mean, variance, b.Stats)
		if sd := math.Sqrt(b.SVar[0]); math.Abs(mean[0]-b.S[0]) > 0.1*sd || math.Abs(math.Sqrt(variance[0])/sd-1) > 0.1 {
			t.Fatalf("%s: s = %.4f ± %.4f, by statistics %.4f ± %.4f (%v)", c.Name(), b.S[0], sd, mean[0], math.Sqrt(variance[0]), b.Stats)
		}
	})
}

// Readings that are no counts are named.
func TestCountsCheck(t *testing.T) {
	c := Counts{Unit: 0.1}
	if err := c.Check([]float64{0, 0.3, math.NaN(), 12.1}, 2); err != nil {
		t.Error(err)
	}
	for _, bad := range []float64{-0.1, 0.25} {
		if c.Check([]float64{0.1, bad}, 2) == nil {
			t.Errorf("%g is taken for a count", bad)
		}
	}
}

// The recursion for few counts and the trapezoidal rule give the same.
func TestPowerMomentsOfFewCounts(t *testing.T) {
	taken := 0
	for _, n := range []float64{1, 2, 3, 7, 20, 40} {
		for _, v := range []float64{1e-4, 0.3, 50} {
			for _, tau := range []float64{-6, -2, -0.5, 0, 0.3, 2, 15, 300} {
				root := math.Sqrt(v)
				mass, off, variance, ok := fewPowerMoments(n, root, tau*root)
				if !ok {
					continue
				}
				taken++
				wantMass, wantOff, wantVariance := powerMoments(n, v, tau*root)
				if math.Abs(mass-wantMass) > 1e-7*(1+math.Abs(wantMass)) || math.Abs(off/wantOff-1) > 1e-7 || math.Abs(variance/wantVariance-1) > 1e-6 {
					t.Errorf("n = %g, v = %g, t = %g sd: %.10g, %.10g and %.10g, expected %.10g, %.10g and %.10g", n, v, tau, mass, off, variance, wantMass, wantOff, wantVariance)
				}
			}
		}
	}
	if taken < 100 {
		t.Errorf("of 144 cases %d were by recursion", taken)
	}
}

func BenchmarkCounts(b *testing.B) {
	const sensors, p = 50, 8
	c := Counts{Prior: Uniform(0.8, 1.2), Unit: 1}
	block := NewBlock(c, sensors, p)
	for j := range block.Y {
		block.Y[j], block.Omega[j], block.V[j] = float64(j%7), 3, 0.2
	}
	for b.Loop() {
		c.Output(block)
	}
}
