package operator

import (
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/internal/transform"
)

// DCT is rows of the orthonormal cosine transform of type II,
//
//	T_ri = f_r cos(π r (2i+1) / 2N),   f_0 = √(1/N),   f_r = √(2/N),
//
// of any size N, as scipy.fft.dct(x, norm="ortho") computes it. Its squared entries are
// cosines of twice the angle, so that exact variances take two transforms more.
type DCT struct {
	selection
	plan     *transform.Fourier
	cos, sin []float64 // N: of πr/2N
}

// NewDCT makes the operator of the rows r. The error names the array and the place that
// is wrong.
func NewDCT(r Rows) (*DCT, error) {
	s, err := r.selection()
	if err != nil {
		return nil, err
	}
	d := &DCT{selection: s, plan: transform.NewFourier(r.N), cos: make([]float64, r.N), sin: make([]float64, r.N)}
	for k := range d.cos {
		d.cos[k], d.sin[k] = transform.Root(k, 4*r.N)
	}
	return d, nil
}

// String says what it is.
func (d *DCT) String() string {
	return fmt.Sprintf("choice of %d rows of the cosine transform of size %d", len(d.rows), d.n)
}

// Identify implements [Structured].
func (d *DCT) Identify(to io.Writer) error { return d.identify(to, "dct") }

// Bytes implements [Structured].
func (d *DCT) Bytes() int64 { return d.selection.Bytes() + 16*int64(d.n) }

// NewSweep implements [Operator]; it never fails.
func (d *DCT) NewSweep(p, q, threads int) (Sweep, error) {
	m, _ := d.Dims()
	return newWholeSweep(&dctSweep{DCT: d, p: p, q: q, threads: max(1, threads)}, m, p, q, threads), nil
}

type dctSweep struct {
	*DCT
	p, q, threads int
	work          []float64 // N×2⌈max(p,q)/2⌉
}

// space is that of count signals: two are one complex signal.
func (s *dctSweep) space(count int) (work []float64, width int) {
	if s.work == nil {
		s.work = make([]float64, (max(s.p, s.q)+1)/2*2*s.n)
	}
	width = (count + 1) / 2
	return s.work[:2*width*s.n], width
}

func (s *dctSweep) forward(z, v, x, c []float64) error {
	if s.p > 0 {
		s.cosines(x, s.p, linear)
		inPieces(len(s.rows), s.threads, func(from, to int) {
			for mu := from; mu < to; mu++ {
				row := int(s.rows[mu])
				s.cosine(z[mu*s.p:(mu+1)*s.p], row, s.factor(row))
			}
		})
	}
	if s.q > 0 {
		s.forwardSquares(v, c)
	}
	return nil
}

func (s *dctSweep) backward(r, h, g, d []float64) error {
	if s.p > 0 {
		zero, others := s.factor(0), s.factor(1)
		s.series(r, s.p, linear, func(h, k int) float64 {
			mu := int(s.row[h])
			switch {
			case mu < 0:
				return 0
			case h == 0:
				return zero * g[mu*s.p+k]
			}
			return others * g[mu*s.p+k]
		})
	}
	if s.q > 0 {
		s.backwardSquares(h, d)
	}
	return nil
}

// factor is f_r.
func (s *dctSweep) factor(row int) float64 {
	if row == 0 {
		return math.Sqrt(1 / float64(s.n))
	}
	return math.Sqrt(2 / float64(s.n))
}

// half is half of the angles at which row r has squares, 1/N + amplitude·cos(π h (2i+1)/2N):
// h = 2r, or 2N-2r with the other sign.
func (s *dctSweep) half(row int) (h int, amplitude float64) {
	switch {
	case row == 0 || 2*row == s.n:
		return 0, 0
	case 2*row < s.n:
		return 2 * row, 1 / float64(s.n)
	}
	return 2 * (s.n - row), -1 / float64(s.n)
}

func (s *dctSweep) forwardSquares(v, c []float64) {
	totals := make([]float64, s.q)
	for k := range totals {
		totals[k] = sumOf(c[k*s.n:], s.n, 1) / float64(s.n)
	}
	s.cosines(c, s.q, squares)
	inPieces(len(s.rows), s.threads, func(from, to int) {
		for mu := from; mu < to; mu++ {
			out := v[mu*s.q : (mu+1)*s.q]
			h, amplitude := s.half(int(s.rows[mu]))
			s.cosine(out, h, amplitude)
			for k := range out {
				out[k] += totals[k]
			}
		}
	})
}

