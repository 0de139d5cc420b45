package layers

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/prior"
)

// vector is the node of one layer by vector AMP: for a matrix F whose entries are not independent, as a trained one's, but whose singular vectors are as good
// as random (multi-layer vector AMP: A. K. Fletcher, S. Rangan and P. Schniter, "Inference in deep networks in high dimensions", ISIT 2018). Between the prior of h, the linear
// equations u = Fh and the activation go Gaussian messages of one precision a signal,
//
//	prior  ← N(h; r1, 1/γ1)   N(h; r2, 1/γ2) →   u = Fh   ← N(u; p2, 1/τ2)   N(u; p1, 1/τ1) →   f,
//
// and what one returns goes on without what it was given: of a mean x̂ and a mean variance α/γ given N(·; r, 1/γ)
//
//	γ' = γ(1-α)/α,   r' = r + (x̂-r)/(1-α).
type vector struct {
	layer

	// F = USVᵀ, of as many singular values as F has that are not zero.
	left, right blas64.General // N×R, N₂×R
	values      []float64      // R
	weights     blas64.General

	// Messages, signal by signal. log γ1 is -∞ before the first one.
	r1, r2           []float64 // P×N₂
	p1               []float64 // P×N
	logGamma, logTau []float64 // P, of γ1 and τ1
	gamma2           []float64 // P

	// Of the present update.
	p2, z              []float64 // P×N
	tau2               []float64 // P
	moved, along       []float64 // P×R, Vᵀ(h-r2), and the same in Uᵀz
	evidence           []float64 // P
	outputs, equations func(k int)
	backward           func(k int)
}

const (
	// Bounds of what a side keeps of a variance, so that no precision is negative: as the solver's vector AMP has them.
	leastKept, mostKept = 1e-9, 1 - 1e-9
	leastRead           = 1e-12

	// Singular values below this part of the largest are rounding.
	noValue = 1e-13
)

func newVector(l prior.Layer, own layer) (*vector, error) {
	v, p := &vector{layer: own}, own.p
	if err := v.decompose(l); err != nil {
		return nil, err
	}
	for _, a := range []*[]float64{&v.r1, &v.r2} {
		*a = make([]float64, p*l.Cols)
	}
	for _, a := range []*[]float64{&v.p1, &v.p2, &v.z} {
		*a = make([]float64, p*l.Rows)
	}
	for _, a := range []*[]float64{&v.logGamma, &v.logTau, &v.gamma2, &v.tau2, &v.evidence} {
		*a = make([]float64, p)
	}
	v.moved, v.along = make([]float64, p*len(v.values)), make([]float64, p*len(v.values))
	v.outputs, v.backward, v.equations = v.toActivation, v.toLatents, v.toOutputs
	return v, nil
}

func (v *vector) decompose(l prior.Layer) error {
	var svd mat.SVD
	f := mat.NewDense(l.Rows, l.Cols, l.Weights)
	if !svd.Factorize(f, mat.SVDThin) {
		return fmt.Errorf("the singular values of a %d×%d matrix are not found: its entries are too large or too small", l.Rows, l.Cols)
	}
	values := svd.Values(nil)
	rank := 0
	for rank < len(values) && values[rank] > noValue*values[0] {
		rank++
	}
	var left, right mat.Dense
	svd.UTo(&left)
	svd.VTo(&right)
	v.values = values[:rank]
	v.left, v.right = left.RawMatrix(), right.RawMatrix()
	v.left.Cols, v.right.Cols = rank, rank
	v.weights = f.RawMatrix()
	return nil
}

// Start implements [Signals].
func (v *vector) Start() {
	mean, variance := v.start()
	total, square := 0.0, 0.0
	for _, c := range variance {
		total += c / float64(v.width)
	}
	for _, s := range v.values {
		square += s * s / float64(v.n)
	}
	v.below.reset(mean, variance, v.p)
	for k := range v.p {
		copy(v.r2[k*v.width:], mean)
		v.gamma2[k] = 1 / total
		v.logGamma[k], v.logTau[k] = math.Inf(-1), -math.Log(square*total)
		blas64.Gemv(blas.NoTrans, 1, v.weights, vectorOf(mean), 0, vectorOf(v.p1[k*v.n:(k+1)*v.n]))
	}
	clear(v.r1)
	v.inner.Start()
}

