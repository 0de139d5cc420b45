package search

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSelectFindsWhatSortingDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for n := 1; n < 40; n++ {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(rng.IntN(n)) // with ties
		}
		sorted := slices.Sorted(slices.Values(v))
		for k := range n {
			if got := Select(slices.Clone(v), k); got != sorted[k] {
				t.Fatalf("value %d of %v is %g, want %g", k, v, got, sorted[k])
			}
		}
	}
}
