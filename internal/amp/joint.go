package amp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
)

// Joint helps an iteration on signals that look alike through W: when all
// sensors read them in the same proportions, gains can take the place of what
// the signals have in common. AMP takes the P readings of a sensor for
// independent given its gain, is sure of the gains long before it should be, and then
// creeps. Three things help; none is in the paper.
//
// Noise is added to the channel and taken away slowly, from as much as hides
// all in which the signals differ, so that no entry is decided upon before the gains
// can follow. A model that is learned is learned after that, and all is done once more.
//
// From time to time Newton's step moves all gains and signals together. At a
// fixed point of AMP, with Λ = 1/C - 1/Σ,
//
//	Wᵀg = (λ-x̂)/Σ,   Δ g = ŝ y - W x̂,   Σₖ y_k g_k = what the prior of s asks for,
//
// so that the changes of a step obey, to first order,
//
//	Λ dx = Wᵀ dg + p,   Δ dg = ds y - W dx + q,   Σₖ y_k dg_k + τ ds = 0
//
// with the residuals p and q of the first two and the precision τ of the prior
// of s. What is frozen (Λ, τ, Δ) says only how far to go: fixed points stay
// where they are. Entries that are all but known are left to AMP.
//
// And entries whose estimates are all off by the same multiple of what the
// signals have in common are looked for, see [Joint.shift].
type Joint struct {
	Alike float64 // part of the readings' power in common proportions

	engine *Engine
	w      *mat.Dense // M×N
	border *mat.Dense // extra×M: the further columns of a centred W; nil without
	common []float64  // P, see [Engine.Proportions]

	// The added noise.
	channel       channel.Channel // without it
	added, begins float64         // now, and where it begins
	rounds        int             // how often it will begin again
	since         int             // iterations since it ended

	tau, ds []float64         // M: precision of the prior of s, and its step
	gains   blas64.Symmetric  // the gains' part of the system when the signals follow
	factor  blas64.Triangular // of it
	signals []jointSignal
	moved   []float64 // P: how far the latest step moved each signal
	shifts  []int     // N: how often an entry was shifted
}

// jointSignal is one signal's part of the system.
type jointSignal struct {
	y, weight, rest []float64         // M: readings, and one over their noise, 0 where missing; q - W p/Λ
	active          []int             // entries that move
	inverse, pull   []float64         // of these, 1/Λ and p
	columns         blas64.General    // active×M: Wᵀ/√Δ
	factor          blas64.Triangular // U of B = Λ + WᵀW/Δ = UᵀU
	follow          blas64.General    // active×M: U⁻ᵀ Wᵀ y/Δ; U⁻¹ times it is how entries follow the gains
	solvable        bool
}

const (
	// Alike is the part of the readings' power in common proportions above
	// which gains and signals hardly separate, and a run is helped.
	Alike = 0.9

	// mostJoint is the number of entries of W up to which a step takes seconds.
	mostJoint = 4 << 20

	// powerSteps is enough where common proportions have most of the power.
	powerSteps = 30

	// A step is taken every so many iterations; the first ones go too far by themselves.
	jointEvery = 20

	// cooling is the factor of the added noise in an iteration, coolest what it
	// falls to, relative to where it begins, before it is dropped. A model that is learned
	// has learnFor iterations to settle before it begins again.
	cooling  = 0.95
	coolest  = 1e-4
	learnFor = 60

	// leastActive is the variance that the prior leaves an entry, relative to
	// the prior's own, below which it does not move.
	leastActive = 1e-3

	// jointNoise is the least noise of the system, relative to V, for the sake
	// of rounding.
	jointNoise = 1e-3
)

