package joint

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
)

// Shape is a P×P covariance or precision of trace 1, with its eigenvectors: what covariances of several vectors have in common that
// differ in size alone.
type Shape struct {
	P       int
	Values  []float64 // P, ascending, of sum 1
	Vectors []float64 // P×P, Q, whose columns are the eigenvectors; zero outside of a span
	Span    *Span     // nil where there is none
	below   int       // of a span: how many values are before those outside of it
}

// LeastValue is the least eigenvalue of a precision, relative to its largest: what sums over the sensors say of single
// directions while gains are in doubt may be negative, and fields without a precision diverge (see spec: 1e-3 was enough for all problems tried).
const LeastValue = 1e-3

// NewShape is the shape of the symmetric matrix a, of which the upper triangle is read, and its trace. Eigenvalues are at least the
// fraction floor of the largest. Where values are complex (columns is 2, else 1) so are the eigenvectors: pairs of them. ok is false where a has no positive eigenvalue.
func NewShape(a []float64, p, columns int, floor float64) (s *Shape, size float64, ok bool) {
	return (*Span)(nil).NewShape(a, p, columns, floor)
}

// NewShape is that of a matrix of the span.
func (in *Span) NewShape(a []float64, p, columns int, floor float64) (s *Shape, size float64, ok bool) {
	s = &Shape{P: p, Values: make([]float64, p), Vectors: make([]float64, p*p), Span: in}
	if !in.eigen(s, a, columns) {
		return nil, 0, false
	}
	largest := s.Values[p-1]
	if !(largest > 0) || math.IsInf(largest, 1) {
		return nil, 0, false
	}
	for k, v := range s.Values {
		s.Values[k] = max(v, floor*largest)
		size += s.Values[k]
	}
	for k := range s.Values {
		s.Values[k] /= size
	}
	return s, size, true
}

// Round is the shape with equal variance in all directions.
func (in *Span) Round(p int) *Shape {
	s := &Shape{P: p, Values: slices.Repeat([]float64{1 / float64(p)}, p), Vectors: make([]float64, p*p), Span: in}
	if in != nil {
		for l := range in.of {
			for k := range p {
				s.Vectors[k*p+p-in.of+l] = in.vectors[l*p+k]
			}
		}
		return s
	}
	for k := range p {
		s.Vectors[k*p+k] = 1
	}
	return s
}

// eigen writes the eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns.
func eigen(values, vectors, a []float64, p int) bool {
	var e mat.EigenSym
	for _, v := range a {
		if math.IsNaN(v - v) {
			return false
		}
	}
	if !e.Factorize(mat.NewSymDense(p, append([]float64(nil), a...)), true) {
		return false
	}
	e.Values(values)
	var q mat.Dense
	e.VectorsTo(&q)
	copy(vectors, q.RawMatrix().Data)
	return true
}

// basis is x = Tu, in which fields of precision a A have the precision a I, and the prior's covariance R is diagonal: the
// generalised eigenvectors of A and R, T = Q Λ^{-½} U with A = QΛQᵀ and Λ^½Qᵀ R QΛ^½ = U d Uᵀ. R^{-1} is not needed: it may have any rank.
//
// What is orthogonal to a span has one variance, and no estimates: it is one direction, which stands for as many as it has dimensions, and whose columns of T and rows of T⁻¹ are zero.
type basis struct {
	to, from []float64 // T (P×count) and T⁻¹ (count×P)
	squares  []float64 // T_kl², or the sum of these over the directions that l stands for
	variance []float64 // count, d, ascending
	mean     []float64 // count, T⁻¹m
	times    []float64 // count, how many directions each stands for
	others   []float64 // count, of these all but the leading ones, as many as a value has columns

	span    *Span     // where T is of one; nil elsewhere
	inner   []float64 // T of the span
	outside float64   // and of what is outside of it
	below   int       // where that is in the order of variances
}

// resize makes room for so many directions of p signals.
func (b *basis) resize(p, count int) {
	for _, v := range []*[]float64{&b.to, &b.from, &b.squares} {
		*v = slices.Grow((*v)[:0], p*count)[:p*count]
	}
	for _, v := range []*[]float64{&b.variance, &b.mean, &b.times, &b.others} {
		*v = slices.Grow((*v)[:0], count)[:count]
	}
	for k := range b.times {
		b.times[k] = 1
	}
}

