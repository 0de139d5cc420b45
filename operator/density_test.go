package operator_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

// TestDensity: traces are those of the eigenvalues; exactly where there are as many probes
// as rows, and within their scatter with fewer.
func TestDensity(t *testing.T) {
	for _, c := range []struct{ m, n, left int }{{30, 45, 0}, {30, 45, 7}, {45, 30, 0}, {30, 30, 1}, {1, 5, 0}} {
		w := randomDense(t, c.m, c.n, (*rand.Rand).NormFloat64)
		scale, a := make([]float64, c.m), mat.NewDense(c.m, c.n, nil)
		for mu := range scale {
			if mu >= c.left {
				scale[mu] = 1 + float64(mu%3)
			}
			for i := range c.n {
				a.Set(mu, i, scale[mu]*w.At(mu, i))
			}
		}
		squares, err := operator.RowSquares(w, 1)
		if err != nil {
			t.Fatal(err)
		}
		var svd mat.SVD
		svd.Factorize(a, mat.SVDNone)
		values := svd.Values(nil)[:min(c.m-c.left, c.n)]
		for _, op := range []operator.Operator{w, hidden{w}} {
			for _, probes := range [][]operator.Probes{{{1000, 120}}, {{20, 120}}, {{28, 3}, {24, 8}, {20, 120}}} {
				d, err := operator.DensityOf(t.Context(), op, squares, scale, probes, 2)
				if err != nil {
					t.Fatal(err)
				}
				if d.Dim != len(values) || len(d.Singular()) != d.Dim {
					t.Errorf("%v: dimension %d, %d singular values, want %d", c, d.Dim, len(d.Singular()), len(values))
				}
				for _, theta := range []float64{1e-3, 1, 100, 1e4} {
					got, want, square := 0.0, 0.0, 0.0
					for i, v := range d.Eigenvalues {
						got += d.Weights[i] * theta / (theta + v)
					}
					for _, s := range values {
						f := theta / (theta + s*s)
						want += f
						square += f * f
					}
					f := func(v float64) float64 { return theta / (theta + v) }
					within := 1e-9*want + 6*d.Error(f)
					if exact := probes[0].Count >= d.Dim; exact != (d.Error(f) == 0) || d.Error(f) > 4*math.Sqrt(2*square/float64(probes[len(probes)-1].Count)) {
						t.Errorf("%v, %v, θ = %g: standard error %g", c, probes, theta, d.Error(f))
					}
					if math.Abs(got-want) > within {
						t.Errorf("%v, %v, θ = %g: trace %.12g, want %.12g", c, probes, theta, got, want)
					}
				}
				if probes[0].Count == 1000 {
					for i, s := range d.Singular() {
						if want := values[len(values)-1-i]; math.Abs(s-want) > 1e-8*values[0] {
							t.Errorf("%v: singular value %d is %.12g, want %.12g", c, i, s, want)
						}
					}
				}
			}
		}
	}
}

func TestDensityCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := randomDense(t, 20, 30, (*rand.Rand).NormFloat64)
	if _, err := operator.DensityOf(ctx, w, nil, []float64{1, 19: 1}, []operator.Probes{{8, 10}}, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	d, err := operator.DensityOf(t.Context(), w, nil, make([]float64, 20), []operator.Probes{{8, 10}}, 1)
	if err != nil || d.Dim != 0 || len(d.Weights) != 0 {
		t.Errorf("without rows: %v, error %v", d, err)
	}
}
