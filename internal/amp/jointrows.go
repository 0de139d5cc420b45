package amp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/joint"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// jointRows is the iteration for signals that belong together (see package joint): the paper's Algorithm 1, with covariances across signals that
// have one shape and differ in size. Where the entries of W are of one size,
//
//	V_µ = v_µ K,   K = Σ_i C_i / tr,   v_µ = Σ_i W²_µi tr C_i,       Σ_i⁻¹ = a_i A,   A = Σ_µ -∂g_µ / tr,   a_i = Σ_µ W²_µi tr(-∂g_µ),
//
// so that a sweep has one quadratic column. With K = Q κ Qᵀ, readings that are turned by Q are those of independent signals with the variances v_µ κ_k: the
// channel sees nothing else. Only the sum of -∂g over sensors is a matrix,
//
//	-∂g_µ = Q [(1-π) (D⁻¹ - Cˢ e eᵀ) - π(1-π) g gᵀ] Qᵀ,   D_k = v_µ κ_k + Δ,   e = D⁻¹Qᵀy,
//
// with π the probability that the sensor is broken, and g what it would be if it were not.
type jointRows struct {
	*State
	Idle
	rows   *joint.Rows
	learns joint.Learns
	sweep  operator.Sweep
	exact  bool // v and a are sums over squares of W; else over their mean
	delta  float64
	change float64 // of the hyperparameters, in standard errors
	asked  bool    // whether rows differ in size
	found  bool    // see [Problem.JointFound]
	slab   slab    // of entries that are not zero; nil where it is Gaussian
	probed bool    // whether they have it

	brightness  []float64 // see [Solver.OneScene]
	ifUnsettled []float64 // what it is if the run does not settle
	difference  float64   // of signals beside it (see [joint.Rows.Pattern])
	steady      int       // iterations in which that was steady

	shape, field *joint.Shape // K and A
	covariance   []float64    // P×P, K
	sumC, traces []float64    // P×P, Σ C_i, and N, tr C_i; damped
	slope        []float64    // P×P, Σ_µ -∂g_µ, damped
	slopes       []float64    // M, tr -∂g_µ, damped
	size, h      []float64    // N: a_i, and the backward product
	sizes        []float64    // M, v_µ
	own          dense.Matrix // the eigenvectors of K along which there are readings, one a row
	at           []int        // and where they are among all
	scalarV      float64      // v of all sensors without the squares
	lastV        float64      // Σ V at the latest step of the noise
	lastNoise    float64      // of the latest iteration

	// Of the latest sweep. In turned coordinates: (1-π)/D, √(1-π) √Cˢ e and, of sensors in doubt, √(π(1-π)) g (all M×P). Of sensors of which
	// single readings are missing, or have noise of their own, ∂g as it is (P×P each).
	inverse, known, doubted []float64
	doubt                   []bool
	partial                 [][]float64 // M; nil for those that are turned
	quadratic, volume       []float64   // M, ωᵀD⁻¹ω and gᵀVg

	means   *jointFurther // nil where W is as it is
	rowsOf  operator.RowFunc
	works   parallel.Pool[jointWork]
	sensors parallel.Pool[channel.Sensor]
}

// jointWork is what a block of sensors is computed in, in turned coordinates.
type jointWork struct {
	block                   channel.Block
	y, omega, v, g, dg, old []float64
	dg2                     []float64
	mean, variance          []float64 // of a sensor
}

// refitJoint is how far a step of learning goes: the part of the way that the fields are damped by, see [newJointDamper].
const refitJoint = 0.7

// jointDamping is the least damping: undamped one of four problems diverged, at 0.3 none.
const jointDamping = 0.3

// jointDampedAbove is the change below which damping relaxes: what diverges does so before.
const jointDampedAbove = 0.1

// newJointDamper damps from the start, and does not take the drift of a free scale for a lack of headway: for that the damping was raised up to the most, and runs a
// thousandth of a posterior's width from their end took hundreds of iterations more.
func newJointDamper() *Damper {
	return &Damper{adaptive: true, now: jointDamping, floor: jointDamping, previous: math.Inf(1), restarts: mostRestarts, beyondDrift: true}
}

func newJointRows(s *State, start prior.GaussBernoulli, groups *joint.Groups, learns joint.Learns, exact, vector bool) *jointRows {
	p := s.P
	e := &jointRows{State: s, learns: learns, exact: exact}
	e.rows = joint.NewRows(s.N, p, s.Threads, joint.Isotropic(p, start.Density, start.SignalMean, start.SignalVar))
	e.rows.Prior.Groups = groups
	if e.rows.Columns = s.columns; s.excess == nil && s.further.Extra == 0 && !vector {
		e.rows.Within(joint.NewSpan(s.Y, p, s.columns)) // none where a reading is missing
	}
	of := func(count int) []float64 { return make([]float64, count) }
	e.covariance, e.sumC, e.slope = of(p*p), of(e.rows.Span.Len(p)), of(e.rows.Span.Len(p))
	e.size = of(s.N)
	e.traces, e.h = of(s.N+s.further.Extra), of(s.N+s.further.Extra)
	for _, v := range []*[]float64{&e.slopes, &e.quadratic, &e.volume, &e.sizes} {
		*v = of(s.M)
	}
	for _, v := range []*[]float64{&e.inverse, &e.known, &e.doubted} {
		*v = of(s.M * p)
	}
	e.doubt, e.partial = make([]bool, s.M), make([][]float64, s.M)
	e.squares = e.rows.Square
	e.rowsOf = e.outputRows
	e.sensors.New = func() *channel.Sensor { return channel.NewSensor(s.model.Channel, p) }
	s.correlated, s.steadied = e.evidenceOf, e.steadied
	s.keep(e.sumC, e.traces, e.slope, e.slopes, e.size)
	for i := range s.N {
		for k := range p {
			e.traces[i] += s.C[k*s.N+i]
		}
	}
	if e.rows.Span.Times(e.sumC, p, sum(e.traces)/float64(p)); e.rows.Span == nil {
		for k := range p {
			e.sumC[k*p+k] = sum(s.C[k*s.N : (k+1)*s.N])
		}
	}
	e.means = newJointFurther(e)
	e.adopt()
	return e
}