// set is for values of so many columns.
func (b *basis) set(a *Shape, prior *Prior, columns int) {
	p := a.P
	if b.span = a.Span; b.span != nil {
		b.within(a, prior)
	} else {
		b.whole(a, prior, 1) // posteriors of rows are those of real numbers
	}
	for i, t := range b.to {
		b.squares[i] = t * t
	}
	count := len(b.variance)
	if b.span != nil { // unit vectors have one part in the span, and the other outside
		for k := range p {
			in := 0.0
			for l := range b.span.of {
				v := b.span.vectors[l*p+k]
				in += v * v
			}
			b.squares[k*count+b.below] = b.outside * b.outside * max(0, 1-in)
		}
	}
	blas64.Gemv(blas.NoTrans, 1, general(b.from, count, p), column(prior.Mean), 0, column(b.mean))
	leading := float64(columns)
	for k := count - 1; k >= 0; k-- {
		b.others[k] = max(0, b.times[k]-leading)
		leading = max(0, leading-b.times[k])
	}
}

// whole is set without a span.
func (b *basis) whole(a *Shape, prior *Prior, columns int) {
	p := a.P
	b.resize(p, p)
	half, back := make([]float64, p*p), make([]float64, p*p) // QΛ^½ and QΛ^{-½}
	for k := range p {
		for j, v := range a.Values {
			root := math.Sqrt(v)
			half[k*p+j], back[k*p+j] = a.Vectors[k*p+j]*root, a.Vectors[k*p+j]/root
		}
	}
	work, inner, u := make([]float64, p*p), make([]float64, p*p), make([]float64, p*p)
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, square(half, p), square(prior.Cov, p), 0, square(work, p))
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, square(work, p), square(half, p), 0, square(inner, p))
	eigen(b.variance, u, inner, p)
	if columns > 1 {
		(&Shape{P: p, Values: b.variance, Vectors: u}).pairUp()
	}
	for k, d := range b.variance {
		b.variance[k] = max(0, d)
	}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, square(back, p), square(u, p), 0, square(b.to, p))
	blas64.Gemm(blas.Trans, blas.Trans, 1, square(u, p), square(half, p), 0, square(b.from, p))
}

// within is set inside the span of a, which is that of R.
func (b *basis) within(a *Shape, prior *Prior) {
	p, s := a.P, a.Span
	shape := make([]float64, s.Len(p))
	a.Flat(shape)
	own, precision := s.parts(shape)
	cov, variance := s.parts(prior.Cov)
	q, inner := s.of, basis{}
	small := &Shape{P: q, Values: make([]float64, q), Vectors: make([]float64, q*q)}
	eigen(small.Values, small.Vectors, own, q)
	inner.set(small, &Prior{Mean: make([]float64, q), Cov: cov}, 1)
	other, count := max(0, variance*precision), q+1
	b.resize(p, count)
	b.inner, b.outside, b.below = inner.to, 1/math.Sqrt(precision), 0
	for b.below < q && inner.variance[b.below] < other {
		b.below++
	}
	to, from := dense.New(p, q), dense.New(q, p)
	dense.AddProduct(to, 1, s.in(), dense.Of(inner.to, q, q), dense.All, 1)
	dense.AddProduct(from, 1, dense.Of(inner.from, q, q), s.in().T(), dense.All, 1)
	clear(b.to)
	clear(b.from)
	for l := range q {
		at := b.at(l)
		b.variance[at] = inner.variance[l]
		copy(b.from[at*p:(at+1)*p], from.Row(l))
		for k := range p {
			b.to[k*count+at] = to.Row(k)[l]
		}
	}
	b.variance[b.below], b.times[b.below] = other, float64(p-q)
}

// at is where direction l of the span is.
func (b *basis) at(l int) int {
	if l < b.below {
		return l
	}
	return l + 1
}

// turn writes T a Tᵀ, as matrices over signals are stored, of a symmetric a of which the upper one is read.
func (b *basis) turn(dst, a []float64) {
	p := len(b.mean)
	if b.span != nil {
		b.turnWithin(dst, a)
		return
	}
	work := make([]float64, p*p)
	blas64.Symm(blas.Right, 1, blas64.Symmetric{N: p, Stride: p, Data: a, Uplo: blas.Upper}, square(b.to, p), 0, square(work, p))
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, square(work, p), square(b.to, p), 0, square(dst, p))
	symmetric(dst, p)
}

// turnWithin is turn in a span.
func (b *basis) turnWithin(dst, a []float64) {
	q, count := b.span.of, len(b.mean)
	own := dense.New(q, q)
	for k := range q {
		for l := range q {
			own.Data[k*q+l] = a[b.at(min(k, l))*count+b.at(max(k, l))]
		}
	}
	t := dense.Of(b.inner, q, q)
	work := dense.New(q, q)
	dense.AddProduct(work, 1, t, own, dense.All, 1)
	dense.Product(dense.Of(dst, q, q), work, t.T())
	dst[q*q] = a[b.below*count+b.below] * b.outside * b.outside
}

