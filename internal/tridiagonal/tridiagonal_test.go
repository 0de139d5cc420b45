package tridiagonal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// symmetric is a random n×n matrix of so low a rank.
func symmetric(n, rank int) []float64 {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(rank)))
	b := mat.NewDense(n, max(rank, 1), nil)
	for i := range n {
		for j := range rank {
			b.Set(i, j, rng.NormFloat64())
		}
	}
	var a mat.Dense
	a.Mul(b, b.T())
	return a.RawMatrix().Data
}

func TestReduce(t *testing.T) {
	for _, c := range []struct{ n, rank int }{{1, 1}, {2, 2}, {3, 1}, {31, 31}, {32, 20}, {33, 33}, {100, 60}, {150, 0}, {330, 300}} {
		a := mat.NewDense(c.n, c.n, symmetric(c.n, c.rank))
		f, err := Reduce(t.Context(), c.n, mat.DenseCopyOf(a).RawMatrix().Data, 2)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Reduce(t.Context(), c.n, mat.DenseCopyOf(a).RawMatrix().Data, 1); !slices.Equal(again.Rotation, f.Rotation) || !slices.Equal(again.Off, f.Off) {
			t.Errorf("n = %d: another number of threads gives other bits", c.n)
		}
		q, tri := mat.NewDense(c.n, c.n, f.Rotation), mat.NewDense(c.n, c.n, nil)
		for i, d := range f.Diagonal {
			tri.Set(i, i, d)
			if i > 0 {
				tri.Set(i, i-1, f.Off[i-1])
				tri.Set(i-1, i, f.Off[i-1])
			}
		}
		var back, one mat.Dense
		back.Product(q, tri, q.T())
		back.Sub(&back, a)
		one.Mul(q, q.T())
		for i := range c.n {
			one.Set(i, i, one.At(i, i)-1)
		}
		size := 1 + mat.Norm(a, 2)
		if e, o := mat.Norm(&back, 2)/size, mat.Norm(&one, 2); e > 1e-14*math.Sqrt(float64(c.n)) || o > 1e-13*math.Sqrt(float64(c.n)) {
			t.Errorf("n = %d, rank %d: QTQᵀ is off by %.2g, QQᵀ by %.2g", c.n, c.rank, e, o)
		}
		var eigen mat.EigenSym
		eigen.Factorize(mat.NewSymDense(c.n, a.RawMatrix().Data), false)
		for i, v := range f.Eigenvalues() {
			if want := eigen.Values(nil)[i]; math.Abs(v-want) > 1e-13*size {
				t.Errorf("n = %d: eigenvalue %d is %g, want %g", c.n, i, v, want)
			}
		}
	}
}

func TestReduceCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Reduce(ctx, 100, symmetric(100, 100), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkReduce(b *testing.B) {
	for _, n := range []int{300, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := symmetric(n, n)
			for b.Loop() {
				if _, err := Reduce(b.Context(), n, slices.Clone(a), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
