// Package cholesky solves small symmetric positive definite systems in the caller's
// memory: it knows matrices as slices of numbers, and nothing of where they come from.
// It never allocates, since an iteration with full covariances solves such a system for
// every sensor, and for every support of every entry.
package cholesky

import "math"

// Factor replaces the lower triangle of the n×n row-major matrix a by L with A = LLᵀ;
// the upper triangle is not read. It reports whether A is positive definite in double
// precision.
func Factor(a []float64, n int) bool {
	for j := range n {
		pivot := a[j*n : j*n+j+1]
		d := pivot[j] - Dot(pivot[:j], pivot[:j])
		if !(d > 0) || math.IsInf(d, 1) {
			return false
		}
		root := math.Sqrt(d)
		pivot[j] = root
		for i := j + 1; i < n; i++ {
			row := a[i*n : i*n+j+1]
			row[j] = (row[j] - Dot(row[:j], pivot[:j])) / root
		}
	}
	return true
}

// LogDet is log det A, from the factor.
func LogDet(l []float64, n int) float64 {
	total := 0.0
	for i := range n {
		total += math.Log(l[i*n+i])
	}
	return 2 * total
}

// Solve replaces b, of length n, by A⁻¹b.
func Solve(l, b []float64) {
	n := len(b)
	for i := range n {
		b[i] = (b[i] - Dot(l[i*n:i*n+i], b[:i])) / l[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		b[i] /= l[i*n+i]
		for k, v := range l[i*n : i*n+i] {
			b[k] -= float64(v * b[i])
		}
	}
}

// Inverse writes A⁻¹, exactly symmetric, to dst.
func Inverse(dst, l []float64, n int) {
	for k := range n {
		row := dst[k*n : (k+1)*n]
		clear(row)
		row[k] = 1
		Solve(l, row)
		for i := range k {
			row[i] = dst[i*n+k]
		}
	}
}

// Dot is the inner product of two vectors of one length.
func Dot(a, b []float64) float64 {
	total := 0.0
	for i, v := range a {
		total += float64(v * b[i])
	}
	return total
}
