package operator

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// Dense is a matrix held in memory as float64 or float32; sums are float64 in
// both cases.
type Dense struct {
	m, n       int
	f64        []float64 // exactly one of the two is set
	f32        []float32
	meanSquare float64
	means      Means
}

// Means are the averages of the entries of a matrix by row and by column. AMP
// is derived for entries of mean zero.
type Means struct {
	Rows, Columns []float64 // M and N
}

// NewDense wraps the M×N row-major matrix w, which it does not copy.
// The error names the first entry that is not finite, counting from 0.
func NewDense(m, n int, w []float64) (*Dense, error) {
	d := &Dense{m: m, n: n, f64: w}
	return d, measure(d, w)
}

// NewDense32 is NewDense for single-precision storage.
func NewDense32(m, n int, w []float32) (*Dense, error) {
	d := &Dense{m: m, n: n, f32: w}
	return d, measure(d, w)
}

// measure checks the entries of w and sets what d tells of them.
func measure[T float32 | float64](d *Dense, w []T) error {
	if d.m <= 0 || d.n <= 0 || len(w) != d.m*d.n {
		return fmt.Errorf("%d values do not make a %d×%d matrix", len(w), d.m, d.n)
	}
	d.means = Means{Rows: make([]float64, d.m), Columns: make([]float64, d.n)}
	total := 0.0
	for mu := range d.m {
		row, squares := 0.0, 0.0
		for i, v := range w[mu*d.n : (mu+1)*d.n] {
			x := float64(v)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("row %d, column %d is %g, expected a finite number", mu, i, x)
			}
			row += x
			squares += x * x
			d.means.Columns[i] += x
		}
		d.means.Rows[mu] = row / float64(d.n)
		total += squares
	}
	for i := range d.means.Columns {
		d.means.Columns[i] /= float64(d.m)
	}
	d.meanSquare = total / float64(len(w))
	if d.meanSquare == 0 || math.IsInf(d.meanSquare, 1) {
		return fmt.Errorf("the mean square of the entries is %g, expected a positive finite number", d.meanSquare)
	}
	return nil
}

// Means returns the row and column means, which the caller must not change.
func (d *Dense) Means() Means { return d.means }

// Dims implements [Operator].
func (d *Dense) Dims() (m, n int) { return d.m, d.n }

// MeanSquare implements [Operator].
func (d *Dense) MeanSquare() float64 { return d.meanSquare }

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
		return float64(d.f32[mu*d.n+i])
	}
	return d.f64[mu*d.n+i]
}

// RowInto copies row mu into dst, of length N.
func (d *Dense) RowInto(dst []float64, mu int) {
	if d.f32 != nil {
		for i, w := range d.f32[mu*d.n : (mu+1)*d.n] {
			dst[i] = float64(w)
		}
		return
	}
	copy(dst, d.f64[mu*d.n:(mu+1)*d.n])
}

// NewSweep implements [Operator].
func (d *Dense) NewSweep(p, q, threads int) Sweep {
	if d.f32 != nil {
		return newDenseSweep(d.m, d.n, p, q, threads, d.f32)
	}
	return newDenseSweep(d.m, d.n, p, q, threads, d.f64)
}

const (
	// chunks is how many parts the rows are divided into. Each part sums its
	// own r and h, and the parts are added in order: the result's bits depend
	// on this number, never on how many goroutines did the work.
	chunks = 8

	// blockBytes is the size of a block of rows that is used forward and
	// backward while it stays in a core's own cache.
	blockBytes = 256 << 10
)

type denseSweep[T float32 | float64] struct {
	m, n, p, q int
	threads    int
	w          []T
	block      int // rows in a block
	parts      []densePart
}

// densePart is the workspace of one chunk of rows.
type densePart struct {
	first, end int // rows
	r, h       []float64
	z, v, g, d []float64 // one block
}

func newDenseSweep[T float32 | float64](m, n, p, q, threads int, w []T) *denseSweep[T] {
	var entry T
	size := 8
	if _, single := any(entry).(float32); single {
		size = 4
	}
	s := &denseSweep[T]{m: m, n: n, p: p, q: q, threads: max(1, threads), w: w}
	s.block = min(max(4, blockBytes/(size*n)), 64)
	per := (m + chunks - 1) / chunks
	per = (per + 1) &^ 1 // an even number of rows: the kernels take two at a time
	for first := 0; first < m; first += per {
		end := min(first+per, m)
		s.parts = append(s.parts, densePart{
			first: first, end: end,
			r: make([]float64, p*n), h: make([]float64, q*n),
			z: make([]float64, s.block*p), g: make([]float64, s.block*p),
			v: make([]float64, s.block*q), d: make([]float64, s.block*q),
		})
	}
	return s
}

