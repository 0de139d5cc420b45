package baseline_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/internal/baseline"
)

// sparseProblem is z = Wx with a few entries in each of 3 signals, and a missing reading.
func sparseProblem(complexOnes, positive bool) (w, x, z baseline.Parts) {
	r := rand.New(rand.NewPCG(1, 2))
	entry := func() complex128 {
		if complexOnes {
			return complex(r.NormFloat64(), r.NormFloat64())
		}
		return complex(r.NormFloat64(), 0)
	}
	w = baseline.NewParts(40, 60, complexOnes).Apply(func(int, int, complex128) complex128 { return entry() })
	x = baseline.NewParts(60, 3, complexOnes)
	for k := range 3 {
		for range 4 {
			v := entry()
			if positive {
				v = complex(cmplx.Abs(v), 0)
			}
			x.Set(r.IntN(60), k, v)
		}
	}
	z = w.Mul(x)
	z.Set(5, 1, complex(math.NaN(), 0))
	return w, x, z
}

func farthest(a, b baseline.Parts) float64 {
	worst := 0.0
	a.Clone().Apply(func(i, k int, v complex128) complex128 { worst = max(worst, cmplx.Abs(v-b.At(i, k))); return v })
	return worst
}

// TestPursuit: without noise the signals come out exactly.
func TestPursuit(t *testing.T) {
	for _, complexOnes := range []bool{false, true} {
		w, x, z := sparseProblem(complexOnes, false)
		got, err := baseline.Pursuit(context.Background(), w, z, 1e-20)
		if off := farthest(got, x); err != nil || off > 1e-8 {
			t.Errorf("complex %v: off by %g: %v", complexOnes, off, err)
		}
	}
}

// TestLasso: ℓ1 comes near to the signals, from both signs and from none below zero, and what is below zero is never found where it must not be.
func TestLasso(t *testing.T) {
	for _, c := range []struct{ complex, positive bool }{{false, false}, {false, true}, {true, false}} {
		w, x, z := sparseProblem(c.complex, c.positive)
		got, err := baseline.Lasso(context.Background(), w, z, 1e-6, c.positive)
		if off := farthest(got, x); err != nil || off > 0.02 {
			t.Errorf("%+v: off by %g: %v", c, off, err)
		}
		if c.positive {
			got.Apply(func(_, _ int, v complex128) complex128 {
				if real(v) < 0 {
					t.Errorf("%g is below zero", real(v))
				}
				return v
			})
		}
	}
}

// TestAlternatingLasso: it brings unknown gains that differ by a tenth nearer to one another.
func TestAlternatingLasso(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	w := baseline.NewParts(60, 60, false).Apply(func(int, int, complex128) complex128 { return complex(r.NormFloat64(), 0) })
	x := baseline.NewParts(60, 20, false)
	for k := range 20 {
		for range 4 {
			x.Set(r.IntN(60), k, complex(r.NormFloat64(), 0))
		}
	}
	s := make([]float64, 60)
	before := 0.0
	y := w.Mul(x)
	for mu := range s {
		s[mu] = 0.9 + 0.2*r.Float64()
		before += (s[mu] - 1) * (s[mu] - 1)
	}
	y.Apply(func(mu, _ int, v complex128) complex128 { return v / complex(s[mu], 0) })
	_, found, err := baseline.AlternatingLasso(context.Background(), w, y)
	if err != nil {
		t.Fatal(err)
	}
	after := 0.0
	for mu, v := range found {
		after += (real(v) - s[mu]) * (real(v) - s[mu])
	}
	if after > 0.05*before {
		t.Errorf("gains are off by %g (rms), and by %g where they are ignored", math.Sqrt(after/60), math.Sqrt(before/60))
	}
}
