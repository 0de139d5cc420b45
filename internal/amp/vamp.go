package amp

import (
	"context"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
)

// vamp is vector AMP for generalised linear models (P. Schniter, S. Rangan, A. K.
// Fletcher, "Vector approximate message passing for the generalized linear model", 2016)
// with the channel as its output side: cal-VAMP. It needs no independent entries of W, only
// that its singular vectors are as good as random.
//
// It works with W̃, the matrix with its rows scaled to norm 1, on z = W̃x, whose readings have
// noise of variance Δ/n² at a row of norm n; channels see z and its variance in the units
// of W. Three estimators exchange Gaussian beliefs, with one precision a signal:
// the prior N(x; r1, 1/γ1) → x̂, C, the channel N(z; p1, 1/τ1) → ŝ, g, and between them the
// linear equations N(x; r2, 1/γ2), N(z; p2, 1/τ2) (see [lmmse]). What one returns
// goes on without what it was given.
//
// A reading that is missing sends no belief, nor does that of a sensor that is more likely broken
// than not: averages are over the others. One in doubt sends what its channel says, which is
// less. Precisions shared by all signals would stall.
type vamp struct {
	*State
	linear linearHalf
	lmmse  *lmmse // what it is given and finds
	delta  float64
	strides

	// What the prior and the channel are given in the next iteration.
	r1, p1           []float64 // P×N; M×P of W̃
	gamma1, tau1     []float64 // P
	logGamma, logTau []float64 // P, their logarithms
	given            []float64 // P, γ1 of this iteration; 0 in the first

	next [][]float64 // r1, p1, log γ1 and log τ1 before damping: of the first two in the place of the linear means

	r2, gamma2 []float64 // P×N, P; the linear half may leave its answer in place of r2
	rest       []float64 // P, 1-α: r2 = λ + (x̂-λ)/(1-α)
	square     []float64 // P, ‖λ-r2‖²
	p2, tau2   []float64 // M×P, P
	narrowed   []float64 // M×P, β of every reading
	newX, newC []float64 // P×N; after the prior's part x̂ and C of the iteration before, as is λ in field
	field      []float64 // P×N
	taken      bool      // they are
	off        []float64 // P, how far the linear mean is from x̂

	inputs, readings func()    // the prior's and the channel's part
	asked, found     []float64 // P×N, what the prior was given, and its answer, as the linear half has them

	outputs, signal func(i int)
	blocks          parallel.Pool[channel.Block]
}

const (
	// Bounds of what a denoiser keeps of a variance, so that no precision is negative.
	leastKept, mostKept = 1e-9, 1 - 1e-9
	leastRead           = 1e-12

	// Bounds of precisions, in units of one over the signals' own variance. With
	// less room above, variances would be wrong where there is no noise to speak of.
	leastPrecision, mostPrecision = 1e-11, 1e22
)

func newVAMP(s *State, half linearHalf) *vamp {
	l := half.common()
	v := &vamp{State: s, linear: half, lmmse: l, r2: l.r, p2: l.q, gamma2: l.gamma, tau2: l.tau, narrowed: l.work}
	v.r1, v.p1 = make([]float64, s.P*s.N), make([]float64, len(s.Y))
	for _, a := range []*[]float64{&v.gamma1, &v.tau1, &v.logGamma, &v.logTau, &v.given, &v.rest, &v.square, &v.off} {
		*a = make([]float64, s.P)
	}
	v.inputs, v.readings, v.asked, v.found = v.input, v.output, s.Lambda, s.X
	v.outputs, v.signal = v.outputChunk, v.denoise
	s.keep(v.p1, v.gamma1, v.tau1, v.logGamma, v.logTau, v.given, v.off)
	s.own = v
	v.next = [][]float64{l.change, l.z, make([]float64, s.P), make([]float64, s.P)}
	s.linear = append(s.linear, v.r1, v.p1)
	s.turned.entries, s.turned.readings = v.r1, v.p1
	return v
}

// parts are what one iteration hands to the next.
func (v *vamp) parts() [][]float64 { return [][]float64{v.r1, v.p1, v.logGamma, v.logTau} }

// sweepsOver implements [Iteration]: there are none.
func (v *vamp) sweepsOver(operator.Operator) (s operator.Sweeps, err error) { return s, nil }

func (v *vamp) use(operator.Sweeps) {}

// prepare implements [Iteration]: the linear half is, when the first run begins.
func (v *vamp) prepare(ctx context.Context) error {
	return v.linear.prepare(ctx)
}

