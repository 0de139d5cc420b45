package operator

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/internal/parallel"
)

// Halves is a Sweep whose two products can be had one by one, as those of matrices
// that are no tables, which gain nothing from blocks of rows.
type Halves interface {
	Sweep

	// Forward sets z = W x and v = W² c for all rows: M×p and M×q, sensor by sensor.
	Forward(z, v, x, c []float64) error

	// Backward sets r = Wᵀ g and h = (W²)ᵀ d.
	Backward(r, h, g, d []float64) error
}

// RowOrthogonal is an Operator that may know that its rows are orthogonal and of one
// norm, as those of a transform are: W Wᵀ = κ I. All its singular values are √κ.
type RowOrthogonal interface {
	Operator

	// RowOrthogonal returns κ; ok is false when the rows are not orthogonal, or whether they are is unknown.
	RowOrthogonal() (kappa float64, ok bool)
}

// Orthogonal is the κ of a [RowOrthogonal].
func Orthogonal(w Operator) (kappa float64, ok bool) {
	o, ok := w.(RowOrthogonal)
	if !ok {
		return 0, false
	}
	return o.RowOrthogonal()
}

// bothOrthogonal is the κ of a product of two operators, of which either kind (A ⊗ B, and
// Φ Ψ) has orthogonal rows where both have.
func bothOrthogonal(a, b Operator) (kappa float64, ok bool) {
	first, one := Orthogonal(a)
	second, other := Orthogonal(b)
	return first * second, one && other
}

// Structured is an Operator that is no table: it is identified by what it is made
// of, and not by its entries.
type Structured interface {
	Operator

	// String says what it is, as in "512 rows of the Walsh–Hadamard transform of size 1024".
	String() string

	// Identify writes what identifies the operator: the same bytes for the
	// same matrix, made in the same way.
	Identify(to io.Writer) error

	// Bytes is the memory that it takes, without that of sweeps.
	Bytes() int64
}

// products are the two halves of a sweep over all rows.
type products interface {
	forward(z, v, x, c []float64) error
	backward(r, h, g, d []float64) error
}

// wholeSweep is the sweep of an operator that computes all rows at once.
type wholeSweep struct {
	products
	m, p, q, threads int
	z, v, g, d       []float64
}

func newWholeSweep(by products, m, p, q, threads int) *wholeSweep {
	return &wholeSweep{products: by, m: m, p: p, q: q, threads: max(1, threads)}
}

// rowsAtOnce is how many rows are handed over together: enough work for one
// goroutine, and small enough to stay in cache.
const rowsAtOnce = 256

// Run implements [Sweep].
func (s *wholeSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	if s.z == nil { // not before, since callers of the halves do not need them
		s.z, s.g = make([]float64, s.m*s.p), make([]float64, s.m*s.p)
		s.v, s.d = make([]float64, s.m*s.q), make([]float64, s.m*s.q)
	}
	if err := s.forward(s.z, s.v, x, c); err != nil {
		return err
	}
	parallel.Run((s.m+rowsAtOnce-1)/rowsAtOnce, s.threads, func(i int) {
		first, end := i*rowsAtOnce, min((i+1)*rowsAtOnce, s.m)
		rows(first, s.z[first*s.p:end*s.p], s.v[first*s.q:end*s.q], s.g[first*s.p:end*s.p], s.d[first*s.q:end*s.q])
	})
	return s.backward(r, h, s.g, s.d)
}

// Forward implements [Halves].
func (s *wholeSweep) Forward(z, v, x, c []float64) error { return s.forward(z, v, x, c) }

// Backward implements [Halves].
func (s *wholeSweep) Backward(r, h, g, d []float64) error { return s.backward(r, h, g, d) }

// halvesOf returns the halves of any sweep, p and q columns wide over a matrix of n columns.
func halvesOf(s Sweep, n, p, q int) products {
	if whole, ok := s.(*wholeSweep); ok {
		return whole.products
	}
	return &swept{sweep: s, n: n, p: p, q: q}
}

