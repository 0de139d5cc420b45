package kernel

import "github.com/calamp/calamp/internal/simd"

// tiles are Tile for each instruction set.
var tiles = [simd.Levels]func(depth int, times float64, a, b, c []float64, down int){simd.Go: plainTile}

// TileSize is how many rows and columns a tile has.
func TileSize() (rows, columns int) {
	switch active {
	case simd.AVX512:
		return 8, 24
	case simd.AVX2:
		return 4, 12
	}
	return plainRows, plainColumns
}

// Tile adds times the product of a strip of rows with a strip of columns to c, whose rows are down apart. Of both strips the numbers that
// meet lie together: depth times the rows of a tile in a, and depth times its columns in b.
func Tile(depth int, times float64, a, b, c []float64, down int) {
	tiles[active](depth, times, a, b, c, down)
}

const plainRows, plainColumns = 2, 4

func plainTile(depth int, times float64, a, b, c []float64, down int) {
	var sums [plainRows * plainColumns]float64
	for d := range depth {
		left, right := a[d*plainRows:][:plainRows], b[d*plainColumns:][:plainColumns]
		for i, l := range left {
			sums[i*plainColumns] += float64(l * right[0])
			sums[i*plainColumns+1] += float64(l * right[1])
			sums[i*plainColumns+2] += float64(l * right[2])
			sums[i*plainColumns+3] += float64(l * right[3])
		}
	}
	for i := range plainRows {
		to := c[i*down:][:plainColumns]
		for j := range to {
			to[j] += float64(times * sums[i*plainColumns+j])
		}
	}
}