// apart reports whether the readings of a sensor cannot be turned: some of them are missing, or have more noise than others.
func (e *jointRows) apart(mu int) bool {
	missing := 0
	for j := mu * e.P; j < (mu+1)*e.P; j++ {
		if math.IsNaN(e.Y[j]) {
			missing++
		}
		if e.excess != nil && e.excess[j] != e.excess[mu*e.P] {
			return true
		}
	}
	return missing > 0 && missing < e.P
}

// sweepsOver implements [Iteration].
func (e *jointRows) sweepsOver(w operator.Operator) (s operator.Sweeps, err error) {
	q := 0
	if e.exact {
		q = 1
	}
	s.Exact, err = w.NewSweep(e.P, q, e.Threads)
	return s, err
}

// prepare implements [Iteration].
func (e *jointRows) prepare(context.Context) error { return nil }

func (e *jointRows) use(s operator.Sweeps) { e.sweep = s.Exact }

// Begin implements [Part]: R is learned, and with it the signals' scale.
func (e *jointRows) Begin(s *Solver) {
	s.Reach = jointReach
	s.State.ScaleLearned, e.asked, e.brightness, e.ifUnsettled, e.change, e.lastV = true, false, nil, nil, math.Inf(1), math.Inf(1)
	e.difference, e.steady = math.Inf(1), 0
}

// Before implements [Part]: signals that move because the noise was moved are no sign of divergence.
func (e *jointRows) Before(s *Solver) {
	if noise := channel.NoiseOf(e.model.Channel); noise != e.lastNoise {
		e.lastNoise = noise
		if d, is := s.damping.(*Damper); is {
			d.last = 0
		}
	}
}

// Step implements [Iteration].
func (e *jointRows) Step(delta float64) error {
	e.delta, e.fieldPull, e.fieldTurn = delta, e.nextPull, e.nextTurn
	e.setApart()
	shape, _, ok := e.rows.Span.NewShape(e.means.sum(e.sumC), e.P, e.columns, 0)
	if !ok {
		e.Moved[0] = math.NaN()
		return nil
	}
	e.shape = shape
	shape.Matrix(e.covariance)
	e.means.begin(shape)
	e.own, e.at = shape.Own()
	e.scalarV = e.W.MeanSquare() * sum(e.traces[:e.N])
	var err error
	if e.exact {
		err = e.sweep.Run(e.all.r, e.h, e.all.x, e.traces, e.rowsOf)
	} else {
		err = e.sweep.Run(e.all.r, nil, e.all.x, nil, e.rowsOf)
	}
	if err != nil {
		return err
	}
	e.input()
	return nil
}

// setApart finds the sensors whose readings cannot be turned: outliers come and go. What such a sensor says is in no span.
func (e *jointRows) setApart() {
	for mu := range e.M {
		switch apart := e.apart(mu); {
		case apart && e.partial[mu] == nil:
			e.partial[mu] = make([]float64, e.P*e.P)
			e.leave()
		case !apart:
			e.partial[mu] = nil
		}
	}
}

// leave gives the span up.
func (e *jointRows) leave() {
	s := e.rows.Span
	if s == nil {
		return
	}
	for _, v := range []*[]float64{&e.sumC, &e.slope} {
		*v = e.widen(*v, func(a []float64) []float64 { return s.Full(a, e.P) })
	}
	e.rows.Leave()
}

// outputRows is the part of an iteration between the two halves of the sweep.
func (e *jointRows) outputRows(first int, z, v, g, d []float64) {
	if e.interrupted() {
		return
	}
	p, count := e.P, len(z)/e.P
	for ; first+count > e.M && count > 0; count-- { // further rows are behind the sensors
		row := count - 1
		e.means.output(first+row-e.M, z[row*p:(row+1)*p], g[row*p:(row+1)*p], v[row])
		d[row] = 0
	}
	if count == 0 {
		return
	}
	z, g = z[:count*p], g[:count*p]
	w := e.works.Get()
	defer e.works.Put(w)
	e.read(w, first, z)
	for row := range count {
		size := e.scalarV
		if e.exact {
			size = v[row]
		}
		e.sizes[first+row] = size
		for k, kappa := range e.shape.Values {
			w.omega[row*p+k] -= size * kappa * w.old[row*p+k]
		}
	}
	e.answer(w, first, g)
	for row := range count {
		if e.exact {
			d[row] = -e.slopes[first+row]
		}
	}
}

// read turns the readings of sensors from first on, their means z and what they said in the iteration before.
func (e *jointRows) read(w *jointWork, first int, z []float64) {
	p, count, from, to := e.P, len(z)/e.P, first*e.P, first*e.P+len(z)
	w.resize(len(z), count)
	copy(w.g, e.Y[from:to])
	for row := range count {
		if e.partial[first+row] != nil { // its readings are turned to nothing, and it has its own turn in answer
			clear(w.g[row*p : (row+1)*p])
		}
	}
	e.turn(w.y, w.g)
	e.turn(w.omega, z)
	e.turn(w.old, e.G[from:to])
}

// answer is what the sensors from first on, which were read, say of means ω with the covariances v_µ K.
func (e *jointRows) answer(w *jointWork, first int, g []float64) {
	p, count, from, to := e.P, len(w.y)/e.P, first*e.P, first*e.P+len(w.y)
	for row := range count {
		mu := first + row
		size, excess := e.sizes[mu], excessOf(e.excess, mu*p)
		missing := math.IsNaN(e.Y[mu*p]) || e.partial[mu] != nil
		for k, kappa := range e.shape.Values {
			j := row*p + k
			e.V[from+j] = size * e.covariance[k*p+k]
			w.v[j] = size*kappa + excess
			if missing {
				w.y[j] = math.NaN()
			}
		}
	}
	e.back(e.Omega[from:to], w.omega)
	e.seen(first, len(w.y))
	b := &w.block
	*b = e.block(first, first+count)
	b.Y, b.Omega, b.V, b.G, b.DG = w.y, w.omega, w.v, w.g, w.dg
	e.model.Channel.Output(b)
	e.derivatives(w, first)
	for j, old := range w.old {
		w.g[j] += e.delta * (old - w.g[j])
	}
	e.back(g, w.g)
	e.diagonals(w, first)
	for row := range count {
		mu := first + row
		slope := 0.0
		if e.partial[mu] != nil {
			slope = e.outputPartial(mu, g[row*p:(row+1)*p])
		} else {
			e.volume[mu] = 0
			for k := range p {
				j := row*p + k
				slope -= w.dg[j]
				e.volume[mu] += (w.v[j] - excessOf(e.excess, mu*p)) * w.g[j] * w.g[j]
			}
		}
		e.slopes[mu] = slope + e.delta*(e.slopes[mu]-slope)
	}
	copy(e.G[from:to], g)
}

