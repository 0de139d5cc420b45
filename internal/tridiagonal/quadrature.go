package tridiagonal

import "math"

// mostTurns bounds the steps for one eigenvalue, of which it takes two.
const mostTurns = 50

// Quadrature returns the eigenvalues of the symmetric tridiagonal matrix T, in no order, and the
// squares of the first components of its eigenvectors, so that e₁ᵀf(T)e₁ = Σ weight f(node). It overwrites
// both arrays, of n and n-1 numbers (G. H. Golub, J. H. Welsch, "Calculation of Gauss quadrature rules",
// 1969, by implicit QL steps).
func Quadrature(diagonal, off []float64) (nodes, weights []float64) {
	n := len(diagonal)
	off = append(off, 0)
	first := make([]float64, n)
	if n > 0 {
		first[0] = 1
	}
	for l := range n {
		for range mostTurns {
			m := l
			for m < n-1 && math.Abs(off[m]) > 0x1p-53*(math.Abs(diagonal[m])+math.Abs(diagonal[m+1])) {
				m++
			}
			if m == l {
				break
			}
			turn(diagonal, off, first, l, m)
		}
	}
	for i, v := range first {
		first[i] = v * v
	}
	return diagonal, first
}

// turn is a QL step with Wilkinson's shift on the rows l … m.
func turn(d, e, first []float64, l, m int) {
	g := (d[l+1] - d[l]) / (2 * e[l])
	g = d[m] - d[l] + e[l]/(g+math.Copysign(math.Hypot(g, 1), g))
	s, c, p := 1.0, 1.0, 0.0
	for i := m - 1; i >= l; i-- {
		f, b := s*e[i], c*e[i]
		r := math.Hypot(f, g)
		e[i+1] = r
		if r == 0 { // the rows fall apart
			d[i+1] -= p
			e[m] = 0
			return
		}
		s, c = f/r, g/r
		g = d[i+1] - p
		r = (d[i]-g)*s + 2*c*b
		p = s * r
		d[i+1] = g + p
		g = c*r - b
		first[i], first[i+1] = c*first[i]-s*first[i+1], s*first[i]+c*first[i+1]
	}
	d[l] -= p
	e[l], e[m] = g, 0
}
