// Package dense multiplies, factors and inverts matrices of some hundred to some thousand rows. It knows numbers, and nothing of what
// they mean. All of it is products of tiles that stay in registers (package kernel); sums are taken in the same order for any number of threads.
package dense

import (
	"math"
	"slices"

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

var buffers parallel.Pool[[]float64]

// AddProduct adds sign times ab to c, which is no transpose.
func AddProduct(c Matrix, sign float64, a, b Matrix, which Which, threads int) {
	if float64(a.Rows)*float64(a.Columns)*float64(b.Columns) < worthThreads {
		threads = 1
	}
	rows, columns := kernel.TileSize()
	right := buffers.Get()
	defer buffers.Put(right)
	for j := 0; j < b.Columns; j += columnBlock {
		to := min(j+columnBlock, b.Columns)
		for d := 0; d < a.Columns; d += depthBlock {
			depth := min(depthBlock, a.Columns-d)
			*right = pack(*right, b.Part(d, d+depth, j, to).T(), columns)
			parallel.Run((a.Rows+rowBlock-1)/rowBlock, threads, func(part int) {
				i := part * rowBlock
				end := min(i+rowBlock, a.Rows)
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

// Product sets c, which is no transpose, to ab.
func Product(c, a, b Matrix) {
	for i := range c.Rows {
		clear(c.Row(i))
	}
	AddProduct(c, 1, a, b, All, 1)
}

// pack writes strips of so many rows one after the other, each column by column, the last one filled up with zeros.
func pack(to []float64, a Matrix, strip int) []float64 {
	strips := (a.Rows + strip - 1) / strip
	if size := strips * strip * a.Columns; cap(to) < size {
		to = make([]float64, size)
	} else {
		to = to[:size]
	}
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
		for r := range rows {
			from := a.Data[(s*strip+r)*a.Down:]
			for j := range a.Columns {
				into[j*strip+r] = from[j*a.Across]
			}
		}
	}
	return to
}

// addTiles adds sign times the product of packed strips to c, whose row 0 is the row ahead of its column 0 in the product.
func addTiles(c Matrix, sign float64, depth int, left, right []float64, which Which, ahead int) {
	rows, columns := kernel.TileSize()
	var buffer [256]float64
	out := buffer[:rows*columns]
	for j := 0; j < c.Columns; j += columns {
		strip := right[j*depth:][:columns*depth]
		for i := 0; i < c.Rows; i += rows {
			if which == Lower && i+rows+ahead <= j {
				continue
			}
			kernel.Tile(depth, left[i*depth:][:rows*depth], strip, out)
			width := min(columns, c.Columns-j)
			for r := range min(rows, c.Rows-i) {
				to, from := c.Data[(i+r)*c.Down+j:][:width], out[r*columns:][:width]
				for k, v := range from {
					to[k] += float64(sign * v)
				}
			}
		}
	}
}

// half is where a triangle of n rows is parted: at a multiple of small, so that its parts fill tiles.
func half(n int) int { return (n/2 + small - 1) / small * small }

// Factor replaces the lower triangle of a by L with A = LLᵀ; what is above is not read, and may change. It reports whether A is positive definite in
// double precision.
func Factor(a Matrix, threads int) bool {
	n := a.Rows
	if n <= small {
		return factorSmall(a)
	}
	h := half(n)
	first, below, last := a.Part(0, h, 0, h), a.Part(h, n, 0, h), a.Part(h, n, h, n)
	if !Factor(first, threads) {
		return false
	}
	SolveRight(first, below, threads)
	AddProduct(last, -1, below, below.T(), Lower, threads)
	return Factor(last, threads)
}

func factorSmall(a Matrix) bool {
	for j := range a.Rows {
		row := a.Row(j)[: j+1 : j+1]
		d := row[j] - dot(row[:j], row[:j])
		if !(d > 0) || math.IsInf(d, 1) {
			return false
		}
		root := math.Sqrt(d)
		row[j] = root
		for i := j + 1; i < a.Rows; i++ {
			other := a.Row(i)[:j+1]
			other[j] = (other[j] - dot(other[:j], row[:j])) / root
		}
	}
	return true
}

func dot(a, b []float64) float64 {
	total := 0.0
	for i, v := range a {
		total += float64(v * b[i])
	}
	return total
}

// SolveRight replaces b by bL⁻ᵀ.
func SolveRight(l, b Matrix, threads int) {
	n := l.Rows
	if n <= small {
		multiplied(b, func(c Matrix) { AddProduct(b, 1, c, inverseOf(l).T(), All, threads) })
		return
	}
	h := half(n)
	left, right := b.Part(0, b.Rows, 0, h), b.Part(0, b.Rows, h, n)
	SolveRight(l.Part(0, h, 0, h), left, threads)
	AddProduct(right, -1, left, l.Part(h, n, 0, h).T(), All, threads)
	SolveRight(l.Part(h, n, h, n), right, threads)
}

// SolveLower replaces b by L⁻¹b.
func SolveLower(l, b Matrix, threads int) {
	n := l.Rows
	if n <= small {
		multiplied(b, func(c Matrix) { AddProduct(b, 1, inverseOf(l), c, All, threads) })
		return
	}
	h := half(n)
	upper, lower := b.Part(0, h, 0, b.Columns), b.Part(h, n, 0, b.Columns)
	SolveLower(l.Part(0, h, 0, h), upper, threads)
	AddProduct(lower, -1, l.Part(h, n, 0, h), upper, All, threads)
	SolveLower(l.Part(h, n, h, n), lower, threads)
}

// multiplied makes b what add makes of zero and a copy of b.
func multiplied(b Matrix, add func(c Matrix)) {
	buffer := buffers.Get()
	defer buffers.Put(buffer)
	*buffer = slices.Grow((*buffer)[:0], b.Rows*b.Columns)
	c := Of((*buffer)[:b.Rows*b.Columns], b.Rows, b.Columns)
	for i := range b.Rows {
		copy(c.Row(i), b.Row(i))
		clear(b.Row(i))
	}
	add(c)
}

// inverseOf is L⁻¹ of a small triangle.
func inverseOf(l Matrix) Matrix {
	t := New(l.Rows, l.Rows)
	for i := range l.Rows {
		copy(t.Row(i)[:i+1], l.Row(i))
	}
	InvertLower(t, 1)
	return t
}

// InvertLower replaces the lower triangle of l by that of L⁻¹.
func InvertLower(l Matrix, threads int) {
	n := l.Rows
	if n <= small {
		for i := range n {
			row := l.Row(i)
			inverse := 1 / row[i]
			for j := range i { // columns of L⁻¹ above this row are there already
				total := 0.0
				for k := j; k < i; k++ {
					total += float64(row[k] * l.At(k, j))
				}
				row[j] = -total * inverse
			}
			row[i] = inverse
		}
		return
	}
	h := half(n)
	first, below, last := l.Part(0, h, 0, h), l.Part(h, n, 0, h), l.Part(h, n, h, n)
	SolveLower(last, below, threads)
	InvertLower(first, threads)
	InvertLower(last, threads)
	product := New(n-h, h)
	clearAbove(first)
	AddProduct(product, -1, below, first, All, threads)
	for i := range product.Rows {
		copy(below.Row(i), product.Row(i))
	}
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
	for i := range to.Rows {
		clear(to.Row(i))
	}
	AddProduct(to, 1, last.T(), below, All, threads)
}

// Solve replaces b by A⁻¹b, for A = LLᵀ.
func Solve(l Matrix, b []float64) {
	for i := range b {
		b[i] = (b[i] - dot(l.Row(i)[:i], b[:i])) / l.At(i, i)
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
