package cholesky

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func TestAgreesWithGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 12; n++ {
		root := mat.NewDense(n, n+2, nil)
		root.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, root)
		var a mat.SymDense
		a.SymOuterK(1, root)
		var chol mat.Cholesky
		if !chol.Factorize(&a) {
			t.Fatal("gonum cannot factorise the test's matrix")
		}
		b := make([]float64, n)
		for i := range b {
			b[i] = rng.NormFloat64()
		}
		var solved mat.VecDense
		var inverse mat.SymDense
		if err := chol.SolveVecTo(&solved, mat.NewVecDense(n, b)); err != nil {
			t.Fatal(err)
		}
		if err := chol.InverseTo(&inverse); err != nil {
			t.Fatal(err)
		}
		l, inv := make([]float64, n*n), make([]float64, n*n)
		for i := range n {
			for j := range i + 1 {
				l[i*n+j] = a.At(i, j)
			}
			for j := i + 1; j < n; j++ {
				l[i*n+j] = math.NaN() // the upper triangle is not read
			}
		}
		if !Factor(l, n) {
			t.Fatalf("n = %d: not positive definite", n)
		}
		tol := 1e-13 * chol.Cond()
		if d := math.Abs(LogDet(l, n) - chol.LogDet()); !(d <= tol) {
			t.Errorf("n = %d: log-determinant off by %g", n, d)
		}
		Solve(l, b)
		Inverse(inv, l, n)
		scale := mat.Norm(&inverse, 2)
		for i := range n {
			if d := math.Abs(b[i] - solved.AtVec(i)); !(d <= tol*mat.Norm(&solved, 2)) {
				t.Errorf("n = %d: solution %d off by %g", n, i, d)
			}
			for j := range n {
				if d := math.Abs(inv[i*n+j] - inverse.At(i, j)); !(d <= tol*scale) || inv[i*n+j] != inv[j*n+i] {
					t.Errorf("n = %d: inverse (%d, %d) off by %g", n, i, j, d)
				}
			}
		}
	}
}

func TestFactorRefuses(t *testing.T) {
	for name, a := range map[string][]float64{
		"singular":   {1, 1, 1, 1},
		"indefinite": {1, 2, 2, 1},
		"NaN":        {1, 0, math.NaN(), 1},
		"infinite":   {math.Inf(1), 0, 0, 1},
	} {
		if Factor(a, 2) {
			t.Errorf("%s matrix accepted", name)
		}
	}
}