// turn writes rows of values in the coordinates of K, in which they are zero outside of the readings' span.
func (e *jointRows) turn(turned, v []float64) {
	p, q := e.P, len(e.at)
	rows := len(v) / p
	if q == p {
		dense.Product(dense.Of(turned, rows, p), dense.Of(v, rows, p), e.own.T())
		return
	}
	own := dense.New(rows, q)
	dense.AddProduct(own, 1, dense.Of(v, rows, p), e.own.T(), dense.All, 1)
	clear(turned)
	for row := range rows {
		for l, j := range e.at {
			turned[row*p+j] = own.Row(row)[l]
		}
	}
}

// back turns rows of values back.
func (e *jointRows) back(v, turned []float64) {
	own := e.ofOwn(turned)
	dense.Product(dense.Of(v, own.Rows, e.P), own, e.own)
}

// ofOwn are the values of rows along the vectors of [jointRows.own].
func (e *jointRows) ofOwn(turned []float64) dense.Matrix {
	p, q := e.P, len(e.at)
	if q == p {
		return dense.Of(turned, len(turned)/p, p)
	}
	own := dense.New(len(turned)/p, q)
	for row := range own.Rows {
		for l, j := range e.at {
			own.Row(row)[l] = turned[row*p+j]
		}
	}
	return own
}

func excessOf(excess []float64, j int) float64 {
	if excess == nil {
		return 0
	}
	return excess[j]
}

// derivatives keeps what -∂g is made of, see [jointRows].
func (e *jointRows) derivatives(w *jointWork, first int) {
	p, b := e.P, &w.block
	noise := channel.NoiseOf(e.model.Channel)
	copy(w.variance, b.SVar)
	if e.calibration != nil { // of sensors in order: a sensor in doubt is reported as one that may be anything
		e.calibration.Posteriors(w.mean, w.variance, b.Stats)
	}
	for row, broken := range b.Broken {
		mu, working := first+row, 1-broken
		e.doubt[mu] = broken > 0 && working > 0
		e.quadratic[mu] = 0
		spread := e.resolved(w, row, noise)
		along, unsure := math.Sqrt(working*spread), math.Sqrt(broken/working)
		for k := row * p; k < (row+1)*p; k++ {
			j := first*p + k
			e.inverse[j], e.known[j], e.doubted[j] = 0, 0, 0
			if math.IsNaN(w.y[k]) || working == 0 {
				continue
			}
			inverse := 1 / (w.v[k] + noise)
			e.inverse[j] = working * inverse
			e.known[j] = along * (w.y[k] * inverse)
			e.doubted[j] = unsure * w.g[k]
			e.quadratic[mu] += w.omega[k] * (w.omega[k] * inverse)
		}
	}
}

// resolved is Cˢ of a row, or where that leaves D⁻¹ - Cˢ e eᵀ a negative direction, that of the sensor's own readings, what leaves it none. So it is as long as the
// phase of a complex gain is known less well than its readings could tell. They say nothing of the signals along e then, and fields that are to have a shape cannot say less. The
// trace of -∂g, which is their size, is what it is.
func (e *jointRows) resolved(w *jointWork, row int, noise float64) float64 {
	all := 0.0
	for k := row * e.P; k < (row+1)*e.P; k++ {
		if y := w.y[k]; !math.IsNaN(y) {
			all += y * (y / (w.v[k] + noise))
		}
	}
	return min(max(0, w.variance[row]), float64(e.columns)/max(all, math.SmallestNonzeroFloat64))
}

// diagonals sets ∂g of single readings: what the others of the sensor expect of one is g, with the inverse variance -∂g, where it has no part in it.
func (e *jointRows) diagonals(w *jointWork, first int) {
	p, q := e.P, len(e.at)
	from, to, count := first*p, first*p+len(w.g), len(w.g)/p
	e.back(w.old, e.known[from:to])
	squares, inverse := dense.New(q, p), e.ofOwn(e.inverse[from:to])
	for row := range q {
		for k, v := range e.own.Row(row) {
			squares.Row(row)[k] = v * v
		}
	}
	if q == p {
		dense.Product(dense.Of(w.dg2, count, p), inverse, squares)
	} else { // outside of the span there is one D, and squares of unit vectors add up to 1
		at := e.outside()
		for row := range count {
			outside := e.inverse[from+row*p+at]
			for k := range p {
				w.dg2[row*p+k] = outside
			}
			for l := range q {
				inverse.Row(row)[l] -= outside
			}
		}
		dense.AddProduct(dense.Of(w.dg2, count, p), 1, inverse, squares, dense.All, 1)
	}
	for j, known := range w.old {
		slope := min(0, known*known-w.dg2[j])
		if mu := first + j/p; e.doubt[mu] {
			slope = min(0, slope+e.inDoubt(mu, j%p))
		}
		w.old[j] = slope
	}
	if e.columns > 1 {
		pairMeans(w.old)
	}
	for j, slope := range w.old {
		e.DG[from+j] = slope + e.delta*(e.DG[from+j]-slope)
	}
}

// outside is a direction in which there are no readings.
func (e *jointRows) outside() int {
	for j, at := range e.at {
		if at != j {
			return j
		}
	}
	return len(e.at)
}

// inDoubt is π(1-π) g_k² of reading k of a sensor in doubt.
func (e *jointRows) inDoubt(mu, k int) float64 {
	g := 0.0
	for j, v := range e.doubted[mu*e.P : (mu+1)*e.P] {
		g += e.shape.Vectors[k*e.P+j] * v
	}
	return g * g
}

