package operator

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

// inBytes is a matrix with entries of eight bits: each row in a unit of its own, of which its largest entry is 127. It takes a quarter of
// what single precision takes to read, and serves where a product is a small correction of one that is known.
type inBytes struct {
	*kernel.Matrix[int8]
	units []float64 // of the rows, those of the padding included
}

// leastBytes is the number of entries of W below which sweeps over bytes take too little time for the rest of it to matter. Sweeps over
// more take a half to nine tenths of what they take in single precision, with any number of signals: docs/log/performance.md has the times.
const leastBytes = 1 << 17

// BytesPay reports whether sweeps over so many entries in bytes take less than those in single precision. In plain Go they do not.
func BytesPay(entries int) bool { return entries >= leastBytes && kernel.Assembled() }

// ByteSweep is a sweep over p linear columns with the entries of w rounded to bytes, and the largest part of a row or of a column, root
// mean square, that is rounded off. rows and columns are their squared norms. There is none, and the part is infinite, for a w without
// sweeps in single precision, or not in memory. The rounded entries are made once.
func ByteSweep(w Operator, rows, columns []float64, p, threads int) (s Sweep, off float64, err error) {
	var units []float64
	if d := distributed(w); d != nil {
		if s = d.byteSweep(p, threads); s != nil {
			units, err = d.byteUnits()
		}
	} else if d, ok := w.(*Dense); ok && d.f32 != nil {
		b := d.asBytes(threads)
		s, units = b.sweep(p, threads), b.units[:d.m]
	}
	if s == nil || err != nil {
		return nil, math.Inf(1), err
	}
	// Errors are spread evenly over a unit: their mean square is a twelfth of its own.
	worst, all := 0.0, 0.0
	for i, unit := range units {
		all += unit * unit / 12
		if unit > 0 {
			worst = max(worst, unit*unit/12*float64(len(columns))/rows[i])
		}
	}
	for _, square := range columns {
		if square > 0 {
			worst = max(worst, all/square)
		}
	}
	return s, math.Sqrt(worst), nil
}

// asBytes is d with its entries, which are in single precision, rounded.
func (d *Dense) asBytes(threads int) *inBytes {
	d.coarsening.Do(func() {
		w := d.f32
		b := &inBytes{kernel.NewMatrix[int8](w.Shape), make([]float64, w.Panels()*kernel.Rows)}
		parallel.Run(w.Panels(), threads, func(a int) {
			panel := a * w.PanelSize()
			units := kernel.ToBytes(w.Data[panel:panel+w.PanelSize()], w.Blocks, b.Data[panel:panel+w.PanelSize()])
			copy(b.units[a*kernel.Rows:], units[:])
		})
		d.bytes = b
	})
	return d.bytes
}

// byteSweep is a sweep over bytes, in whole numbers: x and g are rounded to sixteen bits, in units of which a signal's largest is some
// ten thousand. So they lose 10⁻⁵ of the largest, a hundredth of what bytes lose of W.
type byteSweep struct {
	*inBytes
	k          *kernel.Whole
	p, threads int
	block      int       // panels in a block of rows
	tile       int       // blocks of columns in a tile on the way back, and twice as many on the way forward
	x          []int16   // packed by blocks of columns, all signals of a block together
	units      []float64 // P, of x
	parts      []*bytePart
	rows       RowFunc   // of the present run
	r          []float64 // of the present run
	runPart    func(i int)
	sumRange   func(i int)
}

// bytePart is the workspace of one chunk of rows.
type bytePart struct {
	first, end int       // panels
	sums       []int32   // packed as x, in units of g
	units      []float64 // P, of g
	added      int       // panels in the sums
	total      []float64 // packed as x
	z, g       []float64 // one block, row by row
	zt         []float64 // z as the kernels write it, panel by panel
	words      []int16   // g as the kernels read it, two rows after the other
	largest    []float64 // P, of g in the present block
}

