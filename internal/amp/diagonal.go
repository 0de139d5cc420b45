package amp

import (
	"context"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// diagonal is the iteration with a variance for each entry of each signal (paper,
// "Cal-AMP as a special case of GAMP", with the diagonal ansatz).
type diagonal struct {
	*State
	sweeps operator.Sweeps
	delta  float64

	h          []float64 // (W²)ᵀ∂g, as the entries; empty with scalar variances
	newX, newC []float64 // as the entries

	// With scalar variances W² is its mean w̄: a signal's V is the same at all sensors.
	// With variances on demand both have the shape that demand knows, in most iterations.
	scalar    bool
	demand    *onDemand  // nil where every sweep is exact, or scalar
	precision *precision // nil where all are in double precision
	squares   []float64  // P, w̄ of the W of each signal
	sumC      []float64  // P, w̄ Σ C
	newDG     []float64  // M×P, the ∂g of a sweep without squares

	// Made once, so that an iteration allocates nothing.
	rows   operator.RowFunc
	signal func(k int)
	blocks parallel.Pool[channel.Block]
}

// newDiagonal is the iteration with scalar variances, or with those of demand; nil for
// exact ones throughout.
func newDiagonal(s *State, scalar bool, demand *onDemand) *diagonal {
	d := &diagonal{State: s, scalar: scalar, demand: demand}
	d.newX, d.newC = make([]float64, len(s.all.x)), make([]float64, len(s.all.x))
	if scalar {
		d.sumC, d.squares = make([]float64, s.P), operator.MeanSquares(s.W, s.P)
	} else {
		d.h = make([]float64, len(s.all.x))
	}
	if scalar || demand != nil {
		d.newDG = make([]float64, len(s.all.dg))
	}
	d.rows, d.signal = d.outputRows, d.inputSignal
	return d
}

// sweepsOver implements [Iteration].
func (d *diagonal) sweepsOver(w operator.Operator) (s operator.Sweeps, err error) {
	switch {
	case d.scalar:
		s.Linear, err = w.NewSweep(d.P, 0, d.Threads)
	case d.demand == nil:
		s.Exact, err = w.NewSweep(d.P, d.P, d.Threads)
	default:
		return operator.NewSweeps(w, d.P, d.Threads)
	}
	return s, err
}

// prepare implements [Iteration].
func (d *diagonal) prepare(context.Context) error {
	if d.scalar && operator.ChoiceOf(d.W) != nil {
		d.squares = operator.MeanSquares(d.W, d.P)
	}
	return nil
}

func (d *diagonal) use(s operator.Sweeps) { d.sweeps = s }

// exact reports whether the present sweep multiplies with the squares of W.
func (d *diagonal) exact() bool { return !d.scalar && !d.demand.spares() }

// Step implements [Iteration].
func (d *diagonal) Step(delta float64) error {
	d.delta = delta
	d.fieldPull, d.fieldTurn = d.nextPull, d.nextTurn
	for k := range d.sumC {
		d.sumC[k] = d.squares[k] * sum(d.C[k*d.N:(k+1)*d.N])
	}
	if d.demand != nil {
		d.demand.begin(d.State)
	}
	var err error
	if exact, linear, x := d.precision.sweepsOf(d.sweeps, d.all.x); d.exact() {
		err = exact.Run(d.all.r, d.h, x, d.all.c, d.rows)
	} else {
		err = linear.Run(d.all.r, nil, x, nil, d.rows)
	}
	if err != nil {
		return err
	}
	d.precision.end(d.all.r, d.all.x)
	if d.displaced != nil {
		d.displaced.pull(d.all.r, d.State)
	}
	return d.input()
}

// outputRows is the part of an iteration between the two halves of the sweep, for
// a block of rows: sensors, and further rows, whose channel reads zero without noise.
func (d *diagonal) outputRows(first int, z, v, g, dg []float64) {
	if d.interrupted() {
		return
	}
	rows := len(z) / d.P
	sensors := min(max(d.Rows()-first, 0), rows)
	d.precision.products(z, first*d.P)
	if len(v) == 0 { // the sweep has no quadratic columns
		from, to := first*d.P, (first+rows)*d.P
		v, dg = d.all.v[from:to], d.newDG[from:to]
		d.variances(v, from)
	}
	at := sensors * d.P
	if sensors > 0 {
		d.output(d.model.Channel, first*d.P/d.Each, z[:at], v[:at], g[:at], dg[:at])
	}
	if sensors < rows {
		d.output(exactZero{}, d.M+first+sensors-d.Rows(), z[at:], v[at:], g[at:], dg[at:])
	}
	d.precision.factors(g, first*d.P)
}

// variances sets V without the squares of W, for the readings from first on.
func (d *diagonal) variances(v []float64, first int) {
	if d.demand != nil {
		d.demand.variances(v, first)
		return
	}
	for j := range v {
		v[j] = d.sumC[j%d.P]
	}
}

// output is ω, V, the channel's output functions, and damping, for the sensors from first on, or further rows behind all of them.
func (d *diagonal) output(c channel.Channel, first int, z, v, g, dg []float64) {
	b := d.blocks.Get()
	*b = d.block(first, first+len(z)/d.readings(first))
	omega, variance, oldG, oldDG := b.Omega, d.all.v[d.reading(first):][:len(v)], b.G, b.DG
	copy(variance, v)
	for j := range omega {
		omega[j] = z[j] - variance[j]*oldG[j]
	}
	d.seen(first, len(omega))
	b.G, b.DG = g, dg
	c.Output(b)
	d.temper(b)
	d.blocks.Put(b)
	if d.delta > 0 {
		for j := range g {
			g[j] += d.delta * (oldG[j] - g[j])
			dg[j] += d.delta * (oldDG[j] - dg[j])
		}
	}
	copy(oldG, g)
	copy(oldDG, dg)
}

// input turns the backward products into the fields, and those into the new
// posterior of the signals.
func (d *diagonal) input() error {
	if d.scalar {
		d.scalarPrecision()
	}
	if d.demand != nil {
		d.demand.end(d.State, d.h)
	}
	for i, h := range d.h {
		// Where sensors are in doubt the evidence may be convex: no field has
		// such a curvature, and the former one serves.
		switch {
		case !(h > 0):
			d.all.sigma[i] = -1 / h // ±Inf where nothing was measured
		case d.columns > 1:
			d.all.sigma[i] = math.Inf(1) // a tilt is left, see fields
		}
	}
	if d.network != nil {
		if err := d.inputNetwork(); err != nil {
			return err
		}
	} else {
		parallel.Run(d.P/d.columns, d.Threads, d.signal)
	}
	d.inputFurther()
	d.sumPulls()
	return nil
}

// scalarPrecision sets Σ_k = -1/(w̄ Σ_µ ∂g_µk), the same for all entries.
func (d *diagonal) scalarPrecision() {
	for k := range d.P {
		total := 0.0
		for j := k; j < len(d.DG); j += d.P {
			total += d.DG[j]
		}
		if total > 0 {
			continue // as in input
		}
		sigma := -1 / (d.squares[k] * total)
		for i := k * d.N; i < (k+1)*d.N; i++ {
			d.Sigma[i] = sigma
		}
	}
}

// fields sets λ of the entries from … to. To complex signals of which phases are hardly known yet a
// field may say where to go without saying how far: then Σ is +Inf, and λ stands for λ/Σ.
func (d *diagonal) fields(from, to int) {
	a := &d.all
	x, centre := a.x[from:to], a.centre[from:to]
	lambda, sigma := a.lambda[from:to], a.sigma[from:to]
	for i, r := range a.r[from:to] {
		centre[i] = x[i] + d.delta*(centre[i]-x[i])
		if math.IsInf(sigma[i], 0) {
			sigma[i], lambda[i] = math.Inf(1), 0
			if d.columns > 1 {
				lambda[i] = r
			}
			continue
		}
		lambda[i] = centre[i] + sigma[i]*r
	}
}

// inputSignal is the input of signal k, with all its columns.
func (d *diagonal) inputSignal(k int) {
	from, to := k*d.columns*d.N, (k+1)*d.columns*d.N
	d.fields(from, to)
	d.posterior(d.newX[from:to], d.newC[from:to], from)
	d.takeUp(k, d.newX[from:to], d.newC[from:to], d.delta)
}

// takeUp makes newX and newC, of signal k with all its columns, its estimate, the variances damped, and says how far that has moved.
func (s *State) takeUp(k int, newX, newC []float64, delta float64) {
	from, to := k*s.columns*s.N, (k+1)*s.columns*s.N
	x, c := s.X[from:to], s.C[from:to]
	var moved, along, norm, sumC float64
	for i, v := range newX {
		step := v - x[i]
		moved += step * step
		along += step * v
		norm += v * v
		sumC += newC[i]
		x[i] = v
		c[i] = newC[i] + delta*(c[i]-newC[i])
	}
	columns := float64(s.columns)
	moved, along, norm, sumC = moved/columns, along/columns, norm/columns, sumC/columns
	for k := k * s.columns; k < to/s.N; k++ {
		s.Moved[k], s.Norm[k], s.SumC[k] = math.Sqrt(moved)/(1-delta), math.Sqrt(norm), sumC
		s.Along[k] = along / max(s.Norm[k]*(1-delta), math.SmallestNonzeroFloat64)
	}
}

// inputFurther is the same for the further entries, of which nothing is known
// beforehand. They are no signal's: its change does not count them.
func (d *diagonal) inputFurther() {
	from, to := d.P*d.N, len(d.all.x)
	d.fields(from, to)
	x, c := d.all.x[from:to], d.all.c[from:to]
	newX, newC := d.newX[from:to], d.newC[from:to]
	prior.Flat{}.Posterior(newX, newC, d.all.lambda[from:to], d.all.sigma[from:to])
	for i, v := range newX {
		x[i] = v
		c[i] = newC[i] + d.delta*(c[i]-newC[i])
	}
}

// LogEvidence implements [Iteration]:
//
//	Σ_µ [log Z_out,µ + ½ Σₖ V g²] + Σ_ik [log Z_in(λ, Σ) + (C + (x̂-λ)²)/2Σ].
//
// The pivots make it the same for any scaling of the further rows.
func (d *diagonal) LogEvidence() float64 {
	a, total := &d.all, 0.0
	for mu, logZ := range a.logZ {
		total += logZ
		for j := d.reading(mu); j < d.reading(mu+1); j++ {
			total += 0.5 * a.v[j] * a.g[j] * a.g[j]
		}
	}
	for i, x := range a.x {
		e := x - a.lambda[i]
		total += 0.5 * ((a.c[i] + e*e) / a.sigma[i])
	}
	for k := range d.P {
		for _, pivot := range d.further.Pivots(k) {
			total += math.Log(math.Abs(pivot))
		}
	}
	signals := d.P * d.N
	return total + d.logNorm() +
		prior.SumLogNorm(prior.Flat{}, a.lambda[signals:], a.sigma[signals:])
}

// logNorm is the prior's part of the evidence.
func (s *State) logNorm() (total float64) {
	_, ok := s.model.Prior.(prior.Complex)
	if s.network != nil {
		return s.network.LogNorm()
	}
	if !ok {
		return s.sumLogNorms()
	}
	s.eachPair(func(re, im int) {
		total += prior.At(s.model.Prior, re%s.N).(prior.Complex).LogNormComplex(complex(s.Lambda[re], s.Lambda[im]), s.Sigma[re])
	})
	return total
}

// MeanV implements [Iteration].
func (d *diagonal) MeanV() (v, off float64) { return Mean(d.V), 0 }

// scaleSums implements [Iteration].
func (d *diagonal) scaleSums(quadratic, volume float64) (q, v float64) {
	c := d.model.Channel.(channel.Calibrating)
	q = c.ScaleQuadratic(quadratic, &d.sensors) + channel.Quadratic(0, &d.rest, 0)
	return q, d.addVolume(volume)
}

// addVolume adds κ = Σ V g² over all readings.
func (s *State) addVolume(volume float64) float64 {
	sensors := len(s.Y)
	return s.volumeOf(volume, 0, sensors) + s.volumeOf(0, sensors, len(s.all.y))
}

func (s *messages) volumeOf(sum float64, from, to int) float64 {
	v, g := s.all.v[from:to], s.all.g[from:to]
	for j, y := range s.all.y[from:to] {
		if !math.IsNaN(y) {
			sum += v[j] * g[j] * g[j]
		}
	}
	return sum
}