// outputPartial is the output of a sensor whose readings cannot be turned. It adds to g what it says, and returns tr -∂g.
func (e *jointRows) outputPartial(mu int, g []float64) (slope float64) {
	p, s, size := e.P, e.sensors.Get(), e.sizes[mu]
	defer e.sensors.Put(s)
	from := mu * p
	e.present(s, mu, e.Y[from:from+p])
	e.model.Channel.(channel.Correlated).OutputCorrelated(s)
	copy(e.Of(e.Stats, mu), s.Stats)
	e.S[mu], e.SVar[mu], e.Phase[mu], e.LogZ[mu], e.quadratic[mu], e.Broken[mu] = s.S, s.SVar, s.Phase, s.LogZ, s.Quadratic, s.Broken
	copy(e.partial[mu], s.DG)
	e.volume[mu] = 0
	for k := range p {
		g[k] = s.G[k] + e.delta*(e.G[from+k]-s.G[k])
		e.DG[from+k] = s.DG[k*p+k] + e.delta*(e.DG[from+k]-s.DG[k*p+k])
		slope -= s.DG[k*p+k]
	}
	for k := range p {
		for l := range p {
			e.volume[mu] += size * e.covariance[k*p+l] * g[k] * g[l]
		}
	}
	return slope
}

// present makes s what is known of sensor mu before these readings.
func (e *jointRows) present(s *channel.Sensor, mu int, y []float64) {
	p, from := e.P, mu*e.P
	s.Index, s.Past = mu, e.Of(e.Past.Stats, mu)
	copy(s.Y, y)
	copy(s.Omega, e.Omega[from:from+p])
	for j, k := range e.covariance {
		s.V[j] = e.sizes[mu] * k
	}
	even := true
	for k := range p {
		excess := excessOf(e.excess, from+k)
		s.V[k*p+k] += excess
		even = even && excess == excessOf(e.excess, from)
	}
	if s.Inverse = nil; even {
		s.Inverse = func(dst []float64, noise float64) (logDet float64) {
			noise += excessOf(e.excess, from)
			for _, kappa := range e.shape.Values {
				logDet += math.Log(e.sizes[mu]*kappa + noise)
			}
			e.shape.Of(dst, func(kappa float64) float64 { return 1 / (e.sizes[mu]*kappa + noise) })
			return logDet
		}
	}
}

// input makes fields of the backward products, and of these the new posterior of the rows.
func (e *jointRows) input() {
	e.sumSlopes()
	least := joint.LeastValue
	if e.means != nil {
		least = leastBesideMeans
	}
	a, _, ok := e.rows.Span.NewShape(e.slope, e.P, e.columns, least)
	if !ok && e.columns > 1 && AllFinite(e.slope) { // phases are hardly known yet
		a, ok = e.rows.Span.Round(e.P), true
	}
	if !ok {
		e.Moved[0] = math.NaN() // seen by the loop as a step to take back
		return
	}
	e.field = a
	for i, h := range e.h[:e.N] {
		if !e.exact {
			h = -e.W.MeanSquare() * sum(e.slopes)
		}
		switch {
		case h < 0:
			e.size[i] = -h
		case e.columns > 1:
			e.size[i] = 0 // a tilt is left, as in [diagonal.fields]
		} // else sensors are in doubt, and the former field serves
	}
	for j, x := range e.X {
		e.Centre[j] = x + e.delta*(e.Centre[j]-x)
	}
	e.rows.Update(joint.Field{Shape: a, Size: e.size, Centre: e.Centre, Onward: e.Onward})
	e.means.input(a)
	e.fields(a)
	e.nextPull = sum(e.rows.Pull)
	for k := range e.P / e.columns {
		from, to := k*e.columns*e.N, (k+1)*e.columns*e.N
		e.takeUp(k, e.rows.X[from:to], e.rows.C[from:to], e.delta)
	}
	e.sumTurnsOf(a)
	damp(e.sumC, e.rows.Sum, e.delta)
	damp(e.traces[:e.N], e.rows.Trace, e.delta)
}

// leastBesideMeans is [joint.LeastValue] where the mean of W is taken out. All sensors read nearly the same proportions then, and say of these, in whose place gains are, as little as 1e-5 of what they say of changes: of positive
// scenes that change by 5 % behind masks. With 1e-3 six of them took 563 iterations, the median of four draws, in place of 90, with error bars that were too small.
const leastBesideMeans = 1e-6

// sumTurnsOf is [State.sumTurns]: Σ Im x̂(Σ⁻¹(λ-x̂))*, with Σ⁻¹(λ-x̂) = aA(c-x̂) + r.
func (e *jointRows) sumTurnsOf(a *joint.Shape) {
	e.nextTurn = 0
	if e.columns == 1 {
		return
	}
	shape, off, pull := make([]float64, e.P*e.P), make([]float64, e.P*e.N), make([]float64, e.P*e.N)
	a.Matrix(shape)
	for j, x := range e.X {
		off[j] = e.Centre[j] - x
	}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, block(shape, e.P), block(off, e.N), 0, block(pull, e.N))
	for j, r := range e.Onward {
		pull[j] = e.size[j%e.N]*pull[j] + r
	}
	e.eachPair(func(re, im int) { e.nextTurn += e.X[im]*pull[re] - e.X[re]*pull[im] })
}

// fields sets Σ to what each entry is known to be from the readings alone, whatever the other signals are: the diagonal of (aA)⁻¹.
func (e *jointRows) fields(a *joint.Shape) {
	inverse := make([]float64, e.P)
	a.InverseDiagonal(inverse)
	for k, v := range inverse {
		for i, size := range e.size {
			e.Sigma[k*e.N+i] = v / size
		}
	}
}

// place sets λ = c + (aA)⁻¹r.
func (e *jointRows) place() {
	inverse := make([]float64, e.P*e.P)
	e.field.Inverse(inverse)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, block(inverse, e.P), block(e.Onward, e.N), 0, block(e.Lambda, e.N))
	for j, c := range e.Centre {
		if size := e.size[j%e.N]; size > 0 {
			e.Lambda[j] = c + e.Lambda[j]/size
		} else {
			e.Lambda[j] = e.Onward[j] // a tilt
		}
	}
}

func damp(to, latest []float64, delta float64) {
	for i, v := range latest {
		to[i] = v + delta*(to[i]-v)
	}
}