const (
	// wholeTileBytes is how much of x, or of the sums, which take twice that, belongs to a tile of columns: what the innermost cache
	// holds beside a panel of W.
	wholeTileBytes = 20 << 10

	// wholeSpeed is how much less work an entry is than in single precision, beside adding the chunks' sums.
	wholeSpeed = 4

	// headroom is by how much the factors of later rows may exceed those that the unit of a chunk was chosen for: else its sums are
	// drained first.
	headroom = 1.5
)

func (b *inBytes) sweep(p, threads int) Sweep {
	padded := p * b.Blocks * kernel.Columns
	s := &byteSweep{inBytes: b, k: kernel.WholeNumbers(), p: p, threads: max(1, threads), x: make([]int16, padded), units: make([]float64, p)}
	s.tile = max(1, wholeTileBytes/(4*kernel.Columns*p))
	s.block = max(1, min(max(blockBytes/b.N, leastRows), mostRows)/kernel.Rows)
	per := panelsPerChunk(b.Shape, p, wholeSpeed)
	for first := 0; first < b.Panels(); first += per {
		rows := min(s.block, per) * kernel.Rows
		s.parts = append(s.parts, &bytePart{
			first: first, end: min(first+per, b.Panels()), sums: make([]int32, padded), total: make([]float64, padded),
			z: make([]float64, rows*p), g: make([]float64, rows*p), zt: make([]float64, rows*p), words: make([]int16, rows*p),
			units: make([]float64, p), largest: make([]float64, p),
		})
	}
	s.runPart, s.sumRange = s.run, s.sum
	return s
}

// Run implements [Sweep].
func (s *byteSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	checkColumns(s.N, s.p, 0, r, h, x, c)
	s.packWords(x)
	s.rows, s.r = rows, r
	parallel.Run(len(s.parts), s.threads, s.runPart)
	parallel.Run(sumRanges(s.Blocks), s.threads, s.sumRange)
	s.rows, s.r = nil, nil
	return nil
}

// packWords rounds x, signal by signal, to words.
func (s *byteSweep) packWords(x []float64) {
	for k := range s.p {
		signal, most := x[k*s.N:(k+1)*s.N], size(0)
		for _, v := range signal {
			most = max(most, sizeOf(v))
		}
		s.units[k] = most.value() / kernel.MostWord
		inverse := inverseOf(s.units[k])
		for at := k * kernel.Columns; len(signal) > 0; at += s.p * kernel.Columns {
			here := signal[:min(kernel.Columns, len(signal))]
			words := s.x[at:][:len(here)]
			for i, v := range here {
				words[i] = word(v, inverse)
			}
			signal = signal[len(here):]
		}
	}
}

// size is the bits of a number without its sign: their order is that of numbers, and what is none is the largest.
type size uint64

func sizeOf(v float64) size { return size(math.Float64bits(v) &^ (1 << 63)) }

func (s size) value() float64 { return math.Float64frombits(uint64(s)) }

// inverseOf is that of a unit, and 0 where there is none: all is zero, or what comes of it is not finite anyway.
func inverseOf(unit float64) float64 {
	if inverse := 1 / unit; inverse <= math.MaxFloat64 {
		return inverse
	}
	return 0
}

// word is v in units, to the nearest: a large number, when added, leaves it in the low bits.
func word(v, inverse float64) int16 {
	const large = 1.5 * (1 << 52)
	return int16(math.Float64bits(float64(v*inverse) + large))
}

