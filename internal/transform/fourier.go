package transform

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

// Fourier is the discrete Fourier transform of n complex values,
//
//	Z_k = Σ_j z_j e^(-2πi jk/n),
//
// of several signals at once, for any n. The error grows as the logarithm of n.
//
// A long transform is two (D. H. Bailey, "FFTs in external or hierarchical memory",
// 1990): with n = n₁n₂, j = n₂j₁ + j₂ and k = k₁ + n₁k₂, first along j₁ for all j₂, then a
// factor e^(-2πi j₂k₁/n), then along j₂ for all k₁. Memory is passed twice; the rest is
// done in tiles that stay in cache, in which neighbouring j₂ (or k₁) of all signals are
// the lanes, so that a step has the same factor for a whole run of values. An n with a
// large prime factor is done by a longer convolution ([bluestein]).
type Fourier struct {
	n      int
	first  line // n₁
	second line // n₂
	roots  roots
	chirp  *bluestein // in place of all others; nil where n has small factors only
}

// mostPrime is the largest prime factor whose butterfly is computed as it is defined:
// from there on the longer convolution takes fewer operations.
const mostPrime = 61

// NewFourier prepares the transform of n values.
func NewFourier(n int) *Fourier {
	if n <= 0 {
		panic(fmt.Sprintf("calamp: Fourier transform of %d values", n))
	}
	factors := factorise(n)
	if last := factors[len(factors)-1]; last > mostPrime {
		return &Fourier{n: n, chirp: newBluestein(n)}
	}
	// The larger factors first to where the product is smaller: nearly √n each.
	n1, n2 := 1, 1
	for i := len(factors) - 1; i >= 0; i-- {
		if n1 <= n2 {
			n1 *= factors[i]
		} else {
			n2 *= factors[i]
		}
	}
	return &Fourier{n: n, first: newLine(n1), second: newLine(n2), roots: newRoots(n)}
}

// Load fills the real and the imaginary parts of value j of all signals.
type Load func(j int, re, im []float64)

// Into computes the transform of what load tells, of width signals: dst is n×2·width, at
// every k the real parts of all signals, then the imaginary ones. load is called once for
// every j, concurrently.
func (f *Fourier) Into(dst []float64, width, threads int, load Load) {
	if len(dst) != 2*width*f.n {
		panic(fmt.Sprintf("calamp: Fourier transform of %d values for %d signals into %d", f.n, width, len(dst)))
	}
	if f.chirp != nil {
		f.chirp.into(dst, width, threads, load)
		return
	}
	n1, n2 := f.first.n, f.second.n
	tiles := func(columns int, do func(t *tile, from, to int)) {
		each := max(1, lanesOfTile/width)
		count := (columns + each - 1) / each
		per := (count + 4*threads - 1) / (4 * threads)
		parallel.Run((count+per-1)/per, threads, func(part int) {
			t := newTile(max(n1, n2), each*width)
			for i := part * per; i < min((part+1)*per, count); i++ {
				do(t, i*each, min((i+1)*each, columns))
			}
		})
	}
	tiles(n2, func(t *tile, from, to int) { // along j₁, from n₂j₁+j₂ to places n₁j₂+k₁
		run := (to - from) * width
		for j1 := range n1 {
			for j2 := from; j2 < to; j2++ {
				at := j1*run + (j2-from)*width
				load(n2*j1+j2, t.re[at:at+width], t.im[at:at+width])
			}
		}
		f.first.transform(t, run)
		for j2 := from; j2 < to; j2++ {
			for k1 := range n1 {
				at := f.first.place[k1]*run + (j2-from)*width
				cos, sin := f.roots.at(j2 * k1)
				out := dst[2*width*(j2*n1+k1):][:2*width]
				re, im := t.re[at:at+width], t.im[at:at+width]
				for k, a := range re {
					b := im[k]
					out[k], out[width+k] = a*cos+b*sin, b*cos-a*sin
				}
			}
		}
	})
	tiles(n1, func(t *tile, from, to int) { // along j₂, from places n₁j₂+k₁ to k₁+n₁k₂
		run := (to - from) * width
		for j2 := range n2 {
			split(t.re[j2*run:][:run], t.im[j2*run:][:run], dst[2*width*(j2*n1+from):], width)
		}
		f.second.transform(t, run)
		for k2 := range n2 {
			at := f.second.place[k2] * run
			join(dst[2*width*(k2*n1+from):], t.re[at:][:run], t.im[at:][:run], width)
		}
	})
}

