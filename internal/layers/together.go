package layers

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/prior"
)

// together is the node of all layers at once, x = f(h), of few latents: their covariance is whole, and weights may be anything. With the slopes J = ∂f/∂h
// at m the network is linear about it, and fields N(x; λ, Σ) make the latents Gaussian: a step of Gauss and Newton is
//
//	D = 1/(Σ + slack),   P = (JᵀDJ + t)⁻¹,   m ← m + P (JᵀD(λ - f(m)) + r - tm),
//
// and x̂ = f(m), C = diag JPJᵀ, with slack about them. exp(rh - ½th²) stands for the prior of each latent. It follows from what that prior
// makes of what the fields alone say (expectation propagation: T. Minka, "Expectation propagation for approximate Bayesian inference", UAI 2001),
//
//	1/Σ_h = 1/P_jj - t,   λ_h = Σ_h (m/P_jj - r)   →   ĥ, C_h   →   t = 1/C_h - 1/Σ_h,   r = ĥ/C_h - λ_h/Σ_h.
//
// As AMP with denoisers of whole signals has it (R. Berthier, A. Montanari and P.-M. Nguyen, "State evolution for approximate message passing with non-separable
// functions", Information and Inference 2020), the iteration that it belongs to needs x̂ and Σ C of it.
type together struct {
	layer // the last one, but for its width, that of the latents
	list  []prior.Layer

	mean, precision, shift []float64 // P×N₂: m, t and r

	// spread is the variance of what goes into each layer's activation, of the layers whose activation has kinks. f and its slopes are means over it: at a kink the slope of the middle
	// alone jumps with it, and the iteration would turn in a circle.
	spread [][]float64 // P×N of each layer; nil of smooth ones

	evidence []float64 // P
	rooms    parallel.Pool[room]
	signal   func(k int)
}

// room is what a signal is worked on with.
type room struct {
	value, slope     [][]float64    // of each layer: f(u), f'(u)
	jacobian         []dense.Matrix // of each layer, by the latents
	scaled           dense.Matrix   // N×N₂: √D J, JP
	factor, P        []float64      // N₂×N₂, of P⁻¹
	gradient, before []float64      // N₂
	weight           []float64      // N: D
}

func newTogether(list []prior.Layer, own layer) *together {
	t := &together{layer: own, list: list, evidence: make([]float64, own.p)}
	for _, v := range []*[]float64{&t.mean, &t.precision, &t.shift} {
		*v = make([]float64, t.p*t.width)
	}
	for _, l := range list {
		var v []float64
		if !l.Activation.Smooth() {
			v = make([]float64, t.p*l.Rows)
		}
		t.spread = append(t.spread, v)
	}
	t.rooms.New = func() *room { return newRoom(list) }
	t.signal = t.update
	return t
}

func newRoom(list []prior.Layer) *room {
	r, width := &room{}, list[0].Cols
	for _, l := range list {
		r.value, r.slope = append(r.value, make([]float64, l.Rows)), append(r.slope, make([]float64, l.Rows))
		r.jacobian = append(r.jacobian, dense.New(l.Rows, width))
	}
	n := list[len(list)-1].Rows
	r.scaled, r.weight = dense.New(n, width), make([]float64, n)
	r.factor, r.P = make([]float64, width*width), make([]float64, width*width)
	r.gradient, r.before = make([]float64, width), make([]float64, width)
	return r
}

// Start implements [Signals].
func (t *together) Start() {
	mean, variance := t.start()
	t.below.reset(mean, variance, t.p)
	copy(t.mean, t.h)
	for j, c := range t.c {
		t.precision[j], t.shift[j] = 1/c, t.h[j]/c
	}
	for i, v := range t.spread {
		clear(v)
		if l := t.list[i]; i == 0 && v != nil {
			for j := range v {
				for a, w := range l.Weights[j%l.Rows*l.Cols : (j%l.Rows+1)*l.Cols] {
					v[j] += w * w * t.c[j/l.Rows*l.Cols+a]
				}
			}
		}
	}
	t.inner.Start()
}

// Update implements [Signals].
func (t *together) Update(x, c, lambda, sigma []float64, delta float64) error {
	t.begin(x, c, lambda, sigma, delta)
	parallel.Run(t.p, t.threads, t.signal)
	if err := t.inner.Update(t.newH, t.newC, t.lambda, t.sigma, delta); err != nil {
		return err
	}
	copy(t.h, t.newH)
	copy(t.c, t.newC)
	for j := range t.h {
		t.adoptSite(j)
	}
	return nil
}

