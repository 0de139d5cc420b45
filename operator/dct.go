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
	half     *transform.Fourier // of half the length, where N is even
	cos, sin []float64          // N: of πr/2N
}

// NewDCT makes the operator of the rows r. The error names the array and the place that
// is wrong.
func NewDCT(r Rows) (*DCT, error) {
	s, err := r.selection()
	if err != nil {
		return nil, err
	}
	d := &DCT{selection: s, plan: transform.NewFourier(r.N), cos: make([]float64, r.N), sin: make([]float64, r.N)}
	if r.N%2 == 0 {
		d.half = transform.NewFourier(r.N / 2)
	}
	for k := range d.cos {
		d.cos[k], d.sin[k] = transform.Root(k, 4*r.N)
	}
	return d, nil
}

// Cosines is the basis of which coefficients are those of the cosine transform of n entries: its inverse.
func Cosines(n int) (Operator, error) {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	d, err := NewDCT(Rows{N: n, Rows: rows})
	if err != nil {
		return nil, err
	}
	return Transpose(d), nil
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
	s := &dctSweep{DCT: d, p: p, q: q, columns: columns{plan: d.plan, threads: max(1, threads)}, lone: columns{plan: d.half, threads: max(1, threads)}}
	return newWholeSweep(s, m, p, q, threads), nil
}

type dctSweep struct {
	*DCT
	p, q int
	columns
	lone columns // of half the length
	zero []float64
}

