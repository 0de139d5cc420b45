package channel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// With covariances that are diagonal the correlated outputs are those of a block; with two signals turned by a unitary matrix, they turn.
func TestComplexCorrelatedOutputs(t *testing.T) {
	const p = 6
	rng := rand.New(rand.NewPCG(1, 2))
	for _, known := range []float64{0, 20, math.Inf(1)} {
		c := Channel(ComplexGain{Prior: ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: known}, NoiseVar: 0.1})
		for _, faulty := range []bool{false, true} {
			if faulty {
				c = Faulty{Working: c, Rate: 0.3, Var: 2}
			}
			b, s := NewBlock(c, 1, p), NewSensor(c, p)
			for k := range p {
				b.Y[k], b.Omega[k] = rng.NormFloat64(), rng.NormFloat64()
				b.V[k] = 0.3 + 0.1*float64(k/2)
				s.V[k*p+k] = b.V[k]
			}
			b.Y[5] = math.NaN()
			copy(s.Y, b.Y)
			copy(s.Omega, b.Omega)
			c.Output(b)
			c.(Correlated).OutputCorrelated(s)
			near := func(what string, got, want float64) {
				t.Helper()
				if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
					t.Errorf("κ = %g, faulty %v: %s %.12g, expected %.12g", known, faulty, what, got, want)
				}
			}
			near("|s|", s.S, b.S[0])
			near("phase", s.Phase, b.Phase[0])
			near("variance", s.SVar, b.SVar[0])
			near("log Z", s.LogZ, b.LogZ[0])
			near("π", s.Broken, b.Broken[0])
			for k := range p {
				near("g", s.G[k], b.G[k])
				near("∂g", s.DG[k*p+k]+s.DG[(k^1)*p+k^1], b.DG[k]+b.DG[k^1])
			}
		}
	}
}
