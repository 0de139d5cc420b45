package operator

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/calamp/calamp/internal/parallel"
)

// Complex is a complex matrix W (M×N) for signals whose real and imaginary parts are columns
// beside each other: those of a sweep are pairs, real part and imaginary part. A real W needs
// nothing of the kind, it multiplies both parts as they are.
//
// It is stored as a real matrix with two rows for each of its own, Re W_µ and Im W_µ, one after
// the other. So one pass of the real kernels gives the four real products of every entry while it is
// in cache, and the row function that combines them is all that is complex here.
//
// Quadratic columns are the variances of the parts. Both parts have the same, c and d (if they
// differ, their mean counts): |W|² multiplies them. A single one is that of all signals.
type Complex struct {
	m, n int
	rows Operator // 2M×N: a table, or parts of a transform
	real memory   // of [RealOf] it
}

// NewComplex makes a matrix of M·N entries, row by row, as one in double precision.
func NewComplex(m, n int, values []complex128) (*Complex, error) {
	return newComplex(m, n, values, NewDense)
}

// NewComplex64 makes a matrix of M·N entries, row by row, that stays in single precision.
func NewComplex64(m, n int, values []complex64) (*Complex, error) {
	return newComplex(m, n, values, NewDense32)
}

func newComplex[C complex64 | complex128, F float32 | float64](m, n int, values []C, make2 func(m, n int, values []F) (*Dense, error)) (*Complex, error) {
	if len(values) != m*n {
		panic(fmt.Sprintf("calamp: %d values for a complex matrix of %d×%d", len(values), m, n))
	}
	parts := make([]F, 2*m*n)
	for mu := range m {
		re, im := parts[2*mu*n:(2*mu+1)*n], parts[(2*mu+1)*n:(2*mu+2)*n]
		for i, v := range values[mu*n : (mu+1)*n] {
			re[i], im[i] = F(real(complex128(v))), F(imag(complex128(v)))
		}
	}
	rows, err := make2(2*m, n, parts)
	if err != nil {
		return nil, fmt.Errorf("real and imaginary parts as rows of their own: %w", err)
	}
	return &Complex{m: m, n: n, rows: rows}, nil
}

// Dims implements [Operator].
func (w *Complex) Dims() (m, n int) { return w.m, w.n }

// MeanSquare implements [Operator]: that of |W|.
func (w *Complex) MeanSquare() float64 { return 2 * w.rows.MeanSquare() }

// HasSquares implements [Squares].
func (w *Complex) HasSquares() bool { return true }

// table is the table of both parts; nil where there is none.
func (w *Complex) table() *Dense {
	d, _ := w.rows.(*Dense)
	return d
}

// String says what it is.
func (w *Complex) String() string {
	if w.table() == nil {
		return Describe(w.rows)
	}
	return fmt.Sprintf("complex table of %d×%d", w.m, w.n)
}

// Storage is "f64" or "f32", the precision of each part; "" of what is no table.
func (w *Complex) Storage() string {
	if table := w.table(); table != nil {
		return table.Storage()
	}
	return ""
}

// Bytes implements [Structured].
func (w *Complex) Bytes() int64 { return Bytes(w.rows) }

// Identify implements [Structured].
func (w *Complex) Identify(to io.Writer) error {
	if w.table() == nil {
		return Identify(to, w.rows)
	}
	sum := sha256.New()
	if err := Identify(sum, w.rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "complex table sha256=%x\n", sum.Sum(nil))
	return err
}

// RowInto sets re and im, of length N, to the parts of row mu, of a table.
func (w *Complex) RowInto(re, im []float64, mu int) error {
	table := w.table()
	if table == nil {
		return fmt.Errorf("a %v has no entries to be read", w)
	}
	return errors.Join(table.RowInto(re, 2*mu), table.RowInto(im, 2*mu+1))
}

// IsComplex reports whether entries of w are complex numbers.
func IsComplex(w Operator) bool {
	_, is := w.(*Complex)
	return is
}

// RowReader copies the real and imaginary parts of a row of w; nil where entries cannot be seen. Of a real w it leaves im as it is. Rows of the Fourier
// transform are computed each time, where W has no more than computed entries.
func RowReader(w Operator, computed float64) func(re, im []float64, mu int) error {
	switch w := w.(type) {
	case *Complex:
		if f, fourier := w.rows.(*fourierParts); fourier && float64(w.m)*float64(w.n) <= computed {
			return f.rowInto
		}
		if w.Storage() != "" {
			return w.RowInto
		}
	case Matrix:
		return func(re, _ []float64, mu int) error { return w.RowInto(re, mu) }
	}
	return nil
}

// rowSquares are Σ_i |W_µi|².
func (w *Complex) rowSquares(threads int) ([]float64, error) {
	parts, err := RowSquares(w.rows, threads)
	if err != nil {
		return nil, err
	}
	norms := make([]float64, w.m)
	for mu := range norms {
		norms[mu] = parts[2*mu] + parts[2*mu+1]
	}
	return norms, nil
}

