package operator

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/internal/simd"
)

// Sparse is a matrix of which only the entries that are not zero are kept, row by row
// (CSR). A row serves both products while it is in cache, so that the entries are read
// once a sweep; what they meet are the signals' entries, four signals side by side.
type Sparse struct {
	m, n       int
	start      []int64 // M+1
	column     []int32
	f64        []float64 // exactly one of the two is set
	f32        []float32
	meanSquare float64
	memory
}

// CSR is a sparse matrix as scipy.sparse.csr_matrix holds it: the entries of row µ are
// Values[j] in the columns Columns[j], for j from Start[µ] to Start[µ+1]. Exactly one of
// Values and Values32 is set.
type CSR struct {
	M, N     int
	Start    []int64 // M+1: indptr
	Columns  []int32 // indices
	Values   []float64
	Values32 []float32
}

// NewSparse makes the operator of c, which it keeps: the caller must not change it. The
// error names the array, as scipy calls it, and the place that is wrong.
func NewSparse(c CSR) (*Sparse, error) {
	if _, err := simd.Active(); err != nil {
		return nil, err
	}
	if c.M < 1 || c.N < 1 || c.N > most {
		return nil, fmt.Errorf("shape is %d×%d, expected M×N of at least 1×1 and at most %d columns", c.M, c.N, most)
	}
	s := &Sparse{m: c.M, n: c.N, start: c.Start, column: c.Columns, f64: c.Values, f32: c.Values32}
	if err := s.check(); err != nil {
		return nil, err
	}
	total := 0.0
	for mu := range s.m {
		sum := 0.0
		for j := s.start[mu]; j < s.start[mu+1]; j++ {
			v := s.value(j)
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("row %d, column %d is %g, expected a finite number", mu, s.column[j], v)
			}
			sum += v * v
		}
		total += sum
	}
	s.meanSquare = total / (float64(s.m) * float64(s.n))
	if s.meanSquare == 0 || math.IsInf(s.meanSquare, 1) {
		return nil, fmt.Errorf("the mean square of the entries is %g, expected a positive finite number", s.meanSquare)
	}
	return s, nil
}

// check compares the three arrays.
func (s *Sparse) check() error {
	count := int64(len(s.f64) + len(s.f32))
	switch {
	case len(s.start) != s.m+1:
		return fmt.Errorf("indptr has %d values, expected one more than the %d rows", len(s.start), s.m)
	case s.start[0] != 0:
		return fmt.Errorf("indptr begins with %d, expected 0", s.start[0])
	case int64(len(s.column)) != count:
		return fmt.Errorf("indices has %d values and data has %d, expected as many", len(s.column), count)
	}
	for mu := range s.m {
		if from, to := s.start[mu], s.start[mu+1]; from > to || to > count {
			return fmt.Errorf("indptr of rows %d and %d is %d and %d, expected them ascending, and at most the %d entries of data", mu, mu+1, from, to, count)
		}
	}
	if last := s.start[s.m]; last != count {
		return fmt.Errorf("indptr ends with %d, expected the %d entries of data", last, count)
	}
	seen := make([]int32, s.n) // row + 1
	for mu := range s.m {
		for j := s.start[mu]; j < s.start[mu+1]; j++ {
			column := s.column[j]
			if column < 0 || int(column) >= s.n {
				return fmt.Errorf("indices %d, in row %d, is column %d, expected 0 to %d", j, mu, column, s.n-1)
			}
			if seen[column] == int32(mu+1) {
				return fmt.Errorf("row %d has column %d twice, expected each entry once: in Python, W.sum_duplicates()", mu, column)
			}
			seen[column] = int32(mu + 1)
		}
	}
	return nil
}

func (s *Sparse) value(j int64) float64 {
	if s.f32 != nil {
		return float64(s.f32[j])
	}
	return s.f64[j]
}

// Dims implements [Operator].
func (s *Sparse) Dims() (m, n int) { return s.m, s.n }

// MeanSquare implements [Operator].
func (s *Sparse) MeanSquare() float64 { return s.meanSquare }

// HasSquares implements [Squares].
func (s *Sparse) HasSquares() bool { return true }

// Entries is how many entries are kept.
func (s *Sparse) Entries() int { return len(s.column) }

// String says what it is.
func (s *Sparse) String() string {
	return fmt.Sprintf("sparse %d×%d matrix with %d entries, %.3g %% of all", s.m, s.n, s.Entries(), 100*float64(s.Entries())/(float64(s.m)*float64(s.n)))
}

// Bytes implements [Structured].
func (s *Sparse) Bytes() int64 {
	return 8*int64(len(s.start)+len(s.f64)) + 4*int64(len(s.column)+len(s.f32))
}