// Proportions looks for proportions in which all sensors read the P signals, and
// returns them, a unit vector, with the part of the readings' power that is in
// them, all sensors and all signals counting the same: near 1 the readings of one sensor are a
// multiple of those of any other, as their gains could make them. Sensors with
// missing readings are left out.
func (e *Engine) Proportions() (common []float64, power float64) {
	sizes := make([]float64, e.P) // squares of the signals' sizes
	var rows [][]float64
	for mu := range e.M {
		if y := e.Y[mu*e.P : (mu+1)*e.P]; blas64.Nrm2(vector(y)) > 0 { // false for NaN
			for k, v := range y {
				sizes[k] += v * v
			}
			rows = append(rows, slices.Clone(y))
		}
	}
	for _, y := range rows {
		for k, size := range sizes {
			y[k] /= math.Sqrt(max(size, math.SmallestNonzeroFloat64))
		}
		scale(y, 1/blas64.Nrm2(vector(y)))
	}
	common = make([]float64, e.P)
	for k := range common {
		common[k] = 1 + float64(k%7)/7 // like no signal's sign
	}
	for range powerSteps { // towards the leading eigenvector of the mean of y yᵀ
		next := make([]float64, e.P)
		for _, y := range rows {
			blas64.Axpy(blas64.Dot(vector(y), vector(common)), vector(y), vector(next))
		}
		length := blas64.Nrm2(vector(next))
		if !(length > 0) {
			return common, 0
		}
		power = length / (blas64.Nrm2(vector(common)) * float64(len(rows)))
		scale(next, 1/length)
		common = next
	}
	for k, size := range sizes {
		common[k] *= math.Sqrt(size)
	}
	scale(common, 1/blas64.Nrm2(vector(common)))
	return common, power
}

// NewJoint is for an engine whose readings are set; learned says that the model
// is. It is nil when the signals do not look alike, or W is no matrix in memory of moderate size.
// The error is that of rows of W which could not be read.
func NewJoint(e *Engine, learned bool) (*Joint, error) {
	if e.P < 2 {
		return nil, nil
	}
	common, alike := e.Proportions()
	if !(alike > Alike) {
		return nil, nil
	}
	return newJoint(e, common, alike, learned)
}

func newJoint(e *Engine, common []float64, alike float64, learned bool) (*Joint, error) {
	gain, ok := channel.Unwrap(e.Channel).(channel.Gain)
	w, seen := e.W.(operator.Matrix)
	_, streamed := e.W.(operator.Streamed)
	bytes := 16 * int64(e.M) * int64(e.N) * int64(e.P)
	if !ok || gain.Saturation > 0 || !seen || streamed || e.M*e.N > mostJoint || bytes > int64(memory.Total())/2 {
		return nil, nil
	}
	j := &Joint{
		Alike: alike, engine: e, common: common, w: mat.NewDense(e.M, e.N, nil),
		tau: make([]float64, e.M), ds: make([]float64, e.M),
		gains:   blas64.Symmetric{N: e.M, Stride: e.M, Data: make([]float64, e.M*e.M), Uplo: blas.Upper},
		signals: make([]jointSignal, e.P), moved: make([]float64, e.P), shifts: make([]int, e.N),
	}
	for mu := range e.M {
		if err := w.RowInto(j.w.RawRowView(mu), mu); err != nil {
			return nil, err
		}
	}
	if e.border != nil {
		j.border = mat.NewDense(e.border.w.Extra, e.M, nil)
		row := make([]float64, e.N+e.border.w.Extra)
		for mu := range e.M {
			if err := e.border.w.RowInto(row, mu); err != nil {
				return nil, err
			}
			j.border.SetCol(mu, row[e.N:])
		}
	}
	for k := range j.signals {
		s := &j.signals[k]
		s.y, s.weight, s.rest = make([]float64, e.M), make([]float64, e.M), make([]float64, e.M)
	}
	power, _ := e.power()
	j.begins = (1 - alike) * power
	if learned {
		j.rounds = 1
	}
	return j, nil
}

// start notes the channel of a run, and adds the noise that it starts with.
func (j *Joint) start() {
	j.unsettle()
	j.heat()
}

// unsettle says that the next step will be large.
func (j *Joint) unsettle() {
	for k := range j.moved {
		j.moved[k] = math.Inf(1)
	}
}

func (j *Joint) heat() {
	j.channel, j.added = j.engine.Channel, j.begins
}

// cool is called before every iteration: it takes away a little of the added
// noise, and in the end all of it. Until then no sensor is called broken: that
// is decided by what the noise hides.
func (j *Joint) cool() {
	switch j.since++; {
	case j.added > 0:
		j.added *= cooling
		j.since = 0
	case j.rounds > 0 && j.since > learnFor:
		j.rounds--
		j.heat()
	default:
		return
	}
	if j.added < coolest*j.begins {
		j.stop()
		return
	}
	j.engine.Channel = channel.Unwrap(j.channel).(channel.Gain).WithNoise(j.added)
}

