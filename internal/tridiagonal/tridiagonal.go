// Package tridiagonal turns a symmetric matrix into a tridiagonal one by reflections: it
// knows numbers, and nothing of where they come from. (G. H. Golub and C. F. Van Loan,
// "Matrix Computations", 8.3; blocks as in LAPACK's dsytrd and dorgtr.) Matrices are packed
// as the kernels of W are, so that these do the work.
package tridiagonal

import (
	"context"
	"math"

	"gonum.org/v1/gonum/lapack/gonum"

	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

// block is how many reflections are collected before the rest of the matrix follows them.
const block = 32

// Form is A = Q T Qᵀ.
type Form struct {
	Diagonal, Off []float64 // of T: n and n-1
	Rotation      []float64 // Q, n×n, row-major
}

// Reduce brings the symmetric n×n matrix a, which it overwrites, to tridiagonal form. The
// error is ctx's, looked at every [block] reflections. The result does not depend on threads.
func Reduce(ctx context.Context, n int, a []float64, threads int) (*Form, error) {
	f := &Form{Diagonal: make([]float64, n), Off: make([]float64, max(0, n-1)), Rotation: a}
	r := newReduction(n, a, threads)
	for first := 0; first < n; first += block {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.reflect(f, first, min(first+block, n))
		r.update(first + block)
	}
	x := r.a // no longer needed
	clear(x.Data)
	for i := range n {
		kernel.PackRow(x.Shape, x.Data, i, unit(r.v, i)[:n])
	}
	for j := len(r.blocks) - 1; j >= 0; j-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.accumulate(x, j)
	}
	transpose(a, x)
	return f, ctx.Err()
}

// reduction is a matrix on its way.
type reduction struct {
	n, threads int
	k          *kernel.Set[float64, float64]
	width      int // rows that a kernel takes at a time

	// a is what is left of A, the lower half: of a panel, the blocks up to the one with its diagonal.
	a *kernel.Matrix[float64]

	// u are the rows v, w, v, w … of the present block of reflections, A ← A - Σ (vwᵀ + wvᵀ), and
	// swapped the factors of one column, with v's where w's row is.
	u            *kernel.Matrix[float64]
	swapped      []float64
	column, v, y []float64   // padded to whole blocks
	parts        [][]float64 // of y
	blocks       []reflections
}

// reflections are I - V T Vᵀ, for count of them, the first of which leaves alone what stands
// before first+1.
type reflections struct {
	first, count int
	v            *kernel.Matrix[float64] // Vᵀ
	t            [block][block]float64   // upper triangular
}

// In a product with a symmetric matrix chunks of rows are added up on their own, as many as make sense for
// so many rows.
const (
	rowsForChunks = 256
	chunks        = 8
)

func newReduction(n int, a []float64, threads int) *reduction {
	r := &reduction{n: n, threads: threads, k: kernel.Of[float64, float64](kernel.Packed), a: kernel.Pack(n, n, a)}
	r.width = min(2, len(r.k.Axpy)-1)
	r.u = kernel.Pack(2*block, n, make([]float64, 2*block*n))
	r.swapped = make([]float64, 2*block)
	padded := r.a.Blocks * kernel.Columns
	r.column, r.v, r.y = make([]float64, padded), make([]float64, padded), make([]float64, padded)
	for range chunks {
		r.parts = append(r.parts, make([]float64, padded))
	}
	return r
}

// reflect finds the reflections of the columns from first to end, which A has not seen yet.
func (r *reduction) reflect(f *Form, first, end int) {
	clear(r.u.Data)
	b := reflections{first: first, v: kernel.Pack(block, r.n, make([]float64, block*r.n))}
	for c := first; c < end; c++ {
		r.take(c, c-first)
		f.Diagonal[c] = r.column[c]
		if c == r.n-1 {
			break
		}
		var tau float64
		tau, f.Off[c] = r.householder(c)
		r.multiply(first)
		r.subtract(c - first)
		for i := range r.y {
			r.y[i] *= tau
		}
		along := 0.5 * tau * cholesky.Dot(r.y, r.v)
		for i, v := range r.v {
			r.y[i] -= along * v
		}
		at := c - first
		kernel.PackRow(r.u.Shape, r.u.Data, 2*at, r.v[:r.n])
		kernel.PackRow(r.u.Shape, r.u.Data, 2*at+1, r.y[:r.n])
		b.add(r, tau)
	}
	r.blocks = append(r.blocks, b)
}

