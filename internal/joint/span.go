package joint

import (
	"math"

	"github.com/calamp/calamp/internal/dense"
)

// Span is what fewer sensors than signals leave of these: readings are in the span of as many vectors as there are sensors, and so are all estimates. Matrices over signals are a multiple of I in what is orthogonal to
// that, from the first iteration on, and their eigenvectors there are any. So an array of 32 antennas and 500 snapshots has matrices of 33 rows to decompose, and not of 500.
type Span struct {
	of      int          // dimensions of the span
	vectors dense.Matrix // P×P, orthonormal columns: what is orthogonal to the span, then the span
}

// spanFrom is the number of signals for each dimension of the span from which on it pays.
const spanFrom = 2

// NewSpan is that of rows of p values each, and of all values being the same or, of complex values of two columns, of i times each row; nil where it is not worth it.
func NewSpan(rows []float64, p, columns int) *Span {
	of := len(rows)/p + 1
	if columns > 1 {
		of = 2 * (len(rows) / p)
	}
	if p < spanFrom*of {
		return nil
	}
	gram := dense.New(p, p)
	if columns == 1 {
		for j := range gram.Data {
			gram.Data[j] = 1 / float64(p)
		}
	}
	for from := 0; from < len(rows); from += p {
		row := rows[from : from+p]
		square := 0.0
		for _, v := range row {
			square += v * v
		}
		if math.IsNaN(square) {
			return nil
		}
		if square > 0 {
			scaled := dense.New(1, p)
			for k, v := range row {
				scaled.Data[k] = v / math.Sqrt(square)
			}
			dense.AddProduct(gram, 1, scaled.T(), scaled, dense.All, 1)
		}
	}
	s, values := &Span{of: of, vectors: dense.New(p, p)}, make([]float64, p)
	if columns > 1 {
		Circular(gram.Data, p)
	}
	if !eigen(values, s.vectors.Data, gram.Data, p) {
		return nil
	}
	if columns > 1 {
		(&Shape{P: p, Values: values, Vectors: s.vectors.Data}).pairUp()
	}
	return s
}

// in is the span as columns, and out their complement.
func (s *Span) in() dense.Matrix {
	return s.vectors.Part(0, s.vectors.Rows, s.vectors.Rows-s.of, s.vectors.Rows)
}

func (s *Span) out() dense.Matrix { return s.vectors.Part(0, s.vectors.Rows, 0, s.vectors.Rows-s.of) }

// folded is a symmetric matrix that is own inside the span, and other I outside of it.
type folded struct {
	other float64
	own   []float64 // of×of
}

// spanRounding is the part of the sum of squares that is rounding.
const spanRounding = 1e-13

// fold folds a matrix, of which the upper triangle is read; false where it is another one.
func (s *Span) fold(a []float64, p int) (f folded, ok bool) {
	full := append([]float64(nil), a[:p*p]...)
	symmetric(full, p)
	moved, own := dense.New(p, s.of), dense.New(s.of, s.of)
	dense.AddProduct(moved, 1, dense.Of(full, p, p), s.in(), dense.All, 1)
	dense.AddProduct(own, 1, s.in().T(), moved, dense.All, 1)
	all, within, left, out := squares(full), squares(own.Data), squares(moved.Data), float64(p-s.of)
	f = folded{(trace(full, p) - trace(own.Data, s.of)) / out, own.Data}
	// Nothing leads out of the span, and outside of it there is one variance.
	return f, math.Abs(left-within) <= spanRounding*all && math.Abs(all-within-out*f.other*f.other) <= spanRounding*all
}

func squares(v []float64) (total float64) {
	for _, x := range v {
		total += x * x
	}
	return total
}

// unfold writes the matrix.
func (s *Span) unfold(dst []float64, f folded) {
	p := s.vectors.Rows
	inner, moved := append([]float64(nil), f.own...), dense.New(p, s.of)
	for k := range s.of {
		inner[k*s.of+k] -= f.other
	}
	dense.AddProduct(moved, 1, s.in(), dense.Of(inner, s.of, s.of), dense.All, 1)
	dense.Product(dense.Of(dst, p, p), moved, s.in().T())
	for k := range p {
		dst[k*p+k] += f.other
	}
}

// spread writes p values and columns in ascending order of the values: those outside of the span, all with the value other, and own ones with the columns u (of×of) in terms of the span. It returns how many of the latter are first.
func (s *Span) spread(values, vectors []float64, other, outside float64, own, u []float64) (below int) {
	p := s.vectors.Rows
	out, turned := p-s.of, dense.New(p, s.of)
	dense.AddProduct(turned, 1, s.in(), dense.Of(u, s.of, s.of), dense.All, 1)
	for below < s.of && own[below] < other {
		below++
	}
	for k := range p {
		row, from := vectors[k*p:(k+1)*p], turned.Row(k)
		copy(row, from[:below])
		for j, v := range s.out().Row(k) {
			row[below+j] = outside * v
		}
		copy(row[below+out:], from[below:])
	}
	copy(values, own[:below])
	for k := range out {
		values[below+k] = other
	}
	copy(values[below+out:], own[below:])
	return below
}

// eigen makes a shape the eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns, of complex values pairs of them.
func (s *Span) eigen(to *Shape, a []float64, columns int) bool {
	if s != nil {
		if f, ok := s.fold(a, to.P); ok {
			small := &Shape{P: s.of, Values: make([]float64, s.of), Vectors: make([]float64, s.of*s.of)}
			if !eigen(small.Values, small.Vectors, f.own, s.of) {
				return false
			}
			if columns > 1 {
				small.pairUp()
			}
			s.spread(to.Values, to.Vectors, f.other, 1, small.Values, small.Vectors)
			return true
		}
	}
	if to.Span = nil; !eigen(to.Values, to.Vectors, a, to.P) {
		return false
	}
	if columns > 1 {
		to.pairUp()
	}
	return true
}