// symmetric copies the upper triangle to the lower.
func symmetric(a []float64, p int) {
	for k := range p {
		for l := range k {
			a[k*p+l] = a[l*p+k]
		}
	}
}

// Matrix writes the shape itself (P×P), and Inverse its inverse.
func (s *Shape) Matrix(dst []float64)  { s.Of(dst, func(v float64) float64 { return v }) }
func (s *Shape) Inverse(dst []float64) { s.Of(dst, func(v float64) float64 { return 1 / v }) }

// Of writes Q f(Λ) Qᵀ.
func (s *Shape) Of(dst []float64, f func(float64) float64) {
	if s.Span != nil {
		s.ofSpan(dst, f)
		return
	}
	work := make([]float64, s.P*s.P)
	for k := range s.P {
		for j, v := range s.Values {
			work[k*s.P+j] = s.Vectors[k*s.P+j] * f(v)
		}
	}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, square(work, s.P), square(s.Vectors, s.P), 0, square(dst, s.P))
	symmetric(dst, s.P)
}

// InverseDiagonal writes the diagonal of the inverse.
func (s *Shape) InverseDiagonal(dst []float64) {
	first := 0.0
	if s.Span != nil {
		first = 1 / s.Values[s.below]
	}
	vectors, at := s.Own()
	for k := range s.P {
		dst[k] = first
	}
	for row, j := range at {
		by := 1/s.Values[j] - first
		for k, v := range vectors.Row(row) {
			dst[k] += by * v * v
		}
	}
}

// Flat writes the shape itself, as matrices over signals are stored.
func (s *Shape) Flat(dst []float64) {
	if s.Span == nil {
		s.Matrix(dst)
		return
	}
	_, at := s.Own()
	values := dense.New(len(at), len(at))
	for row, j := range at {
		values.Row(row)[row] = s.Values[j]
	}
	s.Back(dst, values, s.Values[s.below])
}

// outside are the values outside of the span, from … to.
func (s *Shape) outside() (from, to int) {
	if s.Span == nil {
		return 0, 0
	}
	return s.below, s.below + s.P - s.Span.of
}

// Own are the eigenvectors of the span, one a row, and where they are among all; all of them without a span.
func (s *Shape) Own() (vectors dense.Matrix, at []int) {
	p := s.P
	from, to := s.outside()
	for j := range p {
		if j < from || j >= to {
			at = append(at, j)
		}
	}
	vectors = dense.New(len(at), p)
	for row, j := range at {
		for k := range p {
			vectors.Row(row)[k] = s.Vectors[k*p+j]
		}
	}
	return vectors, at
}

// ofSpan is Of where all that is outside of the span has one value: Q f(Λ) Qᵀ = f₀ I + Σ (f-f₀) q qᵀ over the others.
func (s *Shape) ofSpan(dst []float64, f func(float64) float64) {
	vectors, at := s.Own()
	a := dense.New(len(at), len(at))
	for row, j := range at {
		a.Row(row)[row] = f(s.Values[j])
	}
	backFrom(dst, vectors, a, f(s.Values[s.below]))
}

// backFrom writes Qᵀ(a-f₀I)Q + f₀I, with the rows of Q, and changes a.
func backFrom(dst []float64, vectors, a dense.Matrix, other float64) {
	p := vectors.Columns
	for row := range a.Rows {
		a.Row(row)[row] -= other
	}
	moved := dense.New(a.Rows, p)
	dense.AddProduct(moved, 1, a, vectors, dense.All, 1)
	dense.Product(dense.Of(dst, p, p), vectors.T(), moved)
	for k := range p {
		dst[k*p+k] += other
	}
}

// Back writes the symmetric matrix that is a along the vectors of [Shape.Own], and other I in what is orthogonal to these, as matrices over signals are stored. It changes a.
func (s *Shape) Back(dst []float64, a dense.Matrix, other float64) {
	vectors, at := s.Own()
	if s.Span == nil {
		backFrom(dst, vectors, a, other)
		return
	}
	q := len(at)
	turned, work := dense.New(q, q), dense.New(q, q)
	dense.AddProduct(turned, 1, vectors, s.Span.in(), dense.All, 1)
	dense.AddProduct(work, 1, a, turned, dense.All, 1)
	dense.Product(dense.Of(dst, q, q), turned.T(), work)
	dst[q*q] = other
}