// take sets the column to that of A, with the reflections before it.
func (r *reduction) take(c, before int) {
	clear(r.column)
	for i := c; i < r.n; i++ {
		r.column[i] = r.a.At(i, c)
	}
	for k := range before {
		r.swapped[2*k], r.swapped[2*k+1] = -r.u.At(2*k+1, c), -r.u.At(2*k, c)
	}
	r.addRows(before, r.column)
	clear(r.column[:c])
}

// addRows adds the rows of u with the swapped factors to dst.
func (r *reduction) addRows(before int, dst []float64) {
	panels := (2*before + kernel.Rows - 1) / kernel.Rows
	clear(r.swapped[2*before : panels*kernel.Rows])
	if panels > 0 {
		r.k.Axpy[1](r.u.Data, panels, r.u.PanelSize(), r.u.Blocks, r.swapped, 1, dst, kernel.Columns)
	}
}

// householder makes v, with v[c+1] = 1, of the column below its diagonal.
func (r *reduction) householder(c int) (tau, off float64) {
	clear(r.v)
	x, v := r.column[c+1:r.n], r.v[c+1:r.n]
	size, square := 0.0, 0.0
	for _, e := range x[1:] {
		size = max(size, math.Abs(e))
	}
	v[0] = 1
	if size == 0 {
		return 0, x[0]
	}
	for _, e := range x[1:] {
		square += e / size * (e / size)
	}
	off = -math.Copysign(math.Hypot(x[0], size*math.Sqrt(square)), x[0])
	for i, e := range x[1:] {
		v[i+1] = e / (x[0] - off)
	}
	return (off - x[0]) / off, off
}

// multiply sets y to A v, of which nothing before first matters.
func (r *reduction) multiply(first int) {
	panels, from := r.a.Panels(), first/kernel.Rows
	count := chunks
	if r.n-first < rowsForChunks {
		count = 1
	}
	bound := func(i int) int { // of chunks of the same area
		return from + int(float64(panels-from)*math.Sqrt(float64(i)/float64(count)))
	}
	parallel.Run(count, r.threads, func(i int) { r.multiplyPanels(r.parts[i], first/kernel.Columns, bound(i), bound(i+1)) })
	copy(r.y, r.parts[0])
	for _, part := range r.parts[1:count] {
		for i, v := range part[first:] {
			r.y[first+i] += v
		}
	}
	clear(r.y[:first])
	clear(r.y[r.n:])
}

// multiplyPanels does some panels, from a block of columns on.
func (r *reduction) multiplyPanels(y []float64, from, panel, end int) {
	clear(y)
	at := from * kernel.Columns
	for ; panel < end; panel++ {
		row, diagonal := panel*kernel.Rows, panel*kernel.Rows/kernel.Columns
		w := r.a.Data[panel*r.a.PanelSize()+from*kernel.Rows*kernel.Columns:]
		var z [kernel.Rows]float64
		r.k.ForwardOneLinear(w, r.a.PanelSize(), diagonal-from+1, r.v[at:], z[:])
		if diagonal > from {
			r.k.BackwardOneLinear(w, r.a.PanelSize(), r.a.PanelSize(), diagonal-from, y[at:], r.v[row:])
		}
		for i, v := range z {
			y[row+i] += v
		}
	}
}

// subtract takes the products of earlier reflections with v from y.
func (r *reduction) subtract(before int) {
	for panel := 0; panel*kernel.Rows < 2*before; panel++ {
		var z [kernel.Rows]float64
		r.k.ForwardOneLinear(r.u.Data[panel*r.u.PanelSize():], r.u.PanelSize(), r.u.Blocks, r.v, z[:])
		r.swapped[panel*kernel.Rows], r.swapped[panel*kernel.Rows+1] = -z[1], -z[0]
		r.swapped[panel*kernel.Rows+2], r.swapped[panel*kernel.Rows+3] = -z[3], -z[2]
	}
	r.addRows(before, r.y)
}