// swept computes one half by a sweep that computes both.
type swept struct {
	sweep      Sweep
	n, p, q    int
	x, c, r, h []float64
}

func (s *swept) forward(z, v, x, c []float64) error {
	if s.r == nil {
		s.r, s.h = make([]float64, s.p*s.n), make([]float64, s.q*s.n)
	}
	if half, ok := s.sweep.(Halves); ok {
		return half.Forward(z, v, x, c)
	}
	return s.sweep.Run(s.r, s.h, x, c, func(first int, zs, vs, g, d []float64) {
		copy(z[first*s.p:], zs)
		copy(v[first*s.q:], vs)
		clear(g)
		clear(d)
	})
}

func (s *swept) backward(r, h, g, d []float64) error {
	if half, ok := s.sweep.(Halves); ok {
		return half.Backward(r, h, g, d)
	}
	if s.x == nil {
		s.x, s.c = make([]float64, s.p*s.n), make([]float64, s.q*s.n)
	}
	return s.sweep.Run(r, h, s.x, s.c, func(first int, _, _, gs, ds []float64) {
		copy(gs, g[first*s.p:])
		copy(ds, d[first*s.q:])
	})
}

// newHalves are the halves of a new sweep over w.
func newHalves(w Operator, p, q, threads int) (products, error) {
	_, n := w.Dims()
	sweep, err := w.NewSweep(p, q, threads)
	if err != nil {
		return nil, err
	}
	return halvesOf(sweep, n, p, q), nil
}

// Describe says what an operator is: by its own words, or its type.
func Describe(w Operator) string {
	switch w := w.(type) {
	case fmt.Stringer:
		return w.String()
	case Matrix:
		m, n := w.Dims()
		return fmt.Sprintf("%d×%d table", m, n)
	}
	return fmt.Sprintf("%T", w)
}

// Bytes is the memory that an operator takes, without that of sweeps: 0 where that is not
// known, and where it stays in its file.
func Bytes(w Operator) int64 {
	switch w := w.(type) {
	case Structured:
		return w.Bytes()
	case Streamed:
		return 0
	case Matrix:
		m, n := w.Dims()
		return int64(m) * int64(n) * map[string]int64{"f32": 4, "f64": 8}[w.Storage()]
	}
	return 0
}

// Identify writes what identifies w: the entries of a table, row by
// row as little-endian float64, or what a [Structured] operator is made of.
func Identify(to io.Writer, w Operator) error {
	switch w := w.(type) {
	case Structured:
		return w.Identify(to)
	case interface{ identify(to io.Writer) error }:
		return w.identify(to)
	case interface {
		RowInto(dst []float64, mu int) error
	}:
		m, n := w.(Operator).Dims()
		return identifyRows(to, w, m, n)
	}
	return fmt.Errorf("a matrix of type %T has no identity: it shows no entries, and is no operator.Structured", w)
}

func identifyRows(to io.Writer, w interface {
	RowInto(dst []float64, mu int) error
}, m, n int,
) error {
	row, raw := make([]float64, n), make([]byte, 8*n)
	for mu := range m {
		if err := w.RowInto(row, mu); err != nil {
			return err
		}
		for i, v := range row {
			if v == 0 {
				v = 0 // of -0 and 0 the second
			}
			binary.LittleEndian.PutUint64(raw[8*i:], math.Float64bits(v))
		}
		if _, err := to.Write(raw); err != nil {
			return err
		}
	}
	return nil
}

// identifyAll is for operators that are made of others.
func identifyAll(to io.Writer, name string, parts ...Operator) error {
	if _, err := fmt.Fprintf(to, "%s of %d\n", name, len(parts)); err != nil {
		return err
	}
	for _, w := range parts {
		m, n := w.Dims()
		if _, err := fmt.Fprintf(to, "part m=%d n=%d\n", m, n); err != nil {
			return err
		}
		if err := Identify(to, w); err != nil {
			return err
		}
	}
	return nil
}