// run sweeps over one chunk of rows.
func (s *byteSweep) run(i int) {
	part := s.parts[i]
	clear(part.total)
	clear(part.units)
	for first := part.first; first < part.end; first += s.block {
		panels := min(s.block, part.end-first)
		count := min(panels*kernel.Rows, s.M-first*kernel.Rows)
		z, g, units := part.z[:count*s.p], part.g[:count*s.p], s.inBytes.units[first*kernel.Rows:][:count]
		s.forward(part, first, panels)
		byRow(part.z, part.zt, panels, s.p)
		for row, unit := range units {
			for k, ofX := range s.units {
				z[row*s.p+k] *= unit * ofX
			}
		}
		s.rows(first*kernel.Rows, z, nil, g, nil)
		s.packFactors(part, g, units, panels)
		s.backward(part, first, panels)
	}
	s.drain(part)
}

// tiles calls visit with the blocks of columns of every tile, of at most so many, and each group of signals.
func (s *byteSweep) tiles(tile, most int, visit func(b, blocks, k, signals int)) {
	for b := 0; b < s.Blocks; b += tile {
		for k, size := 0, 0; k < s.p; k += size {
			size = groupSize(s.p-k, most)
			visit(b, min(tile, s.Blocks-b), k, size)
		}
	}
}

// forward sets the z of a block of rows, in units of the rows and of x.
func (s *byteSweep) forward(part *bytePart, first, panels int) {
	clear(part.zt)
	step := s.p * kernel.Columns
	s.tiles(min(2*s.tile, kernel.WholeBlocks), len(s.k.Forward)-1, func(b, blocks, k, signals int) {
		w, x, forward := s.Data[first*s.PanelSize()+b*s.BlockStep():], s.x[b*step+k*kernel.Columns:], s.k.Forward[signals]
		for a := range panels {
			forward(w[a*s.PanelSize():], blocks, x, step, part.zt[(a*s.p+k)*kernel.Rows:])
		}
	})
}

// packFactors rounds g of a block of rows with these units to words. Where they exceed those that the sums may hold, these are drained first.
func (s *byteSweep) packFactors(part *bytePart, g, units []float64, panels int) {
	fits := part.added+panels <= kernel.WholePanels
	for k := range s.p {
		most, at := size(0), k
		for _, unit := range units {
			g[at] *= unit
			most = max(most, sizeOf(g[at]))
			at += s.p
		}
		part.largest[k] = most.value()
		fits = fits && part.largest[k] <= part.units[k]*kernel.MostWord // not where it is no number
	}
	if !fits {
		s.drain(part)
		for k, v := range part.largest {
			part.units[k] = headroom * v / kernel.MostWord
		}
	}
	part.added += panels
	clear(part.words) // those of rows that W does not have
	for k, unit := range part.units {
		inverse := inverseOf(unit)
		for row, at := 0, k; at < len(g); row, at = row+1, at+s.p {
			part.words[(row/2*s.p+k)*2+row%2] = word(g[at], inverse)
		}
	}
}

// backward adds Wᵀg of a block of rows to the sums.
func (s *byteSweep) backward(part *bytePart, first, panels int) {
	step, ahead := s.p*kernel.Columns, s.block*s.PanelSize()
	s.tiles(s.tile, len(s.k.Backward)-1, func(b, blocks, k, signals int) {
		w, r, backward := s.Data[first*s.PanelSize()+b*s.BlockStep():], part.sums[b*step+k*kernel.Columns:], s.k.Backward[signals]
		for a := range panels {
			backward(w[a*s.PanelSize():], ahead, blocks, r, step, part.words[a*kernel.Rows*s.p+2*k:], 2*s.p)
		}
	})
}

// drain adds the sums to their totals.
func (s *byteSweep) drain(part *bytePart) {
	s.k.Drain(part.total, part.sums, part.units)
	part.added = 0
}

// sum adds the chunks' sums for one range of columns into r.
func (s *byteSweep) sum(i int) {
	from, to := rangeOfSum(i, s.Blocks)
	first := s.parts[0].total
	for _, part := range s.parts[1:] {
		floats.Add(blocksOf(first, s.p, from, to), blocksOf(part.total, s.p, from, to))
	}
	unpack(s.r, first, s.p, s.N, from, to)
}