// sumSlopes sets Σ_µ -∂g_µ. Sensors in doubt are left as likely to be broken as they are where readings would say nothing otherwise of some direction: of scenes that hardly change the first iterations, which take
// signals for independent, find many sensors broken, with all readings off by one factor. Fields along that had no precision then, and signals became a hundred times as large as they are.
func (e *jointRows) sumSlopes() {
	p, q, other, outside := e.P, len(e.at), 0.0, e.outside()
	sum := dense.New(q, q)
	for mu := range e.M {
		inverse := e.inverse[mu*p : (mu+1)*p]
		for l, j := range e.at {
			sum.Row(l)[l] += inverse[j]
		}
		if q < p {
			other += inverse[outside]
		}
	}
	known := e.ofOwn(e.known)
	dense.AddProduct(sum, -1, known.T(), known, dense.All, e.Threads)
	if slices.Contains(e.doubt, true) { // else they are zero
		doubted, with := e.ofOwn(e.doubted), dense.Of(slices.Clone(sum.Data), q, q)
		dense.AddProduct(with, -1, doubted.T(), doubted, dense.All, e.Threads)
		if shape, size, ok := joint.NewShape(with.Data, q, 1, 0); ok && shape.Values[0] >= joint.LeastValue*max(shape.Values[q-1], other/size) {
			sum = with
		}
	}
	slope := make([]float64, len(e.slope))
	e.shape.Back(slope, sum, other)
	for mu := range e.M {
		for j, v := range e.partial[mu] {
			slope[j] -= v
		}
	}
	if e.columns > 1 {
		e.rows.Span.Circular(slope, p)
	}
	damp(e.slope, slope, e.delta)
}

// pairMeans makes both parts of each number their mean.
func pairMeans(v []float64) {
	for j := 0; j < len(v); j += 2 {
		both := 0.5 * (v[j] + v[j+1])
		v[j], v[j+1] = both, both
	}
}

// After implements [Part]: the hyperparameters move with the estimates.
func (e *jointRows) After(s *Solver, l *Line) Verdict {
	if d, is := s.damping.(*Damper); is && d.adaptive && l.Change < jointDampedAbove && d.floor == jointDamping {
		d.floor = 0
	}
	if l.Index < phasePatience && e.phasesOpen() { // fields are tilts, which say of sizes only that they are larger
		return Unfinished
	}
	if e.field == nil { // no step has come that far
		return Unfinished
	}
	if e.found && looksAt(l.Index) && (s.JointGain() < DecidedApart || l.Index > firstJointTest && e.noneInOrder()) {
		s.limit = s.Iterations
		return Unfinished
	}
	e.learns.Round = l.Index < firstRefit && e.means == nil // sixty scenes behind masks diverged with it, in one of two draws
	e.refit()
	if !e.asked && e.calibration != nil && e.columns == 1 {
		if e.look(s) {
			return Unfinished
		}
	}
	if e.change > modelTolerance {
		return Disturbed
	}
	if e.separates(s) {
		return Disturbed
	}
	return e.sizesDiffer(s)
}

// refit moves the hyperparameters.
func (e *jointRows) refit() {
	e.change = e.rows.Refit(e.learns, refitJoint)
	if e.rows.Separable() {
		moved := e.refitSlab()
		e.change = max(e.change, moved)
	}
	e.adopt()
}

// refitSlab moves the slab, by the values of rows that are there. Its size always follows these, as the covariance does: the gains hold the common scale.
func (e *jointRows) refitSlab() (change float64) {
	e.slab, change = fittedSlab(e.slab, e.rows.Cavities, refitJoint)
	e.rows.TakeSlab(e.slab, e.slab.Mean(), e.slab.Variance())
	return change
}

// fittedSlab is a slab moved by the fraction step of the way to what makes these fields likelier, and how far that is, in standard errors.
func fittedSlab(slab slab, fields func() (lambda, sigma []float64), step float64) (next slab, change float64) {
	lambda, sigma := fields()
	if len(lambda) == 0 {
		return slab, 0
	}
	if l := prior.LearnerOf(slab); l != nil {
		to, moved := l.Refit(lambda, sigma, step)
		if change = moved; l.LearnsScale() {
			return withDensity(to, 1), change
		}
		slab = to.(prior.Scalable)
	}
	mean, variance, square := make([]float64, len(lambda)), make([]float64, len(lambda)), 0.0
	slab.Posterior(mean, variance, lambda, sigma)
	for j, m := range mean {
		square += (variance[j] + m*m) / float64(len(mean))
	}
	c := math.Sqrt(square / (slab.Variance() + slab.Mean()*slab.Mean()))
	return slab.Scaled(math.Pow(c, step)).(prior.Scalable), max(change, math.Abs(math.Log(c))*math.Sqrt(2*float64(len(mean))))
}

// separates asks, once the hyperparameters have settled, whether entries that are there are independent and of a slab of their own, or Gaussian with the covariance that was learned: whether the fields are likelier.
func (e *jointRows) separates(s *Solver) bool {
	if e.slab == nil || e.probed || e.rows.Span != nil {
		return false
	}
	e.probed = true
	e.place()
	e.slab, _ = fittedSlab(e.slab, e.rowsThere, 1)
	if !(e.rows.SeparateGain(e.slab, e.slab.Mean(), e.slab.Variance()) > 0) {
		return false
	}
	e.asked = true // whether rows differ in size
	s.damping.begin(s.startDamping)
	return true
}

// rowsThere are the fields of rows that are more likely there than not.
func (e *jointRows) rowsThere() (lambda, sigma []float64) {
	for i, pi := range e.rows.Support {
		for k := range e.P {
			if j := k*e.N + i; pi > 0.5 {
				lambda, sigma = append(lambda, e.Lambda[j]), append(sigma, e.Sigma[j])
			}
		}
	}
	return lambda, sigma
}

// look asks whether signals differ in anything but brightness, and ends the run where they do not. The other hyperparameters need not have settled for that: the density of rows that may or may not be there creeps for hundreds of iterations.
func (e *jointRows) look(s *Solver) (end bool) {
	pattern, errors := e.rows.Pattern()
	if !(math.Abs(errors-e.difference) < steadyDifference) {
		e.steady = 0
	}
	e.difference = errors
	if e.steady++; e.steady <= SettledFor && e.change > modelTolerance {
		return false
	}
	e.ifUnsettled = nil
	switch {
	case errors < leastUnsettled && !(s.JointGain() > LeastJointGain): // noise has nothing in common either
	case errors < leastDifference:
		e.brightness, s.limit = pattern, s.Iterations
	case errors < leastUnsettled:
		e.ifUnsettled = pattern
	}
	return e.brightness != nil
}

const (
	// leastDifference is the least of what signals do not have in common, in standard errors of its variance, for them to differ: of 20 runs of scenes that do not change 18 have 0 to 1.4, one 2.1 and one 3.4.
	leastDifference = 3

	// steadyDifference is how far it moves in an iteration once it is known: in one draw of scenes that change by the noise it fell to 2.5, in steps of .1, and rose above 3 again.
	steadyDifference = 0.01

	// leastUnsettled is that where the run does not settle either: of signals that differ by two thirds of the noise in each entry, three of four have less, and settle.
	leastUnsettled = 5
)

