package operator

import (
	"fmt"
	"unsafe"

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
	blockBytes = 256 << 10
	mostRows   = 64
	leastRows  = 16

	// tile is how many blocks of columns the kernels for several signals take at a
	// time. A signal's part of it is 2 KiB, so that those of several signals stay in
	// the innermost cache.
	tile = 16
)

// denseSweep is a sweep over a packed matrix. It keeps the signals' side packed
// too: by blocks of columns, all signals of a block together.
type denseSweep[T kernel.Entry] struct {
	w        kernel.Shape
	source   source[T]
	k        *kernel.Set[T]
	p, q     int
	threads  int
	block    int       // panels in a block of rows
	x, c     []float64 // packed
	parts    []*densePart[T]
	rows     RowFunc   // of the present run
	r, h     []float64 // of the present run
	runPart  func(i int)
	sumRange func(i int)

	halfZ, halfG []float64 // of the present half, one of them nil
	runHalf      func(i int)
	sumHalf      func(i int)
}

// source holds the panels of W, in memory or elsewhere.
type source[T kernel.Entry] interface {
	// chunk calls visit with the panels from first to end in order, size at a
	// time (fewer at the end): the number of the first, and their entries.
	chunk(first, end, size int, visit func(first int, w []T))
}

// inMemory is the source of a matrix in memory.
type inMemory[T kernel.Entry] struct{ *kernel.Matrix[T] }

func (m inMemory[T]) chunk(first, end, size int, visit func(first int, w []T)) {
	for ; first < end; first += size {
		visit(first, m.Data[first*m.PanelSize():min(first+size, end)*m.PanelSize()])
	}
}

// densePart is the workspace of one chunk of rows.
type densePart[T kernel.Entry] struct {
	first, end int       // panels
	r, h       []float64 // packed
	z, v, g, d []float64 // one block
	zt, vt     []float64 // z and v as the kernels write them, panel by panel
	visit      func(first int, w []T)
}

