package operator

import (
	"math"

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
	s := newDenseSweep[int8, float32](b.Shape, inMemory[int8]{b.Matrix}, p, 0, threads)
	s.units = b.units
	return s
}
