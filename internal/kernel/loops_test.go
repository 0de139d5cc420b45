package kernel

import (
	"fmt"
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

			for _, radix := range []int{2, 3, 4, 5} {
				var roots []float64
				for k := range radix {
					sin, cos := math.Sincos(2 * math.Pi * float64(k) / float64(radix))
					roots = append(roots, cos, sin)
				}
				re, im, twiddles := drawn(rng, radix*run*groups), drawn(rng, radix*run*groups), drawn(rng, 2*(radix-1)*groups)
				a, b := append([]float64(nil), re...), append([]float64(nil), im...)
				Fourier(radix, re, im, groups, run, twiddles, roots)
				plainFourier(radix, a, b, groups, run, twiddles, roots)
				same(t, fmt.Sprintf("real parts of radix %d", radix), re, a)
				same(t, fmt.Sprintf("imaginary parts of radix %d", radix), im, b)
				if radix == 4 {
					plainFourier4(re, im, groups, run, twiddles)
					plainFourier(4, a, b, groups, run, twiddles, roots)
					same(t, "real parts of radix 4 in plain Go", re, a)
					same(t, "imaginary parts of radix 4 in plain Go", im, b)
				}
			}
			re, im, factors := drawn(rng, run*groups), drawn(rng, run*groups), drawn(rng, 2*run*groups)
			a, b := append([]float64(nil), re...), append([]float64(nil), im...)
			Turn(re, im, factors, 0.6, 0.8)
			plainTurn(a, b, factors, 0.6, 0.8)
			same(t, "turned real parts", re, a)
			same(t, "turned imaginary parts", im, b)
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