// Step implements [Iteration].
func (v *vamp) Step(delta float64) error {
	v.delta = delta
	v.taken = false
	v.steps++
	if v.fresh {
		if err := v.start(); err != nil {
			return err
		}
		v.fresh, v.steps = false, 1
	} else {
		copy(v.given, v.gamma1)
		if v.newX == nil {
			for _, a := range []*[]float64{&v.newX, &v.newC, &v.field} {
				*a = make([]float64, len(v.X))
			}
		}
		v.inputs()
	}
	v.fieldPull, v.fieldTurn = v.nextPull, v.nextTurn
	v.readings()
	if err := v.combine(); err != nil {
		return err
	}
	v.goOn()
	if !AllFinite(v.SVar) || !AllFinite(v.r1) || !AllFinite(v.p1) {
		v.Moved[0] = math.NaN() // seen by the caller as a step to take back
	}
	return nil
}

// start is the first iteration's first part: nothing is known beyond the prior.
func (v *vamp) start() error {
	v.linear.begin()
	v.mixing = nil // with the plain steps that an earlier sample had still to take
	if err := v.lmmse.forward(v.p1, v.X); err != nil {
		return err
	}
	copy(v.Lambda, v.X) // as λ is where its variance is infinite
	copy(v.r2, v.X)
	for k := range v.P {
		x, c := v.X[k*v.N:(k+1)*v.N], sum(v.C[k*v.N:(k+1)*v.N])
		v.SumC[k], v.Norm[k] = c, math.Sqrt(cholesky.Dot(x, x))
		v.Moved[k], v.Along[k], v.given[k], v.rest[k], v.lmmse.moved[k] = 0, 0, 0, 1, 1
		v.gamma2[k] = v.precision(float64(v.N) / c)
		v.tau1[k] = v.gamma2[k]
	}
	return nil
}

// precision keeps a precision within bounds.
func (v *vamp) precision(p float64) float64 {
	unit := 1 / v.model.Prior.Variance()
	return min(max(p, leastPrecision*unit), mostPrecision*unit)
}

// input is the prior's part.
func (v *vamp) input() {
	parallel.Run(v.P/v.columns, v.Threads, v.signal)
	v.taken = true
	v.sumPulls()
}

// denoise is the prior's part for a signal, with all its columns.
func (v *vamp) denoise(signal int) {
	first, after := signal*v.columns, (signal+1)*v.columns
	from, to := first*v.N, after*v.N
	copy(v.field[from:to], v.Lambda[from:to])
	copy(v.Lambda[from:to], v.r1[from:to])
	v.setSigma(signal)
	v.posterior(v.newX[from:to], v.newC[from:to], from)
	for k := first; k < after; k++ {
		v.extrinsic(k)
	}
}

// setSigma makes the variances of a signal's fields those that its columns were given.
func (v *vamp) setSigma(signal int) {
	for k := signal * v.columns; k < (signal+1)*v.columns; k++ {
		sigma := 1 / v.given[k]
		for i := k * v.N; i < (k+1)*v.N; i++ {
			v.Sigma[i] = sigma
		}
	}
}

// takeBack implements [undoing]: what the prior was given and said before needs no copies.
func (v *vamp) takeBack() {
	if !v.taken {
		return
	}
	v.taken = false
	copy(v.r1, v.Lambda)
	copy(v.Lambda, v.field)
	copy(v.X, v.newX)
	copy(v.C, v.newC)
	for signal := range v.P / v.columns {
		v.setSigma(signal)
	}
}

// forget implements [undoing].
func (v *vamp) forget() (bytes int) {
	bytes = 3 * 8 * len(v.newX)
	v.newX, v.newC, v.field, v.taken = nil, nil, nil, false
	return bytes
}

// extrinsic is what the posterior of column k says beyond what it was given: with α = γ1 mean C,
//
//	γ2 = γ1(1-α)/α,   r2 = r1 + (x̂-r1)/(1-α).
func (v *vamp) extrinsic(k int) {
	from, to := k*v.N, (k+1)*v.N
	x, c, r1, r2 := v.X[from:to], v.C[from:to], v.r1[from:to], v.r2[from:to]
	newX, newC, gamma := v.newX[from:to], v.newC[from:to], v.given[k]
	alpha := min(max(gamma*sum(newC)/float64(v.N), leastKept), mostKept)
	v.gamma2[k] = v.precision(gamma * (1 - alpha) / alpha)
	rest := 1 - alpha
	var moved, along, norm, square float64
	for i, now := range newX {
		step := now - x[i]
		moved += step * step
		along += step * now
		norm += now * now
		r2[i] = r1[i] + (now-r1[i])/rest
		away := r1[i] - r2[i]
		square += away * away
	}
	v.rest[k], v.square[k] = rest, square
	v.Norm[k], v.SumC[k] = math.Sqrt(norm), sum(newC)
	swap(x, newX)
	swap(c, newC)
	v.Moved[k] = math.Sqrt(moved) / (1 - v.delta)
	v.lmmse.moved[k] = math.Sqrt(moved / max(v.SumC[k], math.SmallestNonzeroFloat64))
	v.Along[k] = along / max(v.Norm[k]*(1-v.delta), math.SmallestNonzeroFloat64)
}

