// Package dense multiplies, factors and inverts matrices of some hundred to some thousand rows. It knows numbers, and nothing of what
// they mean. All of it is products of tiles that stay in registers (package kernel); sums are taken in the same order for any number of threads.
package dense

import (
	"math"
	"runtime"
	"slices"

	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

// Matrix is a part of a table of numbers, or of its transpose: entry (i, j) is Data[i*Down+j*Across].
type Matrix struct {
	Data          []float64
	Rows, Columns int
	Down, Across  int
}

// New is a matrix of zeros.
func New(rows, columns int) Matrix { return Of(make([]float64, rows*columns), rows, columns) }

// Of is the matrix whose rows lie one after the other in data.
func Of(data []float64, rows, columns int) Matrix {
	return Matrix{Data: data, Rows: rows, Columns: columns, Down: columns, Across: 1}
}

// T is the transpose, of the same numbers.
func (a Matrix) T() Matrix {
	return Matrix{Data: a.Data, Rows: a.Columns, Columns: a.Rows, Down: a.Across, Across: a.Down}
}

// turned reports whether the numbers of a row are not next to each other.
func (a Matrix) turned() bool { return a.Across != 1 }

// Part is rows i to k and columns j to l, k and l not among them.
func (a Matrix) Part(i, k, j, l int) Matrix {
	a.Rows, a.Columns = k-i, l-j
	if a.Rows > 0 && a.Columns > 0 {
		a.Data = a.Data[i*a.Down+j*a.Across:]
	}
	return a
}

// Row is row i of a matrix that is no transpose.
func (a Matrix) Row(i int) []float64 { return a.Data[i*a.Down:][:a.Columns] }

// At is entry (i, j).
func (a Matrix) At(i, j int) float64 { return a.Data[i*a.Down+j*a.Across] }

const (
	// Blocks of a product: those of the right factor stay in the second cache, those of the left one in the first.
	depthBlock, columnBlock, rowBlock = 240, 480, 48

	// small is the size below which triangles are solved without products.
	small = 24

	// worthThreads is the number of multiplications from which on more than one thread is asked to help.
	worthThreads = 1 << 20
)

// Which entries of a product are wanted.
type Which bool

const (
	All   Which = false
	Lower Which = true // those on and below the diagonal; others may or may not be added to
)

// buffers are of any length and content.
var buffers parallel.Pool[[]float64]

// AddProduct adds sign times ab to c, which may be a transpose where all of it is wanted.
func AddProduct(c Matrix, sign float64, a, b Matrix, which Which, threads int) {
	if c.turned() { // cᵀ is (ab)ᵀ = bᵀaᵀ
		c, a, b = c.T(), b.T(), a.T()
	}
	rows, columns := kernel.TileSize()
	right := buffers.Get()
	defer buffers.Put(right)
	for j := 0; j < b.Columns; j += columnBlock {
		to := min(j+columnBlock, b.Columns)
		for d := 0; d < a.Columns; d += depthBlock {
			depth := min(depthBlock, a.Columns-d)
			*right = pack(*right, b.Part(d, d+depth, j, to).T(), columns)
			inBlocks(a.Rows, rowBlock, a.Columns*b.Columns, threads, func(i, end int) {
				if which == Lower && end <= j {
					return
				}
				left := buffers.Get()
				*left = pack(*left, a.Part(i, end, d, d+depth), rows)
				addTiles(c.Part(i, end, j, to), sign, depth, *left, *right, which, i-j)
				buffers.Put(left)
			})
		}
	}
}

// Scratch is a matrix of any numbers, to be given back by done.
func Scratch(rows, columns int) (a Matrix, done func()) {
	buffer := buffers.Get()
	*buffer = slices.Grow((*buffer)[:0], rows*columns)[:rows*columns]
	return Of(*buffer, rows, columns), func() { buffers.Put(buffer) }
}

// Product sets c, which is no transpose, to ab.
func Product(c, a, b Matrix) {
	c.clear()
	AddProduct(c, 1, a, b, All, runtime.GOMAXPROCS(0))
}

// pack writes strips of so many rows one after the other, each column by column, the last one filled up with zeros.
func pack(to []float64, a Matrix, strip int) []float64 {
	strips := (a.Rows + strip - 1) / strip
	size := strips * strip * a.Columns
	to = slices.Grow(to[:0], size)[:size]
	for s := range strips {
		into := to[s*strip*a.Columns:][:strip*a.Columns]
		rows := min(strip, a.Rows-s*strip)
		if rows < strip {
			clear(into)
		}
		if a.Down == 1 {
			for j := range a.Columns {
				copy(into[j*strip:][:rows], a.Data[j*a.Across+s*strip:])
			}
			continue
		}
		for r := 0; r < rows; r += lines {
			packLines(into[r:], a.Part(s*strip+r, s*strip+min(r+lines, rows), 0, a.Columns), strip)
		}
	}
	return to
}

// lines is how many rows are packed at once: every strip of the processor's own kernels is a multiple of it.
const lines = 4

// packLines writes a few rows, column by column, the columns a strip apart.
func packLines(to []float64, a Matrix, strip int) {
	if a.Rows < lines || a.Across != 1 {
		for r := range a.Rows {
			from := a.Data[r*a.Down:]
			for j := range a.Columns {
				to[j*strip+r] = from[j*a.Across]
			}
		}
		return
	}
	w, x, y, z := a.Row(0), a.Row(1), a.Row(2), a.Row(3)
	for j, v := range w {
		into := to[j*strip:][:lines:lines]
		into[0], into[1], into[2], into[3] = v, x[j], y[j], z[j]
	}
}

// addTiles adds times the product of packed strips to c, whose row 0 is the row ahead of its column 0 in the product.
func addTiles(c Matrix, times float64, depth int, left, right []float64, which Which, ahead int) {
	rows, columns := kernel.TileSize()
	var out [mostOfTile]float64 // the part of a tile
	for j := 0; j < c.Columns; j += columns {
		strip, width := right[j*depth:][:columns*depth], min(columns, c.Columns-j)
		for i := 0; i < c.Rows; i += rows {
			if which == Lower && i+rows+ahead <= j {
				continue
			}
			other, height := left[i*depth:][:rows*depth], min(rows, c.Rows-i)
			if height == rows && width == columns {
				kernel.Tile(depth, times, other, strip, c.Data[i*c.Down+j:], c.Down)
				continue
			}
			for r := range height {
				copy(out[r*columns:], c.Data[(i+r)*c.Down+j:][:width])
			}
			kernel.Tile(depth, times, other, strip, out[:], columns)
			for r := range height {
				copy(c.Data[(i+r)*c.Down+j:][:width], out[r*columns:])
			}
		}
	}
}

// mostOfTile is at least the size of any tile.
const mostOfTile = 256

// half is where a triangle of n rows is parted: at a multiple of small, so that its parts fill tiles.
func half(n int) int { return (n/2 + small - 1) / small * small }

// Factor replaces the lower triangle of a by L with A = LLᵀ; what is above is not read, and may change. It reports whether A is positive definite in
// double precision.
func Factor(a Matrix, threads int) bool {
	t, done := newTriangle(a)
	defer done()
	return t.factor(threads)
}

// triangle is a lower triangle with the inverses of the triangles on its diagonal that are not parted any more, one below the other: all that is done with it needs them, more than once.
type triangle struct {
	Matrix
	inverses Matrix
}

func newTriangle(l Matrix) (t triangle, done func()) {
	inverses, done := Scratch(l.Rows, small)
	return triangle{l, inverses}, done
}

// inverted is a triangle that is factored, with these inverses.
func inverted(l Matrix) (t triangle, done func()) {
	t, done = newTriangle(l)
	for i := 0; i < l.Rows; i += small {
		t.part(i, min(i+small, l.Rows)).invert()
	}
	return t, done
}

// part is the triangle of rows i to k, k not among them.
func (t triangle) part(i, k int) triangle {
	return triangle{t.Part(i, k, i, k), t.inverses.Part(i, k, 0, small)}
}

// inverse is that of a small triangle, with zeros above the diagonal.
func (t triangle) inverse() Matrix { return t.inverses.Part(0, t.Rows, 0, t.Rows) }

// invert finds the inverse of a small triangle.
func (t triangle) invert() {
	inverse := t.inverse()
	for i := range t.Rows {
		to := inverse.Row(i)
		clear(to[copy(to, t.Row(i)[:i+1]):])
	}
	invertSmall(inverse)
}

func (t triangle) factor(threads int) bool {
	n := t.Rows
	if n <= small {
		if !factorSmall(t.Matrix) {
			return false
		}
		t.invert()
		return true
	}
	h := half(n)
	first, below, last := t.part(0, h), t.Part(h, n, 0, h), t.part(h, n)
	if !first.factor(threads) {
		return false
	}
	first.solveLower(below.T(), threads)
	AddProduct(last.Matrix, -1, below, below.T(), Lower, threads)
	return last.factor(threads)
}

func factorSmall(a Matrix) bool {
	for j := range a.Rows {
		row := a.Row(j)[: j+1 : j+1]
		d := row[j] - cholesky.Dot(row[:j], row[:j])
		if !(d > 0) || math.IsInf(d, 1) {
			return false
		}
		root := math.Sqrt(d)
		row[j] = root
		for i := j + 1; i < a.Rows; i++ {
			other := a.Row(i)[:j+1]
			other[j] = (other[j] - cholesky.Dot(other[:j], row[:j])) / root
		}
	}
	return true
}

// SolveRight replaces b by bL⁻ᵀ, whose transpose is L⁻¹bᵀ.
func SolveRight(l, b Matrix, threads int) { SolveLower(l, b.T(), threads) }

// SolveLower replaces b, which may be a transpose, by L⁻¹b.
func SolveLower(l, b Matrix, threads int) {
	t, done := inverted(l)
	defer done()
	t.solveLower(b, threads)
}

func (t triangle) solveLower(b Matrix, threads int) {
	n := t.Rows
	if n == 0 {
		return
	}
	if n <= small {
		multiplyLeft(t.inverse(), b, threads)
		return
	}
	h := half(n)
	upper, lower := b.Part(0, h, 0, b.Columns), b.Part(h, n, 0, b.Columns)
	t.part(0, h).solveLower(upper, threads)
	AddProduct(lower, -1, t.Part(h, n, 0, h), upper, All, threads)
	t.part(h, n).solveLower(lower, threads)
}

// multiplyRight replaces b by b times a small square a: once packed, a block of rows is not needed any more.
func multiplyRight(b, a Matrix, threads int) {
	rows, columns := kernel.TileSize()
	right := buffers.Get()
	defer buffers.Put(right)
	*right = pack(*right, a.T(), columns)
	inBlocks(b.Rows, rowBlock, b.Columns*a.Rows, threads, func(i, end int) {
		left, part := buffers.Get(), b.Part(i, end, 0, b.Columns)
		*left = pack(*left, part, rows)
		part.clear()
		addTiles(part, 1, a.Rows, *left, *right, All, 0)
		buffers.Put(left)
	})
}

// multiplyLeft replaces b, which may be a transpose, by a small square a times b: once packed, a block of columns is not needed any more.
func multiplyLeft(a, b Matrix, threads int) {
	if b.turned() {
		multiplyRight(b.T(), a.T(), threads)
		return
	}
	rows, columns := kernel.TileSize()
	left := buffers.Get()
	defer buffers.Put(left)
	*left = pack(*left, a, rows)
	inBlocks(b.Columns, columnBlock, b.Rows*a.Rows, threads, func(j, end int) {
		right, part := buffers.Get(), b.Part(0, b.Rows, j, end)
		*right = pack(*right, part.T(), columns)
		part.clear()
		addTiles(part, 1, a.Rows, *left, *right, All, 0)
		buffers.Put(right)
	})
}

// inBlocks does a range of n block by block, each of n worth so many multiplications.
func inBlocks(n, block, each, threads int, do func(from, to int)) {
	if n*each < worthThreads {
		threads = 1
	}
	parallel.Run((n+block-1)/block, threads, func(part int) { do(part*block, min((part+1)*block, n)) })
}

// clear makes a matrix that is no transpose zero.
func (a Matrix) clear() {
	for i := range a.Rows {
		clear(a.Row(i))
	}
}

// InvertLower replaces the lower triangle of l by that of L⁻¹.
func InvertLower(l Matrix, threads int) {
	t, done := inverted(l)
	defer done()
	t.invertLower(threads)
}

func (t triangle) invertLower(threads int) {
	n := t.Rows
	if n <= small {
		for i := range n {
			copy(t.Row(i)[:i+1], t.inverses.Row(i))
		}
		return
	}
	h := half(n)
	first, below, last := t.part(0, h), t.Part(h, n, 0, h), t.part(h, n)
	last.solveLower(below, threads)
	first.invertLower(threads)
	last.invertLower(threads)
	clearAbove(first.Matrix)
	product, done := Scratch(n-h, h)
	defer done()
	Product(product, below, first.Matrix)
	for i := range product.Rows {
		to := below.Row(i)
		for j, v := range product.Row(i) {
			to[j] = -v
		}
	}
}

// invertSmall finds row i of L⁻¹ from those above it, which are there already: it is that of the unit matrix less Σ_k l_ik times them, over l_ii.
func invertSmall(l Matrix) {
	var sums [small]float64
	for i := range l.Rows {
		row, inverse := l.Row(i)[:i+1], 1/l.At(i, i)
		clear(sums[:i])
		for k, v := range row[:i] {
			above := l.Row(k)[:k+1]
			to := sums[:len(above)]
			for j, u := range above {
				to[j] -= float64(v * u)
			}
		}
		for j, v := range sums[:i] {
			row[j] = v * inverse
		}
		row[i] = inverse
	}
}

// InvertDiagonal replaces L by L⁻¹, with zeros above the diagonal, and returns the diagonal of A⁻¹ = L⁻ᵀL⁻¹, for A = LLᵀ.
func InvertDiagonal(l Matrix, threads int) []float64 {
	InvertLower(l, threads)
	clearAbove(l)
	diagonal := make([]float64, l.Rows)
	for i := range l.Rows {
		for j, v := range l.Row(i)[:i+1] {
			diagonal[j] += float64(v * v)
		}
	}
	return diagonal
}

func clearAbove(l Matrix) {
	for i := range l.Rows {
		clear(l.Row(i)[i+1:])
	}
}

// Square sets the lower triangle of c to that of TᵀT, for a lower triangular T; what is above in T is made zero.
func Square(c, t Matrix, threads int) {
	n := t.Rows
	clearAbove(t)
	if n <= small {
		for i := range n {
			clear(c.Row(i)[:i+1])
		}
		for k := range n {
			row := t.Row(k)
			for i := range k + 1 {
				to := c.Row(i)[:i+1]
				for j := range to {
					to[j] += float64(row[i] * row[j])
				}
			}
		}
		return
	}
	h := half(n)
	below, last := t.Part(h, n, 0, h), t.Part(h, n, h, n)
	Square(c.Part(0, h, 0, h), t.Part(0, h, 0, h), threads)
	Square(c.Part(h, n, h, n), last, threads)
	AddProduct(c.Part(0, h, 0, h), 1, below.T(), below, Lower, threads)
	to := c.Part(h, n, 0, h)
	to.clear()
	AddProduct(to, 1, last.T(), below, All, threads)
}

// Solve replaces b by A⁻¹b, for A = LLᵀ.
func Solve(l Matrix, b []float64) {
	for i := range b {
		b[i] = (b[i] - cholesky.Dot(l.Row(i)[:i], b[:i])) / l.At(i, i)
	}
	for i := len(b) - 1; i >= 0; i-- {
		b[i] /= l.At(i, i)
		for k, v := range l.Row(i)[:i] {
			b[k] -= float64(v * b[i])
		}
	}
}

// LogDet is log det LLᵀ.
func LogDet(l Matrix) float64 {
	total := 0.0
	for i := range l.Rows {
		total += math.Log(l.At(i, i))
	}
	return 2 * total
}

// Mirror copies what is below the diagonal to above it.
func Mirror(a Matrix) {
	for i := range a.Rows {
		for j := range i {
			a.Data[j*a.Down+i] = a.Data[i*a.Down+j]
		}
	}
}