// NewSweep implements [Operator] for even p, and for q = p, 1 or 0.
func (w *Complex) NewSweep(p, q, threads int) (Sweep, error) {
	if p%2 != 0 || q > 1 && q != p {
		return nil, fmt.Errorf("W is a %v: its sweeps need real and imaginary parts of every signal, found %d linear and %d quadratic columns", w, p, q)
	}
	sweep, err := w.rows.NewSweep(p, (q+1)/2, threads)
	if err != nil {
		return nil, err
	}
	return w.around(sweep, p, q), nil
}

// around is a sweep over the real rows as one over complex ones.
func (w *Complex) around(sweep Sweep, p, q int) *complexSweep {
	s := &complexSweep{sweep: sweep, n: w.n, p: p, q: q}
	s.h, s.c = make([]float64, q/2*w.n), make([]float64, q/2*w.n)
	s.combine = s.block
	return s
}

// NewSweeps implements [Sharer] for even p.
func (w *Complex) NewSweeps(p, threads int) (s Sweeps, err error) {
	table := w.table()
	if table == nil || p%2 != 0 {
		if s.Exact, err = w.NewSweep(p, p, threads); err == nil {
			s.Linear, err = w.NewSweep(p, 0, threads)
		}
		return s, err
	}
	inner := table.sweeps(p, p/2, threads)
	s.Exact, s.Linear = w.around(inner.Exact, p, p), w.around(inner.Linear, p, 0)
	if inner.Single.Exact != nil {
		s.Single.Exact, s.Single.Linear = w.around(inner.Single.Exact, p, p), w.around(inner.Single.Linear, p, 0)
	}
	return s, nil
}

// HasSingle implements [Single].
func (w *Complex) HasSingle() bool { return HasSingle(w.rows) }

// Rounded implements [Rounder]; what was rounded off is that of both parts together.
func (w *Complex) Rounded(threads int) (single Stored, lost float64) {
	table := w.table()
	if table == nil {
		return nil, 0
	}
	rounded, lost := table.Rounded(threads)
	if rounded == nil {
		return nil, 2 * lost
	}
	return &Complex{m: w.m, n: w.n, rows: rounded}, 2 * lost
}

// complexSweep is a sweep over the real rows, with a row function that makes complex ones of them.
type complexSweep struct {
	sweep   Sweep
	n, p, q int
	h, c    []float64 // q/2×N
	rows    RowFunc   // of the present run
	combine RowFunc
	blocks  parallel.Pool[complexBlock]
}

// complexBlock is a block of complex rows.
type complexBlock struct{ z, v, g, d []float64 }

// Run implements [Sweep].
func (s *complexSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	s.rows = rows
	for k := range s.q / 2 {
		re, im := c[2*k*s.n:(2*k+1)*s.n], c[(2*k+1)*s.n:(2*k+2)*s.n]
		for i, v := range re {
			s.c[k*s.n+i] = 0.5 * (v + im[i])
		}
	}
	if s.q == 1 {
		return s.sweep.Run(r, h, x, c, s.combine)
	}
	if err := s.sweep.Run(r, s.h, x, s.c, s.combine); err != nil {
		return err
	}
	for k := range s.q / 2 {
		both := s.h[k*s.n : (k+1)*s.n]
		copy(h[2*k*s.n:], both)
		copy(h[(2*k+1)*s.n:], both)
	}
	return nil
}

// block combines the products of a block of real rows, of which two are a complex one: with a = Re W_µ
// and b = Im W_µ
//
//	Re z = a·Re x - b·Im x       Wᴴg = aᵀ(Re g, Im g) + bᵀ(Im g, -Re g).
//	Im z = a·Im x + b·Re x
func (s *complexSweep) block(first int, z, v, g, d []float64) {
	p, q := s.p, s.q
	rows := len(z) / (2 * p)
	b := s.blocks.Get()
	defer s.blocks.Put(b)
	b.z, b.g = grown(b.z, rows*p), grown(b.g, rows*p)
	b.v, b.d = grown(b.v, rows*q), grown(b.d, rows*q)
	for row := range rows {
		re, im, out := z[2*row*p:(2*row+1)*p], z[(2*row+1)*p:(2*row+2)*p], b.z[row*p:(row+1)*p]
		for k := 0; k < p; k += 2 {
			out[k], out[k+1] = re[k]-im[k+1], re[k+1]+im[k]
		}
		if q == 1 {
			b.v[row] = v[2*row] + v[2*row+1]
		}
		for k := range q / 2 {
			both := v[row*q+k] + v[row*q+q/2+k]
			b.v[row*q+2*k], b.v[row*q+2*k+1] = both, both
		}
	}
	s.rows(first/2, b.z, b.v, b.g, b.d)
	for row := range rows {
		re, im, in := g[2*row*p:(2*row+1)*p], g[(2*row+1)*p:(2*row+2)*p], b.g[row*p:(row+1)*p]
		for k := 0; k < p; k += 2 {
			re[k], re[k+1], im[k], im[k+1] = in[k], in[k+1], in[k+1], -in[k]
		}
		if q == 1 {
			d[2*row], d[2*row+1] = b.d[row], b.d[row]
		}
		for k := range q / 2 {
			both := 0.5 * (b.d[row*q+2*k] + b.d[row*q+2*k+1])
			d[row*q+k], d[row*q+q/2+k] = both, both
		}
	}
}

// grown is v with n entries, of any content.
func grown(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}
