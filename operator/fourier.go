package operator

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/transform"
)

// NewFourier makes the operator of rows of the orthonormal Fourier transform,
//
//	T_ri = e^(-2πi ri/N) / √N,
//
// of any size N, as scipy.fft.fft(x, norm="ortho") computes it, for complex signals. The error names the array and
// the place that is wrong.
func NewFourier(r Rows) (*Complex, error) {
	s, err := r.selection()
	if err != nil {
		return nil, err
	}
	parts := &fourierParts{selection: s, plan: transform.NewFourier(r.N)}
	return &Complex{m: len(s.rows), n: s.n, rows: parts}, nil
}

// Rows is what the operator was made of, where it is [NewFourier]'s.
func (w *Complex) Rows() (r Rows, ok bool) {
	parts, ok := w.rows.(*fourierParts)
	if !ok {
		return r, false
	}
	return parts.Rows(), true
}

// RowOrthogonal implements [RowOrthogonal]: all different rows of a unitary transform.
func (w *Complex) RowOrthogonal() (kappa float64, ok bool) {
	if e, is := w.rows.(*Each); is {
		return e.RowOrthogonal()
	}
	rows := w.rows
	if a, is := rows.(*inOrder); is && len(a.order) == 2*w.m && !slices.Contains(a.order, -1) {
		rows = a.Operator
	}
	_, ok = rows.(*fourierParts)
	return 1, ok
}

// fourierParts are the real and the imaginary parts of rows of the Fourier transform as rows of a real matrix (2M×N), one
// below the other: cosines, and sines with a minus. Two columns of a sweep are one complex signal of the transform.
type fourierParts struct {
	selection
	plan *transform.Fourier
}

// Dims implements [Operator].
func (f *fourierParts) Dims() (m, n int) { return 2 * len(f.rows), f.n }

// MeanSquare implements [Operator].
func (f *fourierParts) MeanSquare() float64 { return 0.5 / float64(f.n) }

// RowOrthogonal implements [RowOrthogonal]: rows r and N-r have the same cosines.
func (f *fourierParts) RowOrthogonal() (kappa float64, ok bool) { return 0, false }

// String says what it is.
func (f *fourierParts) String() string {
	return fmt.Sprintf("choice of %d rows of the Fourier transform of size %d", len(f.rows), f.n)
}

// Identify implements [Structured].
func (f *fourierParts) Identify(to io.Writer) error { return f.identify(to, "fft") }

// NewSweep implements [Operator]; it never fails.
func (f *fourierParts) NewSweep(p, q, threads int) (Sweep, error) {
	m, _ := f.Dims()
	s := &fourierSweep{fourierParts: f, p: p, q: q, columns: columns{plan: f.plan, threads: max(1, threads)}}
	return newWholeSweep(s, m, p, q, threads), nil
}

type fourierSweep struct {
	*fourierParts
	p, q int
	columns
}

func (s *fourierSweep) forward(z, v, x, c []float64) error {
	if s.p > 0 {
		scale := 1 / math.Sqrt(float64(s.n))
		s.transform(x, s.p, linear, func(k, mu, row int, p *pairs, q int) {
			a, ai, b, bi := p.at(q, row)
			re, im := z[2*mu*s.p:][k:s.p], z[(2*mu+1)*s.p:][k:s.p]
			re[0], im[0] = scale*a, scale*ai
			if len(re) > 1 {
				re[1], im[1] = scale*b, scale*bi
			}
		})
	}
	if s.q > 0 { // cos² = ½(1 + cos of twice the angle), sin² the rest
		scale := 0.5 / float64(s.n)
		totals := make([]float64, s.q)
		for k := range totals {
			totals[k] = sumOf(c[k*s.n:], s.n, 1)
		}
		s.transform(c, s.q, squares, func(k, mu, row int, p *pairs, q int) {
			a, _, b, _ := p.at(q, 2*row%s.n)
			re, im := v[2*mu*s.q:][k:s.q], v[(2*mu+1)*s.q:][k:s.q]
			re[0], im[0] = scale*(totals[k]+a), scale*(totals[k]-a)
			if len(re) > 1 {
				re[1], im[1] = scale*(totals[k+1]+b), scale*(totals[k+1]-b)
			}
		})
	}
	return nil
}