func (s *dctSweep) backwardSquares(h, d []float64) {
	each := 1 / float64(s.n)
	s.series(h, s.q, squares, func(h, k int) float64 {
		if h%2 == 1 || h == 0 {
			return 0
		}
		total := 0.0
		if mu := int(s.row[h/2]); mu >= 0 { // the rows whose squares have half the angle h
			total += each * d[mu*s.q+k]
		}
		if mu := int(s.row[s.n-h/2]); mu >= 0 {
			total -= each * d[mu*s.q+k]
		}
		return total
	})
	inPieces(s.q*s.n, s.threads, func(from, to int) {
		for i := from; i < to; {
			k := i / s.n
			total := sumOf(d[k:], len(s.rows), s.q) / float64(s.n)
			for end := min(to, (k+1)*s.n); i < end; i++ {
				h[i] += total
			}
		}
	})
}

// cosines leaves in work what [dctSweep.cosine] takes sums of x over cos(π h (2i+1)/2N)
// from: the Fourier transform of entries 0, 2, 4, … 5, 3, 1 (Makhoul 1980), with the
// second half of the signals as imaginary parts of the first.
func (s *dctSweep) cosines(x []float64, count int, kind power) {
	work, width := s.space(count)
	s.plan.Into(work, width, s.threads, func(j int, re, im []float64) {
		entry, sign := s.at(s.fold(j), kind)
		for k := range re {
			re[k] = sign * x[k*s.n+entry]
		}
		for k := range im {
			im[k] = 0
			if width+k < count {
				im[k] = sign * x[(width+k)*s.n+entry]
			}
		}
	})
}

// fold is the entry at place j of 0, 2, 4, … 5, 3, 1.
func (s *dctSweep) fold(j int) int {
	if 2*j < s.n {
		return 2 * j
	}
	return 2*(s.n-j) - 1
}

// cosine sets out to factor·Σ_i x_i cos(π h (2i+1)/2N), after cosines.
func (s *dctSweep) cosine(out []float64, h int, factor float64) {
	width := (len(out) + 1) / 2
	there := s.work[2*width*h:][:2*width]
	mirror := s.work[2*width*((s.n-h)%s.n):][:2*width]
	cos, sin := 0.5*factor*s.cos[h], 0.5*factor*s.sin[h]
	for k := range width {
		a, b, c, d := there[k], there[width+k], mirror[k], mirror[width+k]
		out[k] = (a+c)*cos + (b-d)*sin
		if width+k < len(out) {
			out[width+k] = (b+d)*cos - (a-c)*sin
		}
	}
}

// series sets r to Σ_h a_h cos(π h (2i+1)/2N) at every entry, where amplitude tells a_h
// of a signal; and applies signs and permutation.
func (s *dctSweep) series(r []float64, count int, kind power, amplitude func(h, k int) float64) {
	work, width := s.space(count)
	n := s.n
	s.plan.Into(work, width, s.threads, func(h int, re, im []float64) {
		cos, sin, mirror := 0.5*s.cos[h], 0.5*s.sin[h], n-h
		if h == 0 { // its own mirror image
			for k := range width {
				im[k], re[k] = amplitude(0, k), 0
				if width+k < count {
					re[k] = amplitude(0, width+k)
				}
			}
			return
		}
		// The inverse transform has real and imaginary parts exchanged. A signal is the
		// transform of ½(a_h + a_(N-h) e^(-πi/2)) e^(πih/2N), its partner i times that.
		for k := range width {
			a, c := amplitude(h, k), amplitude(mirror, k)
			br, bi := 0.0, 0.0
			if width+k < count {
				b, d := amplitude(h, width+k), amplitude(mirror, width+k)
				br, bi = b*cos+d*sin, b*sin-d*cos
			}
			im[k], re[k] = a*cos+c*sin-bi, a*sin-c*cos+br
		}
	})
	inPieces(n, s.threads, func(from, to int) {
		for j := from; j < to; j++ {
			entry, sign := s.at(s.fold(j), kind)
			pair := work[2*width*j:][:2*width]
			for k := range count {
				// signal k is the real part, which is in the second half
				value := pair[(width+k)%(2*width)]
				r[k*n+entry] = sign * value
			}
		}
	})
}
