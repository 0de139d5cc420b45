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
// of one or several signals at once, for any n. The error grows as the logarithm of n.
//
// A long transform is two (D. H. Bailey, "FFTs in external or hierarchical memory",
// 1990): with n = n₁n₂, j = n₂j₁ + j₂ and k = k₁ + n₁k₂, first along j₁ for all j₂, then a
// factor e^(-2πi j₂k₁/n), then along j₂ for all k₁. Memory is passed twice; the rest is
// done in tiles that stay in cache, in which neighbouring j₂ (or k₁) of all signals are
// the lanes, so that a step has the same factor for a whole run of values. An n with a
// large prime factor is done by a longer convolution ([bluestein]).
type Fourier struct {
	n       int
	first   line // n₁
	second  line // n₂
	roots   roots
	between [][]float64 // of every k₁ the factors of the first lanes, of one signal: all cosines, then all sines
	chirp   *bluestein  // in place of all others; nil where n has small factors only
	spare   parallel.Pool[tile]
}

// NewFourier prepares the transform of n values.
func NewFourier(n int) *Fourier {
	if n <= 0 {
		panic(fmt.Sprintf("calamp: Fourier transform of %d values", n))
	}
	factors := factorise(n)
	// From there on the longer convolution takes fewer operations than the largest factor's butterfly.
	if last := factors[len(factors)-1]; last > kernel.MostRadix {
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
	f := &Fourier{n: n, first: newLine(n1), second: newLine(n2), roots: newRoots(n), between: make([][]float64, n1)}
	for k1 := range f.between {
		lanes := min(lanesOfTile, n2)
		f.between[k1] = make([]float64, 2*lanes)
		for j2 := range lanes {
			f.between[k1][j2], f.between[k1][lanes+j2] = f.roots.at(j2 * k1)
		}
	}
	return f
}

// Length is how long the transform is that one of n values is computed by: n, or that of a convolution where n has a large
// prime factor.
func Length(n int) int {
	if factors := factorise(n); n > 1 && factors[len(factors)-1] > kernel.MostRadix {
		return 1 << bits.Len(uint(2*n-2))
	}
	return n
}

// Together is how many of so many signals to transform at once: a long transform has lanes of its own, and gains nothing
// from others beside it.
func (f *Fourier) Together(signals int) int { return max(1, min(signals, 4096/f.n)) }

// Size is n.
func (f *Fourier) Size() int { return f.n }

// MostLoaded is the largest number of values that a Load is asked for at once.
const MostLoaded = lanesOfTile

// Load fills the real and the imaginary parts of values j, j+1, … of all signals, value by value.
type Load func(j int, re, im []float64)

// Into computes the transform of what load tells, of width signals: n×width real and as many
// imaginary parts, value by value. load is called once for every j, concurrently.
func (f *Fourier) Into(re, im []float64, width, threads int, load Load) {
	if len(re) != width*f.n || len(im) != len(re) {
		panic(fmt.Sprintf("calamp: Fourier transform of %d values for %d signals into %d and %d", f.n, width, len(re), len(im)))
	}
	if f.chirp != nil {
		f.chirp.into(re, im, width, threads, load)
		return
	}
	n1, n2 := f.first.n, f.second.n
	f.tiles(n2, width, threads, func(t *tile, from, to int) { // along j₁, from n₂j₁+j₂ to places n₁j₂+k₁
		for j1 := range n1 {
			load(n2*j1+from, t.re[j1*t.run:][:t.used], t.im[j1*t.run:][:t.used])
		}
		f.first.transform(t)
		for k1, at := range f.first.place {
			f.turn(t.re[at*t.run:][:t.run], t.im[at*t.run:][:t.run], k1, from, to, width)
		}
		t.turnOver(re[from*n1*width:], t.re, f.first.place, width)
		t.turnOver(im[from*n1*width:], t.im, f.first.place, width)
	})
	f.tiles(n1, width, threads, func(t *tile, from, _ int) { // along j₂, from places n₁j₂+k₁ to k₁+n₁k₂
		for j2 := range n2 {
			copy(t.re[j2*t.run:][:t.used], re[(j2*n1+from)*width:])
			copy(t.im[j2*t.run:][:t.used], im[(j2*n1+from)*width:])
		}
		f.second.transform(t)
		for k2, at := range f.second.place {
			copy(re[(k2*n1+from)*width:], t.re[at*t.run:][:t.used])
			copy(im[(k2*n1+from)*width:], t.im[at*t.run:][:t.used])
		}
	})
}

// tiles calls do for tiles of neighbouring columns, from … to, of width values each.
func (f *Fourier) tiles(columns, width, threads int, do func(t *tile, from, to int)) {
	rows, each := f.n/columns, max(1, lanesOfTile/width)
	count := (columns + each - 1) / each
	per := count
	if threads > 1 {
		per = (count + 4*threads - 1) / (4 * threads)
	}
	parallel.Run((count+per-1)/per, threads, func(part int) {
		t := f.spare.Get()
		if size := 2 * max(f.first.n, f.second.n) * wholeVectors(each*width); len(t.values) < size {
			t = &tile{values: make([]float64, size)}
		}
		for i := part * per; i < min((part+1)*per, count); i++ {
			from, to := i*each, min((i+1)*each, columns)
			t.layOut(rows, (to-from)*width)
			do(t, from, to)
		}
		f.spare.Put(t)
	})
}

// turn multiplies the values k₁ of lanes j₂ = from … to by e^(-2πi j₂k₁/n).
func (f *Fourier) turn(re, im []float64, k1, from, to, width int) {
	if factors := f.between[k1]; width == 1 && len(factors) == 2*len(re) {
		cos, sin := f.roots.at(from * k1)
		kernel.Turn(re, im, factors, cos, sin)
		return
	}
	for j2 := from; j2 < to; j2++ {
		cos, sin := f.roots.at(j2 * k1)
		at := (j2 - from) * width
		turn(re[at:at+width], im[at:at+width], cos, sin)
	}
}

// lanesOfTile is how many values stand side by side in a tile: with 1024 rows a tile is
// 512 KiB.
const lanesOfTile = 32

// wholeVectors is the smallest multiple of the kernels' four lanes that has room for so many.
func wholeVectors(lanes int) int { return (lanes + 3) &^ 3 }

// tile holds rows of run values in planes of real and imaginary parts. Those from used on are never read, but finite.
type tile struct {
	values    []float64
	re, im    []float64
	run, used int
}

func (t *tile) layOut(rows, used int) {
	run := wholeVectors(used)
	t.run, t.used, t.re, t.im = run, used, t.values[:rows*run], t.values[rows*run:2*rows*run]
	if run > used {
		clear(t.values[:2*rows*run])
	}
}

// turnOver sets dst, lane by lane of width values, to the rows at places.
func (t *tile) turnOver(dst, plane []float64, place []int, width int) {
	n := len(place)
	if width > 1 {
		for lane := 0; lane < t.used; lane += width {
			for k, at := range place {
				copy(dst[lane*n+k*width:][:width], plane[at*t.run+lane:])
			}
		}
		return
	}
	k := 0
	for ; k+4 <= n; k += 4 { // parts of cache lines
		a, b, c, d := plane[place[k]*t.run:][:t.used], plane[place[k+1]*t.run:][:t.used], plane[place[k+2]*t.run:][:t.used], plane[place[k+3]*t.run:][:t.used]
		for lane, v := range a {
			out := (*[4]float64)(dst[lane*n+k:])
			out[0], out[1], out[2], out[3] = v, b[lane], c[lane], d[lane]
		}
	}
	for ; k < n; k++ {
		for lane, v := range plane[place[k]*t.run:][:t.used] {
			dst[lane*n+k] = v
		}
	}
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
	roots       []float64 // cos and sin of the radix's own
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
			s.roots = append(s.roots, cos, sin)
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

// transform transforms a tile.
func (l *line) transform(t *tile) {
	l.stage(0, t.re[:l.n*t.run], t.im[:l.n*t.run], t.run)
}

// stage does a stage, and the later ones part by part, so that ever smaller parts stay in ever faster caches.
func (l *line) stage(i int, re, im []float64, run int) {
	if i == len(l.stages) {
		return
	}
	s := &l.stages[i]
	kernel.Fourier(s.radix, re, im, s.rest, run, s.twiddles, s.roots)
	if s.rest == 1 {
		return
	}
	part := s.rest * run
	for from := 0; from < len(re); from += part {
		l.stage(i+1, re[from:from+part], im[from:from+part], run)
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
	re, im   []float64 // transform of w̄, over its length
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
	b.re, b.im = make([]float64, length), make([]float64, length)
	b.whole.Into(b.re, b.im, 1, 1, func(from int, re, im []float64) {
		clear(re)
		clear(im)
		for i := range re {
			j := from + i
			if j > length/2 {
				j = length - j
			}
			if j < n {
				re[i], im[i] = b.cos[j]/float64(length), b.sin[j]/float64(length)
			}
		}
	})
	return b
}

func (b *bluestein) into(re, im []float64, width, threads int, load Load) {
	size := width * b.whole.n
	work := make([]float64, 4*size)
	x, y, u, v := work[:size], work[size:2*size], work[2*size:3*size], work[3*size:]
	b.whole.Into(x, y, width, threads, func(j int, re, im []float64) {
		there := max(0, min(len(re), (b.n-j)*width))
		clear(re[there:])
		clear(im[there:])
		if there > 0 {
			load(j, re[:there], im[:there])
			turnAll(re[:there], im[:there], b.cos[j:], b.sin[j:], width)
		}
	})
	// The inverse is the transform with real and imaginary parts exchanged.
	b.whole.Into(u, v, width, threads, func(j int, re, im []float64) {
		copy(re, y[j*width:])
		copy(im, x[j*width:])
		turnAll(re, im, b.re[j:], b.im[j:], width)
	})
	copy(re, v)
	copy(im, u)
	turnAll(re, im, b.cos, b.sin, width)
}

// turnAll multiplies values of width signals by cos - i sin of each.
func turnAll(re, im, cos, sin []float64, width int) {
	for i := 0; i*width < len(re); i++ {
		turn(re[i*width:(i+1)*width], im[i*width:(i+1)*width], cos[i], sin[i])
	}
}

// turn multiplies complex values by cos - i sin.
func turn(re, im []float64, cos, sin float64) {
	for k, a := range re {
		b := im[k]
		re[k], im[k] = a*cos+b*sin, b*cos-a*sin
	}
}
