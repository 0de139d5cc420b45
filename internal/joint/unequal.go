package joint

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/parallel"
)

// UpdateUnequal finds the posterior of all rows under fields N(x; λ, Σ) of single values (P×N, Σ = +Inf where nothing was measured), which have no shape in common:
// a covariance a row. With D = 1/Σ and R = LLᵀ, of any rank,
//
//	S = L (I + LᵀDL)⁻¹ Lᵀ,   µ = m + S D (λ-m),   log odds = log ρ/(1-ρ) - ½ [(λ-m)ᵀD(λ-µ) - λᵀDλ] - ½ log det(I + LᵀDL).
//
// It sets X, C, Support and LogMass, and what is learned from.
func (r *Rows) UpdateUnequal(lambda, sigma []float64) {
	p := r.P
	r.basis.set((*Span)(nil).Round(p), &r.Prior, r.Columns) // √P times the eigenvectors of R, with the variances d/P
	root := make([]float64, p*p)
	for k := range p {
		for j, d := range r.basis.variance {
			root[k*p+j] = r.basis.to[k*p+j] * math.Sqrt(d)
		}
	}
	parallel.Run(len(r.chunks), r.Threads, func(chunk int) {
		w := &r.chunks[chunk]
		w.count = 0
		for _, v := range [][]float64{w.first, w.second, w.between} {
			clear(v)
		}
		one := newUnequal(p)
		for i := chunk * rowsOfChunk; i < min(r.N, (chunk+1)*rowsOfChunk); i++ {
			for k := range p {
				one.lambda[k], one.sigma[k] = lambda[k*r.N+i], sigma[k*r.N+i]
			}
			one.update(&r.Prior, root)
			pi := one.support
			r.Support[i], r.LogMass[i] = pi, one.logMass
			for k, mu := range one.mu {
				r.X[k*r.N+i], r.C[k*r.N+i] = pi*mu, pi*(one.s[k*p+k]+(1-pi)*mu*mu)
			}
			if pi < absent {
				continue
			}
			w.count += pi
			blas64.Axpy(pi, column(one.mu), column(w.first))
			blas64.Axpy(pi, column(one.s), column(w.between)) // Σ πS
			blas64.Syr(pi, column(one.mu), blas64.Symmetric{N: p, Stride: p, Data: w.second, Uplo: blas.Upper})
		}
	})
	r.count, r.awaySquared = 0, 0
	within := make([]float64, p*p)
	clear(r.first)
	clear(r.second)
	for c := range r.chunks {
		w := &r.chunks[c]
		r.count += w.count
		add(r.first, w.first)
		add(r.second, w.second)
		add(within, w.between)
	}
	symmetric(r.second, p)
	add(r.second, within)
	r.within = r.within[:p]
	turned := make([]float64, p*p)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, square(r.basis.from, p), square(within, p), 0, square(turned, p))
	for k := range p {
		r.within[k] = blas64.Dot(column(turned[k*p:(k+1)*p]), column(r.basis.from[k*p:(k+1)*p]))
	}
}

// unequal is a row by itself.
type unequal struct {
	lambda, sigma    []float64 // P
	support, logMass float64
	mu               []float64 // P
	s                []float64 // P×P
	factor, scaled   []float64 // P×P: of I + LᵀDL, and D^½L, then Lᵀ behind the factor
	pull             []float64 // P: D(λ-m)
}

func newUnequal(p int) *unequal {
	u := new(unequal)
	for _, v := range []*[]float64{&u.lambda, &u.sigma, &u.mu, &u.pull} {
		*v = make([]float64, p)
	}
	for _, v := range []*[]float64{&u.s, &u.factor, &u.scaled} {
		*v = make([]float64, p*p)
	}
	return u
}

func (u *unequal) update(q *Prior, root []float64) {
	p := len(u.mu)
	for k, sigma := range u.sigma {
		u.pull[k] = (u.lambda[k] - q.Mean[k]) / sigma
		if math.IsInf(sigma, 1) {
			u.pull[k] = 0
		}
		sd := math.Sqrt(sigma)
		for j := range p {
			u.scaled[k*p+j] = root[k*p+j] / sd
		}
	}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, square(u.scaled, p), square(u.scaled, p), 0, square(u.factor, p))
	for k := range p {
		u.factor[k*p+k]++
	}
	cholesky.Factor(u.factor, p) // its eigenvalues are 1 or more
	for k := range p {
		for j := range p {
			u.scaled[j*p+k] = root[k*p+j]
		}
	}
	blas64.Trsm(blas.Left, blas.NoTrans, 1, blas64.Triangular{N: p, Stride: p, Data: u.factor, Uplo: blas.Lower, Diag: blas.NonUnit}, square(u.scaled, p))
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, square(u.scaled, p), square(u.scaled, p), 0, square(u.s, p))
	copy(u.mu, q.Mean)
	blas64.Gemv(blas.NoTrans, 1, square(u.s, p), column(u.pull), 1, column(u.mu))
	there, zero := cholesky.LogDet(u.factor, p), 0.0
	for k, sigma := range u.sigma {
		if !math.IsInf(sigma, 1) {
			there += u.pull[k] * (u.lambda[k] - u.mu[k])
			zero += u.lambda[k] * (u.lambda[k] / sigma)
		}
	}
	u.support, u.logMass = presence(q.Density, -0.5*there, -0.5*zero)
}