// sensorChunk is how many sensors a goroutine takes at a time.
const sensorChunk = 64

// output is the channel's part: with β the mean contraction of z's variance,
//
//	τ2 = τ1(1-β)/β,   p2 = p1 + Vg/(1-β),
//
// and where a reading has the weight w, w τ2 (p2 - p1 - Vg) = g, which makes Wᵀg the
// precision-weighted change of the signals, as at a fixed point of AMP.
func (v *vamp) output() {
	parallel.Run((v.M+sensorChunk-1)/sensorChunk, v.Threads, v.outputs)
	for k := range v.P {
		weight, kept := 0.0, 0.0
		for j := k; j < len(v.Y); j += v.P {
			v.lmmse.weight[j] = v.weight(j)
			weight += v.lmmse.weight[j]
			kept += v.lmmse.weight[j] * v.narrowed[j]
		}
		beta := min(max(kept/max(weight, math.SmallestNonzeroFloat64), leastRead), 1-leastRead)
		v.tau2[k] = v.precision(v.tau1[k] * (1 - beta) / beta)
		for j := k; j < len(v.Y); j += v.P {
			v.p2[j] = v.p1[j]
			if w := v.lmmse.weight[j]; w > 0 {
				g := v.lmmse.norms[j/v.P] * v.G[j] // of W̃
				v.p2[j] += g / v.tau1[k] * (1 + beta/((1-beta)*w))
			}
		}
	}
}

// weight is whether reading j counts. Weights between would be beliefs of several precisions, of
// which the one that is left for the channel is no average: it can be negative.
func (v *vamp) weight(j int) float64 {
	if v.OutOfOrder(v.SensorOf(j)) || v.lmmse.norms[j/v.P] == 0 || math.IsNaN(v.Y[j]) {
		return 0
	}
	return 1
}

func (v *vamp) outputChunk(chunk int) {
	if v.interrupted() {
		return
	}
	from, to := chunk*sensorChunk, min((chunk+1)*sensorChunk, v.M)
	b := v.blocks.Get()
	defer v.blocks.Put(b)
	*b = v.block(from, to)
	first := v.reading(from)
	for i := range b.Omega {
		j := first + i
		norm := v.lmmse.norms[j/v.P]
		b.Omega[i] = norm * v.p1[j]
		v.V[j] = norm * norm / v.tau1[j%v.P]
	}
	v.seen(from, len(b.Omega))
	v.model.Channel.Output(b)
	v.temper(b)
	narrowed := v.narrowed[first:v.reading(to)]
	channel.ContractionOf(v.model.Channel, narrowed, b)
	v.contract(narrowed, from)
}

// combine is the linear part, and damping: with F what z determines of x (see [lmmse]),
// A = F/N, b = F/Σw and A' = 1-A, b' = 1-b,
//
//	r1 = r2 + (x-r2)/A,   γ1 = γ2A/A',   p1 = z - (b/b')(p2-z),   τ1 = τ2b'/b.
func (v *vamp) combine() error {
	if err := v.linear.solve(); err != nil {
		return err
	}
	for k := range v.P {
		v.extract(k)
	}
	return nil
}

// extract makes the linear mean and variance of signal k the next beliefs.
func (v *vamp) extract(k int) {
	l := v.lmmse
	determined := max(float64(v.N)-l.free[k], leastKept)
	a, aRest := determined/float64(v.N), l.free[k]/float64(v.N)
	b, bRest := determined/l.counted[k], l.left[k]/l.counted[k]
	if !(l.counted[k] > 0) {
		b, bRest = leastKept, 1
	}
	off := 0.0
	r1, p1 := v.next[0], v.next[1]
	for i := k * v.N; i < (k+1)*v.N; i++ {
		r2, change := v.asked[i]+(v.found[i]-v.asked[i])/v.rest[k], l.change[i]
		r1[i] = r2 + change/a
		miss := r2 + change - v.found[i]
		off += miss * miss
	}
	v.off[k] = math.Sqrt(off) + l.missed[k]
	for j := k; j < len(p1); j += v.P {
		p1[j] = l.z[j] - b/bRest*l.h[j]
	}
	v.next[2][k] = math.Log(v.precision(v.gamma2[k] * a / aRest))
	v.next[3][k] = math.Log(v.precision(v.tau2[k] * bRest / b))
}

