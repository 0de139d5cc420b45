package operator

import (
	"fmt"

	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/simd"
)

// Dense is a matrix held in memory as float64 or float32, in the order in which
// the kernels read it; sums are float64 in both cases.
type Dense struct {
	m, n int
	f64  *kernel.Matrix[float64] // exactly one of the two is set
	f32  *kernel.Matrix[float32]
	summary
	memory
}

// Packed is how many entries an M×N table has in memory, with those that fill blocks of rows and columns.
func Packed(m, n int) int64 {
	s := kernel.ShapeOf(m, n)
	return int64(s.Panels()) * int64(s.PanelSize())
}

// NewDense copies the M×N row-major matrix w; the caller may change or drop it
// afterwards. The error names the first entry that is not finite, counting from 0.
func NewDense(m, n int, w []float64) (*Dense, error) {
	d, err := NewDenseRows(0, m, n, w)
	if err != nil {
		return nil, err
	}
	return d, d.check()
}

// NewDense32 is NewDense for single-precision storage.
func NewDense32(m, n int, w []float32) (*Dense, error) {
	d, err := NewDenseRows(0, m, n, w)
	if err != nil {
		return nil, err
	}
	return d, d.check()
}

// NewDenseRows is the same, in the precision of w, for m rows of a larger matrix, from row
// first on: all of them may be zero.
func NewDenseRows[T float32 | float64](first, m, n int, w []T) (*Dense, error) {
	d := &Dense{m: m, n: n}
	if err := measure(d, w, first); err != nil {
		return nil, err
	}
	switch w := any(w).(type) {
	case []float32:
		d.f32 = kernel.Pack(m, n, w)
	case []float64:
		d.f64 = kernel.Pack(m, n, w)
	}
	return d, nil
}

// denseAs is a table whose entries take as much memory as storage says.
func denseAs(storage string, m, n int, w []float64) (*Dense, error) {
	if storage != "f32" {
		return NewDenseRows(0, m, n, w)
	}
	single := make([]float32, len(w))
	for i, v := range w {
		single[i] = float32(v)
	}
	return NewDenseRows(0, m, n, single)
}

// measure checks the entries of w, and sets the averages over them.
func measure[T kernel.Entry](d *Dense, w []T, first int) error {
	if _, err := simd.Active(); err != nil {
		return err
	}
	if d.m <= 0 || d.n <= 0 || len(w) != d.m*d.n {
		return fmt.Errorf("%d values do not make a %d×%d matrix", len(w), d.m, d.n)
	}
	m := newMeasurement(d.m, d.n)
	m.above = first
	for mu := range d.m {
		if err := addRow(m, mu, w[mu*d.n:(mu+1)*d.n]); err != nil {
			return err
		}
	}
	d.summary = m.summary()
	return nil
}

// Dims implements [Operator].
func (d *Dense) Dims() (m, n int) { return d.m, d.n }

// Storage is "f64" or "f32".
func (d *Dense) Storage() string {
	if d.f32 != nil {
		return "f32"
	}
	return "f64"
}

// At returns the entry of row mu and column i.
func (d *Dense) At(mu, i int) float64 {
	if d.f32 != nil {
		return d.f32.At(mu, i)
	}
	return d.f64.At(mu, i)
}

// RowInto implements [Matrix]; it never fails.
func (d *Dense) RowInto(dst []float64, mu int) error {
	if d.f32 != nil {
		d.f32.RowInto(dst, mu)
	} else {
		d.f64.RowInto(dst, mu)
	}
	return nil
}

// HasSquares implements [Squares].
func (d *Dense) HasSquares() bool { return true }

// HasSingle implements [Single].
func (d *Dense) HasSingle() bool { return d.f32 != nil }

// NewSweep implements [Operator]; it never fails.
func (d *Dense) NewSweep(p, q, threads int) (Sweep, error) {
	if d.f32 != nil {
		return sweepOver[float32, float64](d.f32, p, q, threads), nil
	}
	return sweepOver[float64, float64](d.f64, p, q, threads), nil
}

// NewSweeps implements [Sharer]; it never fails.
func (d *Dense) NewSweeps(p, threads int) (Sweeps, error) { return d.sweeps(p, p, threads), nil }

// sweeps are those over p linear and q quadratic columns.
func (d *Dense) sweeps(p, q, threads int) (s Sweeps) {
	if d.f32 == nil {
		double := sweepOver[float64, float64](d.f64, p, q, threads)
		s.Exact, s.Linear = double, double.linear()
		return s
	}
	double, single := sweepOver[float32, float64](d.f32, p, q, threads), sweepOver[float32, float32](d.f32, p, q, threads)
	s.Exact, s.Linear, s.Single.Exact, s.Single.Linear = double, double.linear(), single, single.linear()
	return s
}

func sweepOver[T kernel.Entry, V kernel.Value](w *kernel.Matrix[T], p, q, threads int) *denseSweep[T, V] {
	return newDenseSweep[T, V](w.Shape, inMemory[T]{w}, p, q, threads)
}