// split divides values into real and imaginary parts, which alternate in runs of width.
// Runs are a few values, for which a call of copy would take longer.
func split(re, im, from []float64, width int) {
	for at := 0; at < len(re); at += width {
		a, b, c := re[at:][:width], im[at:][:width], from[2*at:][:2*width]
		for k := range a {
			a[k], b[k] = c[k], c[width+k]
		}
	}
}

// join is the reverse.
func join(to, re, im []float64, width int) {
	for at := 0; at < len(re); at += width {
		a, b, c := re[at:][:width], im[at:][:width], to[2*at:][:2*width]
		for k := range a {
			c[k], c[width+k] = a[k], b[k]
		}
	}
}

// lanesOfTile is how many values stand side by side in a tile: with 1024 rows a tile is
// 256 KiB.
const lanesOfTile = 16

// tile holds values in planes of real and imaginary parts.
type tile struct{ re, im []float64 }

func newTile(rows, run int) *tile {
	v := make([]float64, 2*rows*run)
	return &tile{v[:rows*run], v[rows*run:]}
}

// line is the transform along one direction of a tile, in place, by decimation in
// frequency: value k is left at place[k].
type line struct {
	n      int
	place  []int
	stages []stage
}

// stage divides parts of the length radix·rest into radix parts.
type stage struct {
	radix, rest int
	twiddles    []float64 // for each of rest: of parts 1 … radix-1, cos and sin
	cos, sin    []float64 // of the radix's own roots
}

func newLine(n int) line {
	l := line{n: n, place: make([]int, n)}
	for left := n; left > 1; {
		radix := nextRadix(left)
		s := stage{radix: radix, rest: left / radix}
		for j := range s.rest {
			for part := 1; part < radix; part++ {
				cos, sin := Root(j*part, left)
				s.twiddles = append(s.twiddles, cos, sin)
			}
		}
		for k := range radix {
			cos, sin := Root(k, radix)
			s.cos, s.sin = append(s.cos, cos), append(s.sin, sin)
		}
		l.stages = append(l.stages, s)
		left = s.rest
	}
	for k := range n { // k = part + radix·(the k of that part)
		at, left := 0, k
		for _, s := range l.stages {
			at += left % s.radix * s.rest
			left /= s.radix
		}
		l.place[k] = at
	}
	return l
}

// nextRadix prefers four, whose butterfly has no multiplication.
func nextRadix(n int) int {
	if n%4 == 0 {
		return 4
	}
	for r := 2; ; r++ {
		if n%r == 0 {
			return r
		}
	}
}

// transform transforms a tile whose rows are run values long.
func (l *line) transform(t *tile, run int) {
	re, im := t.re[:l.n*run], t.im[:l.n*run]
	for i := range l.stages {
		s := &l.stages[i]
		size := s.radix * s.rest * run
		for at := 0; at < len(re); at += size {
			if s.radix == 4 {
				kernel.Fourier4(re[at:at+size], im[at:at+size], s.rest, run, s.twiddles)
			} else {
				s.step(re[at:at+size], im[at:at+size], run)
			}
		}
	}
}

// step is the butterfly of any radix as it is defined.
func (s *stage) step(re, im []float64, run int) {
	var a, b [mostPrime]float64
	for j := range s.rest {
		twiddles := s.twiddles[2*j*(s.radix-1):]
		for lane := j * run; lane < (j+1)*run; lane++ {
			for q := range s.radix {
				a[q], b[q] = re[lane+q*s.rest*run], im[lane+q*s.rest*run]
			}
			for part := range s.radix {
				x, y, at := 0.0, 0.0, 0
				for q := range s.radix {
					cos, sin := s.cos[at], s.sin[at]
					x += a[q]*cos + b[q]*sin
					y += b[q]*cos - a[q]*sin
					if at += part; at >= s.radix {
						at -= s.radix
					}
				}
				if part > 0 {
					cos, sin := twiddles[2*part-2], twiddles[2*part-1]
					x, y = x*cos+y*sin, y*cos-x*sin
				}
				re[lane+part*s.rest*run], im[lane+part*s.rest*run] = x, y
			}
		}
	}
}

