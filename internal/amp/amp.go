// Package amp is the iteration that offline and online cal-AMP share: P signals
// at once, each with its own variances, and sensors whose posterior may already
// hold what earlier samples taught (paper, "Cal-AMP as a special case of GAMP"
// and Algorithm 4).
package amp

import (
	"math"
	"sync"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Config is what an [Engine] iterates on.
type Config struct {
	W         operator.Operator
	Prior     prior.Prior
	Channel   channel.Channel
	P         int  // signals iterated together
	Scalar    bool // use the mean square of W in place of its squared entries
	Threads   int
	Precision Precision // of the entries of W

	ScaleLearned bool // the prior takes its scale from the signals, see ScaleSD
	// Centred, when set, is W without its means, which the sweeps then use, in
	// double precision. It needs exact variances.
	Centred *operator.Centred
}

// Engine is the state of the iteration, allocated once. Signals' arrays are P×N
// (signal by signal), readings' arrays M×P (sensor by sensor), both row-major.
type Engine struct {
	Config
	M, N int

	Y []float64 // M×P readings, NaN where missing; set by the caller

	X, C          []float64 // P×N posterior mean, and variance, damped
	centre        []float64 // P×N posterior mean, damped: what fields are offsets from
	Lambda, Sigma []float64 // P×N the field they were computed from
	Omega, V      []float64 // M×P mean and variance of z before its reading
	G, DG         []float64 // M×P output functions, damped
	Tau, B, Count []float64 // M sufficient statistics of s
	S, SVar, LogZ []float64 // M posterior of s, log Z_out
	Broken        []float64 // M probability that a sensor is broken

	// What the sensors' posterior holds from earlier samples, and the sums Q+S
	// and κ of the scale's evidence over them; nil and 0 offline. The scale
	// step rescales PastB and PastQuadratic: give it a copy.
	PastTau, PastB, PastCount []float64
	PastQuadratic, PastVolume float64

	// The Gaussian field that earlier batches of measurements left on the
	// signals (P×N each): exp(-PastPrecision x²/2 + PastField x) times the
	// prior; nil when there were none. See online.go.
	PastPrecision, PastField []float64
	totalLambda, totalSigma  []float64 // the past field and the present one together

	// Change of each signal in the last step, before damping: ‖x̂_new - x̂‖ and
	// ‖x̂_new‖, and the sum of its posterior variances. Along is the part of
	// Moved that only changes the signal's scale.
	Moved, Norm, SumC, Along []float64

	// Sums of the scale step (see ScaleStep), from the last iteration.
	fieldPull float64     // S  = Σ x̂(λ-x̂)/Σ for the x̂ that went into the last sweep
	nextPull  float64     // the same for the current x̂
	saved     [][]float64 // see Save
	savedPull [2]float64

	scalarD    []float64 // M×P, ∂g before damping
	r, h       []float64
	newX, newC []float64
	sumC       []float64 // P, for scalar variances
	delta      float64
	border     *border        // of a centred W, or nil
	sweep      operator.Sweep // one of those of precision
	precision
	Err error // of the last sweep, which then left the signals as they were

	// Made once, so that an iteration allocates nothing.
	rows   operator.RowFunc
	signal func(k int)
	list   [][]float64 // see state
	blocks sync.Pool   // of *channel.Block
}

// New allocates an engine; Y is zero and the state is that of [Engine.Reset]. The
// error is that of a W without the sweeps that this takes.
func New(c Config) (*Engine, error) {
	m, n := c.W.Dims()
	q := c.P
	if c.Scalar {
		q = 0
	}
	pn, mp := c.P*n, m*c.P
	e := &Engine{Config: c, M: m, N: n}
	e.round()
	if err := e.prepareSweeps(q); err != nil {
		return nil, err
	}
	for _, s := range []*[]float64{&e.X, &e.C, &e.centre, &e.Lambda, &e.Sigma, &e.newX, &e.newC, &e.r} {
		*s = make([]float64, pn)
	}
	for _, s := range []*[]float64{&e.Y, &e.Omega, &e.V, &e.G, &e.DG} {
		*s = make([]float64, mp)
	}
	for _, s := range []*[]float64{&e.Tau, &e.B, &e.Count, &e.S, &e.SVar, &e.LogZ, &e.Broken} {
		*s = make([]float64, m)
	}
	for _, s := range []*[]float64{&e.Moved, &e.Norm, &e.SumC, &e.Along, &e.sumC} {
		*s = make([]float64, c.P)
	}
	e.h = make([]float64, q*n)
	if c.Centred != nil {
		e.border = newBorder(e, c.Centred)
	}
	if c.Scalar {
		e.scalarD = make([]float64, mp)
	}
	e.rows, e.signal = e.outputRows, e.inputSignal
	e.blocks.New = func() any { return new(channel.Block) }
	e.list = e.state()
	e.Reset()
	return e, nil
}

// Reset starts over: x̂ and C are those of the prior (and of what earlier
// batches of measurements said of the signals), g = 0.
func (e *Engine) Reset() {
	mean, variance := e.Prior.Mean(), e.Prior.Variance()
	for i := range e.X {
		e.X[i], e.C[i] = mean, variance
	}
	if e.PastField != nil {
		e.startFromPast()
	}
	for i := range e.Sigma {
		e.Sigma[i] = math.Inf(1)
	}
	if e.border != nil {
		e.border.reset(e)
	}
	clear(e.G)
	clear(e.DG)
	clear(e.Broken)
	e.fieldPull, e.nextPull = 0, 0
}

// Step does one iteration, keeping the fraction delta of the old g, ∂g, x̂, C.
func (e *Engine) Step(delta float64) {
	e.delta = delta
	e.fieldPull = e.nextPull
	c := e.C
	if e.Scalar {
		c = nil
		for k := range e.P {
			e.sumC[k] = e.W.MeanSquare() * sum(e.C[k*e.N:(k+1)*e.N])
		}
	}
	if e.border != nil {
		e.Err = e.border.run(e)
	} else {
		e.Err = e.sweep.Run(e.r, e.h, e.X, c, e.rows)
	}
	if e.Err == nil {
		e.input()
	}
}

// outputRows is the part of an iteration between the two halves of the sweep,
// for a block of sensors: ω, V, the channel's output functions, damping.
func (e *Engine) outputRows(first int, z, v, g, d []float64) {
	p := e.P
	rows := len(z) / p
	from, to := first*p, (first+rows)*p
	omega, variance := e.Omega[from:to], e.V[from:to]
	oldG, oldD := e.G[from:to], e.DG[from:to]
	if e.Scalar {
		for j := range variance {
			variance[j] = e.sumC[j%p]
		}
		d = e.scalarD[from:to] // the sweep has no quadratic columns
	} else {
		copy(variance, v)
	}
	for j := range omega {
		omega[j] = z[j] - variance[j]*oldG[j]
	}
	b := e.blocks.Get().(*channel.Block)
	*b = channel.Block{
		First: first, P: p,
		Y: e.Y[from:to], Omega: omega, V: variance,
		G: g, DG: d,
		Tau: e.Tau[first : first+rows], B: e.B[first : first+rows], Count: e.Count[first : first+rows],
		S: e.S[first : first+rows], SVar: e.SVar[first : first+rows],
		LogZ: e.LogZ[first : first+rows], Broken: e.Broken[first : first+rows],
	}
	if e.PastTau != nil {
		b.PastTau, b.PastB, b.PastCount = e.PastTau[first:first+rows], e.PastB[first:first+rows], e.PastCount[first:first+rows]
	}
	e.Channel.Output(b)
	e.blocks.Put(b)
	if e.delta > 0 {
		for j := range g {
			g[j] += e.delta * (oldG[j] - g[j])
			d[j] += e.delta * (oldD[j] - d[j])
		}
	}
	copy(oldG, g)
	copy(oldD, d)
}

// input turns the backward products into the fields, and those into the new
// posterior of the signals.
func (e *Engine) input() {
	if e.Scalar {
		e.scalarPrecision()
	} else {
		for i, h := range e.h {
			// Where sensors are in doubt the evidence may be convex: no field has
			// such a curvature, and the former one serves.
			if !(h > 0) {
				e.Sigma[i] = -1 / h // ±Inf where nothing was measured
			}
		}
	}
	parallel.Run(e.P, e.Threads, e.signal)
	e.nextPull = 0
	for k := range e.P {
		e.nextPull += e.pull(k)
	}
}

// scalarPrecision sets Σ_k = -1/(w̄ Σ_µ ∂g_µk), the same for all entries.
func (e *Engine) scalarPrecision() {
	for k := range e.P {
		total := 0.0
		for mu := range e.M {
			total += e.DG[mu*e.P+k]
		}
		if total > 0 {
			continue // as in input
		}
		sigma := -1 / (e.W.MeanSquare() * total)
		for i := k * e.N; i < (k+1)*e.N; i++ {
			e.Sigma[i] = sigma
		}
	}
}

func (e *Engine) inputSignal(k int) {
	from, to := k*e.N, (k+1)*e.N
	x, c := e.X[from:to], e.C[from:to]
	centre := e.centre[from:to]
	lambda, sigma := e.Lambda[from:to], e.Sigma[from:to]
	newX, newC := e.newX[from:to], e.newC[from:to]
	for i, r := range e.r[from:to] {
		centre[i] = x[i] + e.delta*(centre[i]-x[i])
		if math.IsInf(sigma[i], 0) {
			sigma[i], lambda[i] = math.Inf(1), 0
			continue
		}
		lambda[i] = centre[i] + sigma[i]*r
	}
	if e.PastField != nil {
		e.posteriorWithPast(newX, newC, from)
	} else {
		e.Prior.Posterior(newX, newC, lambda, sigma)
	}
	var moved, along, norm, sumC float64
	for i, v := range newX {
		step := v - x[i]
		moved += step * step
		along += step * v
		norm += v * v
		sumC += newC[i]
		x[i] = v
		c[i] = newC[i] + e.delta*(c[i]-newC[i])
	}
	e.Moved[k], e.Norm[k], e.SumC[k] = math.Sqrt(moved)/(1-e.delta), math.Sqrt(norm), sumC
	e.Along[k] = along / max(e.Norm[k]*(1-e.delta), math.SmallestNonzeroFloat64)
}

// pull is Σ_i x̂(λ-x̂)/Σ of signal k: minus the derivative in c of the prior's
// part of the evidence when x̂ is multiplied by c.
func (e *Engine) pull(k int) float64 {
	total := 0.0
	for i := k * e.N; i < (k+1)*e.N; i++ {
		total += e.X[i] * ((e.Lambda[i] - e.X[i]) / e.Sigma[i])
	}
	return total
}

// LogEvidence is the Bethe approximation of log p(Y|W): minus the Bethe free
// energy of GAMP (Krzakala, Manoel, Tramel, Zdeborová, "Variational free
// energies for compressed sensing", 2014; Rangan et al. 2016), with the output
// part of this model,
//
//	Σ_µ [log Z_out,µ + ½ Σₖ V g²] + Σ_ik [log Z_in(λ, Σ) + (C + (x̂-λ)²)/2Σ].
//
// It is exact only in the large-size limit and at a fixed point.
func (e *Engine) LogEvidence() float64 {
	total := 0.0
	for mu := range e.M {
		total += e.LogZ[mu]
		for k := mu * e.P; k < (mu+1)*e.P; k++ {
			total += 0.5 * e.V[k] * e.G[k] * e.G[k]
		}
	}
	for i, x := range e.X {
		d := x - e.Lambda[i]
		total += 0.5 * ((e.C[i] + d*d) / e.Sigma[i])
	}
	if e.border != nil {
		total += e.border.logEvidence(e.P)
	}
	if p, ok := e.Prior.(interface {
		SumLogNorm(lambda, sigma []float64) float64
	}); ok {
		return total + p.SumLogNorm(e.Lambda, e.Sigma)
	}
	for i, l := range e.Lambda {
		total += e.Prior.LogNorm(l, e.Sigma[i])
	}
	return total
}

// Misfit compares the residuals with what the iteration expects of them,
// Σ g² / Σ -∂g over all readings: 1 when the model is right and W has
// independent entries, growing when the iteration is about to diverge.
func (e *Engine) Misfit() float64 {
	var square, slope float64
	for j, g := range e.G {
		square += g * g
		slope -= e.DG[j]
	}
	return square / slope
}

// Confidence compares the signals with the field that they were computed from,
// the mean of (C + (x̂-λ)²)/Σ over all entries: 1 when the model is right and W
// has independent entries, below where the posterior variances are too small.
func (e *Engine) Confidence() float64 {
	total, count := 0.0, 0.0
	for i, sigma := range e.Sigma {
		if !math.IsInf(sigma, 1) {
			d := e.X[i] - e.Lambda[i]
			total += (e.C[i] + d*d) / sigma
			count++
		}
	}
	return total / count
}

func sum(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total
}

// MeanV returns the mean variance of z; off is for full covariances.
func (e *Engine) MeanV() (v, off float64) { return sum(e.V) / float64(len(e.V)), 0 }

// state lists everything that an iteration changes and that the next one, or a
// reader of the result, uses.
func (e *Engine) state() [][]float64 {
	list := [][]float64{
		e.X, e.C, e.centre, e.Lambda, e.Sigma, e.Omega, e.V, e.G, e.DG,
		e.Tau, e.B, e.Count, e.S, e.SVar, e.LogZ, e.Broken, e.Norm, e.SumC,
	}
	if e.border != nil {
		list = append(list, e.border.state()...)
	}
	return list
}

// Save keeps the present state for [Engine.Restore].
func (e *Engine) Save() {
	e.saved = save(e.saved, e.list)
	e.savedPull = [2]float64{e.fieldPull, e.nextPull}
}

// Restore returns to the state of the latest [Engine.Save].
func (e *Engine) Restore() {
	restore(e.list, e.saved)
	e.fieldPull, e.nextPull = e.savedPull[0], e.savedPull[1]
}

func save(dst, src [][]float64) [][]float64 {
	if dst == nil {
		dst = make([][]float64, len(src))
	}
	for i, v := range src {
		dst[i] = append(dst[i][:0], v...)
	}
	return dst
}

func restore(dst, src [][]float64) {
	for i, v := range src {
		copy(dst[i], v)
	}
}
