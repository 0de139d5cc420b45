package channel

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// TestPhaseSpread: what a concentration makes of a sensor's readings is an integral over the phase, and the concentration of many is found.
func TestPhaseSpread(t *testing.T) {
	const r = 1.2
	prior := ComplexPrior{Lo: 0.5, Hi: 2}
	ratio := func(kappa float64, stats []float64) (float64, float64) {
		p := prior
		p.Concentration = kappa
		return p.PhaseSpread(stats, make([]bool, len(stats)/complexWidth))
	}
	one := ComplexStats(20, 20*r*cmplx.Rect(1, 0.7), 4)
	integral := func(kappa float64) float64 { // of the likelihood, by the prior
		const cells = 4000
		mass, norm := 0.0, 0.0
		for i := range cells {
			phi := 2 * math.Pi * float64(i) / cells
			weight := math.Exp(kappa * (math.Cos(phi) - 1))
			norm += weight
			mass += weight * math.Exp(2*20*r*r*math.Cos(phi-0.7))
		}
		return math.Log(mass / norm)
	}
	_, a := ratio(3, one)
	for _, kappa := range []float64{0.5, 20, 300} {
		_, b := ratio(kappa, one)
		if want := integral(3) - integral(kappa); math.Abs(b-a-want) > 1e-9*math.Abs(want) {
			t.Errorf("κ = %g: likelier by %.12g, expected %.12g", kappa, b-a, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var all []float64
	for range 300 {
		phi := rng.NormFloat64() / math.Sqrt(50)
		all = append(all, ComplexStats(1e4, complex(1e4*r, 0)*cmplx.Rect(1, phi), 4)...)
	}
	for _, c := range []struct {
		fixed        float64
		contradicted bool
	}{{50, false}, {45, false}, {25, true}, {100, true}, {math.Inf(1), true}} {
		kappa, more := ratio(c.fixed, all)
		if math.Abs(kappa/50-1) > 0.25 || (more > 10) != c.contradicted || more < -1e-3 {
			t.Errorf("given %g: κ = %.3g, log-likelihood ratio %.3g", c.fixed, kappa, more)
		}
	}
	if kappa, more := ratio(0, all); kappa != 0 || more != 0 {
		t.Errorf("free phases: κ = %g, log-likelihood ratio %g", kappa, more)
	}
}
