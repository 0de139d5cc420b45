// Package kernel holds the inner loops over the entries of W: it knows how a matrix is
// packed and multiplied, and nothing of what the products mean. There is generated
// assembly for AVX-512 and for AVX2 with FMA, and the same in plain Go for other
// machines, for the noasm build tag, and to test the assembly against.
//
// W is packed in panels of four rows, a panel in blocks of sixteen columns,
// padded with zeros: so the kernels read memory in order, and need no special cases
// for the ends of rows. Sums are in float64 whatever the storage. The kernels of
// different instruction sets add in different orders, so their results differ in the
// last digits; one kernel always gives the same bits.
package kernel

//go:generate sh -c "cd ../simd/gen && go run . -out ../../kernel/kernels_amd64.s -stubs ../../kernel/kernels_amd64.go -pkg kernel"

import (
	"math"

	"github.com/calamp/calamp/internal/simd"
)

// Entry is how an entry of W is stored.
type Entry interface{ float32 | float64 }

const (
	// Rows is the number of rows in a panel.
	Rows = 4
	// Columns is the number of columns in a block.
	Columns = 16

	blockSize = Rows * Columns
)

// Set is the kernels of one instruction set for one kind of entry. In all of
// them w starts at a block, and blocks counts blocks of the panel from there.
type Set[T Entry] struct {
	// Group is the largest number of signals that Dot and Axpy take.
	Group int

	// ForwardOne sets z and v (Rows each) to the products of a panel with x,
	// and of its squares with c. ForwardOneLinear leaves out the squares.
	ForwardOne       func(w []T, blocks int, x, c, z, v []float64)
	ForwardOneLinear func(w []T, blocks int, x, z []float64)

	// BackwardOne adds the products of a panel's transpose with g (Rows) to r,
	// and of its squares with d to h.
	BackwardOne       func(w []T, blocks int, r, h, g, d []float64)
	BackwardOneLinear func(w []T, blocks int, r, g []float64)

	// Dot and Axpy are the forward and the backward half for several signals: entry i
	// is for i signals. They work on a tile, some blocks of several panels. DotSquares
	// and AxpySquares do the same with the squares of w.
	Dot, DotSquares   []Dot[T]
	Axpy, AxpySquares []Axpy[T]
}

// Dot adds the products of a tile's rows with several signals to z. Panels are
// panelStep entries apart. Block b of signal s is the Columns values at
// x[b*xStep+s*Columns]; the sums of panel a and signal s, the Rows values at
// z[a*zStep+s*Rows].
type Dot[T Entry] func(w []T, panels, panelStep, blocks int, x []float64, xStep int, z []float64, zStep int)

// Axpy adds the products of a tile's transpose to r, which is laid out as x is
// in [Dot]. The factor of row µ (counted through all panels) and signal s is
// g[µ*gStep+s].
type Axpy[T Entry] func(w []T, panels, panelStep, blocks int, g []float64, gStep int, r []float64, rStep int)

// The kernels of the instruction sets that this build has.
var (
	sets32 = [simd.Levels]*Set[float32]{simd.Go: plain[float32]()}
	sets64 = [simd.Levels]*Set[float64]{simd.Go: plain[float64]()}
)

var active, _ = simd.Active()

// Of returns the kernels that this process uses.
func Of[T Entry]() *Set[T] { return set[T](active) }

// set returns the kernels of an instruction set that this machine has.
func set[T Entry](l simd.Level) *Set[T] {
	var entry T
	if _, single := any(entry).(float32); single {
		return any(sets32[l]).(*Set[T])
	}
	return any(sets64[l]).(*Set[T])
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
