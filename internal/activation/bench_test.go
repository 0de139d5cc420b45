package activation

import (
	"math/rand/v2"
	"testing"
)

func BenchmarkFactor(b *testing.B) {
	for _, f := range []Function{Identity, ReLU, Leaky(leakySlope), HardTanh, Sigmoid} {
		b.Run(f.String(), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				u := rng.NormFloat64()
				f.Factor(f.Of(u)+0.01*rng.NormFloat64(), 1e4, u+0.3*rng.NormFloat64(), 0.1)
			}
		})
	}
}