func (s *fourierSweep) backward(r, h, g, d []float64) error {
	if s.p > 0 { // the real part of what the conjugates of g are transformed to
		scale := 1 / math.Sqrt(float64(s.n))
		s.series(r, s.p, linear, func(row, k int) (re, im float64) {
			if mu := int(s.row[row]); mu >= 0 {
				return scale * g[2*mu*s.p+k], -scale * g[(2*mu+1)*s.p+k]
			}
			return 0, 0
		})
	}
	if s.q > 0 {
		s.backwardSquares(h, d)
	}
	return nil
}

// rowInto sets re and im to the parts of row mu: e^(-2πi rj/N)/√N for the entry that goes to place j, with its sign.
func (f *fourierParts) rowInto(re, im []float64, mu int) error {
	scale, row := 1/math.Sqrt(float64(f.n)), int(f.rows[mu])
	for place := range f.n {
		entry, sign := f.at(place, linear)
		sin, cos := math.Sincos(2 * math.Pi * float64(row*place%f.n) / float64(f.n))
		re[entry], im[entry] = sign*scale*cos, -sign*scale*sin
	}
	return nil
}

// backwardSquares sums what both parts of the squares have in common, and cosines of twice the angles.
func (s *fourierSweep) backwardSquares(h, d []float64) {
	scale, equal := 0.5/float64(s.n), true
	totals := make([]float64, s.q)
	for j, v := range d {
		totals[j%s.q] += scale * v
		equal = equal && v == d[(j/s.q^1)*s.q+j%s.q]
	}
	if equal { // as those of complex signals are
		clear(h)
	} else {
		s.series(h, s.q, squares, func(double, k int) (re, im float64) {
			for _, row := range s.halves(double) {
				if row < 0 {
					continue
				}
				if mu := int(s.row[row]); mu >= 0 {
					re += scale * (d[2*mu*s.q+k] - d[(2*mu+1)*s.q+k])
				}
			}
			return re, 0
		})
	}
	for i := range h {
		h[i] += totals[i/s.n]
	}
}

// halves are the rows of which a row is the double, modulo N; -1 for none.
func (s *fourierSweep) halves(double int) [2]int {
	switch {
	case s.n%2 == 1 && double%2 == 1:
		return [2]int{(double + s.n) / 2, -1}
	case double%2 == 1:
		return [2]int{-1, -1}
	case s.n%2 == 1:
		return [2]int{double / 2, -1}
	}
	return [2]int{double / 2, double/2 + s.n/2}
}

// transform calls done for every reading µ, its row, and every pair q of p, whose first column is k.
func (s *fourierSweep) transform(x []float64, count int, kind power, done func(k, mu, row int, p *pairs, q int)) {
	s.each(count, ofReals(count, func(k, j int, out []float64, step int) {
		s.take(out, step, x[k*s.n:(k+1)*s.n], j, 1, kind)
	}), func(p *pairs) {
		inPieces(len(s.rows), s.threads, func(from, to int) {
			for mu := from; mu < to; mu++ {
				for q := range p.width {
					done(p.first+2*q, mu, int(s.rows[mu]), p, q)
				}
			}
		})
	})
}

// series sets r to Re Σ_r a_r e^(-2πi rj/N) at every entry, where amplitude tells a_r of a column; and applies signs and permutation. That
// is the transform of ½(a_r + ā_(N-r)).
func (s *fourierSweep) series(r []float64, count int, kind power, amplitude func(row, k int) (re, im float64)) {
	s.each(count, ofSpectra(count, func(k, row int, re, im []float64) {
		for i := range re {
			a, b := amplitude(row+i, k)
			c, d := amplitude((s.n-row-i)%s.n, k)
			re[i], im[i] = 0.5*(a+c), 0.5*(b-d)
		}
	}), func(p *pairs) {
		inPieces(s.n, s.threads, func(from, to int) {
			for i := range p.count {
				in, step := p.plane(i)
				k := p.first + i
				s.give(r[k*s.n:(k+1)*s.n], in[from*step:], step, to-from, from, 1, kind)
			}
		})
	})
}
