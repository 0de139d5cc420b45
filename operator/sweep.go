package operator

import (
	"fmt"
	"unsafe"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

const (
	// Rows are divided into this many chunks. Each has its own sums r and h, which
	// are then added in order: the result's bits depend on the number of chunks, never
	// on how many goroutines did the work. A small problem has fewer, since adding the
	// sums takes time, too.
	chunks      = 8
	fewChunks   = 4
	oneChunk    = 1
	smallWork   = 1 << 17 // entries times columns
	averageWork = 1 << 22

	// blockBytes is the size of a block of rows, which is used forward and backward
	// while it stays in a core's own cache, and mostRows its largest number of rows.
	// With several columns a block has at least leastRows, since each block passes
	// through all of r and h.
	blockBytes = 384 << 10
	mostRows   = 64
	leastRows  = 16

	// tileBytes is a signal's part of the columns that the kernels for several signals take at a
	// time, so that those of several signals stay in the innermost cache.
	tileBytes = 2 << 10

	// runPanels is over how many panels sums in single precision go before they are added
	// to those in double precision.
	runPanels = 64
)

// denseSweep is a sweep over a packed matrix, of entries T and with arithmetic in V. It
// keeps the signals' side packed too: by blocks of columns, all signals of a block together.
type denseSweep[T kernel.Entry, V kernel.Value] struct {
	w        kernel.Shape
	source   source[T]
	k        *kernel.Set[T, V]
	p, q     int
	threads  int
	block    int // panels in a block of rows
	tile     int // blocks of columns in a tile
	x, c     []V // packed
	parts    []*densePart[T, V]
	lender   *denseSweep[T, V] // of the workspace, or nil
	rows     RowFunc           // of the present run
	r, h     []float64         // of the present run
	runPart  func(i int)
	sumRange func(i int)

	halfZ, halfG []float64 // of the present half, one of them nil
	runHalf      func(i int)
}

// source holds the panels of W, in memory or elsewhere.
type source[T kernel.Entry] interface {
	// chunk calls visit with the panels from first to end in order, size at a
	// time (fewer at the end): the number of the first, how many, and their entries.
	chunk(first, end, size int, visit func(first, panels int, w []T))
}

// inMemory is the source of a matrix in memory.
type inMemory[T kernel.Entry] struct{ *kernel.Matrix[T] }

func (m inMemory[T]) chunk(first, end, size int, visit func(first, panels int, w []T)) {
	for ; first < end; first += size {
		panels := min(size, end-first)
		visit(first, panels, m.Data[first*m.PanelSize():][:panels*m.PanelSize()])
	}
}

// densePart is the workspace of one chunk of rows.
type densePart[T kernel.Entry, V kernel.Value] struct {
	first, end     int       // panels
	r, h           []V       // packed
	totalR, totalH []float64 // of r and h, in double precision: the same arrays if V is
	z, v, g, d     []float64 // one block
	zt, vt         []float64 // z and v as the kernels write them, panel by panel
	gs, ds         []V       // g and d as the kernels read them: the same arrays, likewise
	visit          func(first, panels int, w []T)
}

// newDenseSweep prepares a sweep, but for its workspace, which is made by its first run.
func newDenseSweep[T kernel.Entry, V kernel.Value](w kernel.Shape, from source[T], p, q, threads int) *denseSweep[T, V] {
	s := &denseSweep[T, V]{w: w, source: from, k: kernel.Of[T, V](w.Layout), p: p, q: q, threads: max(1, threads)}
	var entry T
	var value V
	s.tile = tileBytes / (int(unsafe.Sizeof(value)) * kernel.Columns)
	rows := blockBytes / (int(unsafe.Sizeof(entry)) * w.N)
	if !s.single() {
		rows = max(rows, leastRows)
	}
	s.block = max(1, min(rows, mostRows)/kernel.Rows)
	s.runPart = func(i int) { s.run(s.parts[i]) }
	s.sumRange = s.sum
	s.runHalf = func(i int) { s.half(s.parts[i]) }
	return s
}

// linear is the sweep over the linear columns of s alone, with the workspace of s.
func (s *denseSweep[T, V]) linear() *denseSweep[T, V] {
	l := newDenseSweep[T, V](s.w, s.source, s.p, 0, s.threads)
	l.block, l.lender = s.block, s
	return l
}

// panelsPerChunk is how many panels a chunk has; the last may have fewer.
func (s *denseSweep[T, V]) panelsPerChunk() int {
	if s.lender != nil {
		return s.lender.panelsPerChunk()
	}
	return panelsPerChunk(s.w, s.p+s.q, 1)
}

// panelsPerChunk is that of a sweep over so many columns that does an entry in the time of one, divided by speed.
func panelsPerChunk(w kernel.Shape, columns, speed int) int {
	count := chunksFor(w.M * w.N * columns / speed)
	return (w.Panels() + count - 1) / count
}

// prepare makes the workspace, unless it is there.
func (s *denseSweep[T, V]) prepare() {
	switch {
	case s.parts != nil:
		return
	case s.lender != nil:
		s.lender.prepare()
		s.x = s.lender.x
		for _, from := range s.lender.parts {
			part := &densePart[T, V]{
				first: from.first, end: from.end,
				r: from.r, totalR: from.totalR, z: from.z, g: from.g, gs: from.gs, zt: from.zt,
			}
			s.add(part)
		}
		return
	}
	p, q, padded, per := s.p, s.q, s.w.Blocks*kernel.Columns, s.panelsPerChunk()
	s.x, s.c = make([]V, p*padded), make([]V, q*padded)
	for first := 0; first < s.w.Panels(); first += per {
		block := min(s.block, per) * kernel.Rows
		part := &densePart[T, V]{
			first: first, end: min(first+per, s.w.Panels()),
			r: make([]V, p*padded), h: make([]V, q*padded),
			z: make([]float64, block*p), g: make([]float64, block*p),
			v: make([]float64, block*q), d: make([]float64, block*q),
			zt: make([]float64, block*p), vt: make([]float64, block*q),
		}
		part.totalR, part.totalH = doubleOf(part.r), doubleOf(part.h)
		part.gs, part.ds = valuesFor[V](part.g), valuesFor[V](part.d)
		s.add(part)
	}
}

func (s *denseSweep[T, V]) add(part *densePart[T, V]) {
	part.visit = func(first, panels int, w []T) { s.sweepBlock(part, first, panels, w) }
	s.parts = append(s.parts, part)
}

// doubleOf is v in double precision: v itself if it is, or an array of its own.
func doubleOf[V kernel.Value](v []V) []float64 {
	if v, same := any(v).([]float64); same {
		return v
	}
	return make([]float64, len(v))
}

// valuesFor is an array for the values of v: v itself if it is of their kind.
func valuesFor[V kernel.Value](v []float64) []V {
	if v, same := any(v).([]V); same {
		return v
	}
	return make([]V, len(v))
}

func chunksFor(work int) int {
	switch {
	case work <= smallWork:
		return oneChunk
	case work <= averageWork:
		return fewChunks
	}
	return chunks
}

// single reports whether there is one signal, for which the kernels do both
// products in one pass.
func (s *denseSweep[T, V]) single() bool { return s.p == 1 && s.q <= 1 }

// Run implements [Sweep].
func (s *denseSweep[T, V]) Run(r, h, x, c []float64, rows RowFunc) error {
	n := s.w.N
	checkColumns(n, s.p, s.q, r, h, x, c)
	s.prepare()
	pack(s.x, x, s.p, n)
	pack(s.c, c, s.q, n)
	s.rows, s.r, s.h = rows, r, h
	parallel.Run(len(s.parts), s.threads, s.runPart)
	parallel.Run(sumRanges(s.w.Blocks), s.threads, s.sumRange)
	s.rows, s.r, s.h = nil, nil, nil
	return nil
}

// checkColumns panics where the arguments of a sweep over p+q columns of length n are not of them.
func checkColumns(n, p, q int, r, h, x, c []float64) {
	if len(r) != p*n || len(x) != p*n || len(h) != q*n || len(c) != q*n {
		panic(fmt.Sprintf("calamp: sweep over %d+%d columns of length %d called with slices of %d, %d, %d, %d", p, q, n, len(r), len(h), len(x), len(c)))
	}
}

// pack copies count signals of n entries, stored signal by signal in src, to dst, block by
// block.
func pack[V kernel.Value](dst []V, src []float64, count, n int) {
	for k := range count {
		signal := src[k*n : (k+1)*n]
		for at := k * kernel.Columns; len(signal) > 0; at += count * kernel.Columns {
			here := min(kernel.Columns, len(signal))
			convert(dst[at:at+here], signal)
			signal = signal[here:]
		}
	}
}

// convert copies as many values as dst has.
func convert[V kernel.Value](dst []V, src []float64) {
	if dst, same := any(dst).([]float64); same {
		copy(dst, src)
		return
	}
	for i := range dst {
		dst[i] = V(src[i])
	}
}

// run sweeps over one chunk of rows.
func (s *denseSweep[T, V]) run(part *densePart[T, V]) {
	part.clear(s.drains())
	s.source.chunk(part.first, part.end, s.block, part.visit)
}

// clear begins sums anew, and their totals where they have some.
func (part *densePart[T, V]) clear(totals bool) {
	clear(part.r)
	clear(part.h)
	if totals {
		clear(part.totalR)
		clear(part.totalH)
	}
}

// drains reports whether sums are in single precision.
func (s *denseSweep[T, V]) drains() bool {
	_, double := any(s.x).([]float64)
	return !double
}

// sweepBlock uses a block of rows forward and backward.
func (s *denseSweep[T, V]) sweepBlock(part *densePart[T, V], first, panels int, w []T) {
	count := s.forwardBlock(part, first, panels, w)
	s.rows(first*kernel.Rows, part.z[:count*s.p], part.v[:count*s.q], part.g[:count*s.p], part.d[:count*s.q])
	s.backwardBlock(part, first, panels, w, count)
}

// forwardBlock sets z and v of a block of rows, and returns how many there are.
func (s *denseSweep[T, V]) forwardBlock(part *densePart[T, V], first, panels int, w []T) (count int) {
	if s.single() {
		s.forwardOne(part, w, panels)
	} else {
		s.forward(part, w, panels)
	}
	return s.rowsOf(first, panels)
}

// rowsOf is how many rows W has in panels from first on.
func (s *denseSweep[T, V]) rowsOf(first, panels int) int {
	return min(panels*kernel.Rows, s.w.M-first*kernel.Rows)
}

// backwardBlock uses g and d of a block of count rows.
func (s *denseSweep[T, V]) backwardBlock(part *densePart[T, V], first, panels int, w []T, count int) {
	padded := panels * kernel.Rows
	// The last panel may be padded with rows that W does not have.
	clear(part.g[count*s.p : padded*s.p])
	clear(part.d[count*s.q : padded*s.q])
	if !s.drains() {
		s.back(part, w, 0, panels)
		return
	}
	convert(part.gs[:padded*s.p], part.g)
	convert(part.ds[:padded*s.q], part.d)
	// Runs end at the same panels wherever blocks do.
	for a := 0; a < panels; {
		done := first + a - part.first
		end := min(panels, a+runPanels-done%runPanels)
		s.back(part, w[a*s.w.PanelSize():], a, end-a)
		if done += end - a; done%runPanels == 0 || first+end == part.end {
			drain(part.totalR, part.r)
			drain(part.totalH, part.h)
		}
		a = end
	}
}

// drain adds sums in single precision to their totals.
func drain[V kernel.Value](total []float64, sums []V) {
	if sums, ok := any(sums).([]float32); ok {
		kernel.Drain(total, sums)
	}
}

// back uses panels of a block backward, of which the first is at w.
func (s *denseSweep[T, V]) back(part *densePart[T, V], w []T, first, panels int) {
	g, d := part.gs[first*kernel.Rows*s.p:], part.ds[first*kernel.Rows*s.q:]
	if s.single() {
		s.backwardOne(part, w, panels, g, d)
	} else {
		s.backward(part, w, panels, g, d)
	}
}

func (s *denseSweep[T, V]) forwardOne(part *densePart[T, V], w []T, panels int) {
	for a := range panels {
		panel, at := w[a*s.w.PanelSize():], a*kernel.Rows
		if s.q == 0 {
			s.k.ForwardOneLinear(panel, s.w.PanelSize(), s.w.Blocks, s.x, part.z[at:])
		} else {
			s.k.ForwardOne(panel, s.w.PanelSize(), s.w.Blocks, s.x, s.c, part.z[at:], part.v[at:])
		}
	}
}

// backwardOne asks memory for the next block meanwhile, if there is one of the same size.
func (s *denseSweep[T, V]) backwardOne(part *densePart[T, V], w []T, panels int, g, d []V) {
	ahead := s.block * s.w.PanelSize()
	for a := range panels {
		panel, at := w[a*s.w.PanelSize():], a*kernel.Rows
		if s.q == 0 {
			s.k.BackwardOneLinear(panel, s.w.PanelSize(), ahead, s.w.Blocks, part.r, g[at:])
		} else {
			s.k.BackwardOne(panel, s.w.PanelSize(), ahead, s.w.Blocks, part.r, part.h, g[at:], d[at:])
		}
	}
}

// forward computes z = W x and v = W² c for a block of rows, tile by tile.
func (s *denseSweep[T, V]) forward(part *densePart[T, V], w []T, panels int) {
	clear(part.zt)
	clear(part.vt)
	for b := 0; b < s.w.Blocks; b += s.tile {
		blocks := min(s.tile, s.w.Blocks-b)
		s.dot(s.k.Dot, w, panels, b, blocks, s.x, s.p, part.zt)
		s.dot(s.k.DotSquares, w, panels, b, blocks, s.c, s.q, part.vt)
	}
	byRow(part.z, part.zt, panels, s.p)
	byRow(part.v, part.vt, panels, s.q)
}

// dot adds the products of a tile with all count signals, a group at a time.
func (s *denseSweep[T, V]) dot(kernels []kernel.Dot[T, V], w []T, panels, b, blocks int, x []V, count int, z []float64) {
	step := count * kernel.Columns
	for k, size := 0, 0; k < count; k += size {
		size = groupSize(count-k, len(kernels)-1)
		kernels[size](w[b*s.w.BlockStep():], panels, s.w.PanelSize(), blocks,
			x[b*step+k*kernel.Columns:], step, z[k*kernel.Rows:], count*kernel.Rows)
	}
}

// groupSize divides the signals that are left into groups of nearly one size.
func groupSize(left, most int) int {
	groups := (left + most - 1) / most
	return (left + groups - 1) / groups
}

// byRow copies sums stored panel by panel, and in a panel signal by signal, to the
// order row by row.
func byRow(dst, src []float64, panels, count int) {
	for a := range panels {
		for k := range count {
			from := (*[kernel.Rows]float64)(src[(a*count+k)*kernel.Rows:])
			for row, v := range from {
				dst[(a*kernel.Rows+row)*count+k] = v
			}
		}
	}
}

// backward adds Wᵀg to r and (W²)ᵀd to h for a block of rows.
func (s *denseSweep[T, V]) backward(part *densePart[T, V], w []T, panels int, g, d []V) {
	for b := 0; b < s.w.Blocks; b += s.tile {
		blocks := min(s.tile, s.w.Blocks-b)
		s.axpy(s.k.Axpy, w, panels, b, blocks, g, s.p, part.r)
		s.axpy(s.k.AxpySquares, w, panels, b, blocks, d, s.q, part.h)
	}
}

func (s *denseSweep[T, V]) axpy(kernels []kernel.Axpy[T, V], w []T, panels, b, blocks int, g []V, count int, r []V) {
	step := count * kernel.Columns
	for k, size := 0, 0; k < count; k += size {
		size = groupSize(count-k, len(kernels)-1)
		kernels[size](w[b*s.w.BlockStep():], panels, s.w.PanelSize(), blocks,
			g[k:], count, r[b*step+k*kernel.Columns:], step)
	}
}

// sumBlocks is how many blocks of columns are summed over the chunks at a time.
const sumBlocks = 64

func sumRanges(blocks int) int { return (blocks + sumBlocks - 1) / sumBlocks }

// rangeOfSum is the one of number i.
func rangeOfSum(i, blocks int) (from, to int) { return i * sumBlocks, min((i+1)*sumBlocks, blocks) }

// sum adds the chunks' sums for one range of columns into r and h.
func (s *denseSweep[T, V]) sum(i int) {
	from, to := rangeOfSum(i, s.w.Blocks)
	first := s.parts[0]
	for _, part := range s.parts[1:] {
		floats.Add(blocksOf(first.totalR, s.p, from, to), blocksOf(part.totalR, s.p, from, to))
		floats.Add(blocksOf(first.totalH, s.q, from, to), blocksOf(part.totalH, s.q, from, to))
	}
	unpack(s.r, first.totalR, s.p, s.w.N, from, to)
	unpack(s.h, first.totalH, s.q, s.w.N, from, to)
}

// blocksOf are those from … to of count packed signals.
func blocksOf(v []float64, count, from, to int) []float64 {
	return v[from*count*kernel.Columns : to*count*kernel.Columns]
}

// unpack copies the blocks from … to of count packed signals of n entries to dst.
func unpack(dst, src []float64, count, n, from, to int) {
	for k := range count {
		for b := from; b < to; b++ {
			at := b * kernel.Columns
			copy(dst[k*n+at:k*n+min(n, at+kernel.Columns)], src[(b*count+k)*kernel.Columns:])
		}
	}
}