// Run implements [Sweep].
func (s *denseSweep[T]) Run(r, h, x, c []float64, rows RowFunc) {
	if len(r) != s.p*s.n || len(x) != s.p*s.n || len(h) != s.q*s.n || len(c) != s.q*s.n {
		panic(fmt.Sprintf("calamp: sweep over %d+%d columns of length %d called with slices of %d, %d, %d, %d", s.p, s.q, s.n, len(r), len(h), len(x), len(c)))
	}
	if threads := min(s.threads, len(s.parts)); threads == 1 {
		for i := range s.parts {
			s.runPart(&s.parts[i], x, c, rows)
		}
	} else {
		var next atomic.Int64
		var wg sync.WaitGroup
		for range threads {
			wg.Go(func() {
				for i := next.Add(1) - 1; int(i) < len(s.parts); i = next.Add(1) - 1 {
					s.runPart(&s.parts[i], x, c, rows)
				}
			})
		}
		wg.Wait()
	}
	clear(r)
	clear(h)
	for i := range s.parts {
		addTo(r, s.parts[i].r)
		addTo(h, s.parts[i].h)
	}
}

func addTo(dst, src []float64) {
	for i, v := range src {
		dst[i] += v
	}
}

func (s *denseSweep[T]) runPart(part *densePart, x, c []float64, rows RowFunc) {
	clear(part.r)
	clear(part.h)
	for first := part.first; first < part.end; first += s.block {
		count := min(s.block, part.end-first)
		w := s.w[first*s.n : (first+count)*s.n]
		z, g := part.z[:count*s.p], part.g[:count*s.p]
		v, d := part.v[:count*s.q], part.d[:count*s.q]
		s.forward(count, w, x, c, z, v)
		rows(first, z, v, g, d)
		s.backward(count, w, part.r, part.h, g, d)
	}
}

// forward computes z = W x and v = W² c for a block of rows, two rows and two
// signals at a time, both products in one reading of the rows where the columns
// pair up (they always do in the diagonal solver).
func (s *denseSweep[T]) forward(count int, w []T, x, c, z, v []float64) {
	n, both := s.n, min(s.p, s.q)
	for a := 0; a < count; a += 2 {
		b := min(a+1, count-1) // an odd last row is computed twice
		wa, wb := w[a*n:(a+1)*n], w[b*n:(b+1)*n]
		k := 0
		for ; k < both; k += 2 {
			l := min(k+1, both-1)
			sums := dot2x2(wa, wb, x[k*n:(k+1)*n], x[l*n:(l+1)*n], c[k*n:(k+1)*n], c[l*n:(l+1)*n])
			z[a*s.p+k], z[a*s.p+l], z[b*s.p+k], z[b*s.p+l] = sums[0], sums[1], sums[2], sums[3]
			v[a*s.q+k], v[a*s.q+l], v[b*s.q+k], v[b*s.q+l] = sums[4], sums[5], sums[6], sums[7]
		}
		for k = both; k < s.p; k++ {
			z[a*s.p+k], z[b*s.p+k] = dot2(wa, wb, x[k*n:(k+1)*n])
		}
		for k = both; k < s.q; k++ {
			v[a*s.q+k], v[b*s.q+k] = dotSquares2(wa, wb, c[k*n:(k+1)*n])
		}
	}
}

// backward adds Wᵀg to r and (W²)ᵀd to h for a block of rows.
func (s *denseSweep[T]) backward(count int, w []T, r, h, g, d []float64) {
	n, both := s.n, min(s.p, s.q)
	for a := 0; a < count; a += 2 {
		b := a + 1
		wa := w[a*n : (a+1)*n]
		wb := wa
		odd := b == count
		if !odd {
			wb = w[b*n : (b+1)*n]
		}
		second := func(values []float64, columns, k int) float64 {
			if odd {
				return 0
			}
			return values[b*columns+k]
		}
		for k := range both {
			axpy2(r[k*n:(k+1)*n], h[k*n:(k+1)*n], wa, wb, g[a*s.p+k], second(g, s.p, k), d[a*s.q+k], second(d, s.q, k))
		}
		for k := both; k < s.p; k++ {
			axpyLinear2(r[k*n:(k+1)*n], wa, wb, g[a*s.p+k], second(g, s.p, k))
		}
		for k := both; k < s.q; k++ {
			axpySquares2(h[k*n:(k+1)*n], wa, wb, d[a*s.q+k], second(d, s.q, k))
		}
	}
}
