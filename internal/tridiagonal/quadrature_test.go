package tridiagonal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func TestQuadrature(t *testing.T) {
	for _, n := range []int{1, 2, 3, 20, 100} {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		d, e, tri := make([]float64, n), make([]float64, n-1), mat.NewSymDense(n, nil)
		for i := range d {
			d[i] = rng.NormFloat64()
			tri.SetSym(i, i, d[i])
			if i > 0 && i != n/2 { // two blocks
				e[i-1] = rng.NormFloat64()
				tri.SetSym(i, i-1, e[i-1])
			}
		}
		var eigen mat.EigenSym
		eigen.Factorize(tri, true)
		var vectors mat.Dense
		eigen.VectorsTo(&vectors)
		nodes, weights := Quadrature(d, e)
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			if nodes[a] < nodes[b] {
				return -1
			}
			return 1
		})
		for i, at := range order {
			if want := eigen.Values(nil)[i]; math.Abs(nodes[at]-want) > 1e-13*float64(n) {
				t.Errorf("n = %d: node %d is %g, want %g", n, i, nodes[at], want)
			}
			if want := vectors.At(0, i) * vectors.At(0, i); math.Abs(weights[at]-want) > 1e-11 {
				t.Errorf("n = %d: weight %d is %g, want %g", n, i, weights[at], want)
			}
		}
	}
}