// update is the posterior of signal k, and the fields on its latents.
func (t *together) update(k int) {
	r := t.rooms.Get()
	defer t.rooms.Put(r)
	for i := range r.weight {
		r.weight[i] = 1 / (t.fieldVar[k*t.n+i] + t.slack) // 0 where nothing was measured
	}
	misfit := t.misfit(k, r)
	r.differentiate(t.list)
	t.linearise(k, r)
	misfit = t.step(k, r, misfit)
	t.answer(k, r)
	t.widen(k, r)
	for j := range t.width {
		t.ask(k*t.width+j, r.P[j*t.width+j])
	}
	t.score(k, r, misfit)
}

// misfit is -log of the latents' density at m, and sets what the layers make of that, with slopes:
//
//	½ Σ D (λ - f(m))² + ½ Σ tm² - Σ rm.
func (t *together) misfit(k int, r *room) (total float64) {
	h := t.mean[k*t.width : (k+1)*t.width]
	for j, v := range h {
		total += v * (0.5*t.precision[k*t.width+j]*v - t.shift[k*t.width+j])
	}
	for i, x := range t.forward(k, r, h) {
		if w := r.weight[i]; w > 0 {
			d := t.fieldX[k*t.n+i] - x
			total += 0.5 * w * d * d
		}
	}
	return total
}

// forward is what the layers make of latents, with slopes.
func (t *together) forward(k int, r *room, h []float64) (x []float64) {
	for i, l := range t.list {
		u := r.slope[i]
		if clear(u); l.Bias != nil {
			copy(u, l.Bias)
		}
		f := blas64.General{Rows: l.Rows, Cols: l.Cols, Stride: l.Cols, Data: l.Weights}
		blas64.Gemv(blas.NoTrans, 1, f, vectorOf(h), 1, vectorOf(u))
		h = r.value[i]
		spread := t.spread[i]
		for j, v := range u {
			if spread == nil {
				h[j], u[j] = l.Activation.Of(v), l.Activation.Slope(v)
			} else {
				h[j], u[j] = l.Activation.Over(v, spread[k*l.Rows+j])
			}
		}
	}
	return h
}

// differentiate sets the slopes of every layer by the latents.
func (r *room) differentiate(list []prior.Layer) {
	for i, l := range list {
		f, j := dense.Of(l.Weights, l.Rows, l.Cols), r.jacobian[i]
		if i == 0 {
			copy(j.Data, l.Weights)
		} else {
			clear(j.Data)
			dense.AddProduct(j, 1, f, r.jacobian[i-1], dense.All, 1)
		}
		for row, slope := range r.slope[i] {
			floats.Scale(slope, j.Row(row))
		}
	}
}

// last are the slopes of the signals, J.
func (r *room) last() dense.Matrix { return r.jacobian[len(r.jacobian)-1] }

// linearise sets P, and its factor, and the gradient times P: the step.
func (t *together) linearise(k int, r *room) {
	from, to := k*t.width, (k+1)*t.width
	for j := range r.gradient {
		r.gradient[j] = t.shift[from+j] - t.precision[from+j]*t.mean[from+j]
	}
	x := r.value[len(t.list)-1]
	for i, w := range r.weight {
		row, scaled, root := r.last().Row(i), r.scaled.Row(i), math.Sqrt(w)
		if w > 0 {
			floats.AddScaled(r.gradient, w*(t.fieldX[k*t.n+i]-x[i]), row)
		}
		floats.ScaleTo(scaled, root, row)
	}
	clear(r.factor)
	gram := dense.Of(r.factor, t.width, t.width)
	dense.AddProduct(gram, 1, r.scaled.T(), r.scaled, dense.Lower, 1)
	for j, p := range t.precision[from:to] {
		r.factor[j*t.width+j] += p
	}
	cholesky.Factor(r.factor, t.width) // t > 0
	cholesky.Inverse(r.P, r.factor, t.width)
	cholesky.Solve(r.factor, r.gradient)
}

// mostHalvings is how often a step is halved that makes the misfit worse. A fraction of 2⁻⁶ is below what the next iteration changes of the fields.
const mostHalvings = 6

// step moves m, and returns the misfit there.
func (t *together) step(k int, r *room, misfit float64) (next float64) {
	m := t.mean[k*t.width : (k+1)*t.width]
	copy(r.before, m)
	part := 1.0
	for range mostHalvings {
		floats.AddScaledTo(m, r.before, part, r.gradient)
		if next = t.misfit(k, r); next <= misfit {
			break
		}
		part *= 0.5
	}
	return next
}

// answer sets x̂ and C.
func (t *together) answer(k int, r *room) {
	clear(r.scaled.Data)
	dense.AddProduct(r.scaled, 1, r.last(), dense.Of(r.P, t.width, t.width), dense.All, 1)
	for i, x := range r.value[len(t.list)-1] {
		entry, variance := k*t.n+i, floats.Dot(r.scaled.Row(i), r.last().Row(i))
		near := t.slack * r.weight[i]
		t.x[entry], t.xVar[entry] = x, t.slack+variance
		if near > 0 {
			t.x[entry] += near * (t.fieldX[entry] - x)
			t.xVar[entry] = near*t.fieldVar[entry] + (1-near)*(1-near)*variance
		}
	}
}