func (s *dctSweep) forward(z, v, x, c []float64) error {
	if s.p > 0 {
		zero, others := s.factor(0), s.factor(1)
		s.cosines(x, s.p, linear, func(k, h, step int, one, two []float64) {
			if h == 0 {
				one[0] *= zero / others
				two[0] *= zero / others
			}
			for i, value := range one {
				if mu := int(s.row[h]); mu >= 0 {
					out := z[mu*s.p+k : (mu+1)*s.p]
					out[0] = others * value
					if len(out) > 1 {
						out[1] = others * two[i]
					}
				}
				h += step
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
		s.series(r, s.p, linear, func(out []float64, row int) {
			mu, factor := int(s.row[row]), others
			if mu < 0 {
				clear(out)
				return
			}
			if row == 0 {
				factor = zero
			}
			for k, v := range g[mu*s.p:][:len(out)] {
				out[k] = factor * v
			}
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

// Row r has squares 1/N + cos(π h (2i+1)/2N)/N with h = 2r, which for 2r > N is the same as -cos with h = 2N-2r; it is
// 1/N alone for r = 0 and N/2.

func (s *dctSweep) forwardSquares(v, c []float64) {
	each := 1 / float64(s.n)
	for k := range s.q {
		total := sumOf(c[k*s.n:], s.n, 1) * each
		for mu := range s.rows {
			v[mu*s.q+k] = total
		}
	}
	s.cosines(c, s.q, squares, func(k, h, step int, one, two []float64) {
		for i, value := range one {
			if at := h + i*step; at%2 == 0 && at > 0 {
				for side, row := range [2]int{at / 2, s.n - at/2} {
					if mu := int(s.row[row]); mu >= 0 {
						sign, out := each*float64(1-2*side), v[mu*s.q+k:(mu+1)*s.q]
						out[0] += sign * value
						if len(out) > 1 {
							out[1] += sign * two[i]
						}
					}
				}
			}
		}
	})
}

func (s *dctSweep) backwardSquares(h, d []float64) {
	each := 1 / float64(s.n)
	s.series(h, s.q, squares, func(out []float64, at int) {
		clear(out)
		if at%2 == 1 || at == 0 {
			return
		}
		for side, row := range [2]int{at / 2, s.n - at/2} {
			if mu := int(s.row[row]); mu >= 0 {
				sign := each * float64(1-2*side)
				for k, v := range d[mu*s.q:][:len(out)] {
					out[k] += sign * v
				}
			}
		}
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

// alone says that the last of count columns is transformed by itself: what it has at even and at odd places is one complex
// signal of half the length.
func (s *dctSweep) alone(count int) (last int, ok bool) { return count - 1, count%2 == 1 && s.n%2 == 0 }

// folded calls do for runs of the places first, first+d, … of entries 0, 2, 4, … 5, 3, 1 (J. Makhoul, "A fast cosine
// transform in one and two dimensions", 1980): do(from, to, entry, stride) for values from … to.
func (s *dctSweep) folded(count, first, d int, do func(from, to, entry, stride int)) {
	there := max(0, min(count, ((s.n+1)/2-first+d-1)/d))
	if there > 0 {
		do(0, there, 2*first, 2*d)
	}
	if there < count {
		do(there, count, 2*(s.n-first-d*there)-1, -2*d)
	}
}

// fold loads places first, first+d, … of column k.
func (s *dctSweep) fold(out []float64, step int, x []float64, k, first, d int, kind power) {
	s.folded((len(out)+step-1)/step, first, d, func(from, to, entry, stride int) {
		s.take(out[from*step:min(to*step, len(out))], step, x[k*s.n:(k+1)*s.n], entry, stride, kind)
	})
}

// unfold is the reverse.
func (s *dctSweep) unfold(r, in []float64, step, count, k, first, d int, kind power) {
	s.folded(count, first, d, func(from, to, entry, stride int) {
		s.give(r[k*s.n:(k+1)*s.n], in[from*step:], step, to-from, entry, stride, kind)
	})
}

// block is how many values of a column are looked at before those of the next one: a few pages.
const block = 256

// tell receives values of the columns k and k+1, where there is one, at h, h+step, ….
type tell func(k, h, step int, one, two []float64)

// cosines tells Σ_i x_i cos(π h (2i+1)/2N) of all columns for all h from 0 to N-1.
func (s *dctSweep) cosines(x []float64, count int, kind power, tell tell) {
	lone, alone := s.alone(count)
	if alone {
		count--
		s.lone.each(2, func(int, int) transform.Load {
			return func(j int, re, im []float64) {
				s.fold(re, 1, x, lone, 2*j, 2, kind)
				s.fold(im, 1, x, lone, 2*j+1, 2, kind)
			}
		}, func(p *pairs) {
			s.rotated(1, lone, tell, func(_, h int) (a, ai, b, bi float64) {
				a, ai, b, bi = p.at(0, h%p.n)
				cos, sin := s.twice(h)
				return a + b*cos + bi*sin, ai + bi*cos - b*sin, 0, 0
			})
		})
	}
	s.each(count, ofReals(count, func(k, j int, out []float64, step int) { s.fold(out, step, x, k, j, 1, kind) }), func(p *pairs) {
		s.rotated(p.width, p.first, tell, p.at)
	})
}

// rotated tells, of pairs of folded columns from k on, what their Fourier transforms V say: for h ≤ N/2 the real part of
// e^(-πi h/2N) V_h, and at N-h minus its imaginary part.
func (s *dctSweep) rotated(pairs, k int, tell tell, at func(q, h int) (a, ai, b, bi float64)) {
	inPieces(s.n/2+1, s.threads, func(from, end int) {
		var one, two, oneBack, twoBack [block]float64
		for ; from < end; from += block {
			to := min(from+block, end)
			first, last := max(from, 1), min(to, (s.n+1)/2) // of which N-h is another one
			for q := range pairs {
				for h := from; h < to; h++ {
					i, cos, sin := h-from, s.cos[h], s.sin[h]
					a, ai, b, bi := at(q, h)
					one[i], oneBack[i] = a*cos+ai*sin, a*sin-ai*cos
					two[i], twoBack[i] = b*cos+bi*sin, b*sin-bi*cos
				}
				tell(k+2*q, from, 1, one[:to-from], two[:to-from])
				if first < last {
					tell(k+2*q, s.n-first, -1, oneBack[first-from:last-from], twoBack[first-from:last-from])
				}
			}
		}
	})
}

// twice is cos and sin of 2πh/N for h ≤ N/2.
func (s *dctSweep) twice(h int) (cos, sin float64) {
	if 2*h == s.n {
		return -1, 0
	}
	c, v := s.cos[2*h], s.sin[2*h]
	return 1 - 2*v*v, 2 * c * v
}

// series sets r to Σ_h a_h cos(π h (2i+1)/2N) at every entry i, where amplitudes sets out to a_h of all columns; and applies signs and
// permutation. The folded column is the transform of
//
//	V̄_h = ½(a_h + i a_(N-h)) e^(-πi h/2N),   V̄_0 = a_0,   V̄_(N-h) = V_h,
//
// so that two columns, the second times i, are made in place.
func (s *dctSweep) series(r []float64, count int, kind power, amplitudes func(out []float64, h int)) {
	lone, alone := s.alone(count)
	all := count + count%2
	if alone {
		all = lone
	}
	if all > count && s.zero == nil {
		s.zero = make([]float64, s.n) // the partner of the last one
	}
	column := func(k int) []float64 {
		if k == count {
			return s.zero
		}
		return r[k*s.n : (k+1)*s.n]
	}
	inPieces(s.n/2+1, s.threads, func(from, end int) {
		there, back := make([]float64, block*(count+1)), make([]float64, block*(count+1))
		for ; from < end; from += block {
			to := min(from+block, end)
			for h := from; h < to; h++ {
				at := (h - from) * (count + 1)
				amplitudes(there[at:at+count], h)
				amplitudes(back[at:at+count], (s.n-h)%s.n)
			}
			for k := 0; k < all; k += 2 {
				s.spectrum(column(k), column(k+1), there[k:], back[k:], count+1, from, to)
			}
			if alone {
				for h := from; h < to; h++ {
					at := (h-from)*(count+1) + lone
					column(lone)[h], column(lone)[(s.n-h)%s.n] = there[at], back[at]
				}
			}
		}
	})
	s.each(all, ofReals(all, func(k, j int, out []float64, step int) {
		in := column(k)
		if step == 1 {
			copy(out, in[j:])
			return
		}
		for at := 0; at < len(out); at += step {
			out[at] = in[j]
			j++
		}
	}), func(p *pairs) {
		inPieces(s.n, s.threads, func(from, to int) {
			for k := p.first; k < min(p.first+p.count, count); k++ {
				in, step := p.plane(k - p.first)
				s.unfold(r, in[from*step:], step, to-from, k, from, 1, kind)
			}
		})
	})
	if alone {
		s.seriesOfOne(r, lone, kind)
	}
}

// spectrum sets one + i two to V̄ of one column plus i times that of another, at h and N-h of h = from … to, of whose a_h and a_(N-h) those of
// the second column stand behind those of the first.
func (s *dctSweep) spectrum(one, two, there, back []float64, step, from, to int) {
	for h := max(from, 1); h < to; h++ {
		at := (h - from) * step
		x, y := s.turned(there[at], back[at], h)
		u, v := s.turned(there[at+1], back[at+1], h)
		one[h], two[h] = x-v, y+u
		if 2*h < s.n {
			one[s.n-h], two[s.n-h] = x+v, u-y
		}
	}
	if from == 0 {
		one[0], two[0] = there[0], there[1]
	}
}

// seriesOfOne is series of a column of even length, with a_h in r: even places have V̄_h + V̄_(h+N/2), odd ones their difference times e^(-2πi h/N),
// and are the real and the imaginary part of one signal.
func (s *dctSweep) seriesOfOne(r []float64, k int, kind power) {
	a, half := r[k*s.n:(k+1)*s.n], s.n/2
	inPieces(half/2+1, s.threads, func(from, to int) {
		for h := from; h < to; h++ {
			mirror := half - h // of whose V̄ that at h+N/2 is the conjugate
			x, y := a[h], 0.0
			if h > 0 {
				x, y = s.turned(a[h], a[s.n-h], h)
			}
			u, v := s.turned(a[mirror], a[half+h], mirror)
			cos, sin := s.twice(h)
			e, ei, o, oi := x+u, y-v, (x-u)*cos+(y+v)*sin, (y+v)*cos-(x-u)*sin
			a[h], a[half+h] = e-oi, ei+o
			if h > 0 && h < mirror {
				a[mirror], a[half+mirror] = e+oi, o-ei
			}
		}
	})
	s.lone.each(2, func(int, int) transform.Load {
		return func(j int, re, im []float64) {
			copy(re, a[j:])
			copy(im, a[half+j:])
		}
	}, func(p *pairs) {
		inPieces(half, s.threads, func(from, to int) {
			s.unfold(r, p.re[from:], 1, to-from, k, 2*from, 2, kind)
			s.unfold(r, p.im[from:], 1, to-from, k, 2*from+1, 2, kind)
		})
	})
}

// turned is ½(a + ic) e^(-πi h/2N).
func (s *dctSweep) turned(a, c float64, h int) (x, y float64) {
	cos, sin := 0.5*s.cos[h], 0.5*s.sin[h]
	return a*cos + c*sin, c*cos - a*sin
}
