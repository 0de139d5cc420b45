// Package kernel holds the inner loops over the entries of W: it knows how a matrix is
// packed and multiplied, and nothing of what the products mean. There is generated
// assembly for AVX-512 and for AVX2 with FMA, and the same in plain Go for other
// machines, for the noasm build tag, and to test the assembly against.
//
// W is packed in panels of four rows, a panel in blocks of sixteen columns,
// padded with zeros: so the kernels read memory in order, and need no special cases
// for the ends of rows. Kernels of their own take rows as they lie in a file. Sums are in float64 whatever the storage. The kernels of
// different instruction sets add in different orders, so their results differ in the
// last digits; one kernel always gives the same bits.
package kernel

//go:generate sh -c "cd ../simd/gen && go run . -out ../../kernel/kernels_amd64.s -stubs ../../kernel/kernels_amd64.go -pkg kernel"

import (
	"math"

	"github.com/calamp/calamp/internal/simd"
)

// Entry is how an entry of W is stored. With bytes every row has a unit, see [ToBytes] and [Whole].
type Entry interface{ int8 | float32 | float64 }

// Value is how signals, g and the sums over them are kept. Sums in float32 are short: z and
// v are added up in float64 every few blocks of columns, and r and h are to be drained
// every few panels (see [Drain]).
type Value interface{ float32 | float64 }

const (
	// Rows is the number of rows in a panel.
	Rows = 4
	// Columns is the number of columns in a block.
	Columns = 16

	blockSize = Rows * Columns
)

// Layout is how W lies in memory.
type Layout uint8

const (
	// Packed is in panels and blocks.
	Packed Layout = iota

	// InRows is row by row, as in a file; four of them are a panel. Kernels read whole blocks,
	// so up to Columns-1 entries behind a row. They count for nothing, but must be finite.
	InRows

	layouts = iota
)

// Set is the kernels of one instruction set for one layout and kind of entry and of value. In
// all of them w starts at a block, panelStep is how many entries further the block below
// starts, in the next panel, and blocks counts blocks of the panel from there.
type Set[T Entry, V Value] struct {
	// ForwardOne sets z and v (Rows each) to the products of a panel with x,
	// and of its squares with c. ForwardOneLinear leaves out the squares.
	ForwardOne       func(w []T, panelStep, blocks int, x, c []V, z, v []float64)
	ForwardOneLinear func(w []T, panelStep, blocks int, x []V, z []float64)

	// BackwardOne adds the products of a panel's transpose with g (Rows) to r,
	// and of its squares with d to h. The first half of a packed panel that starts ahead entries further is
	// asked of memory meanwhile.
	BackwardOne       func(w []T, panelStep, ahead, blocks int, r, h, g, d []V)
	BackwardOneLinear func(w []T, panelStep, ahead, blocks int, r, g []V)

	// Dot and Axpy are the forward and the backward half for several signals: entry i
	// is for i signals. They work on a tile, some blocks of several panels. DotSquares
	// and AxpySquares do the same with the squares of w.
	Dot, DotSquares   []Dot[T, V]
	Axpy, AxpySquares []Axpy[T, V]
}

// Dot adds the products of a tile's rows with several signals to z. Block b of signal s is the Columns values at
// x[b*xStep+s*Columns]; the sums of panel a and signal s, the Rows values at
// z[a*zStep+s*Rows].
type Dot[T Entry, V Value] func(w []T, panels, panelStep, blocks int, x []V, xStep int, z []float64, zStep int)

// Axpy adds the products of a tile's transpose to r, which is laid out as x is
// in [Dot]. The factor of row µ (counted through all panels) and signal s is
// g[µ*gStep+s].
type Axpy[T Entry, V Value] func(w []T, panels, panelStep, blocks int, g []V, gStep int, r []V, rStep int)

// The kernels of the instruction sets that this build has.
var (
	sets32     = [layouts][simd.Levels]*Set[float32, float64]{{simd.Go: plain[float32, float64](Packed)}, {simd.Go: plain[float32, float64](InRows)}}
	sets64     = [layouts][simd.Levels]*Set[float64, float64]{{simd.Go: plain[float64, float64](Packed)}, {simd.Go: plain[float64, float64](InRows)}}
	setsSingle = [layouts][simd.Levels]*Set[float32, float32]{{simd.Go: plain[float32, float32](Packed)}, {simd.Go: plain[float32, float32](InRows)}}
	drains     = [simd.Levels]func(total []float64, sums []float32){simd.Go: drain}
)

var active, _ = simd.Active()

// Of returns the kernels that this process uses.
func Of[T Entry, V Value](w Layout) *Set[T, V] { return set[T, V](w, active) }

// set returns the kernels of an instruction set that this machine has. There are none for
// entries in double precision and values in single precision; those for bytes are in [Whole].
func set[T Entry, V Value](w Layout, l simd.Level) *Set[T, V] {
	for _, s := range []any{sets32[w][l], sets64[w][l], setsSingle[w][l]} {
		if s, ok := s.(*Set[T, V]); ok {
			return s
		}
	}
	return nil
}

// Drain adds sums in single precision, a multiple of Columns of them, to their totals, and
// clears them.
func Drain(total []float64, sums []float32) {
	if len(sums) > 0 {
		drains[active](total, sums)
	}
}

// mostByte is what the largest entry of a row becomes as a byte.
const mostByte = 127

// ToBytes rounds the entries of a panel to bytes, in units of its rows: entry ≈ unit·byte. A unit is 0 where all are zero, and +Inf where
// they are too small for one.
func ToBytes(w []float32, blocks int, to []int8) (units [Rows]float64) {
	var top, inverse [Rows]float32
	if active == simd.Go {
		plainLargest(w, blocks, &top)
	} else {
		largest(w, blocks, &top)
	}
	for row, t := range top {
		units[row] = float64(t) / mostByte
		if t > 0 {
			inverse[row] = mostByte / t
		}
		if math.IsInf(float64(inverse[row]), 1) {
			units[row], inverse[row] = math.Inf(1), 0
		}
	}
	if active == simd.Go {
		plainToBytes(w, blocks, &inverse, to)
	} else {
		toBytes(w, blocks, &inverse, to)
	}
	return units
}

// Read combines the bits of w, as fast as memory allows where the kernels are
// assembly. Benchmarks compare the time of a sweep with it.
func Read(w []float32) uint64 {
	if active != simd.Go {
		return readVector(w)
	}
	sum := uint32(0)
	for _, v := range w {
		sum ^= math.Float32bits(v)
	}
	return uint64(sum)
}