// Identify implements [Structured]: the entries are the same in either precision.
func (s *Sparse) Identify(to io.Writer) error {
	if _, err := fmt.Fprintf(to, "sparse m=%d n=%d entries=%d\n", s.m, s.n, s.Entries()); err != nil {
		return err
	}
	raw := make([]byte, 0, 1<<16)
	for mu := range s.m {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(s.start[mu+1]))
		for j := s.start[mu]; j < s.start[mu+1]; j++ {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(s.column[j]))
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(s.value(j)))
			if len(raw) > 1<<15 {
				if _, err := to.Write(raw); err != nil {
					return err
				}
				raw = raw[:0]
			}
		}
	}
	_, err := to.Write(raw)
	return err
}

// NewSweep implements [Operator]; it never fails.
func (s *Sparse) NewSweep(p, q, threads int) (Sweep, error) {
	if s.f32 != nil {
		return newSparseSweep(s, s.f32, p, q, threads), nil
	}
	return newSparseSweep(s, s.f64, p, q, threads), nil
}

// sparseSweep is a sweep in groups of four signals: as many linear columns, and with
// them as many quadratic ones.
type sparseSweep[T kernel.Entry] struct {
	*Sparse
	w             []T
	p, q, threads int
	groups        []sparseGroup
	parts         []*sparsePart
	rows          RowFunc
	r, h          []float64
}

// sparseGroup is some signals' entries, in lines: see [kernel.Lanes].
type sparseGroup struct {
	first, p, q int // columns of x from first on, and of c
	width       int // values of a line
	x           []float64
}

// sparsePart is the workspace of one chunk of rows.
type sparsePart struct {
	first, end int
	r          [][]float64 // of each group, in lines
	z, v, g, d []float64   // one block, as the row function has them
	line       [2 * kernel.Lanes]float64
}

// mostSums bounds the memory for the sums of all chunks, in values: 256 MiB.
const mostSums = 1 << 25

func newSparseSweep[T kernel.Entry](w *Sparse, values []T, p, q, threads int) *sparseSweep[T] {
	s := &sparseSweep[T]{Sparse: w, w: values, p: p, q: q, threads: max(1, threads)}
	lines := 0
	for first := 0; first < max(p, q); first += kernel.Lanes {
		g := sparseGroup{first: first, p: min(max(p-first, 0), kernel.Lanes), q: min(max(q-first, 0), kernel.Lanes), width: kernel.Lanes}
		if g.q > 0 {
			g.width = 2 * kernel.Lanes
		}
		g.x = make([]float64, w.n*g.width)
		lines += g.width
		s.groups = append(s.groups, g)
	}
	count := min(chunksFor(len(values)*(p+q)), max(1, mostSums/(w.n*max(1, lines))))
	for i := range count { // as many entries each
		first, end := w.rowOf(i, count), w.rowOf(i+1, count)
		part := &sparsePart{first: first, end: end}
		for _, g := range s.groups {
			part.r = append(part.r, make([]float64, w.n*g.width))
		}
		block := min(mostRows, end-first)
		part.z, part.g = make([]float64, block*p), make([]float64, block*p)
		part.v, part.d = make([]float64, block*q), make([]float64, block*q)
		s.parts = append(s.parts, part)
	}
	return s
}

