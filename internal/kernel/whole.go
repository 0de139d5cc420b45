package kernel

import "github.com/calamp/calamp/internal/simd"

// Whole is the kernels over bytes. They count in whole numbers: all instruction sets give the same bits. x and g are rounded to words
// of at most [MostWord], in units of their own. Entry i of a list is for i signals.
type Whole struct {
	Forward  []WholeForward
	Backward []WholeBackward

	// Drain adds sums times their units, of which there is one for every signal, to total, and clears them. Both are laid out as r is in
	// [WholeBackward].
	Drain func(total []float64, sums []int32, units []float64)
}

// WholeForward adds the products of a panel of at most [WholeBlocks] blocks with several signals to z. Block b of signal s is the Columns
// words at x[b*xStep+s*Columns]; its sums are the Rows values at z[s*Rows].
type WholeForward func(w []int8, blocks int, x []int16, xStep int, z []float64)

// WholeBackward adds the products of a panel's transpose to r, which is laid out as x is in [WholeForward]; at most [WholePanels] of
// them until r is drained. The factors of rows 2i and 2i+1 and signal s are the two words at g[i*gStep+2*s]. The first half of the panel
// that starts ahead entries further is asked of memory meanwhile.
type WholeBackward func(w []int8, ahead, blocks int, r []int32, rStep int, g []int16, gStep int)

const (
	// MostWord is the largest word.
	MostWord = 1<<15 - 1

	// WholeBlocks and WholePanels are how many may add up in 32 bits, of two products in a block and of four in a panel.
	WholeBlocks = (1<<31 - 1) / (2 * mostByte * MostWord)
	WholePanels = (1<<31 - 1) / (Rows * mostByte * MostWord)
)

var wholes = [simd.Levels]Whole{simd.Go: {
	Forward: []WholeForward{nil, plainWholeForward}, Backward: []WholeBackward{nil, plainWholeBackward}, Drain: plainWholeDrain,
}}

// WholeNumbers returns the kernels that this process uses.
func WholeNumbers() *Whole { return &wholes[active] }

// Assembled reports whether this process uses kernels in assembly.
func Assembled() bool { return active != simd.Go }

func plainWholeForward(w []int8, blocks int, x []int16, xStep int, z []float64) {
	var sums [Rows]int64
	for b := range blocks {
		xs := (*[Columns]int16)(x[b*xStep:])
		for row := range sums {
			for i, e := range (*[Columns]int8)(w[b*blockSize+row*Columns:]) {
				sums[row] += int64(e) * int64(xs[i])
			}
		}
	}
	for row, sum := range sums {
		z[row] += float64(sum)
	}
}

func plainWholeBackward(w []int8, _, blocks int, r []int32, rStep int, g []int16, gStep int) {
	for b := range blocks {
		rs := (*[Columns]int32)(r[b*rStep:])
		for row := range Rows {
			factor := int32(g[row/2*gStep+row%2])
			for i, e := range (*[Columns]int8)(w[b*blockSize+row*Columns:]) {
				rs[i] += int32(e) * factor
			}
		}
	}
}

func plainWholeDrain(total []float64, sums []int32, units []float64) {
	for i, v := range sums {
		total[i] += float64(float64(v) * units[i/Columns%len(units)])
	}
	clear(sums)
}
