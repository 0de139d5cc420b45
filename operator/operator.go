// Package operator holds measurement matrices W (M×N), and the one thing the
// solvers ask of them: a sweep, which does the linear algebra of one iteration.
package operator

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
	// at a time; many can share an Operator.
	NewSweep(p, q, threads int) Sweep
}

// Matrix is an Operator whose entries can be seen; [Dense] and [Disk] are.
type Matrix interface {
	Operator
	RowInto(dst []float64, mu int) // copies row mu into dst, of length N
	Means() Means
	Storage() string // "f64" or "f32"
}

// Sweep does the linear algebra of one AMP iteration in one pass over W. With
// W² the matrix of squared entries, and for blocks of rows in any order,
//
//	z = W x     v = W² c     (rows of the block)
//	rows(first, z, v, g, d)  fills g and d from z and v
//	r += Wᵀ g   h += (W²)ᵀ d
//
// so that a block's rows are used forward and backward while they are in cache.
type Sweep interface {
	// Run overwrites r and h. The signals' side is stored signal by signal: x
	// and r are p×N, c and h are q×N. The sensors' side is stored sensor by
	// sensor: in a block, z and g are rows×p, v and d are rows×q. An error is
	// that of a W which could not be read; r and h then mean nothing.
	Run(r, h, x, c []float64, rows RowFunc) error
}

// RowFunc is called once for every block of rows, concurrently for different
// blocks. It may keep what it needs of its arguments only by copying.
type RowFunc func(first int, z, v, g, d []float64)
