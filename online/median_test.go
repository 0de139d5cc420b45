package online

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 40; n++ {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(rng.IntN(20)) // with ties
		}
		sorted := slices.Sorted(slices.Values(v))
		if got, want := median(v), 0.5*(sorted[(n-1)/2]+sorted[n/2]); got != want {
			t.Errorf("of %v: %g, want %g", sorted, got, want)
		}
	}
}
