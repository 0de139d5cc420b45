// Package sandals has real images that are sparse, part of Fashion-MNIST: see README.md.
package sandals

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"

	"gonum.org/v1/gonum/mat"
)

//go:embed fashion_sandals_256x28x28.npz
var archive []byte

const (
	Count = 256         // images
	Side  = 28          // of an image, in pixels
	Size  = Side * Side // entries of a signal
	scale = 76.1        // standard deviation of the non-zero pixels
)

// Load returns the first p images, at most Count, as columns.
func Load(p int) (*mat.Dense, error) {
	pixels, err := embedded()
	if err != nil {
		return nil, fmt.Errorf("the program is damaged: %w", err)
	}
	x := mat.NewDense(Size, p, nil)
	for k := range p {
		for i := range Size {
			x.Set(i, k, float64(pixels[k*Size+i])/scale)
		}
	}
	return x, nil
}

// embedded are the bytes of the array images. The file is always the same
// one, so all there is to its header is its length.
func embedded() ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	f, err := z.Open("images.npy")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	header := 10 + int(binary.LittleEndian.Uint16(content[8:]))
	pixels := content[header:]
	if len(pixels) != Count*Size {
		return nil, fmt.Errorf("%d pixels, expected %d", len(pixels), Count*Size)
	}
	return pixels, nil
}