func newDenseSweep[T kernel.Entry](w kernel.Shape, from source[T], p, q, threads int) *denseSweep[T] {
	s := &denseSweep[T]{w: w, source: from, k: kernel.Of[T](), p: p, q: q, threads: max(1, threads)}
	var entry T
	rows := blockBytes / (int(unsafe.Sizeof(entry)) * w.N)
	if !s.single() {
		rows = max(rows, leastRows)
	}
	s.block = max(1, min(rows, mostRows)/kernel.Rows)
	padded := w.Blocks * kernel.Columns
	s.x, s.c = make([]float64, p*padded), make([]float64, q*padded)
	count := chunksFor(w.M * w.N * (p + q))
	per := (w.Panels() + count - 1) / count
	for first := 0; first < w.Panels(); first += per {
		block := min(s.block, per) * kernel.Rows
		part := &densePart[T]{
			first: first, end: min(first+per, w.Panels()),
			r: make([]float64, p*padded), h: make([]float64, q*padded),
			z: make([]float64, block*p), g: make([]float64, block*p),
			v: make([]float64, block*q), d: make([]float64, block*q),
			zt: make([]float64, block*p), vt: make([]float64, block*q),
		}
		part.visit = func(first int, w []T) { s.sweepBlock(part, first, w) }
		s.parts = append(s.parts, part)
	}
	s.runPart = func(i int) { s.run(s.parts[i]) }
	s.sumRange = s.sum
	s.runHalf = func(i int) { s.half(s.parts[i]) }
	s.sumHalf = s.sumLinear
	return s
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
func (s *denseSweep[T]) single() bool { return s.p == 1 && s.q <= 1 }

// Run implements [Sweep].
func (s *denseSweep[T]) Run(r, h, x, c []float64, rows RowFunc) error {
	n := s.w.N
	if len(r) != s.p*n || len(x) != s.p*n || len(h) != s.q*n || len(c) != s.q*n {
		panic(fmt.Sprintf("calamp: sweep over %d+%d columns of length %d called with slices of %d, %d, %d, %d", s.p, s.q, n, len(r), len(h), len(x), len(c)))
	}
	s.pack(s.x, x, s.p)
	s.pack(s.c, c, s.q)
	s.rows, s.r, s.h = rows, r, h
	parallel.Run(len(s.parts), s.threads, s.runPart)
	parallel.Run(s.sumRanges(), s.threads, s.sumRange)
	s.rows, s.r, s.h = nil, nil, nil
	return nil
}

// pack copies count signals, stored signal by signal in src, to dst, block by block.
func (s *denseSweep[T]) pack(dst, src []float64, count int) {
	for k := range count {
		signal := src[k*s.w.N : (k+1)*s.w.N]
		for at := k * kernel.Columns; len(signal) > 0; at += count * kernel.Columns {
			signal = signal[copy(dst[at:at+kernel.Columns], signal):]
		}
	}
}

// run sweeps over one chunk of rows.
func (s *denseSweep[T]) run(part *densePart[T]) {
	clear(part.r)
	clear(part.h)
	s.source.chunk(part.first, part.end, s.block, part.visit)
}

// sweepBlock uses a block of rows forward and backward.
func (s *denseSweep[T]) sweepBlock(part *densePart[T], first int, w []T) {
	panels := len(w) / s.w.PanelSize()
	padded := panels * kernel.Rows
	count := min(padded, s.w.M-first*kernel.Rows)
	if s.single() {
		s.forwardOne(part, w, panels)
	} else {
		s.forward(part, w, panels)
	}
	// The last panel may be padded with rows that W does not have.
	clear(part.g[count*s.p : padded*s.p])
	clear(part.d[count*s.q : padded*s.q])
	s.rows(first*kernel.Rows, part.z[:count*s.p], part.v[:count*s.q], part.g[:count*s.p], part.d[:count*s.q])
	if s.single() {
		s.backwardOne(part, w, panels)
	} else {
		s.backward(part, w, panels)
	}
}

func (s *denseSweep[T]) forwardOne(part *densePart[T], w []T, panels int) {
	for a := range panels {
		panel, at := w[a*s.w.PanelSize():], a*kernel.Rows
		if s.q == 0 {
			s.k.ForwardOneLinear(panel, s.w.Blocks, s.x, part.z[at:])
		} else {
			s.k.ForwardOne(panel, s.w.Blocks, s.x, s.c, part.z[at:], part.v[at:])
		}
	}
}

func (s *denseSweep[T]) backwardOne(part *densePart[T], w []T, panels int) {
	for a := range panels {
		panel, at := w[a*s.w.PanelSize():], a*kernel.Rows
		if s.q == 0 {
			s.k.BackwardOneLinear(panel, s.w.Blocks, part.r, part.g[at:])
		} else {
			s.k.BackwardOne(panel, s.w.Blocks, part.r, part.h, part.g[at:], part.d[at:])
		}
	}
}

// forward computes z = W x and v = W² c for a block of rows, tile by tile.
func (s *denseSweep[T]) forward(part *densePart[T], w []T, panels int) {
	clear(part.zt)
	clear(part.vt)
	for b := 0; b < s.w.Blocks; b += tile {
		blocks := min(tile, s.w.Blocks-b)
		s.dot(s.k.Dot, w, panels, b, blocks, s.x, s.p, part.zt)
		s.dot(s.k.DotSquares, w, panels, b, blocks, s.c, s.q, part.vt)
	}
	byRow(part.z, part.zt, panels, s.p)
	byRow(part.v, part.vt, panels, s.q)
}

// dot adds the products of a tile with all count signals, a group at a time.
func (s *denseSweep[T]) dot(kernels []kernel.Dot[T], w []T, panels, b, blocks int, x []float64, count int, z []float64) {
	step := count * kernel.Columns
	for k, size := 0, 0; k < count; k += size {
		size = s.groupSize(count - k)
		kernels[size](w[b*kernel.Rows*kernel.Columns:], panels, s.w.PanelSize(), blocks,
			x[b*step+k*kernel.Columns:], step, z[k*kernel.Rows:], count*kernel.Rows)
	}
}

// groupSize divides the signals that are left into groups of nearly one size.
func (s *denseSweep[T]) groupSize(left int) int {
	groups := (left + s.k.Group - 1) / s.k.Group
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
func (s *denseSweep[T]) backward(part *densePart[T], w []T, panels int) {
	for b := 0; b < s.w.Blocks; b += tile {
		blocks := min(tile, s.w.Blocks-b)
		s.axpy(s.k.Axpy, w, panels, b, blocks, part.g, s.p, part.r)
		s.axpy(s.k.AxpySquares, w, panels, b, blocks, part.d, s.q, part.h)
	}
}

func (s *denseSweep[T]) axpy(kernels []kernel.Axpy[T], w []T, panels, b, blocks int, g []float64, count int, r []float64) {
	step := count * kernel.Columns
	for k, size := 0, 0; k < count; k += size {
		size = s.groupSize(count - k)
		kernels[size](w[b*kernel.Rows*kernel.Columns:], panels, s.w.PanelSize(), blocks,
			g[k:], count, r[b*step+k*kernel.Columns:], step)
	}
}

// sumBlocks is how many blocks of columns are summed over the chunks at a time.
const sumBlocks = 64

func (s *denseSweep[T]) sumRanges() int { return (s.w.Blocks + sumBlocks - 1) / sumBlocks }

// sum adds the chunks' sums for one range of columns into r and h.
func (s *denseSweep[T]) sum(i int) {
	s.sumLinear(i)
	from, to := i*sumBlocks, min((i+1)*sumBlocks, s.w.Blocks)
	for a := range s.parts {
		s.unpack(s.h, s.parts[a].h, s.q, from, to, a == 0)
	}
}

// sumLinear does the same into r alone.
func (s *denseSweep[T]) sumLinear(i int) {
	from, to := i*sumBlocks, min((i+1)*sumBlocks, s.w.Blocks)
	for a := range s.parts {
		s.unpack(s.r, s.parts[a].r, s.p, from, to, a == 0)
	}
}

// unpack copies the blocks from … to of src to dst if set, and adds them otherwise.
func (s *denseSweep[T]) unpack(dst, src []float64, count, from, to int, set bool) {
	n := s.w.N
	for k := range count {
		for b := from; b < to; b++ {
			at := b * kernel.Columns
			out := dst[k*n+at : k*n+min(n, at+kernel.Columns)]
			in := src[(b*count+k)*kernel.Columns:][:len(out)]
			if set {
				copy(out, in)
				continue
			}
			for i, v := range in {
				out[i] += v
			}
		}
	}
}
