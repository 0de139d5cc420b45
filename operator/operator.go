// Package operator holds measurement matrices W (M×N): products with
// them, their entries, means and spectrum. It does not depend on priors, channels and
// iterations. Solvers ask one thing of every matrix: a sweep, which does the linear
// algebra of one iteration in one pass.
//
// Everything else that a matrix can do is an interface of its own, which a caller asks
// for: [Squares], [Matrix], [Rounder], [Streamed]. A new kind of matrix, such as a fast
// transform or rows on several machines, is one type with the three methods of
// [Operator], one for its [Sweep], and the abilities that it has.
package operator

import (
	"errors"
	"fmt"
)

// Operator is a known measurement matrix, used as given: nothing is rescaled.
type Operator interface {
	// Dims returns the number of sensors M and of signal entries N.
	Dims() (m, n int)

	// MeanSquare is the mean of all squared entries, the W² of the
	// scalar-variance solver.
	MeanSquare() float64

	// NewSweep prepares sweeps over p linear and q quadratic columns on at most
	// threads goroutines. The result depends on neither threads nor timing,
	// down to the last bit. A Sweep holds the workspace and serves one caller
	// at a time; many can share an Operator. Any operator has sweeps with q = 0;
	// one that does not know its squared entries returns [NoSquares] for the
	// others. Other errors say why there is no sweep at all.
	NewSweep(p, q, threads int) (Sweep, error)
}

// Squares is an Operator that may know its squared entries, which exact variances
// need. When HasSquares returns true, NewSweep accepts quadratic columns.
type Squares interface {
	Operator
	HasSquares() bool
}

// HasSquares reports whether sweeps over w can have quadratic columns.
func HasSquares(w Operator) bool {
	s, ok := w.(Squares)
	return ok && s.HasSquares()
}

// SquaresEqual reports whether all squared entries of w are known to be equal, so that
// exact variances are scalar ones.
func SquaresEqual(w Operator) bool {
	e, ok := w.(interface{ SquaresEqual() bool })
	return ok && e.SquaresEqual()
}

// ErrNoSquares is the cause of the error of a sweep that asks for more squared
// entries than the operator has.
var ErrNoSquares = errors.New("its squared entries are not known")

// NoSquares is the error with which w refuses a sweep with quadratic columns. It
// names w by its type, or as it does itself if it has a method String.
func NoSquares(w Operator) error {
	name := fmt.Sprintf("%T", w)
	if s, ok := w.(fmt.Stringer); ok {
		name = s.String()
	}
	return fmt.Errorf("W is a %s: %w, so that it serves only iterations with scalar variances", name, ErrNoSquares)
}

// Stored is an Operator that may be a table of numbers: a [Matrix], or a [Complex] one.
type Stored interface {
	Operator
	Storage() string // "f64" or "f32"; "" of what is no table
}

// Matrix is an Operator whose entries can be seen; [Dense] and [Disk] are.
type Matrix interface {
	Stored

	// RowInto copies row mu into dst, of length N. It returns an error when the row
	// cannot be read; what dst holds then has no meaning.
	RowInto(dst []float64, mu int) error
	Means() Means
}

// Rounder is a table of which there can be a copy with the entries rounded to single
// precision, as of [Dense].
type Rounder interface {
	Stored

	// Rounded returns the rounded matrix, and the mean square of the rounding errors of
	// its entries. It returns the matrix itself if that is stored in single precision
	// already, and nil if an entry is too large for single precision. It does not depend on threads.
	Rounded(threads int) (single Stored, lost float64)
}

// Streamed is a Matrix that is not kept in memory: every sweep reads it again, as
// that of a [Disk] does.
type Streamed interface {
	Matrix

	// Budget is how much memory, in bytes, a sweep's buffers may take. It holds for
	// matrices that are derived from this one, too.
	Budget() int64
}

// Sweep does the linear algebra of one AMP iteration in one pass over W. With
// W² the matrix of squared entries, and for blocks of rows in any order,
//
//	z = W x     v = W² c     (rows of the block)
//	rows(first, z, v, g, d)  fills g and d from z and v
//	r += Wᵀ g   h += (W²)ᵀ d
//
// so that a block's rows are used forward and backward while they are in cache. For
// an operator that gains nothing from blocks, such as a transform, all rows are one.
type Sweep interface {
	// Run overwrites r and h. The signals' side is stored signal by signal: x
	// and r are p×N, c and h are q×N. The sensors' side is stored sensor by
	// sensor: in a block, z and g are rows×p, v and d are rows×q. It returns an error
	// when W cannot be read; what r and h hold then has no meaning.
	Run(r, h, x, c []float64, rows RowFunc) error
}

// RowFunc is called once for every block of rows, concurrently for different
// blocks. It may keep what it needs of its arguments only by copying.
type RowFunc func(first int, z, v, g, d []float64)

// Work is about how many multiplications a product with w takes: one for each entry of a table, for each that is not zero of a sparse matrix, and log₂N for each entry of a signal of a transform.
func Work(w Operator) float64 {
	switch w := w.(type) {
	case *Complex:
		return Work(w.rows) / 2 // rows are of both parts
	case *Sparse:
		return float64(w.Entries())
	case interface{ transformed() float64 }:
		return w.transformed()
	}
	m, n := w.Dims()
	return float64(m) * float64(n)
}
