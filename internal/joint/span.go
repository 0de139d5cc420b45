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

// Matrices over signals that have a span are stored as what they are inside of it (of×of), and behind that the one variance outside. Without one they are P×P.

// Len is how many numbers that is.
func (s *Span) Len(p int) int {
	if s == nil {
		return p * p
	}
	return s.of*s.of + 1
}

// parts are those of a matrix of the span.
func (s *Span) parts(a []float64) (own []float64, other float64) {
	return a[:len(a)-1], a[len(a)-1]
}

// Times writes v I.
func (s *Span) Times(dst []float64, p int, v float64) {
	clear(dst)
	size := p
	if s != nil {
		size, dst[len(dst)-1] = s.of, v
	}
	for k := range size {
		dst[k*size+k] = v
	}
}

// Full is a matrix as P×P numbers.
func (s *Span) Full(a []float64, p int) []float64 {
	if s == nil {
		return a
	}
	own, other := s.parts(a)
	full := make([]float64, p*p)
	backFrom(full, s.in().T(), dense.Of(slices.Clone(own), s.of, s.of), other)
	return full
}

// inside is a vector as the span has it.
func (s *Span) inside(v []float64) []float64 {
	if s == nil {
		return v
	}
	in := make([]float64, s.of)
	for k := range in {
		in[k] = floats.Dot(s.vectors[k*len(v):(k+1)*len(v)], v)
	}
	return in
}

// trace is that of a matrix.
func (s *Span) trace(a []float64, p int) float64 {
	if s == nil {
		return trace(a, p)
	}
	own, other := s.parts(a)
	return trace(own, s.of) + float64(p-s.of)*other
}

// Circular is that of a matrix.
func (s *Span) Circular(a []float64, p int) {
	if s == nil {
		Circular(a, p)
		return
	}
	own, _ := s.parts(a)
	Circular(own, s.of)
}

func squares(v []float64) (total float64) {
	for _, x := range v {
		total += x * x
	}
	return total
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
		own, other := s.parts(a)
		small := &Shape{P: s.of, Values: make([]float64, s.of), Vectors: make([]float64, s.of*s.of)}
		if math.IsNaN(other-other) || !eigen(small.Values, small.Vectors, own, s.of) {
			return false
		}
		if columns > 1 {
			small.pairUp()
		}
		to.below = s.spread(to.Values, to.Vectors, other, small.Values, small.Vectors)
		return true
	}
	if !eigen(to.Values, to.Vectors, a, to.P) {
		return false
	}
	if columns > 1 {
		to.pairUp()
	}
	return true
}