const (
	// A run that goes on after mixingAfter iterations is helped by its earlier steps, once
	// signals change by less than mixingBelow. Sooner, it would be caught at fixed points
	// that the iteration itself leaves again.
	mixingAfter = 100
	mixingBelow = 0.03
)

// goOn moves what the next iteration is given towards what this one says.
func (v *vamp) goOn() {
	v.move(v.parts(), v.next, 1-v.delta, v.change(), v.product)
	for k := range v.P {
		v.gamma1[k], v.tau1[k] = v.precision(math.Exp(v.logGamma[k])), v.precision(math.Exp(v.logTau[k]))
	}
}

// change is the largest of a signal in the latest step.
func (s *ledger) change() (largest float64) {
	for k, moved := range s.Moved {
		largest = max(largest, moved/max(s.Norm[k], math.SmallestNonzeroFloat64))
	}
	return largest
}

// strides are the steps of what is exchanged: all the way in the first, and otherwise linear, precisions in their logarithm.
type strides struct {
	steps  int       // since the start
	mixes  bool      // where damping need not be as it was asked for
	mixing *anderson // made when it is needed
}

// move moves parts towards next, where signals changed by so much.
func (s *strides) move(parts, next [][]float64, step, change float64, product func(a, b [][]float64) float64) {
	if s.mixes && s.steps > mixingAfter && change < mixingBelow {
		if s.mixing == nil {
			s.mixing = newAnderson(parts...)
		}
		s.mixing.step(next, step, product)
		return
	}
	if s.mixing != nil {
		s.mixing.forget()
	}
	for i, part := range parts {
		if s.steps == 1 { // to the bit: what was there before is another sample's
			copy(part, next[i])
		}
		for j, to := range next[i] {
			part[j] += step * (to - part[j])
		}
	}
}

// product is that of two moves of what the next iteration is given, in units of their
// variances; a move of a precision counts as one of everything that has it.
func (v *vamp) product(a, b [][]float64) float64 {
	total := 0.0
	for k := range v.P {
		total += v.gamma1[k] * cholesky.Dot(a[0][k*v.N:(k+1)*v.N], b[0][k*v.N:(k+1)*v.N])
		total += float64(v.N)*a[2][k]*b[2][k] + float64(v.Rows())*a[3][k]*b[3][k]
	}
	for j, x := range a[1] {
		total += v.tau1[j%v.P] * x * b[1][j]
	}
	return total
}

// LogEvidence implements [Iteration]: the free energy of which fixed points are
// stationary,
//
//	log Z_x + log Z_z + log N(p2; W̃r2, K/γ2 + 1/(τ2w))
//	- Σ log N(r1; r2, 1/γ1 + 1/γ2) - Σ log N(p1; p2, 1/τ1 + 1/(τ2w)).
func (v *vamp) LogEvidence() float64 {
	total := sum(v.LogZ)
	if v.given[0] > 0 {
		total += v.logNorm()
	}
	for k := range v.P {
		total += v.evidenceSignal(k)
	}
	return total
}

func (v *vamp) evidenceSignal(k int) float64 {
	return v.evidenceOf(k, func(j int) (variance, distance float64) {
		norm := v.lmmse.norms[j/v.P]
		return v.V[j] / (norm * norm), v.Omega[j]/norm - v.p2[j]
	})
}

// evidenceOf takes what the channel was given of z at j, 1/τ1 and p1-p2.
func (v *vamp) evidenceOf(k int, field func(j int) (variance, distance float64)) float64 {
	gamma1, gamma2, tau2, l := v.given[k], v.gamma2[k], v.tau2[k], v.lmmse
	total := 0.5 * (l.logDet[k] - tau2*l.quadratics[k])
	if gamma1 > 0 {
		total += 0.5 * (float64(v.N)*math.Log1p(gamma1/gamma2) + v.square[k]*(gamma1/(1+gamma1/gamma2)))
	}
	for j := k; j < len(v.Y); j += v.P {
		if w := l.weight[j]; w > 0 {
			variance, d := field(j)
			tau := w * tau2
			total += 0.5 * (math.Log1p(tau*variance) - math.Log(w) + d*d*(tau/(1+tau*variance)))
		}
	}
	return total
}

// scaleSums implements [Iteration].
func (v *vamp) scaleSums(quadratic, volume float64) (q, k float64) {
	c := v.model.Channel.(channel.Calibrating)
	return c.ScaleQuadratic(quadratic, &v.sensors), v.addVolume(volume)
}

// MeanV implements [Iteration].
func (v *vamp) MeanV() (mean, off float64) { return Mean(v.V), 0 }

func swap(a, b []float64) {
	for i, x := range a {
		a[i], b[i] = b[i], x
	}
}