// End implements [Part].
func (e *jointRows) End(s *Solver) {
	if e.ifUnsettled != nil && slices.Min(s.Settled) < SettledFor {
		e.brightness = e.ifUnsettled
	}
}

// OneScene is the brightness of each signal, of mean square 1, where signals were found not to differ in anything else; nil elsewhere. The run has ended then.
func (s *Solver) OneScene() []float64 {
	if e := s.rows(); e != nil {
		return e.brightness
	}
	return nil
}

// jointReach is the distance, in posterior standard deviations, that is near enough. Rows that may or may not be there, and close to the fewest sensors what hardly tells gains from signals, take a hundred iterations more to 1e-5, and no more than
// the third digit of an error bar changes: of 80 problems at α = .28 to .6 errors, evidence and coverage are the same to two digits.
const jointReach = 1e-3

// sizesDiffer asks, once the hyperparameters have settled, whether rows differ in size (see [joint.Prior]).
func (e *jointRows) sizesDiffer(s *Solver) Verdict {
	if e.asked {
		return GoOn
	}
	e.asked = true
	gain, shape := e.rows.SizesGain()
	if !(gain > LeastJointGain) {
		return GoOn
	}
	e.rows.Prior = e.rows.Prior.Sized(shape)
	s.damping.begin(s.startDamping)
	return Disturbed
}

// steadied is the factor of a step of the noise where V is on its way. From a noise that is too large V is larger than the errors, and falls as fast as
// it can whatever the noise is: residuals that are too small for V+Δ say that of V. Taken for the noise it fell to a fiftieth of what it is, V after it, and
// the residuals then looked like those of a run about to diverge. So the noise falls with V, until V hardly does: from then on it follows the noise.
func (e *jointRows) steadied(ratio float64) float64 {
	v := sum(e.V)
	fall := v / e.lastV
	e.lastV = v
	if fall < onItsWay {
		return max(ratio, fall)
	}
	return ratio
}

// onItsWay is the factor by which V falls, between two steps of the noise, while it is on its way.
const onItsWay = 0.9

// cut leaves of the posterior of each entry, where entries cannot be negative, what is above zero.
func (e *jointRows) cut() {
	for j, x := range e.X {
		pi := e.rows.Support[j%e.N]
		mean := x / pi
		variance := e.C[j]/pi - (1-pi)*mean*mean
		if !(variance > 0) { // the entry is zero
			continue
		}
		sd := math.Sqrt(variance)
		_, m, v := quadrature.TruncatedNormal(mean / sd)
		e.X[j], e.C[j] = pi*sd*m, pi*variance*(v+(1-pi)*m*m)
	}
}

// adopt makes the model's prior what the rows' is for one entry of a signal, whatever the others are: what diagnosis and theory know.
func (e *jointRows) adopt() {
	var p prior.Prior = withColumns(entryOf(&e.rows.Prior), e.columns)
	switch groups, is := e.model.Prior.(prior.Groups); {
	case e.rows.Separable():
		p = withDensity(e.slab, e.rows.Prior.Density)
	case is:
		p = withGroups(groups, &e.rows.Prior)
	}
	e.Adopt(Model{p, e.model.Channel})
}

// slab is what entries that are not zero are drawn from.
type slab = prior.Scalable

// withDensity is a prior with that part of its entries not zero; nil where its slab is Gaussian. Rows learn the density.
func withDensity(p prior.Prior, density float64) slab {
	if shaped, is := p.(prior.Shaped); is {
		return shaped.WithDensity(density)
	}
	return nil
}

// entryOf is what rows say of one entry of a signal, whatever the others are.
func entryOf(q *joint.Prior) prior.GaussBernoulli {
	p := len(q.Mean)
	g := prior.GaussBernoulli{Density: q.Density, SignalMean: sum(q.Mean) / float64(p)}
	g.SignalVar = q.MeanSize() * q.Trace() / float64(p)
	for _, m := range q.Mean {
		g.SignalVar += (m - g.SignalMean) * (m - g.SignalMean) / float64(p)
	}
	g.SignalVar = max(g.SignalVar, math.SmallestNonzeroFloat64)
	return g
}

// LogEvidence implements [Iteration].
func (e *jointRows) LogEvidence() float64 {
	return sum(e.LogZ) + 0.5*sum(e.volume) + sum(e.rows.LogMass) + 0.5*sum(e.rows.Square) + e.means.logEvidence()
}

// scaleSums implements [Iteration].
func (e *jointRows) scaleSums(quadratic, volume float64) (q, v float64) {
	for mu, broken := range e.Broken {
		quadratic += (1 - broken) * e.quadratic[mu]
	}
	if e.means != nil {
		quadratic, volume = quadratic+e.means.squares, volume+e.means.volume
	}
	return quadratic, volume + sum(e.volume)
}

// MeanV implements [Iteration].
func (e *jointRows) MeanV() (v, off float64) {
	v = Mean(e.V)
	for k := range e.P {
		for l := range k {
			off += math.Abs(e.covariance[k*e.P+l])
		}
	}
	pairs := 0.5 * float64(e.P) * float64(e.P-1)
	return v, v * float64(e.P) * off / max(1, pairs)
}

// evidenceOf is log Z_out of a sensor in order with these readings, of which some may be missing, and writes its statistics. It sets without, if not nil, to what that is without
// each of them, NaN where it is beyond double precision.
func (e *jointRows) evidenceOf(mu int, y, stats, without []float64) float64 {
	s := e.sensors.Get()
	defer e.sensors.Put(s)
	e.present(s, mu, y)
	alone := *s
	alone.DG, alone.Without = nil, without
	for k := range without {
		without[k] = math.NaN()
	}
	channel.InOrder(e.model.Channel).(channel.Correlated).OutputCorrelated(&alone)
	copy(stats, alone.Stats)
	return alone.LogZ
}

// Joint is what was learned of signals, or latents, that belong together: the density of rows and their covariance across signals (P×P), and the probability that
// a row is not zero (N); nil elsewhere.
func (s *Solver) Joint() (q *joint.Prior, support []float64) {
	rows := s.State.jointLatents()
	if e := s.rows(); e != nil {
		rows = e.rows
	}
	if rows == nil {
		return nil, nil
	}
	full := rows.Prior.Full()
	return &full, rows.Support
}

