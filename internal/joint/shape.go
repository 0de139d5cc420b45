package joint

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Shape is a P×P covariance or precision of trace 1, with its eigenvectors: what covariances of several vectors have in common that
// differ in size alone.
type Shape struct {
	P       int
	Values  []float64 // P, ascending, of sum 1
	Vectors []float64 // P×P, Q, whose columns are the eigenvectors
}

// LeastValue is the least eigenvalue of a precision, relative to its largest: what sums over the sensors say of single
// directions while gains are in doubt may be negative, and fields without a precision diverge (see spec: 1e-3 was enough for all problems tried).
const LeastValue = 1e-3

// NewShape is the shape of the symmetric matrix a, of which the upper triangle is read, and its trace. Eigenvalues are at least the
// fraction floor of the largest. Where values are complex (columns is 2, else 1) so are the eigenvectors: pairs of them. ok is false where a has no positive eigenvalue.
func NewShape(a []float64, p, columns int, floor float64) (s *Shape, size float64, ok bool) {
	s = &Shape{P: p, Values: make([]float64, p), Vectors: make([]float64, p*p)}
	if !eigen(s.Values, s.Vectors, a, p) {
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
	if columns > 1 {
		s.pairUp()
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
}

func (b *basis) set(a *Shape, prior *Prior) {
	p := a.P
	if len(b.to) != p*p {
		for _, v := range []*[]float64{&b.to, &b.from, &b.squares} {
			*v = make([]float64, p*p)
		}
		b.variance, b.mean = make([]float64, p), make([]float64, p)
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
	for i, t := range b.to {
		b.squares[i] = t * t
	}
	blas64.Gemv(blas.NoTrans, 1, square(b.from, p), column(prior.Mean), 0, column(b.mean))
}

// turn writes T a Tᵀ, both triangles, of a symmetric a of which the upper one is read.
func (b *basis) turn(dst, a []float64) {
	p := len(b.mean)
	work := make([]float64, p*p)
	blas64.Symm(blas.Right, 1, blas64.Symmetric{N: p, Stride: p, Data: a, Uplo: blas.Upper}, square(b.to, p), 0, square(work, p))
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, square(work, p), square(b.to, p), 0, square(dst, p))
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
	work := make([]float64, s.P*s.P)
	for k := range s.P {
		for j, v := range s.Values {
			work[k*s.P+j] = s.Vectors[k*s.P+j] * f(v)
		}
	}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, square(work, s.P), square(s.Vectors, s.P), 0, square(dst, s.P))
	symmetric(dst, s.P)
}