func vectorOf(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }

// Update implements [Signals].
func (v *vector) Update(x, c, lambda, sigma []float64, delta float64) error {
	v.begin(x, c, lambda, sigma, delta)
	parallel.Run(v.p, v.threads, v.outputs)
	parallel.Run(v.p, v.threads, v.backward)
	if err := v.inner.Update(v.newH, v.newC, v.lambda, v.sigma, delta); err != nil {
		return err
	}
	parallel.Run(v.p, v.threads, v.equations)
	return nil
}

// toActivation is the activation's part: the posterior of x and u given N(u; p1 + b, 1/τ1) and the field on x.
func (v *vector) toActivation(k int) {
	tau := math.Exp(v.logTau[k])
	open := 1 / tau
	p1, p2 := v.p1[k*v.n:(k+1)*v.n], v.p2[k*v.n:(k+1)*v.n]
	mass, kept := 0.0, 0.0
	for i, omega := range p1 {
		m := v.layer.output(i, k, omega, open)
		p2[i] = m.Off
		kept += m.UVar * tau
		mass += m.LogMass
	}
	beta := min(max(kept/float64(v.n), leastRead), 1-leastRead)
	v.tau2[k] = tau * (1 - beta) / beta
	for i, off := range p2 {
		p2[i] = p1[i] + off/(1-beta)
	}
	v.evidence[k] = mass
}

// determined is how many of the latents the equations determine, Σ τ2s²/(γ2+τ2s²), at least a little.
func (v *vector) determined(k int) (total float64) {
	for _, s := range v.values {
		total += v.share(k, s)
	}
	return min(max(total, leastKept), float64(v.width)*mostKept)
}

func (v *vector) share(k int, s float64) float64 {
	return v.tau2[k] * s * s / (v.gamma2[k] + v.tau2[k]*s*s)
}

// solve finds what the equations move Vᵀh by, τ2s(Uᵀp2 - sVᵀr2)/(γ2+τ2s²), for what goes to the prior and to the activation.
func (v *vector) solve(k int) (moved []float64) {
	moved = v.moved[k*len(v.values) : (k+1)*len(v.values)]
	blas64.Gemv(blas.NoTrans, 1, v.weights, vectorOf(v.r2[k*v.width:(k+1)*v.width]), 0, vectorOf(v.z[k*v.n:(k+1)*v.n]))
	off := v.z[k*v.n : (k+1)*v.n]
	for i, z := range off {
		off[i] = v.p2[k*v.n+i] - z
	}
	blas64.Gemv(blas.Trans, 1, v.left, vectorOf(off), 0, vectorOf(moved))
	for j, s := range v.values {
		moved[j] *= v.share(k, s) / s
	}
	return moved
}

// toLatents is the message of the equations to h: with A the part of the latents that they determine,
//
//	r1 = r2 + (h-r2)/A,   γ1 = γ2A/(1-A).
func (v *vector) toLatents(k int) {
	from, to := k*v.width, (k+1)*v.width
	moved := v.solve(k)
	a := v.determined(k) / float64(v.width)
	change := v.newH[from:to]
	blas64.Gemv(blas.NoTrans, 1/a, v.right, vectorOf(moved), 0, vectorOf(change))
	logGamma, delta := math.Log(v.gamma2[k]*a/(1-a)), v.delta
	if math.IsInf(v.logGamma[k], -1) { // the first
		delta = 0
		v.logGamma[k] = logGamma
	}
	v.logGamma[k] += (1 - delta) * (logGamma - v.logGamma[k])
	sigma := math.Exp(-v.logGamma[k])
	for j, d := range change {
		now := &v.r1[from+j]
		*now = v.r2[from+j] + d + delta*(*now-v.r2[from+j]-d)
		v.lambda[from+j], v.sigma[from+j] = *now, sigma
	}
}