// OwnSlab reports whether entries of rows that are taken together are independent, with the slab of the prior (see [jointRows.separates]).
func (s *Solver) OwnSlab() bool {
	e := s.rows()
	return e != nil && e.rows.Separable()
}

// Whitened are the residuals of sensor mu turned and divided by their standard deviations, and the constant 1 with them, where covariances across
// signals are followed and all its readings are there; nil elsewhere.
func (s *Solver) Whitened(mu int) (residuals, constant []float64) {
	e := s.rows()
	if e == nil || e.shape == nil || e.partial[mu] != nil {
		return nil, nil
	}
	for k, kappa := range e.shape.Values {
		residual, one := 0.0, 0.0
		for l := range e.P {
			residual += e.shape.Vectors[l*e.P+k] * e.Residual(mu, l)
			one += e.shape.Vectors[l*e.P+k]
		}
		sd := math.Sqrt(max(e.sizes[mu]*kappa+e.Noise(mu*e.P), math.SmallestNonzeroFloat64))
		residuals, constant = append(residuals, residual/sd), append(constant, one/sd)
	}
	return residuals, constant
}

func (w *jointWork) resize(readings, rows int) {
	for _, v := range []*[]float64{&w.y, &w.omega, &w.v, &w.g, &w.dg, &w.old, &w.dg2} {
		if cap(*v) < readings {
			*v = make([]float64, readings)
		}
		*v = (*v)[:readings]
	}
	for _, v := range []*[]float64{&w.mean, &w.variance} {
		if cap(*v) < rows {
			*v = make([]float64, rows)
		}
		*v = (*v)[:rows]
	}
}

// block is rows of p values, as a matrix.
func block(v []float64, p int) blas64.General {
	return blas64.General{Rows: len(v) / p, Cols: p, Stride: p, Data: v}
}

// JointTest asks, while signals are solved one by one, whether they belong together: whether their fields are likelier if rows are there in all of them or in none. Where they
// do the run is ended, for another one.
type JointTest struct {
	Idle
	Gain  float64 // the logarithm of how much likelier, at the latest look
	Ends  bool    // they belong together
	mixed bool    // entries are of a mixture from the start
}

const (
	// The fields are looked at after firstJointTest iterations, when signals have left their start, then after every other doubling, and at fixed points: at the
	// first look they distinguished signals with one support from independent ones in all problems tried with ten signals, by factors of e^100; with four, after 20.
	firstJointTest = 10

	// Eigenvectors of P×P matrices take some 50 P³ multiplications an iteration, products with W 2MNP: no longer than these below MN/P² of mostJointPart, and up to so many signals a tenth of a second on a core, where what is
	// tried in their place takes longer: 100 scenes of 200 entries and 140 sensors are solved in 7 s, and were not with signals integrated out, in 5 to 55 s.
	mostJointPart    = 25
	mostTurnedAtOnce = 126

	// DecidedApart is the logarithm of the odds below which they are final: signals with one support began at -31 at worst.
	DecidedApart = -100

	// LeastJointGain is the logarithm of the odds for which a run is ended.
	LeastJointGain = 10
)

// Begin implements [Part].
func (p *JointTest) Begin(*Solver) { p.Gain, p.Ends = 0, false }

// After implements [Part].
func (p *JointTest) After(s *Solver, l *Line) Verdict {
	if looksAt(l.Index) {
		return p.look(s)
	}
	return GoOn
}

// looksAt reports whether fields are looked at after so many iterations.
func looksAt(index int) bool {
	doublings := index / firstJointTest
	return index%firstJointTest == 0 && doublings&(doublings-1) == 0 && index > 0
}

// AtFixedPoint implements [Part].
func (p *JointTest) AtFixedPoint(s *Solver) Verdict { return p.look(s) }

func (p *JointTest) look(s *Solver) Verdict {
	if _, mixture := s.State.model.Prior.(prior.Mixture); mixture && !p.mixed || p.Gain < DecidedApart {
		return GoOn // of a mixture that was found in the meantime small entries are in place of zero
	}
	p.Gain = s.State.jointGain(s.State.Sigma)
	if p.Ends = p.Gain > LeastJointGain; p.Ends {
		s.limit = s.Iterations
		return Unfinished
	}
	return GoOn
}

// jointGain is that of the present fields, see [joint.Gain].
func (s *State) jointGain(sigma []float64) (gain float64) {
	for _, a := range s.eachGroup(sigma) {
		gain += joint.Gain(a.n, s.P, s.columns, a.lambda, a.sigma, a.mean, a.variance, a.density)
	}
	return gain
}

// OwnRows is the number of entries that are there in some signals only, by the fields of rows that are taken together (see [joint.Own]), and of those that are there.
func (s *Solver) OwnRows() (own int, there float64) {
	e := s.rows()
	if e == nil || e.field == nil {
		return 0, 0
	}
	e.place()
	for _, a := range s.State.eachGroup(e.Sigma) {
		own += joint.Own(a.n, e.P, e.columns, a.lambda, a.sigma, a.mean, a.variance, a.density)
	}
	return own, sum(e.rows.Support)
}

// perSignal is what an entry of the distribution g is in each signal, where it is not zero.
func (s *State) perSignal(g prior.GaussBernoulli) (mean, variance []float64) {
	mean, variance = make([]float64, s.P), make([]float64, s.P)
	for k := range mean {
		mean[k], variance[k] = g.SignalMean, g.SignalVar
		if s.Amplitude != nil {
			mean[k] *= s.Amplitude[k]
			variance[k] *= s.Amplitude[k] * s.Amplitude[k]
		}
	}
	return mean, variance
}

// JointGain is the logarithm of how much likelier the fields are if signals belong together, as far as their support says it. It is 0 where that was not asked.
func (s *Solver) JointGain() float64 {
	if e := s.rows(); e != nil {
		if e.field == nil {
			return 0
		}
		e.place()
		return s.State.jointGain(s.State.Sigma)
	}
	if p, ok := PartOf[*JointTest](s); ok {
		return p.Gain
	}
	return 0
}

