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

const (
	// leastBytes is the number of entries of W from which bytes pay for one signal, and manyBytes that for more, whose
	// products wait for arithmetic unless W comes out of main memory: docs/performance.md has the times.
	leastBytes = 1 << 18
	manyBytes  = 1 << 22
)

// BytesPay reports whether sweeps over so many entries in bytes, with p columns, take less than those in single precision.
func BytesPay(entries, p int) bool { return entries >= manyBytes || p == 1 && entries >= leastBytes }

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

func (b *inBytes) sweep(p, threads int) Sweep {
	if p == 1 {
		return newByteSweep(b, threads)
	}
	s := newDenseSweep[int8, float32](b.Shape, inMemory[int8]{b.Matrix}, p, 0, threads)
	s.units = b.units
	return s
}

// byteSweep is a sweep over bytes with one column, in whole numbers: x, and g of a block of rows, are rounded to sixteen bits, in units of
// which the largest is 32767. That is 10⁻⁵ of the largest, a thousandth of what bytes lose.
type byteSweep struct {
	*inBytes
	k        kernel.Whole
	threads  int
	block    int // panels in a block of rows
	x        []int16
	unit     float64 // of x
	parts    []*bytePart
	rows     RowFunc   // of the present run
	r        []float64 // of the present run
	runPart  func(i int)
	sumRange func(i int)
}

// bytePart is the workspace of one chunk of rows.
type bytePart struct {
	first, end int     // panels
	sums       []int32 // in units of the present block's g
	total      []float64
	z, g       []float64 // one block
	words      []int16   // g as the kernels read it
}

// wholeRows is the largest number of rows in a block: after each the sums are drained, which takes as long as six of its rows.
const wholeRows = 256

func newByteSweep(b *inBytes, threads int) *byteSweep {
	padded := b.Blocks * kernel.Columns
	s := &byteSweep{inBytes: b, k: kernel.WholeNumbers(), threads: max(1, threads), x: make([]int16, padded)}
	s.block = max(1, min(blockBytes/b.N, wholeRows, kernel.WholePanels*kernel.Rows)/kernel.Rows)
	per := panelsPerChunk(b.Shape, 1)
	for first := 0; first < b.Panels(); first += per {
		rows := min(s.block, per) * kernel.Rows
		s.parts = append(s.parts, &bytePart{
			first: first, end: min(first+per, b.Panels()), sums: make([]int32, padded), total: make([]float64, padded),
			z: make([]float64, rows), g: make([]float64, rows), words: make([]int16, rows),
		})
	}
	s.runPart, s.sumRange = s.run, s.sum
	return s
}

// Run implements [Sweep].
func (s *byteSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	checkColumns(s.N, 1, 0, r, h, x, c)
	s.unit = inWords(s.x, x)
	s.rows, s.r = rows, r
	parallel.Run(len(s.parts), s.threads, s.runPart)
	parallel.Run(sumRanges(s.Blocks), s.threads, s.sumRange)
	s.rows, s.r = nil, nil
	return nil
}

// inWords rounds values to words, and returns their unit: not finite where a value is not.
func inWords(words []int16, values []float64) (unit float64) {
	largest := 0.0
	for _, v := range values {
		largest = max(largest, math.Abs(v))
	}
	inverse := kernel.MostWord / largest
	if !(inverse <= math.MaxFloat64 && inverse > 0) { // all zero, or too small for a unit, or not finite
		clear(words)
		return largest
	}
	const magic = 1.5 * (1 << 52) // added to a number it leaves the nearest integer in the low bits
	for i, v := range values {
		words[i] = int16(math.Float64bits(float64(v*inverse) + magic))
	}
	return largest / kernel.MostWord
}

// run sweeps over one chunk of rows.
func (s *byteSweep) run(i int) {
	part := s.parts[i]
	clear(part.total)
	for first := part.first; first < part.end; first += s.block {
		s.sweepBlock(part, first, min(s.block, part.end-first))
	}
}

// sweepBlock uses a block of rows forward and backward.
func (s *byteSweep) sweepBlock(part *bytePart, first, panels int) {
	w, size := s.Data[first*s.PanelSize():], s.PanelSize()
	for a := range panels {
		s.k.Forward(w[a*size:], s.Blocks, s.x, part.z[a*kernel.Rows:])
	}
	count := min(panels*kernel.Rows, s.M-first*kernel.Rows)
	z, g, units := part.z[:count], part.g[:count], s.units[first*kernel.Rows:]
	for row := range z {
		z[row] *= units[row] * s.unit
	}
	s.rows(first*kernel.Rows, z, nil, g, nil)
	for row := range g {
		g[row] *= units[row]
	}
	clear(part.words[count:]) // rows that W does not have
	unit := inWords(part.words[:count], g)
	ahead := s.block * size
	for a := range panels {
		s.k.Backward(w[a*size:], ahead, s.Blocks, part.sums, part.words[a*kernel.Rows:])
	}
	s.k.Drain(part.total, part.sums, unit)
}

// sum adds the chunks' sums for one range of columns into r.
func (s *byteSweep) sum(i int) {
	from, to := rangeOfSum(i, s.Blocks)
	first := s.parts[0].total[from*kernel.Columns : to*kernel.Columns]
	for _, part := range s.parts[1:] {
		floats.Add(first, part.total[from*kernel.Columns:to*kernel.Columns])
	}
	copy(s.r[from*kernel.Columns:], first) // all but the padding
}
