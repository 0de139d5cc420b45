package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/internal/simd"
)

func drawn(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// same compares what two instruction sets computed.
func same(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i, v := range got {
		if !(math.Abs(v-want[i]) <= 1e-13*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: value %d is %g, in plain Go %g", what, i, v, want[i])
		}
	}
}

// The loops of transforms and sparse rows agree with plain Go.
func TestLoopsAgree(t *testing.T) {
	if active == simd.Go {
		t.Skip("there is plain Go only")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, run := range []int{4, 8, 20, 64} {
		for _, groups := range []int{1, 2, 7} {
			x := drawn(rng, 4*run*groups)
			y := append([]float64(nil), x...)
			Butterflies2(x, run)
			plainButterflies2(y, run)
			same(t, "butterflies of two", x, y)
			Butterflies4(x, run)
			plainButterflies4(y, run)
			same(t, "butterflies of four", x, y)

			re, im, twiddles := drawn(rng, 4*run*groups), drawn(rng, 4*run*groups), drawn(rng, 6*groups)
			a, b := append([]float64(nil), re...), append([]float64(nil), im...)
			Fourier4(re, im, groups, run, twiddles)
			plainFourier4(a, b, groups, run, twiddles)
			same(t, "real parts", re, a)
			same(t, "imaginary parts", im, b)
		}
	}
	for _, count := range []int{0, 1, 3, 4, 5, 11, 40} {
		sparseLoops[float64](t, rng, count)
		sparseLoops[float32](t, rng, count)
	}
}

func sparseLoops[T Entry](t *testing.T, rng *rand.Rand, count int) {
	t.Helper()
	w, columns := make([]T, count), make([]int32, count)
	for j, column := range rng.Perm(50)[:count] {
		w[j], columns[j] = T(rng.NormFloat64()), int32(column)
	}
	x := drawn(rng, 50*2*Lanes)
	var z, wantZ [Lanes]float64
	SparseDot(w, columns, x, &z)
	plainSparseDot(w, columns, x, &wantZ)
	same(t, "product with a sparse row", z[:], wantZ[:])
	var both, wantBoth [2 * Lanes]float64
	SparseDotBoth(w, columns, x, &both)
	plainSparseDotBoth(w, columns, x, &wantBoth)
	same(t, "products with a sparse row", both[:], wantBoth[:])
	copy(both[:], drawn(rng, 2*Lanes))
	copy(z[:], both[:])
	y := append([]float64(nil), x...)
	SparseAxpy(w, columns, x, &z)
	plainSparseAxpy(w, columns, y, &z)
	same(t, "sum with a sparse row", x, y)
	SparseAxpyBoth(w, columns, x, &both)
	plainSparseAxpyBoth(w, columns, y, &both)
	same(t, "sums with a sparse row", x, y)
}
