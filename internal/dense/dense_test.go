package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func random(rng *rand.Rand, rows, columns int) Matrix {
	a := New(rows, columns)
	for i := range a.Data {
		a.Data[i] = rng.NormFloat64()
	}
	return a
}

func gonum(a Matrix) *mat.Dense {
	to := mat.NewDense(a.Rows, a.Columns, nil)
	to.Apply(func(i, j int, _ float64) float64 { return a.At(i, j) }, to)
	return to
}

func agree(t *testing.T, what string, got Matrix, want mat.Matrix, lower bool, within float64) {
	t.Helper()
	for i := range got.Rows {
		for j := range got.Columns {
			if lower && j > i {
				continue
			}
			if d := math.Abs(got.At(i, j) - want.At(i, j)); !(d <= within) {
				t.Fatalf("%s: entry %d, %d is %g, not %g", what, i, j, got.At(i, j), want.At(i, j))
			}
		}
	}
}

// TestProducts is for all ways to lie in memory, sizes with and without remainders, one thread and three.
func TestProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range [][3]int{{1, 1, 1}, {3, 5, 7}, {8, 24, 24}, {50, 30, 70}, {97, 250, 500}} {
		for turned := range 4 {
			a, b := random(rng, size[0], size[1]), random(rng, size[1], size[2])
			if turned&1 > 0 {
				a = random(rng, size[1], size[0]).T()
			}
			if turned&2 > 0 {
				b = random(rng, size[2], size[1]).T()
			}
			for _, which := range []Which{All, Lower} {
				c := random(rng, size[0], size[2])
				again := Of(append([]float64(nil), c.Data...), c.Rows, c.Columns)
				var want mat.Dense
				want.Mul(gonum(a), gonum(b))
				want.Sub(gonum(c), &want)
				AddProduct(c, -1, a, b, which, 1)
				AddProduct(again, -1, a, b, which, 3)
				agree(t, fmt.Sprint(size, turned, which), c, &want, which == Lower, 1e-11)
				agree(t, "three threads", again, gonum(c), false, 0)
			}
		}
	}
}

// TestTriangles is for all that is done with a factor, at sizes around those at which it divides.
func TestTriangles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, small, small + 1, 53, 130} {
		root := random(rng, n, n+5)
		a := New(n, n)
		AddProduct(a, 1, root, root.T(), Lower, 1)
		Mirror(a)
		l := Of(append([]float64(nil), a.Data...), n, n)
		for i := range n {
			for j := i + 1; j < n; j++ {
				l.Data[i*n+j] = math.NaN() // what is above is not read
			}
		}
		if !Factor(l, 1) {
			t.Fatal(n, "not positive definite")
		}
		var chol mat.Cholesky
		if !chol.Factorize(mat.NewSymDense(n, a.Data)) {
			t.Fatal(n)
		}
		var want mat.TriDense
		chol.LTo(&want)
		tol := 1e-13 * chol.Cond() * (1 + mat.Max(gonum(a)))
		agree(t, "factor", l, &want, true, tol)
		if d := math.Abs(LogDet(l) - chol.LogDet()); !(d < tol) {
			t.Errorf("n = %d: log-determinant off by %g", n, d)
		}
		inverted := Of(append([]float64(nil), l.Data...), n, n)
		clearAbove(l)
		b := random(rng, n, 37)
		x := Of(append([]float64(nil), b.Data...), n, 37)
		SolveLower(l, x, 1)
		AddProduct(b, -1, l, x, All, 1)
		agree(t, "L⁻¹b", b, mat.NewDense(n, 37, nil), false, tol)
		v, right := random(rng, 1, n).Data, mat.NewVecDense(n, nil)
		if err := chol.SolveVecTo(right, mat.NewVecDense(n, append([]float64(nil), v...))); err != nil {
			t.Fatal(err)
		}
		Solve(l, v)
		agree(t, "A⁻¹b", Of(v, n, 1), right, false, tol)
		var inverse mat.SymDense
		if err := chol.InverseTo(&inverse); err != nil {
			t.Fatal(err)
		}
		c := random(rng, n, n)
		InvertLower(inverted, 1)
		Square(c, inverted, 1)
		agree(t, "inverse", c, &inverse, true, tol*(1+mat.Norm(&inverse, 2)))
	}
	for name, a := range map[string][]float64{"singular": {1, 1, 1, 1}, "indefinite": {1, 2, 2, 1}, "NaN": {1, 0, math.NaN(), 1}, "infinite": {math.Inf(1), 0, 0, 1}} {
		if Factor(Of(a, 2, 2), 1) {
			t.Errorf("%s matrix accepted", name)
		}
	}
}

func BenchmarkProduct(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{200, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, c := random(rng, n, n), New(n, n)
			for b.Loop() {
				AddProduct(c, 1, x, x.T(), All, 1)
			}
			b.ReportMetric(float64(n)*float64(n)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMul/s")
		})
		b.Run(fmt.Sprint("factor", n), func(b *testing.B) {
			x, c, l := random(rng, n, n), New(n, n), New(n, n)
			AddProduct(c, 1, x, x.T(), All, 1)
			for b.Loop() {
				copy(l.Data, c.Data)
				Factor(l, 1)
			}
			b.ReportMetric(float64(n)*float64(n)*float64(n)/6*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMul/s")
		})
	}
}

// TestEmpty: a sensor or an entry less than one is no error.
func TestEmpty(t *testing.T) {
	l := New(0, 0)
	SolveRight(l, New(5, 0), 1)
	SolveLower(l, New(0, 5), 1)
	InvertLower(l, 1)
	Square(l, l, 1)
	if !Factor(l, 1) {
		t.Error("a matrix without rows is not positive definite")
	}
}