// rowOf is where part i of count begins.
func (s *Sparse) rowOf(i, count int) int {
	if i == count {
		return s.m
	}
	entries := int64(len(s.column))
	want, lo, hi := entries*int64(i)/int64(count), 0, s.m
	for lo < hi {
		mid := (lo + hi) / 2
		if s.start[mid] < want {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Run implements [Sweep].
func (s *sparseSweep[T]) Run(r, h, x, c []float64, rows RowFunc) error {
	s.pack(x, c)
	s.rows, s.r, s.h = rows, r, h
	parallel.Run(len(s.parts), s.threads, func(i int) { s.run(s.parts[i]) })
	inPieces(s.n, s.threads, s.sum)
	s.rows, s.r, s.h = nil, nil, nil
	return nil
}

// pack puts the signals' entries into lines.
func (s *sparseSweep[T]) pack(x, c []float64) {
	inPieces(s.n, s.threads, func(from, to int) {
		for _, g := range s.groups {
			for k := range g.p {
				for i, v := range x[(g.first+k)*s.n:][from:to] {
					g.x[(from+i)*g.width+k] = v
				}
			}
			for k := range g.q {
				for i, v := range c[(g.first+k)*s.n:][from:to] {
					g.x[(from+i)*g.width+kernel.Lanes+k] = v
				}
			}
		}
	})
}

// run sweeps over one chunk of rows.
func (s *sparseSweep[T]) run(part *sparsePart) {
	for _, r := range part.r {
		clear(r)
	}
	for first := part.first; first < part.end; {
		end := first + 1 // a block stays in cache
		limit := s.start[first] + blockBytes/12
		for end < part.end && end-first < mostRows && s.start[end+1] <= limit {
			end++
		}
		s.block(part, first, end)
		first = end
	}
}

// block uses a block of rows forward and backward.
func (s *sparseSweep[T]) block(part *sparsePart, first, end int) {
	count := end - first
	z, v := part.z[:count*s.p], part.v[:count*s.q]
	g, d := part.g[:count*s.p], part.d[:count*s.q]
	for mu := first; mu < end; mu++ {
		w, columns := s.entries(mu)
		for _, group := range s.groups {
			if group.q > 0 {
				kernel.SparseDotBoth(w, columns, group.x, &part.line)
				copy(v[(mu-first)*s.q+group.first:][:group.q], part.line[kernel.Lanes:])
			} else {
				kernel.SparseDot(w, columns, group.x, (*[kernel.Lanes]float64)(part.line[:]))
			}
			if group.p > 0 {
				copy(z[(mu-first)*s.p+group.first:][:group.p], part.line[:])
			}
		}
	}
	s.rows(first, z, v, g, d)
	for mu := first; mu < end; mu++ {
		w, columns := s.entries(mu)
		for i, group := range s.groups {
			clear(part.line[:])
			if group.p > 0 {
				copy(part.line[:], g[(mu-first)*s.p+group.first:][:group.p])
			}
			if group.q > 0 {
				copy(part.line[kernel.Lanes:], d[(mu-first)*s.q+group.first:][:group.q])
				kernel.SparseAxpyBoth(w, columns, part.r[i], &part.line)
			} else {
				kernel.SparseAxpy(w, columns, part.r[i], (*[kernel.Lanes]float64)(part.line[:]))
			}
		}
	}
}

func (s *sparseSweep[T]) entries(mu int) ([]T, []int32) {
	from, to := s.start[mu], s.start[mu+1]
	return s.w[from:to], s.column[from:to]
}

// sum adds the chunks' sums for a range of columns, in order.
func (s *sparseSweep[T]) sum(from, to int) {
	for i, g := range s.groups {
		for k := range g.p {
			s.add(s.r[(g.first+k)*s.n:], i, g.width, k, from, to)
		}
		for k := range g.q {
			s.add(s.h[(g.first+k)*s.n:], i, g.width, kernel.Lanes+k, from, to)
		}
	}
}

func (s *sparseSweep[T]) add(out []float64, group, width, lane, from, to int) {
	for a, part := range s.parts {
		lines := part.r[group]
		for i := from; i < to; i++ {
			if v := lines[i*width+lane]; a == 0 {
				out[i] = v
			} else {
				out[i] += v
			}
		}
	}
}

// TransposeCSR returns the transpose of c, which is c read as CSC.
func TransposeCSR(c CSR) (CSR, error) {
	s := &Sparse{m: c.M, n: c.N, start: c.Start, column: c.Columns, f64: c.Values, f32: c.Values32}
	if err := s.check(); err != nil {
		return CSR{}, err
	}
	t := CSR{M: c.N, N: c.M, Start: make([]int64, c.N+1), Columns: make([]int32, len(c.Columns))}
	for _, column := range c.Columns {
		t.Start[column+1]++
	}
	for i := range c.N {
		t.Start[i+1] += t.Start[i]
	}
	next := append([]int64(nil), t.Start[:c.N]...)
	if c.Values32 != nil {
		t.Values32 = make([]float32, len(c.Values32))
	} else {
		t.Values = make([]float64, len(c.Values))
	}
	for mu := range c.M {
		for j := c.Start[mu]; j < c.Start[mu+1]; j++ {
			at := next[c.Columns[j]]
			next[c.Columns[j]]++
			t.Columns[at] = int32(mu)
			if t.Values32 != nil {
				t.Values32[at] = c.Values32[j]
			} else {
				t.Values[at] = c.Values[j]
			}
		}
	}
	return t, nil
}

// CSR is what the operator was made of, which the caller must not change.
func (s *Sparse) CSR() CSR {
	return CSR{M: s.m, N: s.n, Start: s.start, Columns: s.column, Values: s.f64, Values32: s.f32}
}

// Each calls f for every entry that is stored, row by row, until it returns false.
func (s *Sparse) Each(f func(mu, i int, v float64) bool) {
	for mu := range s.m {
		for j := s.start[mu]; j < s.start[mu+1]; j++ {
			v := 0.0
			if s.f32 != nil {
				v = float64(s.f32[j])
			} else {
				v = s.f64[j]
			}
			if !f(mu, int(s.column[j]), v) {
				return
			}
		}
	}
}
