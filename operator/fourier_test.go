package operator

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"
)

// Rows of the Fourier transform are the table that their definition says, in all that a sweep does: of the complex matrix,
// of its real form, and of its parts one by one; and the backward product is the adjoint of the forward one.
func TestFourierIsItsTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 0))
	for _, n := range []int{1, 2, 5, 12, 16, 67} {
		for _, mixed := range []bool{false, true} {
			r := Rows{N: n, Rows: rng.Perm(n)[:n/2+1]}
			at, sign := make([]int, n), make([]float64, n)
			for i := range at {
				at[i], sign[i] = i, 1
			}
			if mixed {
				for i := range sign {
					sign[i] = float64(1 - 2*rng.IntN(2))
				}
				at = rng.Perm(n)
				r.Permutation, r.Signs = at, sign
			}
			values := make([]complex128, 0, len(r.Rows)*n)
			for _, row := range r.Rows {
				for i := range n {
					values = append(values, complex(sign[i]/math.Sqrt(float64(n)), 0)*cmplx.Rect(1, -2*math.Pi*float64(row*at[i]%n)/float64(n)))
				}
			}
			w, err := NewFourier(r)
			if err != nil {
				t.Fatal(err)
			}
			table, err := NewComplex(len(r.Rows), n, values)
			if err != nil {
				t.Fatal(err)
			}
			if kappa, ok := Orthogonal(RealOf(w)); !ok || kappa != 1 || math.Abs(w.MeanSquare()-table.MeanSquare()) > 1e-14 {
				t.Errorf("n = %d: κ = %g, %v, mean square %g", n, kappa, ok, w.MeanSquare())
			}
			read, seen := RowReader(w, float64(len(values))), make([]complex128, 0, len(values))
			re, im := make([]float64, n), make([]float64, n)
			for mu := range r.Rows {
				if err := read(re, im, mu); err != nil {
					t.Fatal(err)
				}
				for i := range n {
					seen = append(seen, complex(re[i], im[i]))
				}
			}
			for i, v := range values {
				if cmplx.Abs(seen[i]-v) > 1e-14 {
					t.Fatalf("n = %d, entry %d is read as %g, expected %g", n, i, seen[i], v)
				}
			}
			if RowReader(w, float64(len(values)-1)) != nil {
				t.Error("more entries are computed than asked")
			}
			for _, pair := range []struct {
				what string
				a, b Operator
				p, q int
			}{
				{"complex", w, table, 4, 4},
				{"complex, linear", w, table, 2, 0},
				{"real", RealOf(w), RealOf(table), 3, 2},
				{"parts", w.rows, table.rows, 3, 1},
				{"parts", w.rows, table.rows, 2, 3},
			} {
				compareSweeps(t, fmt.Sprintf("n = %d, %s", n, pair.what), pair.a, pair.b, pair.p, pair.q, rng)
			}
		}
	}
	if _, err := NewFourier(Rows{N: 4, Rows: []int{1, 4}}); err == nil {
		t.Error("a row out of range was taken")
	}
}

func compareSweeps(t *testing.T, what string, a, b Operator, p, q int, rng *rand.Rand) {
	t.Helper()
	m, n := b.Dims()
	normals := func(count int) []float64 {
		v := make([]float64, count)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return v
	}
	x, c, g, d := normals(p*n), normals(q*n), normals(m*p), normals(m*q)
	run := func(w Operator) [4][]float64 {
		z, v, r, h := make([]float64, m*p), make([]float64, m*q), make([]float64, p*n), make([]float64, q*n)
		sweep, err := w.NewSweep(p, q, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := sweep.Run(r, h, x, c, func(first int, zs, vs, gs, ds []float64) {
			copy(z[first*p:], zs)
			copy(v[first*q:], vs)
			copy(gs, g[first*p:])
			copy(ds, d[first*q:])
		}); err != nil {
			t.Fatal(err)
		}
		return [4][]float64{z, v, r, h}
	}
	got, want := run(a), run(b)
	for which, list := range want {
		for i, v := range list {
			if math.Abs(got[which][i]-v) > 1e-12*math.Sqrt(float64(n)) {
				t.Fatalf("%s: entry %d of %s is %g, want %g", what, i, []string{"z", "v", "r", "h"}[which], got[which][i], v)
			}
		}
	}
	if halves, err := NewLinear(a, p, 1); err != nil {
		t.Error(err)
	} else { // the products one by one
		z, r := make([]float64, m*p), make([]float64, p*n)
		if err := errors.Join(halves.Forward(z, x), halves.Backward(r, g)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(z, got[0]) || !slices.Equal(r, got[2]) {
			t.Errorf("%s: other products one by one", what)
		}
	}
	forward, backward := 0.0, 0.0
	for j, z := range got[0] {
		forward += z * g[j]
	}
	for i, r := range got[2] {
		backward += r * x[i]
	}
	if math.Abs(forward-backward) > 1e-12*float64(m*p) {
		t.Errorf("%s: gᵀWx is %g one way and %g the other", what, forward, backward)
	}
}

// Work counts what is not zero of a sparse matrix, and N log₂N of a transform, complex ones as real ones.
func TestWork(t *testing.T) {
	rows := Rows{N: 16, Rows: []int{1, 2, 5}}
	hadamard, err := NewHadamard(rows)
	if err != nil {
		t.Fatal(err)
	}
	fourier, err := NewFourier(rows)
	if err != nil {
		t.Fatal(err)
	}
	dense, err := NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6})
	if err != nil {
		t.Fatal(err)
	}
	sparse, err := NewSparse(CSR{M: 2, N: 3, Start: []int64{0, 1, 2}, Columns: []int32{0, 2}, Values: []float64{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for want, w := range map[float64]Operator{16 * 4: hadamard, 16 * 2: fourier, 6: dense, 2: sparse} {
		if got := Work(w); got != want {
			t.Errorf("%v: %g multiplications, expected %g", Describe(w), got, want)
		}
	}
}
