// Package transform holds fast transforms of several signals at once: it knows
// butterflies and the order in which they meet memory, and nothing of matrices. The
// signals stand side by side, entry by entry, so that one step is the same for all of
// them: they are the lanes of the kernels.
//
// Every value is computed by the same operations whatever the number of threads.
package transform

import (
	"fmt"
	"math/bits"

	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

const (
	// inCache is how many values a block holds that is transformed while it stays in a
	// core's own cache (256 KiB), and innermost those of the innermost one (16 KiB).
	inCache   = 1 << 15
	innermost = 1 << 11

	// narrow is about the least width of a tile of columns, in values: eight cache lines, so that
	// reading it from many rows uses all of what memory sends. Wider ones, while they stay in cache, find their
	// rows on fewer pages: 2²⁰ values of four signals take 41 ms there and back in place of 56.
	narrow = 64
)

// Along is what goes along with a transform while values are in cache anyway. Both are called for ranges of entries,
// concurrently, with their values of all signals; either may be nil.
type Along struct {
	Load func(values []float64, first int) // sets what is to be transformed, from entry first on
	Done func(values []float64, first int) // hears of what has been
}

// Hadamard replaces x, n entries of p signals each, entry by entry, by
// Σ_i (-1)^popcount(r&i) x_i at every entry r: the Walsh–Hadamard transform in
// Sylvester's order, times √n. n is a power of two.
//
// The steps of this transform commute, and none has a factor, so their order is that
// of memory. One that is too large for the cache is two: along the columns of a table
// whose rows fit, tile by tile, and along the rows.
func Hadamard(x []float64, n, p, threads int, along Along) {
	if n <= 0 || n&(n-1) != 0 || len(x) != n*p {
		panic(fmt.Sprintf("calamp: Walsh–Hadamard transform of %d values as %d×%d", len(x), n, p))
	}
	row := n // entries of a row of the table
	for row*p > inCache && row > 1 {
		row /= 2
	}
	if row < n {
		hadamardColumns(x, n/row, row, p, threads, along.Load)
	}
	parallel.Run(n/row, threads, func(i int) {
		block := x[i*row*p : (i+1)*row*p]
		if along.Load != nil && row == n {
			along.Load(block, 0)
		}
		hadamardBlock(block, p)
		if along.Done != nil {
			along.Done(block, i*row)
		}
	})
}

// hadamardColumns transforms all columns of a table of rows of so many entries.
func hadamardColumns(x []float64, rows, entries, p, threads int, load func(values []float64, first int)) {
	atOnce, width := 1, max(narrow, inCache/rows) // entries of a tile, whole vectors of four values
	for 2*atOnce*p <= width || atOnce*p%4 != 0 {
		atOnce *= 2
	}
	tiles := (entries + atOnce - 1) / atOnce
	each := (tiles + 4*threads - 1) / (4 * threads)
	parallel.Run((tiles+each-1)/each, threads, func(part int) {
		// A copy, since the rows of a table are a power of two apart, where a cache
		// has room for few of them.
		tile := make([]float64, rows*atOnce*p)
		for t := part * each; t < min((part+1)*each, tiles); t++ {
			from, to := t*atOnce, min((t+1)*atOnce, entries)
			width := (to - from) * p
			for i := range rows {
				first := i*entries + from
				if own := tile[i*width : (i+1)*width]; load != nil {
					load(own, first)
				} else {
					copy(own, x[first*p:])
				}
			}
			hadamardBlock(tile[:rows*width], width)
			for i := range rows {
				copy(x[(i*entries+from)*p:], tile[i*width:(i+1)*width])
			}
		}
	})
}

// hadamardBlock transforms x, whose entries are run values each: from the longest
// distance to the shortest, so that ever smaller parts stay in ever faster caches.
func hadamardBlock(x []float64, run int) {
	steps := bits.Len(uint(len(x)/run)) - 1
	if steps%2 == 1 {
		kernel.Butterflies2(x, len(x)/2)
		hadamardFours(x[:len(x)/2], run)
		hadamardFours(x[len(x)/2:], run)
		return
	}
	hadamardFours(x, run)
}

// hadamardFours is hadamardBlock for a power of four.
func hadamardFours(x []float64, run int) {
	if len(x) > innermost && len(x) > run {
		quarter := len(x) / 4
		kernel.Butterflies4(x, quarter)
		for i := range 4 {
			hadamardFours(x[i*quarter:(i+1)*quarter], run)
		}
		return
	}
	for at := len(x) / 4; at >= run; at /= 4 {
		kernel.Butterflies4(x, at)
	}
}
