package joint

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
)

// A complex number is two values beside each other, its parts. Multiplication with i is then J, (re, im) → (-im, re), and a Hermitian matrix is twice
// the symmetric one that commutes with J: what is complex about rows is that their matrices do. Everything else about them is real.

// Circular makes a symmetric P×P matrix, of which the upper triangle is read, one that commutes with multiplication by i: ½(a + J a Jᵀ). Of g gᵀ that is ½ g g*.
func Circular(a []float64, p int) {
	symmetric(a, p)
	for k := 0; k < p; k += 2 {
		for l := 0; l < p; l += 2 {
			re := 0.5 * (a[k*p+l] + a[(k+1)*p+l+1])
			im := 0.5 * (a[(k+1)*p+l] - a[k*p+l+1])
			a[k*p+l], a[(k+1)*p+l+1] = re, re
			a[(k+1)*p+l], a[k*p+l+1] = im, -im
		}
	}
}

// pairUp makes the eigenvectors of a matrix that commutes with J pairs u, Ju, so that numbers that are turned by them are complex ones. Each eigenvalue is there
// twice, with eigenvectors that are any two orthogonal ones: of those that have their turn those are taken that are not yet spanned.
func (s *Shape) pairUp() {
	p := s.P
	least := 0.5 / math.Sqrt(float64(p)) // of p orthogonal vectors one has at least twice as much outside any smaller space
	values, pairs := make([]float64, 0, p), make([]float64, 0, p*p)
	for j := 0; j < p && len(values) < p; j++ {
		u := make([]float64, p)
		blas64.Copy(blas64.Vector{N: p, Data: s.Vectors[j:], Inc: p}, column(u))
		for range 2 { // once more for what rounding leaves
			for from := 0; from < len(pairs); from += p {
				v := column(pairs[from : from+p])
				blas64.Axpy(-blas64.Dot(v, column(u)), v, column(u))
			}
			size := blas64.Nrm2(column(u))
			if size < least {
				u = nil
				break
			}
			blas64.Scal(1/size, column(u))
		}
		if u == nil {
			continue
		}
		pairs = append(pairs, u...)
		for k := 0; k < p; k += 2 {
			pairs = append(pairs, -u[k+1], u[k])
		}
		values = append(values, s.Values[j], s.Values[j])
	}
	copy(s.Values, values)
	for j := range values {
		blas64.Copy(column(pairs[j*p:(j+1)*p]), blas64.Vector{N: p, Data: s.Vectors[j:], Inc: p})
	}
}

// meanOfPairs makes both parts of each of P×n values, columns of n, their mean.
func meanOfPairs(v []float64, p, stride, n int) {
	for k := 0; k < p; k += 2 {
		re, im := v[k*stride:k*stride+n], v[(k+1)*stride:(k+1)*stride+n]
		for i, x := range re {
			re[i] = 0.5 * (x + im[i])
			im[i] = re[i]
		}
	}
}
