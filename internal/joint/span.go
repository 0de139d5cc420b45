package joint

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
)

// Span is what fewer sensors than signals leave of these: readings are in the span of as many vectors as there are sensors, and so are all estimates. Matrices over signals are a multiple of I in what is orthogonal to
// that, from the first iteration on, and their eigenvectors there are any. So an array of 32 antennas and 500 snapshots has matrices of 33 rows to decompose, and not of 500.
type Span struct {
	of      int       // dimensions of the span
	vectors []float64 // of×P, orthonormal rows; of complex values each has i times itself behind it
}

const (
	// spanFrom is the number of signals for each dimension of the span from which on it pays.
	spanFrom = 2

	// spanRounding is the part of a sum of squares that is rounding.
	spanRounding = 1e-13
)

// NewSpan is that of rows of p values each, and of all values being the same or, of complex values of two columns, of i times each row; nil where it is not worth it.
func NewSpan(rows []float64, p, columns int) *Span {
	if most := columns*(len(rows)/p) + 2 - columns; p < spanFrom*most || math.IsNaN(squares(rows)) {
		return nil
	}
	s := new(Span)
	for from := 0; from < len(rows); from += p {
		s.add(rows[from:from+p], columns)
	}
	if columns == 1 {
		s.add(slices.Repeat([]float64{1}, p), 1)
	}
	if s.of == 0 {
		return nil
	}
	return s
}

// add adds what a row has beyond those before it (Gram and Schmidt, twice).
func (s *Span) add(row []float64, columns int) {
	p := len(row)
	v := slices.Clone(row)
	for range 2 {
		for from := 0; from < len(s.vectors); from += p {
			u := s.vectors[from : from+p]
			floats.AddScaled(v, -floats.Dot(u, v), u)
		}
	}
	size := floats.Norm(v, 2)
	if !(size > spanRounding*floats.Norm(row, 2)) {
		return
	}
	floats.Scale(1/size, v)
	s.vectors = append(s.vectors, v...)
	if columns > 1 {
		for k := 0; k < p; k += 2 {
			s.vectors = append(s.vectors, -v[k+1], v[k])
		}
	}
	s.of += columns
}

// in is the span as columns.
func (s *Span) in() dense.Matrix { return dense.Of(s.vectors, s.of, len(s.vectors)/s.of).T() }

// folded is a symmetric matrix that is own inside the span, and other I outside of it.
type folded struct {
	other float64
	own   []float64 // of×of
}

// fold folds a matrix; false where it is another one.
func (s *Span) fold(a []float64, p int) (f folded, ok bool) {
	moved, own := dense.New(p, s.of), dense.New(s.of, s.of)
	dense.AddProduct(moved, 1, dense.Of(a, p, p), s.in(), dense.All, 1)
	dense.AddProduct(own, 1, s.in().T(), moved, dense.All, 1)
	all, within, left, out := squares(a), squares(own.Data), squares(moved.Data), float64(p-s.of)
	f = folded{(trace(a, p) - trace(own.Data, s.of)) / out, own.Data}
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
	backFrom(dst, s.in().T(), dense.Of(slices.Clone(f.own), s.of, s.of), f.other)
}

// spread writes p values and columns in ascending order of the values: those outside of the span, all with the value other and no columns, and own ones with the columns u (of×of) in terms of the span. It returns how many of the latter are first.
func (s *Span) spread(values, vectors []float64, other float64, own, u []float64) (below int) {
	p := len(values)
	out, turned := p-s.of, dense.New(p, s.of)
	dense.AddProduct(turned, 1, s.in(), dense.Of(u, s.of, s.of), dense.All, 1)
	for below < s.of && own[below] < other {
		below++
	}
	for k := range p {
		row, from := vectors[k*p:(k+1)*p], turned.Row(k)
		copy(row, from[:below])
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
			to.below = s.spread(to.Values, to.Vectors, f.other, small.Values, small.Vectors)
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