// stop takes away what is left of the added noise.
func (j *Joint) stop() {
	if j.added > 0 {
		j.added = 0
		j.engine.Channel = j.channel
	}
}

// cold reports whether the channel is the problem's, and last whether it stays so.
func (j *Joint) cold() bool { return j.added == 0 }
func (j *Joint) last() bool { return j.added == 0 && j.rounds == 0 }

// due reports whether iteration t is followed by a step.
func (j *Joint) due(t int) bool { return t%jointEvery == 0 }

// gain is the channel of working sensors at present.
func (j *Joint) gain() channel.Gain { return channel.Unwrap(j.engine.Channel).(channel.Gain) }

// step moves gains and signals, or nothing where the system is beyond double
// precision. When asked it looks for entries to be shifted first.
func (j *Joint) step(shift bool) {
	if !j.assemble() || !j.solvable() {
		return
	}
	if shift && j.shift() {
		defer j.unsettle()
		if !j.assemble() || !j.solvable() {
			return
		}
	}
	e := j.engine
	clear(j.ds)
	for k := range j.signals {
		s := &j.signals[k]
		for mu, g := range s.solve(s.rest) {
			j.ds[mu] -= s.y[mu] * g
		}
	}
	lapack64.Potrs(j.factor, column(j.ds))
	prior := j.gain().Prior
	for mu, s := range e.S {
		j.ds[mu] = min(max(s+j.ds[mu], prior.Lo), prior.Hi) - s
	}
	parallel.Run(e.P, e.Threads, j.move)
	e.nextPull = 0
	for k := range e.P {
		e.nextPull += e.pull(k)
	}
}

// assemble sets up the system.
func (j *Joint) assemble() bool {
	e := j.engine
	noise := j.gain().NoiseVar
	v, _ := e.MeanV()
	least := max(noise, jointNoise*v)
	parallel.Run(e.P, e.Threads, func(k int) {
		j.read(k, noise, least)
		j.choose(k)
		j.signals[k].eliminate(j.w)
	})
	clear(j.gains.Data)
	for mu, broken := range e.Broken {
		// What the posterior of s knows beyond the likelihood is the prior's; of a
		// broken sensor it knows nothing else.
		j.tau[mu] = (1-broken)*max(0, 1/e.SVar[mu]-e.Tau[mu]) + broken/e.SVar[mu]
		total := j.tau[mu]
		for k := range j.signals {
			s := &j.signals[k]
			total += s.y[mu] * (s.y[mu] * s.weight[mu])
		}
		j.gains.Data[mu*e.M+mu] = total
	}
	for k := range j.signals {
		s := &j.signals[k]
		if !s.solvable {
			return false
		}
		if len(s.active) > 0 {
			blas64.Syrk(blas.Trans, -1, s.follow, 1, j.gains)
		}
	}
	return true
}

// solvable factors the gains' system.
func (j *Joint) solvable() (ok bool) {
	j.factor, ok = lapack64.Potrf(j.gains)
	return ok
}

// read fills in the readings of signal k and what is left of them.
func (j *Joint) read(k int, noise, least float64) {
	e, s := j.engine, &j.signals[k]
	blas64.Gemv(blas.NoTrans, -1, j.w.RawMatrix(), vector(e.X[k*e.N:(k+1)*e.N]), 0, vector(s.rest))
	for mu := range e.M {
		at := mu*e.P + k
		if y := e.Y[at]; math.IsNaN(y) {
			s.y[mu], s.weight[mu], s.rest[mu] = 0, 0, 0
		} else {
			s.y[mu] = y
			s.weight[mu] = (1 - e.Broken[mu]) / least
			s.rest[mu] += e.S[mu]*y - noise*e.G[at]
		}
	}
}

// choose lists the entries of signal k that move, with their part of the system.
func (j *Joint) choose(k int) {
	e, s := j.engine, &j.signals[k]
	s.active, s.inverse, s.pull = s.active[:0], s.inverse[:0], s.pull[:0]
	most := e.Prior.Variance()
	for i := range e.N {
		at := k*e.N + i
		c, sigma := e.C[at], e.Sigma[at]
		if math.IsInf(sigma, 1) {
			continue
		}
		inverse := c * sigma / (sigma - c)
		if !(inverse > 0 && inverse < most) { // an entry in doubt between zero and not
			inverse = most
		}
		if inverse < leastActive*most {
			continue
		}
		pull := e.r[at] - (e.Lambda[at]-e.X[at])/sigma
		s.active, s.inverse, s.pull = append(s.active, i), append(s.inverse, inverse), append(s.pull, pull)
		for mu := range s.rest {
			s.rest[mu] -= j.w.At(mu, i) * inverse * pull
		}
	}
}

