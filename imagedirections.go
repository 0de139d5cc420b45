package calamp

import (
	"fmt"

	"github.com/calamp/calamp/operator"
)

// ImageDirections are the ways in which all rows of W, as images of height × width pixels, row by row, may be off together: shifted to the
// right and down (by a pixel), larger (by a factor 1+θ about the centre), and turned (by θ radians, from right towards down). Signals are
// basis x where basis is not nil, and W is as before it is multiplied with it. Derivatives are central differences of the rows, and cost no matrix:
//
//	(D x)_µ = Σ_r v(r)·∇W_µ(r) x(r),   with ∇ moved over to x.
//
// With a basis the size is left out: it changes how the spectra of images fall, of which a prior that is the same for all coefficients has an
// opinion of its own. Of real images in cosines it was doubted by up to six standard errors with the right W.
//
// The error names a shape that is not that of the rows.
func ImageDirections(w, basis operator.Operator, height, width int) ([]Direction, error) {
	_, n := w.Dims()
	if height < 2 || width < 2 || height*width != n {
		return nil, fmt.Errorf("images of %d×%d pixels have %d, and W has %d columns: expected one for each pixel, and 2×2 pixels or more", height, width, height*width, n)
	}
	if basis != nil {
		if rows, _ := basis.Dims(); rows != n {
			return nil, fmt.Errorf("the basis has %d rows and W %d columns: expected as many", rows, n)
		}
	}
	// W(r - θv) = W - θ v·∇W.
	field := func(name string, v func(right, down float64) (float64, float64)) Direction {
		return Direction{Name: name, times: func(u, x []float64) error {
			if basis != nil {
				_, k := basis.Dims()
				images, err := signalsOf(basis, x, len(x)/k)
				if err != nil {
					return err
				}
				x = images
			}
			moved := make([]float64, len(x))
			for from := 0; from < len(x); from += n {
				moveImage(moved[from:from+n], x[from:from+n], height, width, v)
			}
			return operator.Mul(u, w, moved)
		}}
	}
	list := []Direction{
		field("a shift of the rows to the right, in pixels", func(_, _ float64) (float64, float64) { return 1, 0 }),
		field("a shift of the rows down, in pixels", func(_, _ float64) (float64, float64) { return 0, 1 }),
		field("a rotation of the rows' images, in radians", func(right, down float64) (float64, float64) { return -down, right }),
	}
	if basis == nil {
		list = append(list, field("the size of the rows' images, relative", func(right, down float64) (float64, float64) { return right, down }))
	}
	return list, nil
}

// signalsOf is basis x of p signals, P×N.
func signalsOf(basis operator.Operator, x []float64, p int) ([]float64, error) {
	n, _ := basis.Dims()
	product, images := make([]float64, n*p), make([]float64, n*p)
	if err := operator.Mul(product, basis, x); err != nil {
		return nil, err
	}
	for i := range n {
		for k := range p {
			images[k*n+i] = product[i*p+k]
		}
	}
	return images, nil
}

// moveImage adds what the transpose of -v·∇ makes of an image to dst; at the border the difference is to the pixel itself.
func moveImage(dst, image []float64, height, width int, v func(right, down float64) (float64, float64)) {
	for row := range height {
		for column := range width {
			at := row*width + column
			right, down := v(float64(column)-0.5*float64(width-1), float64(row)-0.5*float64(height-1))
			for _, side := range []struct {
				inside bool
				step   int
				weight float64
			}{
				{column+1 < width, 1, -0.5 * right},
				{column > 0, -1, 0.5 * right},
				{row+1 < height, width, -0.5 * down},
				{row > 0, -width, 0.5 * down},
			} {
				to := at
				if side.inside {
					to += side.step
				}
				dst[to] += side.weight * image[at]
			}
		}
	}
}
