package joint

import (
	"math"

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
	Vectors []float64 // P×P, Q, whose columns are the eigenvectors
	Span    *Span     // nil where there is none
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
func Round(p int) *Shape {
	s := &Shape{P: p, Values: make([]float64, p), Vectors: make([]float64, p*p)}
	for k := range p {
		s.Values[k], s.Vectors[k*p+k] = 1/float64(p), 1
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
type basis struct {
	to, from []float64 // T and T⁻¹
	squares  []float64 // T_kl²
	variance []float64 // P, d
	mean     []float64 // P, T⁻¹m

	span    *Span     // where T is of one; nil elsewhere
	inner   []float64 // T of the span
	outside float64   // of what is outside of it
	below   int       // values before those that are outside

	outsides []float64 // P, sums of squares of T over what is outside
}

// parts are the directions in which there are estimates, of a span those before and behind what is outside of it.
func (b *basis) parts() [][2]int {
	p := len(b.mean)
	if b.span == nil {
		return [][2]int{{0, p}}
	}
	return [][2]int{{0, b.below}, {b.below + p - b.span.of, p}}
}

func (b *basis) set(a *Shape, prior *Prior) {
	p := a.P
	if len(b.to) != p*p {
		for _, v := range []*[]float64{&b.to, &b.from, &b.squares} {
			*v = make([]float64, p*p)
		}
		b.variance, b.mean = make([]float64, p), make([]float64, p)
	}
	if b.span = nil; a.Span != nil && b.within(a, prior) {
		b.rest(prior)
		return
	}
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
	for k, d := range b.variance {
		b.variance[k] = max(0, d)
	}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, square(back, p), square(u, p), 0, square(b.to, p))
	blas64.Gemm(blas.Trans, blas.Trans, 1, square(u, p), square(half, p), 0, square(b.from, p))
	b.rest(prior)
}

// within is set inside the span of a; false where R has another one.
func (b *basis) within(a *Shape, prior *Prior) bool {
	p, s := a.P, a.Span
	shape := make([]float64, p*p)
	a.Matrix(shape)
	fa, ok := s.fold(shape, p)
	if !ok {
		return false
	}
	fr, ok := s.fold(prior.Cov, p)
	if !ok {
		return false
	}
	q := s.of
	small, inner := &Shape{P: q, Values: make([]float64, q), Vectors: make([]float64, q*q)}, basis{}
	if !eigen(small.Values, small.Vectors, fa.own, q) || !(small.Values[0] > 0) {
		return false
	}
	inner.set(small, &Prior{Mean: make([]float64, q), Cov: fr.own})
	root := math.Sqrt(fa.other)
	b.span, b.inner, b.outside = s, inner.to, 1/root
	b.below = s.spread(b.variance, b.to, max(0, fr.other*fa.other), 1/root, inner.variance, inner.to)
	columns, back := make([]float64, p*p), make([]float64, q*q)
	for k := range q {
		for j := range q {
			back[j*q+k] = inner.from[k*q+j]
		}
	}
	s.spread(make([]float64, p), columns, max(0, fr.other*fa.other), root, inner.variance, back)
	for k := range p {
		for j := range p {
			b.from[j*p+k] = columns[k*p+j]
		}
	}
	return true
}

// rest sets what follows from T.
func (b *basis) rest(prior *Prior) {
	p := len(b.mean)
	for i, t := range b.to {
		b.squares[i] = t * t
	}
	if b.span != nil {
		b.outsides = make([]float64, p)
		for k := range p {
			for _, t := range b.squares[k*p+b.below : k*p+b.below+p-b.span.of] {
				b.outsides[k] += t
			}
		}
	}
	blas64.Gemv(blas.NoTrans, 1, square(b.from, p), column(prior.Mean), 0, column(b.mean))
}

// turn writes T a Tᵀ, both triangles, of a symmetric a of which the upper one is read.
func (b *basis) turn(dst, a []float64) {
	p := len(b.mean)
	if b.span != nil {
		b.turnWithin(dst, a, p)
		return
	}
	work := make([]float64, p*p)
	blas64.Symm(blas.Right, 1, blas64.Symmetric{N: p, Stride: p, Data: a, Uplo: blas.Upper}, square(b.to, p), 0, square(work, p))
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, square(work, p), square(b.to, p), 0, square(dst, p))
	symmetric(dst, p)
}

// turnWithin is turn where rows outside of the span have no means: a is diagonal there.
func (b *basis) turnWithin(dst, a []float64, p int) {
	q := b.span.of
	out, own := p-q, dense.New(q, q)
	other := 0.0
	at := func(k int) int {
		if k < b.below {
			return k
		}
		return k + out
	}
	for k := range out {
		j := b.below + k
		other += a[j*p+j] / float64(out)
	}
	for k := range q {
		for l := range q {
			i, j := min(at(k), at(l)), max(at(k), at(l))
			own.Data[k*q+l] = a[i*p+j]
		}
	}
	t := dense.Of(b.inner, q, q)
	work, turned := dense.New(q, q), dense.New(q, q)
	dense.AddProduct(work, 1, t, own, dense.All, 1)
	dense.AddProduct(turned, 1, work, t.T(), dense.All, 1)
	b.span.unfold(dst, folded{other * b.outside * b.outside, turned.Data})
	symmetric(dst, p)
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
func (s *Shape) Matrix(dst []float64)  { s.of(dst, func(v float64) float64 { return v }) }
func (s *Shape) Inverse(dst []float64) { s.of(dst, func(v float64) float64 { return 1 / v }) }

// of writes Q f(Λ) Qᵀ.
func (s *Shape) of(dst []float64, f func(float64) float64) {
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

// own are the eigenvectors of the span, one a row, and where they are among all. More than half of all values are equal, those outside of it.
func (s *Shape) own() (vectors dense.Matrix, at []int) {
	p := s.P
	other, outside := s.Values[p/2], p-s.Span.of
	for j, v := range s.Values {
		if v == other && outside > 0 {
			outside--
			continue
		}
		at = append(at, j)
	}
	vectors = dense.New(len(at), p)
	for row, j := range at {
		for k := range p {
			vectors.Row(row)[k] = s.Vectors[k*p+j]
		}
	}
	return vectors, at
}

// ofSpan is of where all that is outside of the span has one value: Q f(Λ) Qᵀ = f₀ I + Σ (f-f₀) q qᵀ over the others.
func (s *Shape) ofSpan(dst []float64, f func(float64) float64) {
	vectors, at := s.own()
	a := dense.New(len(at), len(at))
	for row, j := range at {
		a.Row(row)[row] = f(s.Values[j])
	}
	s.backFrom(dst, vectors, a, f(s.Values[s.P/2]))
}

// backFrom writes Qᵀ(a-f₀I)Q + f₀I, with the rows of Q.
func (s *Shape) backFrom(dst []float64, vectors, a dense.Matrix, other float64) {
	p := s.P
	for row := range a.Rows {
		a.Row(row)[row] -= other
	}
	moved := dense.New(a.Rows, p)
	dense.AddProduct(moved, 1, a, vectors, dense.All, 1)
	dense.Product(dense.Of(dst, p, p), vectors.T(), moved)
	for k := range p {
		dst[k*p+k] += other
	}
	symmetric(dst, p)
}

// Back writes Q a Qᵀ of a symmetric a that is diagonal outside of the span, with one value.
func (s *Shape) Back(dst, a []float64) {
	p := s.P
	if s.Span == nil {
		work := make([]float64, p*p)
		dense.Product(dense.Of(work, p, p), dense.Of(s.Vectors, p, p), dense.Of(a, p, p))
		dense.Product(dense.Of(dst, p, p), dense.Of(work, p, p), dense.Of(s.Vectors, p, p).T())
		return
	}
	vectors, at := s.own()
	own, other := dense.New(len(at), len(at)), trace(a, p)
	for row, i := range at {
		other -= a[i*p+i]
		for column, j := range at {
			own.Row(row)[column] = a[i*p+j]
		}
	}
	s.backFrom(dst, vectors, own, other/float64(p-len(at)))
}
