package kernel

import "github.com/calamp/calamp/internal/simd"

// Whole is the kernels for one signal over bytes, in whole numbers: all instruction sets give the same bits. x and g are rounded to
// words of at most [MostWord], in units of their own.
type Whole struct {
	// Forward sets z (Rows) to the products of a panel of so many blocks with x, and Backward adds those of its transpose with
	// g (Rows) to r: at most [WholePanels] of them, until Drain adds r times its unit to its totals and clears it. The first half of the
	// panel that starts ahead entries further is asked of memory meanwhile.
	Forward  func(w []int8, blocks int, x []int16, z []float64)
	Backward func(w []int8, ahead, blocks int, r []int32, g []int16)
	Drain    func(total []float64, r []int32, unit float64)
}

const (
	// MostWord is the largest word.
	MostWord = 1<<15 - 1

	// WholePanels is how many panels may add up in 32 bits: each adds four products of at most 127·MostWord.
	WholePanels = (1<<31 - 1) / (Rows * mostByte * MostWord)
)

var wholes = [simd.Levels]Whole{simd.Go: {plainWholeForward, plainWholeBackward, plainWholeDrain}}

// WholeNumbers returns the kernels that this process uses.
func WholeNumbers() Whole { return wholes[active] }

func plainWholeForward(w []int8, blocks int, x []int16, z []float64) {
	var sums [Rows]int64
	for b := range blocks {
		xs := (*[Columns]int16)(x[b*Columns:])
		for row := range sums {
			for i, e := range (*[Columns]int8)(w[b*blockSize+row*Columns:]) {
				sums[row] += int64(e) * int64(xs[i])
			}
		}
	}
	for row, sum := range sums {
		z[row] = float64(sum)
	}
}

func plainWholeBackward(w []int8, _, blocks int, r []int32, g []int16) {
	for b := range blocks {
		rs := (*[Columns]int32)(r[b*Columns:])
		for row := range Rows {
			for i, e := range (*[Columns]int8)(w[b*blockSize+row*Columns:]) {
				rs[i] += int32(e) * int32(g[row])
			}
		}
	}
}

func plainWholeDrain(total []float64, r []int32, unit float64) {
	for i, v := range r {
		total[i] += float64(float64(v) * unit)
	}
	clear(r)
}
