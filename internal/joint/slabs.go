package joint

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/parallel"
)

// Slab is the distribution of a value of a row that is there, whatever the others are.
type Slab interface {
	Posterior(mean, variance, lambda, sigma []float64)
	LogNorm(lambda, sigma float64) float64
}

// slabs is the node of rows whose values have their support in common and nothing else, with a slab f that need not be Gaussian,
//
//	x_i = 0 with probability 1-ρ,   x_ik ~ f independently else.
//
// Under a field of precision aA that is not diagonal a product of P slabs has no closed form. So f is a Gaussian site exp(νx-½τx²) of each value, by expectation propagation
// (T. P. Minka, 2001),
//
//	S = (aA + diag τ)⁻¹,   µ = S(h + ν),   1/v = 1/S_kk - τ,   λ = v(µ/S_kk - ν),
//
// where a site is what brings N(x; λ, v) to the mean and the variance of f(x) N(x; λ, v). With Gaussian slabs that is exact. The odds of a row are
//
//	log ∫ e^{hᵀx-½xᵀaAx} ∏ f = ½(h+ν)ᵀµ + ½ log det 2πS + Σ_k log ∫ f N(x; λ, v) - log ∫ e^{νx-½τx²} N(x; λ, v).
type slabs struct {
	of         Slab
	tau, nu    []float64 // N×P, the sites
	lambda, v  []float64 // N×P, what all but the value's own site say of it
	rest       []float64 // N, what slabs and sites add to the odds
	precisions []float64 // P×P, A
}

const (
	// siteSweeps are those over the sites of a row in one iteration of message passing: they go on from those of the iteration before.
	siteSweeps = 5

	// siteReach is how near the means of sites and slabs are, in posterior standard deviations, when a row is left.
	siteReach = 1e-6

	// leastSite is the least precision of a site, in that of what else is said of its value: a mixture may leave a value known less well than that, and a row of such sites has no covariance.
	leastSite = 1e-9
)

// slabWork is what a goroutine needs for a row.
type slabWork struct {
	precision, s, sum                []float64 // P×P
	h, mu, right, away               []float64
	turned, mean, variance, residual []float64
}

func newSlabWork(p int) *slabWork {
	w := &slabWork{precision: make([]float64, p*p), s: make([]float64, p*p), sum: make([]float64, p*p)}
	for _, v := range []*[]float64{&w.h, &w.mu, &w.right, &w.away, &w.turned, &w.mean, &w.variance, &w.residual} {
		*v = make([]float64, p)
	}
	return w
}

// Separable reports whether values of a row have a slab of their own.
func (r *Rows) Separable() bool { return r.slabs != nil }

// SeparateGain is the logarithm of how much likelier the fields of the latest Update are if the values of a row are independent and of that slab, of the given mean and variance, than if they are Gaussian with the covariance that was learned.
// Where it is positive the node goes on with the slab, else with the covariance.
func (r *Rows) SeparateGain(slab Slab, mean, variance float64) (gain float64) {
	before, former := floats.Sum(r.LogMass), r.Prior
	count := r.N * r.P
	r.slabs = &slabs{of: slab, precisions: make([]float64, r.P*r.P), rest: make([]float64, r.N)}
	for _, v := range []*[]float64{&r.slabs.tau, &r.slabs.nu, &r.slabs.lambda, &r.slabs.v} {
		*v = make([]float64, count)
	}
	for j := range count {
		r.slabs.tau[j], r.slabs.nu[j] = 1/variance, mean/variance
	}
	for i := range r.N { // of the Gaussian of that mean and variance
		r.slabs.rest[i] = -0.5 * float64(r.P) * (math.Log(2*math.Pi*variance) + mean*mean/variance)
	}
	r.TakeSlab(slab, mean, variance)
	r.Update(r.field)
	if gain = floats.Sum(r.LogMass) - before; !(gain > 0) {
		r.slabs, r.Prior = nil, former
		r.Update(r.field)
	}
	return gain
}

// TakeSlab changes the slab, of the given mean and variance.
func (r *Rows) TakeSlab(slab Slab, mean, variance float64) {
	r.slabs.of, r.Prior = slab, Isotropic(r.P, r.Prior.Density, mean, variance)
}

// Cavities are the fields of the values of rows that are more likely there than not, each without what its own slab says.
func (r *Rows) Cavities() (lambda, sigma []float64) {
	for i, pi := range r.Support {
		if pi > 0.5 {
			lambda = append(lambda, r.slabs.lambda[i*r.P:(i+1)*r.P]...)
			sigma = append(sigma, r.slabs.v[i*r.P:(i+1)*r.P]...)
		}
	}
	return lambda, sigma
}

// separate is Update with slabs.
func (r *Rows) separate() {
	r.field.Shape.Matrix(r.slabs.precisions)
	parallel.Run(len(r.chunks), r.Threads, func(c int) {
		chunk, from := &r.chunks[c], c*rowsOfChunk
		if chunk.slab == nil {
			chunk.slab = newSlabWork(r.P)
		}
		chunk.count = 0
		clear(chunk.slab.sum)
		for i := from; i < min(from+rowsOfChunk, r.N); i++ {
			r.separateRow(chunk.slab, i)
			chunk.count += r.Support[i]
		}
	})
	r.count = 0
	clear(r.Sum)
	for c := range r.chunks {
		r.count += r.chunks[c].count
		add(r.Sum, r.chunks[c].slab.sum)
	}
}