// eliminate expresses the signal by the gains.
func (s *jointSignal) eliminate(w *mat.Dense) {
	n, m := len(s.active), len(s.y)
	s.solvable = true
	if n == 0 {
		return
	}
	s.columns, s.follow = resized(s.columns, n, m), resized(s.follow, n, m)
	for mu, weight := range s.weight {
		row, root := w.RawRowView(mu), math.Sqrt(weight)
		for a, i := range s.active {
			v := root * row[i]
			s.columns.Data[a*m+mu] = v
			s.follow.Data[a*m+mu] = v * root * s.y[mu]
		}
	}
	b := blas64.Symmetric{N: n, Stride: n, Data: make([]float64, n*n), Uplo: blas.Upper}
	for a, inverse := range s.inverse {
		b.Data[a*n+a] = 1 / inverse
	}
	blas64.Syrk(blas.NoTrans, 1, s.columns, 1, b)
	if s.factor, s.solvable = lapack64.Potrf(b); s.solvable {
		blas64.Trsm(blas.Left, blas.Trans, 1, s.factor, s.follow)
	}
}

// solve returns (Δ + W Λ⁻¹ Wᵀ)⁻¹ v.
func (s *jointSignal) solve(v []float64) []float64 {
	out := make([]float64, len(v))
	for mu, w := range s.weight {
		out[mu] = math.Sqrt(w) * v[mu]
	}
	if len(s.active) > 0 {
		a := make([]float64, len(s.active))
		blas64.Gemv(blas.NoTrans, 1, s.columns, vector(out), 0, vector(a))
		lapack64.Potrs(s.factor, column(a))
		blas64.Gemv(blas.Trans, -1, s.columns, vector(a), 1, vector(out))
	}
	for mu, w := range s.weight {
		out[mu] *= math.Sqrt(w)
	}
	return out
}

// move applies the step to signal k.
func (j *Joint) move(k int) {
	e, s := j.engine, &j.signals[k]
	v := make([]float64, e.M)
	for mu, ds := range j.ds {
		v[mu] = ds*s.y[mu] + s.rest[mu]
	}
	dg := s.solve(v)
	back := make([]float64, e.N)
	blas64.Gemv(blas.Trans, 1, j.w.RawMatrix(), vector(dg), 0, vector(back))
	for mu, d := range dg {
		e.G[mu*e.P+k] += d
	}
	from, square := k*e.N, 0.0
	for a, i := range s.active {
		dx := s.inverse[a] * (back[i] + s.pull[a])
		e.X[from+i] += dx
		square += dx * dx
	}
	j.moved[k] = math.Sqrt(square)
	for i, d := range back {
		e.centre[from+i] = e.X[from+i]
		if sigma := e.Sigma[from+i]; !math.IsInf(sigma, 1) {
			e.Lambda[from+i] = e.X[from+i] + sigma*(e.r[from+i]+d)
		}
	}
	if j.border != nil {
		j.moveBorder(k, dg)
	}
}

// moveBorder does the same for what the removal of means added.
func (j *Joint) moveBorder(k int, dg []float64) {
	e := j.engine
	b := e.border
	for a, combination := range b.w.Combinations {
		at := k*b.w.Extra + a
		b.x[at] = blas64.Dot(vector(combination), vector(e.X[k*e.N:(k+1)*e.N]))
		b.centre[at] = b.x[at]
		// A flat prior does not pull: W̃ᵀg stays zero.
		b.g[a*e.P+k] -= blas64.Dot(vector(j.border.RawRowView(a)), vector(dg)) / b.w.Pivots[a]
	}
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Data: v, Inc: 1} }

func column(v []float64) blas64.General {
	return blas64.General{Rows: len(v), Cols: 1, Stride: 1, Data: v}
}

// resized is g with another shape, and any content.
func resized(g blas64.General, rows, cols int) blas64.General {
	if cap(g.Data) < rows*cols {
		g.Data = make([]float64, rows*cols)
	}
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: g.Data[:rows*cols]}
}
