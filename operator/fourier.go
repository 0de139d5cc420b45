package operator

import (
	"fmt"
	"io"
	"math"

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
	_, ok = w.rows.(*fourierParts)
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
	return newWholeSweep(&fourierSweep{fourierParts: f, p: p, q: q, threads: max(1, threads)}, m, p, q, threads), nil
}

type fourierSweep struct {
	*fourierParts
	p, q, threads int
	work          []float64 // N×2⌈max(p,q)/2⌉
}

// space is that of count columns, two of which are one complex signal: the second half are the imaginary parts.
func (s *fourierSweep) space(count int) (work []float64, width int) {
	if s.work == nil {
		s.work = make([]float64, (max(s.p, s.q)+1)/2*2*s.n)
	}
	width = (count + 1) / 2
	return s.work[:2*width*s.n], width
}

func (s *fourierSweep) forward(z, v, x, c []float64) error {
	if s.p > 0 {
		scale := 1 / math.Sqrt(float64(s.n))
		s.transform(x, s.p, linear)
		inPieces(len(s.rows), s.threads, func(from, to int) {
			for mu := from; mu < to; mu++ {
				re, im := z[2*mu*s.p:(2*mu+1)*s.p], z[(2*mu+1)*s.p:(2*mu+2)*s.p]
				s.at2(s.p, int(s.rows[mu]), func(k int, a, b float64) { re[k], im[k] = scale*a, scale*b })
			}
		})
	}
	if s.q > 0 { // cos² = ½(1 + cos of twice the angle), sin² the rest
		scale := 0.5 / float64(s.n)
		totals := make([]float64, s.q)
		for k := range totals {
			totals[k] = sumOf(c[k*s.n:], s.n, 1)
		}
		s.transform(c, s.q, squares)
		inPieces(len(s.rows), s.threads, func(from, to int) {
			for mu := from; mu < to; mu++ {
				re, im := v[2*mu*s.q:(2*mu+1)*s.q], v[(2*mu+1)*s.q:(2*mu+2)*s.q]
				s.at2(s.q, 2*int(s.rows[mu])%s.n, func(k int, a, _ float64) {
					re[k], im[k] = scale*(totals[k]+a), scale*(totals[k]-a)
				})
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

// backwardSquares sums what both parts of the squares have in common, and cosines of twice the angles.
func (s *fourierSweep) backwardSquares(h, d []float64) {
	scale, alike := 0.5/float64(s.n), true
	totals := make([]float64, s.q)
	for j, v := range d {
		totals[j%s.q] += scale * v
		alike = alike && v == d[(j/s.q^1)*s.q+j%s.q]
	}
	if alike { // as those of complex signals are
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

// transform leaves the transforms of count columns in work, as [fourierSweep.at2] takes them from there.
func (s *fourierSweep) transform(x []float64, count int, kind power) {
	work, width := s.space(count)
	s.plan.Into(work, width, s.threads, func(j int, re, im []float64) {
		entry, sign := s.at(j, kind)
		for k := range re {
			re[k], im[k] = sign*x[k*s.n+entry], 0
			if width+k < count {
				im[k] = sign * x[(width+k)*s.n+entry]
			}
		}
	})
}

// at2 tells both parts of row r of the transforms of count columns: of z = a + ib, with a and b real,
//
//	a_r = ½(z_r + z̄_(N-r)),   b_r = (z_r - z̄_(N-r)) / 2i.
func (s *fourierSweep) at2(count, row int, tell func(k int, re, im float64)) {
	width := (count + 1) / 2
	there := s.work[2*width*row:][:2*width]
	mirror := s.work[2*width*((s.n-row)%s.n):][:2*width]
	for k := range width {
		a, b, c, d := there[k], there[width+k], mirror[k], mirror[width+k]
		tell(k, 0.5*(a+c), 0.5*(b-d))
		if width+k < count {
			tell(width+k, 0.5*(b+d), 0.5*(c-a))
		}
	}
}

// series sets r to Re Σ_r a_r e^(-2πi rj/N) at every entry, where amplitude tells a_r of a column; and applies signs and permutation. That
// is the transform of ½(a_r + ā_(N-r)).
func (s *fourierSweep) series(r []float64, count int, kind power, amplitude func(row, k int) (re, im float64)) {
	work, width := s.space(count)
	s.plan.Into(work, width, s.threads, func(row int, re, im []float64) {
		mirror := (s.n - row) % s.n
		for k := range re {
			a, b := amplitude(row, k)
			c, d := amplitude(mirror, k)
			re[k], im[k] = 0.5*(a+c), 0.5*(b-d)
			if width+k < count { // times i
				a, b = amplitude(row, width+k)
				c, d = amplitude(mirror, width+k)
				re[k] -= 0.5 * (b - d)
				im[k] += 0.5 * (a + c)
			}
		}
	})
	inPieces(s.n, s.threads, func(from, to int) {
		for j := from; j < to; j++ {
			entry, sign := s.at(j, kind)
			for k, value := range work[2*width*j:][:count] { // real parts are the first half, imaginary ones the second
				r[k*s.n+entry] = sign * value
			}
		}
	})
}
