package operator

import (
	"fmt"
	"io"
	"runtime"

	"github.com/calamp/calamp/internal/parallel"
)

// Compose returns the matrix Φ Ψ, of an M×N matrix Φ and an N×K basis Ψ: signals are Ψ x
// for coefficients x. A Φ in memory is multiplied out, row by row, which takes the memory
// of M×K entries, and gives a table with all that tables can do. Of any other Φ, both
// are kept, and each product is two; its squared entries are then not known. It is an
// error when Φ has not as many columns as Ψ has rows.
func Compose(phi, psi Operator) (Operator, error) {
	m, n := phi.Dims()
	rows, k := psi.Dims()
	if n != rows {
		return nil, fmt.Errorf("the matrix is %d×%d and the basis %d×%d: expected a basis with %d rows, one for each column of the matrix", m, n, rows, k, n)
	}
	if matrices, of := Separate(phi); matrices != nil {
		return withEach(matrices, of, func(w Operator) (Operator, error) { return Compose(w, psi) })
	}
	if d, ok := phi.(*Dense); ok {
		return multiplyOut(d, psi)
	}
	c := &composed{phi: phi, psi: psi}
	return c, c.measure()
}

// multiplied is how many rows of a table are multiplied at a time.
const multiplied = 64

// multiplyOut computes the rows Ψᵀφ of Φ Ψ.
func multiplyOut(phi *Dense, psi Operator) (Operator, error) {
	m, n := phi.Dims()
	_, k := psi.Dims()
	out := make([]float64, m*k)
	halves, err := newHalves(psi, multiplied, 0, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	g, r, row := make([]float64, n*multiplied), make([]float64, multiplied*k), make([]float64, n)
	for first := 0; first < m; first += multiplied {
		count := min(multiplied, m-first)
		clear(g)
		for a := range count {
			if err := phi.RowInto(row, first+a); err != nil {
				return nil, err
			}
			for i, v := range row {
				g[i*multiplied+a] = v
			}
		}
		if err := halves.backward(r, nil, g, nil); err != nil {
			return nil, err
		}
		copy(out[first*k:], r[:count*k])
	}
	return NewDense(m, k, out)
}

// composed is Φ Ψ, kept as two operators.
type composed struct {
	phi, psi   Operator
	meanSquare float64
	memory
}

func (c *composed) measure() (err error) {
	if kappa, ok := Orthogonal(c.psi); ok { // Σ (Φ Ψ)² is the trace of Φ Ψ Ψᵀ Φᵀ = κ Φ Φᵀ
		n, k := c.psi.Dims()
		c.meanSquare = kappa * c.phi.MeanSquare() * float64(n) / float64(k)
		return nil
	}
	c.meanSquare, err = probedMeanSquare(c)
	return err
}

// Dims implements [Operator].
func (c *composed) Dims() (m, n int) {
	m, _ = c.phi.Dims()
	_, n = c.psi.Dims()
	return m, n
}

// MeanSquare implements [Operator]; it is estimated, to a percent or so, unless the rows
// of the basis are orthogonal.
func (c *composed) MeanSquare() float64 { return c.meanSquare }

// RowOrthogonal implements [RowOrthogonal]: Φ Ψ Ψᵀ Φᵀ = κ_ψ Φ Φᵀ.
func (c *composed) RowOrthogonal() (kappa float64, ok bool) { return bothOrthogonal(c.phi, c.psi) }

// String says what it is.
func (c *composed) String() string {
	return fmt.Sprintf("product of a %s and a %s", Describe(c.phi), Describe(c.psi))
}

// Bytes implements [Structured].
func (c *composed) Bytes() int64 { return Bytes(c.phi) + Bytes(c.psi) }

// Identify implements [Structured].
func (c *composed) Identify(to io.Writer) error { return identifyAll(to, "product", c.phi, c.psi) }

// NewSweep implements [Operator]; there is none with quadratic columns.
func (c *composed) NewSweep(p, q, threads int) (Sweep, error) {
	if q > 0 {
		return nil, NoSquares(c)
	}
	m, n := c.phi.Dims()
	s := &composedSweep{n: n, p: p, threads: max(1, threads), sensors: make([]float64, n*p), signals: make([]float64, n*p)}
	var err error
	if s.phi, err = newHalves(c.phi, p, 0, threads); err != nil {
		return nil, err
	}
	if s.psi, err = newHalves(c.psi, p, 0, threads); err != nil {
		return nil, err
	}
	return newWholeSweep(s, m, p, 0, threads), nil
}

type composedSweep struct {
	phi, psi         products
	n, p, threads    int
	sensors, signals []float64 // what is between: N×p and p×N
}

func (s *composedSweep) forward(z, _, x, _ []float64) error {
	if err := s.psi.forward(s.sensors, nil, x, nil); err != nil {
		return err
	}
	transpose(s.signals, s.sensors, s.n, s.p, s.threads)
	return s.phi.forward(z, nil, s.signals, nil)
}

func (s *composedSweep) backward(r, _, g, _ []float64) error {
	if err := s.phi.backward(s.signals, nil, g, nil); err != nil {
		return err
	}
	transpose(s.sensors, s.signals, s.p, s.n, s.threads)
	return s.psi.backward(r, nil, s.sensors, nil)
}

// transpose sets dst to the columns×rows transpose of the rows×columns matrix src.
func transpose(dst, src []float64, rows, columns, threads int) {
	const side = 32 // of a square that stays in cache
	across := (columns + side - 1) / side
	down := (rows + side - 1) / side
	parallel.Run(across*down, threads, func(i int) {
		for a, end := i/across*side, min((i/across+1)*side, rows); a < end; a++ {
			for b, last := i%across*side, min((i%across+1)*side, columns); b < last; b++ {
				dst[b*rows+a] = src[a*columns+b]
			}
		}
	})
}

// Transpose returns Wᵀ. That of rows of an orthonormal transform, all of them, is its
// inverse: the basis in which coefficients are those of the transform.
func Transpose(w Operator) Operator {
	if t, ok := w.(*transposed); ok {
		return t.w
	}
	return &transposed{w}
}

// transposed is Wᵀ.
type transposed struct{ w Operator }

// Dims implements [Operator].
func (t *transposed) Dims() (m, n int) {
	n, m = t.w.Dims()
	return m, n
}

// MeanSquare implements [Operator].
func (t *transposed) MeanSquare() float64 { return t.w.MeanSquare() }

// HasSquares implements [Squares].
func (t *transposed) HasSquares() bool { return HasSquares(t.w) }

// RowOrthogonal implements [RowOrthogonal]: a square matrix with orthogonal rows has
// orthogonal columns.
func (t *transposed) RowOrthogonal() (kappa float64, ok bool) {
	m, n := t.w.Dims()
	kappa, ok = Orthogonal(t.w)
	return kappa, ok && m == n
}

// String says what it is.
func (t *transposed) String() string { return "transpose of a " + Describe(t.w) }

// Bytes implements [Structured].
func (t *transposed) Bytes() int64 { return Bytes(t.w) }

// Identify implements [Structured].
func (t *transposed) Identify(to io.Writer) error { return identifyAll(to, "transpose", t.w) }

// NewSweep implements [Operator].
func (t *transposed) NewSweep(p, q, threads int) (Sweep, error) {
	halves, err := newHalves(t.w, p, q, threads)
	if err != nil {
		return nil, err
	}
	m, n := t.Dims()
	return newWholeSweep(&transposedSweep{
		w: halves, m: m, n: n, p: p, q: q, threads: max(1, threads),
		z: make([]float64, m*p), v: make([]float64, m*q), x: make([]float64, n*p), c: make([]float64, n*q),
	}, m, p, q, threads), nil
}

type transposedSweep struct {
	w                   products
	m, n, p, q, threads int
	z, v                []float64 // M, signal by signal
	x, c                []float64 // N, entry by entry
}

func (s *transposedSweep) forward(z, v, x, c []float64) error {
	transpose(s.x, x, s.p, s.n, s.threads)
	transpose(s.c, c, s.q, s.n, s.threads)
	if err := s.w.backward(s.z, s.v, s.x, s.c); err != nil {
		return err
	}
	transpose(z, s.z, s.p, s.m, s.threads)
	transpose(v, s.v, s.q, s.m, s.threads)
	return nil
}

func (s *transposedSweep) backward(r, h, g, d []float64) error {
	transpose(s.z, g, s.m, s.p, s.threads)
	transpose(s.v, d, s.m, s.q, s.threads)
	if err := s.w.forward(s.x, s.c, s.z, s.v); err != nil {
		return err
	}
	transpose(r, s.x, s.n, s.p, s.threads)
	transpose(h, s.c, s.n, s.q, s.threads)
	return nil
}