// HasSlab reports whether each entry is zero or Gaussian, with one distribution for all or one for each group whose mean is 0 or learned.
func HasSlab(p prior.Prior) bool {
	_, shaped := p.(prior.Shaped)
	_, varied := p.(prior.Varied)
	_, groups := p.(prior.Groups)
	_, ok := partOf(p)
	return ok && !shaped && (!varied || groups && !meansOfGroups(p))
}

// partOf is the Gauss–Bernoulli prior of a column; false where p is of another kind. Of a slab that is not Gaussian it is that of the same mean and variance, with which joint rows begin: their own slab comes after it, where the evidence asks for it (see [jointRows.separates]).
func partOf(p prior.Prior) (g prior.GaussBernoulli, ok bool) {
	switch p := p.(type) {
	case prior.Shaped:
		return p.AsOne(), true
	case interface{ GaussBernoulliPrior() prior.GaussBernoulli }:
		return p.GaussBernoulliPrior(), true
	case prior.Groups:
		return rowsOfGroups(p), true
	case interface {
		ComplexPrior() prior.ComplexGaussBernoulli
	}:
		c := p.ComplexPrior()
		return prior.GaussBernoulli{Density: c.Density, SignalVar: 0.5 * c.SignalVar}, true
	}
	return g, false
}

// withColumns is the prior of values of so many columns, each of which is as g.
func withColumns(g prior.GaussBernoulli, columns int) prior.Prior {
	if columns > 1 {
		return prior.ComplexGaussBernoulli{Density: g.Density, SignalVar: 2 * g.SignalVar}
	}
	return g
}

// jointTest decides whether signals are asked if they belong together.
func (b *planner) jointTest() (on bool, why string, err error) {
	switch {
	case b.Joint != solver.AutoJoint:
		return false, asked, nil
	case b.untouched() != "":
		return false, b.untouched(), nil
	}
	if _, fixed := b.Damping.Fixed(); fixed {
		return false, "asked: the damping is fixed", nil
	}
	if b.Start != nil {
		return false, "not needed: the run begins at an answer", nil
	}
	if err := b.jointPossible(); err != nil {
		return false, "not possible: " + err.Error(), nil
	}
	if b.P > mostTurnedAtOnce && b.P*b.P > b.m*b.n/mostJointPart {
		return false, "not chosen: turning so many signals would take longer than the products with W (--joint on does it)", nil
	}
	return true, "whether signals have their support in common", nil
}

func (b *planner) makeJointTest(*Solver) (Part, error) {
	_, mixed := b.Model.Prior.(prior.Mixture)
	return &JointTest{mixed: mixed}, nil
}

// joint reports whether rows are joint.
func (b *planner) joint() bool { return b.plan.Has("joint rows") }

// jointRows decides whether signals belong together.
func (b *planner) jointRows() (on bool, why string, err error) {
	switch b.Joint {
	case solver.JointOff:
		return false, asked, nil
	case solver.AutoJoint:
		return false, "not needed: the readings do not ask for it", nil
	}
	if err := b.jointPossible(); err != nil {
		return false, "", err
	}
	return true, asked, nil
}

// jointPossible says why signals cannot be taken together, if they cannot.
func (b *planner) jointPossible() error {
	_, known := partOf(b.Model.Prior)
	columns := prior.ColumnsOf(b.Model.Prior)
	if err := refusal([]reason{
		{b.stream(), "joint signals are for offline problems: streams solve their samples one by one"},
		{b.P < 2*columns, "joint signals: there is one signal, and nothing that it could have in common with others; expected 2 or more"},
		{!known, fmt.Sprintf("joint signals need a prior of a spike and one slab, and a %T is none", b.Model.Prior)},
		{meansOfGroups(b.Model.Prior), "joint signals with groups have a mean of 0, or one that is learned"},
		{b.vector() && !b.rowsOrthogonal() && !b.plan.Has("decomposition"), "joint signals by vector AMP need W decomposed"},
		{b.evidence(), "joint signals need AMP: the evidence of Gaussian signals has variances of its own"},
		{b.full() || b.exchangeable(), fmt.Sprintf("joint signals have covariances of their own: leave %v ones out", b.Covariance)},
		{b.offsetting() != nil, "joint signals are for sensors without offsets"},
		{b.clips(), "joint signals are for readings that are not clipped"},
		{b.codes(), "joint signals are for readings that are no codes"},
		{b.LearnSensorNoise, "joint signals: the noise of every sensor can be given, and not learned"},
	}); err != nil {
		return err
	}
	if _, noisy := channel.InOrder(b.Model.Channel).(channel.Noisy); !noisy {
		return fmt.Errorf("joint signals need Gaussian noise, and a %T has none", channel.InOrder(b.Model.Channel))
	}
	for mu := range b.m {
		missing := 0
		for _, y := range b.Y[mu*b.P : (mu+1)*b.P] {
			if math.IsNaN(y) {
				missing++
			}
		}
		if missing > 0 && missing < b.P || b.Noise != nil && len(b.Noise) > b.m {
			if err := channel.Correlates(b.Model.Channel); err != nil {
				return fmt.Errorf("joint signals, some of whose readings are missing or have noise of their own: %w", err)
			}
			break
		}
	}
	return nil
}

// jointLeaves are the lines of the plan that have no place beside joint rows: they mend what independent signals get wrong of signals that
// belong together, or take V and Σ for diagonal.
var jointLeaves = map[string]bool{
	"new start": true, "release": true, "joint moves": true, "row shifts": true,
	"widening": true, "amplitudes": true, "standstill": true, "joint test": true, "variances on demand": true, "single precision": true,
	"mixture": true, // rows are zero or one Gaussian: a mixture in their place has no meaning
}

// jointStart is the prior that joint rows start from, and what is learned of it.
func (b *planner) jointStart() (g prior.GaussBernoulli, learns joint.Learns) {
	if !b.joint() {
		return g, learns
	}
	g, _ = partOf(b.Model.Prior)
	return g, learnsOf(b.Model.Prior)
}

// learnsOf is what is learned of rows, of each entry of which p is the prior.
func learnsOf(p prior.Prior) joint.Learns {
	var learned prior.Parameters
	switch p := p.(type) {
	case prior.Groups:
		learned = p.Learn
	case prior.Mixture:
		if p.Learn {
			learned = prior.Density | prior.SignalMean
		}
	case prior.Slabbed:
		learned = p.Learned()
	}
	return joint.Learns{Density: learned&prior.Density != 0, Mean: learned&prior.SignalMean != 0, Size: learned&prior.SignalVar != 0}
}
