package transform

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/kernel"
	"gonum.org/v1/gonum/dsp/fourier"
)

func normals(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// Every length has steps of other radices, tiles and tables; several lanes.
func TestHadamardIsItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 4, 8, 16, 64, 128, 512, 2048, 1 << 14} {
		for _, p := range []int{1, 2, 3, 4, 5, 8, 12} {
			x := normals(rng, n*p)
			got := append([]float64(nil), x...)
			Hadamard(got, n, p, 2, Along{})
			along := make([]float64, n*p) // as it is loaded and reported
			Hadamard(make([]float64, n*p), n, p, 2, Along{
				Load: func(values []float64, first int) { copy(values, x[first*p:]) },
				Done: func(values []float64, first int) { copy(along[first*p:], values) },
			})
			if !slices.Equal(along, got) {
				t.Fatalf("n = %d, p = %d: other values along the way", n, p)
			}
			for _, r := range []int{0, 1 % n, n / 3, n / 2, n - 1} {
				for k := range p {
					want := 0.0
					for i := range n {
						want += x[i*p+k] * float64(1-2*(bits.OnesCount(uint(r&i))%2))
					}
					if math.Abs(got[r*p+k]-want) > 1e-13*float64(n) {
						t.Fatalf("n = %d, p = %d: entry %d of signal %d is %g, want %g", n, p, r, k, got[r*p+k], want)
					}
				}
			}
		}
	}
}

// A transform beyond the cache, applied twice, is n times the signal; and has the same
// bits for any number of threads.
func TestLongHadamard(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, shape := range [][2]int{{1 << 17, 1}, {1 << 15, 3}, {1 << 14, 4}, {1 << 15, 12}} {
		n, p := shape[0], shape[1]
		x := normals(rng, n*p)
		once, twice := append([]float64(nil), x...), append([]float64(nil), x...)
		Hadamard(once, n, p, 1, Along{})
		Hadamard(twice, n, p, 2, Along{})
		for i, v := range once {
			if v != twice[i] {
				t.Fatalf("n = %d, p = %d: %g on one thread, %g on two", n, p, v, twice[i])
			}
		}
		Hadamard(twice, n, p, 2, Along{})
		for i, v := range twice {
			if math.Abs(v/float64(n)-x[i]) > 1e-14 {
				t.Fatalf("n = %d, p = %d: value %d is %g after two transforms, want %g", n, p, i, v/float64(n), x[i])
			}
		}
	}
}

func of(x []complex128, n, width int) Load {
	return func(j int, re, im []float64) {
		for i := range re {
			v := x[i%width*n+j+i/width]
			re[i], im[i] = real(v), imag(v)
		}
	}
}

// gonum's transform is another implementation of the same definition.
func TestFourierIsGonums(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, n := range []int{
		1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 30, 49, 60, 61, 64, 67, 97, 100, 101, 128, 134, 210, 784, 1000, 1024, 1331,
		1 << 13, 3 << 12, 1009, 30030,
	} {
		for _, width := range []int{1, 2, 3, 4, 7} {
			x := make([]complex128, n*width)
			for i := range x {
				x[i] = complex(rng.NormFloat64(), rng.NormFloat64())
			}
			re, im := make([]float64, n*width), make([]float64, n*width)
			NewFourier(n).Into(re, im, width, 2, of(x, n, width))
			for k := range width {
				want := fourier.NewCmplxFFT(n).Coefficients(nil, x[k*n:(k+1)*n])
				worst, size := 0.0, math.Sqrt(float64(n))
				for j, w := range want {
					worst = max(worst, cmplx.Abs(w-complex(re[width*j+k], im[width*j+k])))
				}
				// Against compensated sums of the definition ours is off by 1.5e-15 at most, and
				// gonum's by 2.5e-15, but 1.7e-14 at n = 10007, where it sums as we do not.
				limit := 5e-15
				if factors := factorise(n); factors[len(factors)-1] > kernel.MostRadix {
					limit = 2e-14
				}
				if worst > limit*size {
					t.Errorf("n = %d, %d signals: signal %d is off by %.2g of its size", n, width, k, worst/size)
				}
			}
		}
	}
}

func FuzzFourier(f *testing.F) {
	f.Add(uint16(12), uint8(2), uint64(1))
	f.Add(uint16(509), uint8(1), uint64(2))
	f.Fuzz(func(t *testing.T, length uint16, signals uint8, seed uint64) {
		n, width := int(length%3000)+1, int(signals%6)+1
		rng := rand.New(rand.NewPCG(seed, 1))
		x := make([]complex128, n*width)
		for i := range x {
			x[i] = complex(rng.NormFloat64(), rng.NormFloat64())
		}
		one, two := make([]float64, 2*n*width), make([]float64, 2*n*width)
		plan := NewFourier(n)
		plan.Into(one[:n*width], one[n*width:], width, 1, of(x, n, width))
		plan.Into(two[:n*width], two[n*width:], width, 2, of(x, n, width))
		reference := fourier.NewCmplxFFT(n)
		for k := range width {
			for j, w := range reference.Coefficients(nil, x[k*n:(k+1)*n]) {
				re, im := width*j+k, width*(n+j)+k
				if one[re] != two[re] || one[im] != two[im] {
					t.Fatalf("n = %d: other bits on two threads", n)
				}
				if cmplx.Abs(w-complex(one[re], one[im])) > 1e-13*math.Sqrt(float64(n)) {
					t.Fatalf("n = %d, %d signals: value %d of signal %d is off", n, width, j, k)
				}
			}
		}
	})
}

func TestRootsAreExact(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 8, 12, 1000, 1 << 20, 999983} {
		table := newRoots(n)
		for i := range 1000 {
			k := i * (n/1000 + 1) % n
			cos, sin := Root(k, n)
			if math.Abs(math.Hypot(cos, sin)-1) > 3e-16 {
				t.Errorf("root %d of %d has size %g", k, n, math.Hypot(cos, sin))
			}
			c, s := table.at(k)
			wantSin, wantCos := math.Sincos(2 * math.Pi * float64(k) / float64(n))
			if math.Abs(cos-wantCos)+math.Abs(sin-wantSin) > 2e-15 || math.Abs(c-cos)+math.Abs(s-sin) > 1e-15 {
				t.Errorf("root %d of %d: %g, %g and %g, %g", k, n, cos, sin, c, s)
			}
		}
	}
}

func BenchmarkHadamard(b *testing.B) {
	for _, p := range []int{1, 4, 10} {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			n := 1 << 20
			x := normals(rand.New(rand.NewPCG(4, 1)), n*p)
			for b.Loop() {
				Hadamard(x, n, p, 1, Along{})
				for i := range x {
					x[i] *= 1.0 / 1024
				}
			}
		})
	}
}

func BenchmarkFourier(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 16, 1 << 20, 1e6, 729 * 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			x := normals(rand.New(rand.NewPCG(4, 1)), 2*n)
			re, im := make([]float64, n), make([]float64, n)
			plan := NewFourier(n)
			for b.Loop() {
				plan.Into(re, im, 1, 1, func(j int, re, im []float64) {
					copy(re, x[j:])
					copy(im, x[n+j:])
				})
			}
		})
	}
}
