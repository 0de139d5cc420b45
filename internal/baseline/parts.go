package baseline

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Parts is a matrix by its real and imaginary parts, each of the same size; Im is nil where the matrix is real.
type Parts struct{ Re, Im *mat.Dense }

// NewParts is a matrix of zeros.
func NewParts(rows, columns int, complex bool) Parts {
	p := Parts{Re: mat.NewDense(rows, columns, nil)}
	if complex {
		p.Im = mat.NewDense(rows, columns, nil)
	}
	return p
}

// Dims are the numbers of rows and columns.
func (a Parts) Dims() (rows, columns int) { return a.Re.Dims() }

// At is the entry in row i and column j.
func (a Parts) At(i, j int) complex128 {
	if a.Im == nil {
		return complex(a.Re.At(i, j), 0)
	}
	return complex(a.Re.At(i, j), a.Im.At(i, j))
}

// Set sets the entry in row i and column j. Of a real matrix it sets the real part.
func (a Parts) Set(i, j int, v complex128) {
	a.Re.Set(i, j, real(v))
	if a.Im != nil {
		a.Im.Set(i, j, imag(v))
	}
}

// Apply sets each entry to f of it, and returns the matrix.
func (a Parts) Apply(f func(i, j int, v complex128) complex128) Parts {
	rows, columns := a.Dims()
	for i := range rows {
		for j := range columns {
			a.Set(i, j, f(i, j, a.At(i, j)))
		}
	}
	return a
}

// Clone is a copy.
func (a Parts) Clone() Parts {
	c := Parts{Re: mat.DenseCopyOf(a.Re)}
	if a.Im != nil {
		c.Im = mat.DenseCopyOf(a.Im)
	}
	return c
}

// Mul is ab.
func (a Parts) Mul(b Parts) Parts { return a.times(a.Re, a.Im, 1, b) }

// MulH is aᴴb.
func (a Parts) MulH(b Parts) Parts {
	if a.Im == nil {
		return a.times(a.Re.T(), nil, 1, b)
	}
	return a.times(a.Re.T(), a.Im.T(), -1, b)
}

// times is (re + i·sign·im) b.
func (a Parts) times(re, im mat.Matrix, sign float64, b Parts) Parts {
	out := Parts{Re: new(mat.Dense)}
	out.Re.Mul(re, b.Re)
	if a.Im == nil && b.Im == nil {
		return out
	}
	out.Im = mat.NewDense(out.Re.RawMatrix().Rows, out.Re.RawMatrix().Cols, nil)
	var t mat.Dense
	if a.Im != nil {
		t.Mul(im, b.Re)
		t.Scale(sign, &t)
		out.Im.Add(out.Im, &t)
	}
	if b.Im != nil {
		t.Mul(re, b.Im)
		out.Im.Add(out.Im, &t)
	}
	if a.Im != nil && b.Im != nil {
		t.Mul(im, b.Im)
		t.Scale(-sign, &t)
		out.Re.Add(out.Re, &t)
	}
	return out
}

// data are the entries of each part, row by row.
func (a Parts) data() [][]float64 {
	if a.Im == nil {
		return [][]float64{a.Re.RawMatrix().Data}
	}
	return [][]float64{a.Re.RawMatrix().Data, a.Im.RawMatrix().Data}
}

// present are readings with zeros where one is missing (NaN), and which ones those are.
func (a Parts) present() (readings Parts, missing func(i, j int) bool) {
	missing = func(i, j int) bool { v := a.At(i, j); return math.IsNaN(real(v)) || math.IsNaN(imag(v)) }
	return a.Clone().Apply(func(_, _ int, v complex128) complex128 {
		if math.IsNaN(real(v)) || math.IsNaN(imag(v)) {
			return 0
		}
		return v
	}), missing
}

func square(v complex128) float64 { return real(v)*real(v) + imag(v)*imag(v) }
