// Package tridiagonal turns a symmetric matrix into a tridiagonal one by reflections: it
// knows numbers, and nothing of where they come from. (G. H. Golub and C. F. Van Loan,
// "Matrix Computations", 8.3; blocks as in LAPACK's dsytrd.)
package tridiagonal

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/gonum"
)

// block is how many reflections are collected before the rest of the matrix follows them.
const block = 32

// Form is A = Q T Qᵀ.
type Form struct {
	Diagonal, Off []float64 // of T: n and n-1
	Rotation      []float64 // Q, n×n, row-major
}

// Reduce brings the symmetric n×n matrix a, which it overwrites, to tridiagonal form. The
// error is ctx's, looked at every [block] reflections.
func Reduce(ctx context.Context, n int, a []float64, threads int) (*Form, error) {
	var lapack gonum.Implementation
	f := &Form{Diagonal: make([]float64, n), Off: make([]float64, max(0, n-1)), Rotation: a}
	tau, work := make([]float64, max(1, n-1)), make([]float64, n*block)
	first := 0
	for ; first < n-block; first += block {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := first*n + first
		lapack.Dlatrd(blas.Lower, n-first, block, a[at:], n, f.Off[first:], tau[first:], work, block)
		rest := n - first - block
		blas64.Syr2k(blas.NoTrans, -1,
			blas64.General{Rows: rest, Cols: block, Stride: n, Data: a[at+block*n:]},
			blas64.General{Rows: rest, Cols: block, Stride: block, Data: work[block*block:]}, 1,
			blas64.Symmetric{N: rest, Stride: n, Uplo: blas.Lower, Data: a[at+block*n+block:]})
		for j := first; j < first+block; j++ {
			a[(j+1)*n+j] = f.Off[j]
			f.Diagonal[j] = a[j*n+j]
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lapack.Dsytd2(blas.Lower, n-first, a[first*n+first:], n, f.Diagonal[first:], f.Off[first:], tau[first:])
	lapack.Dorgtr(blas.Lower, n, a, n, tau, work, len(work))
	return f, ctx.Err()
}

// Eigenvalues of T, ascending.
func (f *Form) Eigenvalues() []float64 {
	var lapack gonum.Implementation
	values := append([]float64(nil), f.Diagonal...)
	if len(values) > 0 {
		lapack.Dsterf(len(values), values, append([]float64(nil), f.Off...))
	}
	return values
}