// update has what is left of A, from a row on, follow the reflections.
func (r *reduction) update(first int) {
	from := first / kernel.Columns
	parallel.Run(max(0, r.a.Panels()-first/kernel.Rows), r.threads, func(i int) {
		panel := first/kernel.Rows + i
		diagonal := panel * kernel.Rows / kernel.Columns
		offset := from * kernel.Rows * kernel.Columns
		to := r.a.Data[panel*r.a.PanelSize()+offset:]
		factors := make([]float64, 2*block*r.width)
		for row := 0; row < kernel.Rows; row += r.width {
			for s := range r.width {
				mu := panel*kernel.Rows + row + s
				for k := range block {
					if mu < r.n {
						factors[2*k*r.width+s], factors[(2*k+1)*r.width+s] = -r.u.At(2*k+1, mu), -r.u.At(2*k, mu)
					}
				}
			}
			r.k.Axpy[r.width](r.u.Data[offset:], 2*block/kernel.Rows, r.u.PanelSize(), diagonal-from+1, factors, r.width, to[row*kernel.Columns:], kernel.Rows*kernel.Columns)
		}
	})
}

// add is the next reflection, 1 - τvvᵀ (LAPACK's dlarft).
func (b *reflections) add(r *reduction, tau float64) {
	var along [block]float64
	for panel := 0; panel*kernel.Rows < b.count; panel++ {
		r.k.ForwardOneLinear(b.v.Data[panel*b.v.PanelSize():], b.v.PanelSize(), b.v.Blocks, r.v, along[panel*kernel.Rows:])
	}
	at := b.count
	for i := range at {
		for j := i; j < at; j++ {
			b.t[i][at] -= tau * b.t[i][j] * along[j]
		}
	}
	b.t[at][at] = tau
	kernel.PackRow(b.v.Shape, b.v.Data, at, r.v[:r.n])
	b.count++
}

// accumulate multiplies x, which is to be Qᵀ, by I - V Tᵀ Vᵀ from the right. Rows up to first are still
// those of the identity, and stay.
func (r *reduction) accumulate(x *kernel.Matrix[float64], j int) {
	b := &r.blocks[j]
	from, firstPanel := b.first/kernel.Columns, b.first/kernel.Rows
	offset := from * kernel.Rows * kernel.Columns
	panels := block / kernel.Rows
	parallel.Run(x.Panels()-firstPanel, r.threads, func(i int) {
		to := x.Data[(firstPanel+i)*x.PanelSize()+offset:]
		z, g := make([]float64, block*r.width), make([]float64, block*r.width)
		for row := 0; row < kernel.Rows; row += r.width {
			clear(z)
			lines := to[row*kernel.Columns:]
			r.k.Dot[r.width](b.v.Data[offset:], panels, b.v.PanelSize(), x.Blocks-from, lines, kernel.Rows*kernel.Columns, z, kernel.Rows*r.width)
			for s := range r.width {
				for mu := range block {
					sum := 0.0
					for nu := mu; nu < block; nu++ {
						sum += b.t[mu][nu] * z[(nu/kernel.Rows*r.width+s)*kernel.Rows+nu%kernel.Rows]
					}
					g[mu*r.width+s] = -sum
				}
			}
			r.k.Axpy[r.width](b.v.Data[offset:], panels, b.v.PanelSize(), x.Blocks-from, g, r.width, lines, kernel.Rows*kernel.Columns)
		}
	})
}

// unit makes v a unit vector.
func unit(v []float64, i int) []float64 {
	clear(v)
	v[i] = 1
	return v
}

// transpose sets a, row-major, to the transpose of x.
func transpose(a []float64, x *kernel.Matrix[float64]) {
	for panel := range x.Panels() {
		for c := range x.N {
			e := x.Data[panel*x.PanelSize()+c/kernel.Columns*kernel.Rows*kernel.Columns+c%kernel.Columns:]
			for i := range min(kernel.Rows, x.M-panel*kernel.Rows) {
				a[c*x.N+panel*kernel.Rows+i] = e[i*kernel.Columns]
			}
		}
	}
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
