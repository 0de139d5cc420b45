package joint

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Pair is the basis x = Tu in which a precision is I and a covariance is diagonal.
type Pair struct {
	To, From []float64 // T and T⁻¹, P×P
	Variance []float64 // P, ascending
}

// NewPair is that of these two (P×P), for values of so many columns: of complex ones both commute with J, and T does. ok is false where the first is no precision.
func NewPair(precision, covariance []float64, p, columns int) (b *Pair, ok bool) {
	a, size, ok := NewShape(precision, p, columns, 0)
	if !ok || !(a.Values[0] > 0) {
		return nil, false
	}
	return a.Pair(size, covariance, columns)
}

// Pair is the basis of a precision of this shape and size, without a span.
func (s *Shape) Pair(size float64, covariance []float64, columns int) (b *Pair, ok bool) {
	var basis basis
	basis.whole(s, &Prior{Cov: covariance}, columns)
	root := math.Sqrt(size)
	for i := range basis.to {
		basis.to[i] /= root
		basis.from[i] *= root
	}
	ok = true
	for k := range basis.variance {
		basis.variance[k] *= size
		ok = ok && basis.variance[k] >= 0
	}
	return &Pair{basis.to, basis.from, basis.variance}, ok
}

// Covariance writes T diag(v) Tᵀ.
func (b *Pair) Covariance(dst []float64, v func(k int) float64) {
	between(dst, b.To, func(_, column int) float64 { return v(column) }, blas.NoTrans, blas.Trans)
}

// Precision writes T⁻ᵀ diag(v) T⁻¹.
func (b *Pair) Precision(dst []float64, v func(k int) float64) {
	between(dst, b.From, func(row, _ int) float64 { return v(row) }, blas.Trans, blas.NoTrans)
}

// between writes the product of a matrix times v, entry by entry, and of the matrix, one of them transposed.
func between(dst, a []float64, v func(row, column int) float64, first, second blas.Transpose) {
	p := int(math.Sqrt(float64(len(a))) + 0.5)
	work := make([]float64, len(a))
	for j, value := range a {
		work[j] = value * v(j/p, j%p)
	}
	blas64.Gemm(first, second, 1, square(work, p), square(a, p), 0, square(dst, p))
	symmetric(dst, p)
}

// Exp is the shape of e^a of a symmetric a over values of so many columns, and its trace.
func Exp(a []float64, p, columns int) (s *Shape, size float64, ok bool) {
	s = &Shape{P: p, Values: make([]float64, p), Vectors: make([]float64, p*p)}
	if !(*Span)(nil).eigen(s, a, columns) {
		return nil, 0, false
	}
	for k, v := range s.Values {
		s.Values[k] = math.Exp(v)
		size += s.Values[k]
	}
	for k := range s.Values {
		s.Values[k] /= size
	}
	return s, size, size > 0 && !math.IsInf(size, 1)
}

// Contracted is the basis of a covariance of this shape and size, whose precision is I in it, and of what is left of it: diagonal, where in the directions of the shape, in which
// the covariance is made I, it is this matrix.
func (s *Shape) Contracted(size float64, left []float64) (b *Pair, ok bool) {
	p := s.P
	b = &Pair{To: make([]float64, p*p), From: make([]float64, p*p), Variance: make([]float64, p)}
	u, half, back := make([]float64, p*p), make([]float64, p*p), make([]float64, p*p)
	if !eigen(b.Variance, u, left, p) {
		return nil, false
	}
	for k := range p {
		for j, v := range s.Values {
			root := math.Sqrt(size * v)
			half[k*p+j], back[k*p+j] = s.Vectors[k*p+j]*root, s.Vectors[k*p+j]/root
		}
	}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, square(half, p), square(u, p), 0, square(b.To, p))
	blas64.Gemm(blas.Trans, blas.Trans, 1, square(u, p), square(back, p), 0, square(b.From, p))
	return b, true
}