// widen sets how far the input of every activation with kinks is known: diag FPFᵀ, F by the latents.
func (t *together) widen(k int, r *room) {
	p := dense.Of(r.P, t.width, t.width)
	for i, l := range t.list {
		if t.spread[i] == nil {
			continue
		}
		inputs := dense.Of(l.Weights, l.Rows, l.Cols)
		if i > 0 {
			product := dense.New(l.Rows, t.width)
			dense.AddProduct(product, 1, inputs, r.jacobian[i-1], dense.All, 1)
			inputs = product
		}
		moved := dense.New(l.Rows, t.width)
		dense.AddProduct(moved, 1, inputs, p, dense.All, 1)
		for j := range l.Rows {
			t.spread[i][k*l.Rows+j] = floats.Dot(moved.Row(j), inputs.Row(j))
		}
	}
}

// ask sets the field on latent j, of which the posterior has the variance p.
func (t *together) ask(j int, p float64) {
	own := 1/p - t.precision[j]
	if t.lambda[j], t.sigma[j] = 0, math.Inf(1); own > 0 {
		t.lambda[j], t.sigma[j] = (t.mean[j]/p-t.shift[j])/own, 1/own
	}
}

const (
	// A prior that says less than nothing of a latent, as a sparse one may of what is near zero, gets this part of the field's precision;
	leastSite = 1e-9

	// and one that knows it exactly, as zero, no more than this times that.
	mostSite = 1e9
)

// adoptSite takes what the prior says of latent j.
func (t *together) adoptSite(j int) {
	own := 1 / t.sigma[j]
	total := 1 / t.c[j]
	if own > 0 {
		total = min(max(total, (1+leastSite)*own), (1+mostSite)*own)
	}
	precision, shift := total-own, t.h[j]*total-t.lambda[j]*own
	t.precision[j] = precision + t.delta*(t.precision[j]-precision)
	t.shift[j] = shift + t.delta*(t.shift[j]-shift)
}

// score sets the evidence of signal k but for that of its latents' prior: with the fields' own Gaussians taken out of it,
//
//	-misfit + ½ log det 2πP + ½ Σ log ΣD - Σ_j log ∫ exp(rh - ½th² - (h-λ_h)²/2Σ_h) dh.
func (t *together) score(k int, r *room, misfit float64) {
	total := -misfit - 0.5*cholesky.LogDet(r.factor, t.width)
	for _, w := range r.weight {
		if w > 0 {
			total += 0.5 * math.Log1p(-t.slack*w)
		}
	}
	for j := k * t.width; j < (k+1)*t.width; j++ {
		own := 1 / t.sigma[j]
		precision, shift := t.precision[j]+own, t.shift[j]+t.lambda[j]*own
		total -= 0.5 * (shift*shift/precision - math.Log(precision) - t.lambda[j]*t.lambda[j]*own)
	}
	t.evidence[k] = total
}

// LogNorm implements [Signals].
func (t *together) LogNorm() float64 { return floats.Sum(t.evidence) + t.inner.LogNorm() }

// Kept implements [Signals].
func (t *together) Kept() [][]float64 {
	kept := [][]float64{t.h, t.c, t.lambda, t.sigma, t.mean, t.precision, t.shift}
	for _, v := range t.spread {
		if v != nil {
			kept = append(kept, v)
		}
	}
	return append(kept, t.inner.Kept()...)
}

// Linear implements [Signals].
func (t *together) Linear() [][]float64 {
	return append([][]float64{t.h, t.mean}, t.inner.Linear()...)
}

func (t *together) tangent(k int) Tangent {
	r := t.rooms.Get()
	defer t.rooms.Put(r)
	h := t.mean[k*t.width : (k+1)*t.width]
	x := slices.Clone(t.forward(k, r, h))
	r.differentiate(t.list)
	found := Tangent{X: x, Precision: t.precision[k*t.width : (k+1)*t.width]}
	for i := range t.n {
		found.J = append(found.J, r.last().Row(i)...)
	}
	for j, m := range h {
		found.Slope = append(found.Slope, t.shift[k*t.width+j]-found.Precision[j]*m)
	}
	return found
}

func (t *together) at(k int, step []float64, part float64, x []float64) {
	r := t.rooms.Get()
	defer t.rooms.Put(r)
	h := slices.Clone(t.mean[k*t.width : (k+1)*t.width])
	floats.AddScaled(h, part, step)
	copy(x, t.forward(k, r, h))
}

func (t *together) move(k int, step []float64, part float64) {
	floats.AddScaled(t.mean[k*t.width:(k+1)*t.width], part, step)
	floats.AddScaled(t.h[k*t.width:(k+1)*t.width], part, step)
}