// toOutputs takes the prior's answer, and is the message of the equations to u: with B the part of N that they determine and z = Fh,
//
//	p1 = z - B/(1-B) (p2-z),   τ1 = τ2(1-B)/B.
func (v *vector) toOutputs(k int) {
	from, to := k*v.width, (k+1)*v.width
	gamma := math.Exp(v.logGamma[k])
	copy(v.h[from:to], v.newH[from:to])
	copy(v.c[from:to], v.newC[from:to])
	kept := 0.0
	for _, c := range v.newC[from:to] {
		kept += c
	}
	alpha := min(max(gamma*kept/float64(v.width), leastKept), mostKept)
	v.gamma2[k] = gamma * (1 - alpha) / alpha
	for j, h := range v.newH[from:to] {
		v.r2[from+j] = v.r1[from+j] + (h-v.r1[from+j])/(1-alpha)
	}
	moved, z := v.solve(k), v.z[k*v.n:(k+1)*v.n] // p2 - Fr2
	b := v.determined(k) / float64(v.n)
	p1, p2 := v.p1[k*v.n:(k+1)*v.n], v.p2[k*v.n:(k+1)*v.n]
	along := v.along[k*len(v.values) : (k+1)*len(v.values)]
	for j, s := range v.values {
		along[j] = s * moved[j]
	}
	blas64.Gemv(blas.NoTrans, -1, v.left, vectorOf(along), 1, vectorOf(z)) // p2 - z
	v.scoreEquations(k, moved, z)
	for i, miss := range z {
		next := p2[i] - miss - b/(1-b)*miss
		p1[i] = next + v.delta*(p1[i]-next)
	}
	logTau := math.Log(v.tau2[k] * (1 - b) / b)
	v.logTau[k] = logTau + v.delta*(v.logTau[k]-logTau)
}

// scoreEquations adds to the evidence of signal k what is not the activation's or the prior's, of the free energy of which fixed points are stationary,
//
//	log Z_f + log Z_h + log N(p2; Fr2, FFᵀ/γ2 + 1/τ2) - log N(r1; r2, 1/γ1 + 1/γ2) - log N(p1; p2, 1/τ1 + 1/τ2),
//
// where the first exponent is -½ (τ2 |p2-z|² + γ2 |h-r2|²) at the mean z = Fh. moved is Vᵀ(h-r2), and miss p2-z.
func (v *vector) scoreEquations(k int, moved, miss []float64) {
	gamma1, gamma2, tau1, tau2 := math.Exp(v.logGamma[k]), v.gamma2[k], math.Exp(v.logTau[k]), v.tau2[k]
	equations := -gamma2*square(moved) - tau2*square(miss)
	for _, s := range v.values {
		equations -= math.Log1p(tau2 * s * s / gamma2)
	}
	inputs := distance(v.r1[k*v.width:(k+1)*v.width], v.r2[k*v.width:])
	outputs := distance(v.p1[k*v.n:(k+1)*v.n], v.p2[k*v.n:])
	v.evidence[k] += 0.5 * (equations + float64(v.width)*math.Log1p(gamma1/gamma2) + inputs*(gamma1/(1+gamma1/gamma2)))
	v.evidence[k] += 0.5 * (float64(v.n)*math.Log1p(tau2/tau1) + outputs*(tau2/(1+tau2/tau1)))
}

func square(a []float64) (total float64) {
	for _, x := range a {
		total += x * x
	}
	return total
}

func distance(a, b []float64) (total float64) {
	for i, x := range a {
		total += (x - b[i]) * (x - b[i])
	}
	return total
}

// LogNorm implements [Signals].
func (v *vector) LogNorm() (total float64) {
	for _, e := range v.evidence {
		total += e
	}
	return total + v.inner.LogNorm()
}

// Kept implements [Signals].
func (v *vector) Kept() [][]float64 {
	return append([][]float64{v.h, v.c, v.lambda, v.sigma, v.r1, v.r2, v.p1, v.logGamma, v.logTau, v.gamma2}, v.inner.Kept()...)
}

// Linear implements [Signals].
func (v *vector) Linear() [][]float64 {
	return append([][]float64{v.h, v.r1, v.r2, v.p1}, v.inner.Linear()...)
}