// separateRow is the posterior of one row.
func (r *Rows) separateRow(w *slabWork, i int) {
	p, a, f := r.P, r.field.Size[i], &r.field
	for k := range p {
		w.away[k] = f.Centre[k*r.N+i]
	}
	r.slabs.times(w.h, w.away, a)
	for k := range p {
		w.h[k] += f.Onward[k*r.N+i]
	}
	odds := r.slabs.settle(w, a, i, math.Log(absent*(1-r.Prior.Density)/r.Prior.Density))
	zero := f.Shape.inverseSquare(w.turned, w.h, a)
	pi, mass := presence(r.Prior.Density, odds-0.5*zero, -0.5*zero)
	r.Support[i], r.Weight[i], r.LogMass[i] = pi, pi, mass

	// x̂ = πµ and C = πS + π(1-π)µµᵀ; what tells estimates from fields is aA(c-x̂)+r.
	r.Trace[i], r.Pull[i], r.Square[i] = 0, 0, 0
	for k := range p {
		r.X[k*r.N+i] = pi * w.mu[k]
		w.away[k] -= pi * w.mu[k]
		for l := range p {
			c := pi * (w.s[k*p+l] + (1-pi)*w.mu[k]*w.mu[l])
			w.sum[k*p+l] += c
			r.Square[i] += a * r.slabs.precisions[k*p+l] * c
		}
		r.C[k*r.N+i] = pi * (w.s[k*p+k] + (1-pi)*w.mu[k]*w.mu[k])
		r.Trace[i] += r.C[k*r.N+i]
	}
	r.slabs.times(w.residual, w.away, a)
	for k := range p {
		w.residual[k] += f.Onward[k*r.N+i]
		r.Pull[i] += r.X[k*r.N+i] * w.residual[k]
	}
	r.Square[i] += f.Shape.inverseSquare(w.turned, w.residual, a)
}

// times writes aAv.
func (s *slabs) times(dst, v []float64, a float64) {
	for k := range dst {
		dst[k] = a * floats.Dot(s.precisions[k*len(v):(k+1)*len(v)], v)
	}
}

// inverseSquare is hᵀ(aA)⁻¹h, 0 for a tilt.
func (s *Shape) inverseSquare(turned, h []float64, a float64) (square float64) {
	if a == 0 {
		return 0
	}
	clear(turned)
	for k, v := range h {
		floats.AddScaled(turned, v, s.Vectors[k*s.P:(k+1)*s.P])
	}
	for l, v := range turned {
		square += v * (v / (a * s.Values[l]))
	}
	return square
}

// settle moves the sites of row i until they agree with the slabs, unless its odds are below the least. It leaves µ and S, and returns the logarithm of the odds of the row.
func (s *slabs) settle(w *slabWork, a float64, i int, least float64) (odds float64) {
	p := len(w.h)
	tau, nu := s.tau[i*p:(i+1)*p], s.nu[i*p:(i+1)*p]
	lambda, v := s.lambda[i*p:(i+1)*p], s.v[i*p:(i+1)*p]
	for sweep := range siteSweeps {
		there := s.gaussian(w, a, tau, nu)
		if sweep == 0 && there+s.rest[i] < least {
			return there + s.rest[i]
		}
		cholesky.Inverse(w.s, w.precision, p)
		for k := range p {
			known := max(1/w.s[k*p+k]-tau[k], leastSite*tau[k])
			lambda[k], v[k] = w.mu[k]+(tau[k]*w.mu[k]-nu[k])/known, 1/known
		}
		s.of.Posterior(w.mean, w.variance, lambda, v)
		off, rest := 0.0, 0.0
		for k, mean := range w.mean {
			rest += s.of.LogNorm(lambda[k], v[k]) - 0.5*math.Log(2*math.Pi*v[k]) - logSite(tau[k], nu[k], lambda[k], v[k])
			off = max(off, math.Abs(mean-w.mu[k])/math.Sqrt(w.variance[k]), math.Abs(w.s[k*p+k]/w.variance[k]-1))
			tau[k] = max(1/w.variance[k]-1/v[k], leastSite/v[k])
			nu[k] = mean*(tau[k]+1/v[k]) - lambda[k]/v[k]
		}
		s.rest[i], odds = rest, there+rest
		if off < siteReach {
			break
		}
	}
	return odds
}

// gaussian sets µ and a factor of S⁻¹ of a row with these sites, and returns ½(h+ν)ᵀµ + ½ log det 2πS.
func (s *slabs) gaussian(w *slabWork, a float64, tau, nu []float64) float64 {
	p := len(tau)
	for j, v := range s.precisions {
		w.precision[j] = a * v
	}
	for k, t := range tau {
		w.precision[k*p+k] += t
		w.right[k] = w.h[k] + nu[k]
	}
	if !cholesky.Factor(w.precision, p) {
		w.mu[0] = math.NaN() // seen by the loop as a step to take back
		return math.NaN()
	}
	copy(w.mu, w.right)
	cholesky.Solve(w.precision, w.mu)
	return 0.5 * (floats.Dot(w.right, w.mu) + float64(p)*math.Log(2*math.Pi) - cholesky.LogDet(w.precision, p))
}

// logSite is log ∫ e^{νx-½τx²} N(x; λ, v) dx.
func logSite(tau, nu, lambda, v float64) float64 {
	one := 1 + v*tau
	return 0.5*(lambda*(2*nu-tau*lambda)+v*nu*nu)/one - 0.5*math.Log(one)
}
