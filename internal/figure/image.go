package figure

import (
	"bytes"
	"image"
	"image/png"
	"math"
)

// maxPixels is how wide or high a picture becomes at most.
const maxPixels = 256

// GreyPNG makes a picture of rows×cols values, row by row from the top left, black at
// lo and white at hi. Each value is one pixel, to be shown enlarged with the CSS
// image-rendering: pixelated. More than 256 values a side are averaged in blocks. NaN
// is black.
func GreyPNG(values []float64, rows, cols int, lo, hi float64) []byte {
	block := max(1, (max(rows, cols)+maxPixels-1)/maxPixels)
	h, w := (rows+block-1)/block, (cols+block-1)/block
	img := image.NewGray(image.Rect(0, 0, w, h))
	for r := range h {
		for c := range w {
			v := blockMean(values, rows, cols, r*block, c*block, block)
			img.Pix[r*img.Stride+c] = grey(v, lo, hi)
		}
	}
	var buf bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&buf, img); err != nil {
		return nil // a picture without pixels
	}
	return buf.Bytes()
}

func blockMean(values []float64, rows, cols, row, col, block int) float64 {
	sum, n := 0.0, 0
	for r := row; r < min(row+block, rows); r++ {
		for c := col; c < min(col+block, cols); c++ {
			if i := r*cols + c; i < len(values) {
				sum += values[i]
				n++
			}
		}
	}
	return sum / float64(n)
}

func grey(v, lo, hi float64) uint8 {
	level := 255 * (v - lo) / (hi - lo)
	if !(level > 0) { // also NaN
		return 0
	}
	return uint8(math.Min(level, 255) + 0.5)
}