// Root is cos and sin of 2πk/n, with k of any size, right to the last digit or so: the
// angle is brought below π/4 in whole numbers.
func Root(k, n int) (cos, sin float64) {
	k %= n
	if 2*k > n { // the lower half
		cos, sin = Root(n-k, n)
		return cos, -sin
	}
	if 4*k > n { // the second quarter
		cos, sin = half(n-2*k, 2*n)
		return -cos, sin
	}
	return half(2*k, 2*n)
}

// half is cos and sin of 2πk/n for an angle up to π/2.
func half(k, n int) (cos, sin float64) {
	if 8*k > n {
		sin, cos = math.Sincos(2 * math.Pi * (float64(n-4*k) / float64(4*n)))
		return sin, cos
	}
	sin, cos = math.Sincos(2 * math.Pi * (float64(k) / float64(n)))
	return cos, sin
}

// roots is a table of two factors for every root of one of order n.
type roots struct{ high, low []float64 } // cos and sin

const lowBits = 10

func newRoots(n int) roots {
	var r roots
	for k := range min(n, 1<<lowBits) {
		cos, sin := Root(k, n)
		r.low = append(r.low, cos, sin)
	}
	for k := 0; k < n; k += 1 << lowBits {
		cos, sin := Root(k, n)
		r.high = append(r.high, cos, sin)
	}
	return r
}

// at is cos and sin of 2πk/n for 0 ≤ k < n.
func (r *roots) at(k int) (cos, sin float64) {
	h, l := r.high[2*(k>>lowBits):][:2], r.low[2*(k&(1<<lowBits-1)):][:2]
	return h[0]*l[0] - h[1]*l[1], h[1]*l[0] + h[0]*l[1]
}

// factorise returns the prime factors of n in ascending order; 1 of 1.
func factorise(n int) []int {
	var factors []int
	for p := 2; p*p <= n; p++ {
		for n%p == 0 {
			factors = append(factors, p)
			n /= p
		}
	}
	if n > 1 || len(factors) == 0 {
		factors = append(factors, n)
	}
	return factors
}

// bluestein is a transform of any length as a convolution (L. I. Bluestein, 1970): with
// jk = (j² + k² - (k-j)²)/2,
//
//	Z_k = w_k Σ_j (z_j w_j) w̄_(k-j),   w_j = e^(-πi j²/n).
type bluestein struct {
	n        int
	whole    *Fourier  // of a power of two, at least 2n-1
	cos, sin []float64 // n: of πj²/n
	filter   []float64 // transform of w̄, over its length: real and imaginary parts
}

func newBluestein(n int) *bluestein {
	b := &bluestein{n: n, whole: NewFourier(1 << bits.Len(uint(2*n-2)))}
	length := b.whole.n
	b.cos, b.sin = make([]float64, n), make([]float64, n)
	square := 0 // j² mod 2n
	for j := range n {
		b.cos[j], b.sin[j] = Root(square, 2*n)
		square = (square + 2*j + 1) % (2 * n)
	}
	b.filter = make([]float64, 2*length)
	b.whole.Into(b.filter, 1, 1, func(j int, re, im []float64) {
		re[0], im[0] = 0, 0
		if j > length/2 {
			j = length - j
		}
		if j < n {
			re[0], im[0] = b.cos[j]/float64(length), b.sin[j]/float64(length)
		}
	})
	return b
}

func (b *bluestein) into(dst []float64, width, threads int, load Load) {
	there, back := make([]float64, 2*width*b.whole.n), make([]float64, 2*width*b.whole.n)
	b.whole.Into(there, width, threads, func(j int, re, im []float64) {
		if j >= b.n {
			clear(re)
			clear(im)
			return
		}
		load(j, re, im)
		turn(re, im, b.cos[j], b.sin[j])
	})
	// The inverse is the transform with real and imaginary parts exchanged.
	b.whole.Into(back, width, threads, func(j int, re, im []float64) {
		at := there[2*width*j:]
		copy(re, at[width:2*width])
		copy(im, at[:width])
		turn(re, im, b.filter[2*j], b.filter[2*j+1])
	})
	for k := range b.n {
		out, at := dst[2*width*k:2*width*(k+1)], back[2*width*k:]
		copy(out, at[width:2*width])
		copy(out[width:], at[:width])
		turn(out[:width], out[width:], b.cos[k], b.sin[k])
	}
}

// turn multiplies complex values by cos - i sin.
func turn(re, im []float64, cos, sin float64) {
	for k, a := range re {
		b := im[k]
		re[k], im[k] = a*cos+b*sin, b*cos-a*sin
	}
}
