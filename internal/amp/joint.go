package amp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// jointMoves helps an iteration on signals that W hardly distinguishes: when all
// sensors read them in the same proportions, gains can take the place of what
// the signals have in common. AMP takes the P readings of a sensor for
// independent given its gain, is sure of the gains long before it should be, and then
// creeps. So from time to time Newton's step moves all gains and signals together. At a
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
// Entries whose estimates are all off by the same multiple of what the
// signals have in common are looked for as well, see [jointMoves.shift]. The system
// also gives the error bars of the gains, since AMP's leave out that the signals'
// errors are the same. Not in the paper. Joint rows do not replace it where signals have supports of their own: by the default way intervals of s of 2 and 3 positive signals behind masks cover 79 and 89 %
// without it, at worst 28 and 61 %, after 6 and 12 s (95 and 96 %, at worst 92 and 90 %, after 2 and .2 s, with it); those of sandals 15 to 32 %.
type jointMoves struct {
	Idle

	state  *State
	w      *mat.Dense // M×N
	border *mat.Dense // extra×M: the further columns of W without its means
	common []float64  // P, see [Proportions]

	tau, ds []float64    // M: precision of the prior of s, and its step
	gains   dense.Matrix // M×M, below the diagonal: the gains' part of the system when the signals follow, then L of it
	signals []jointSignal
	shifts  []int // N: how often an entry was shifted
}

// jointSignal is one signal's part of the system.
type jointSignal struct {
	y, weight, rest []float64    // M: readings, and one over their noise, 0 where missing; q - W p/Λ
	active          []int        // entries that move
	inverse, pull   []float64    // of these, 1/Λ and p
	columns         dense.Matrix // active×M: Wᵀ/√Δ
	factor          dense.Matrix // below the diagonal: L of Λ + WᵀW/Δ = LLᵀ, or of the readings' 1 + WΛ⁻¹Wᵀ/Δ where these are fewer
	follow          dense.Matrix // active×M: L⁻¹ Wᵀ y/Δ, or M×M: L⁻¹ y/√Δ
	solvable        bool
}

const (
	// mostJoint is the number of entries of W up to which a step takes seconds.
	mostJoint = 4 << 20

	// A step is taken every so many iterations; the first ones go too far by themselves.
	jointEvery = 20

	// leastActive is the variance that the prior leaves an entry, relative to
	// the prior's own, below which it does not move.
	leastActive = 1e-3

	// jointNoise is the least noise of the system, relative to V, for the sake
	// of rounding.
	jointNoise = 1e-3
)

// newJointMoves is for signals with common proportions.
func newJointMoves(s *State, w operator.Matrix, common []float64) (*jointMoves, error) {
	j := &jointMoves{
		state: s, common: common, w: mat.NewDense(s.M, s.N, nil),
		tau: make([]float64, s.M), ds: make([]float64, s.M),
		gains:   dense.New(s.M, s.M),
		signals: make([]jointSignal, s.P), shifts: make([]int, s.N),
	}
	for mu := range s.M {
		if err := w.RowInto(j.w.RawRowView(mu), mu); err != nil {
			return nil, err
		}
	}
	for k := range j.signals {
		p := &j.signals[k]
		p.y, p.weight, p.rest = make([]float64, s.M), make([]float64, s.M), make([]float64, s.M)
	}
	return j, j.readBorder()
}

// readBorder copies the further columns of a W without its means.
func (j *jointMoves) readBorder() error {
	further := j.state.further
	if further.Extra == 0 {
		return nil
	}
	j.border = mat.NewDense(further.Extra, j.state.M, nil)
	row := make([]float64, j.state.N+further.Extra)
	for mu := range j.state.M {
		if err := further.Operator.(operator.Matrix).RowInto(row, mu); err != nil {
			return err
		}
		j.border.SetCol(mu, row[j.state.N:])
	}
	return nil
}

// After moves gains and signals every few iterations, with shifts where the
// iteration and the model have converged.
func (j *jointMoves) After(s *Solver, l *Line) Verdict {
	if l.Index%jointEvery != 0 {
		return GoOn
	}
	j.step(l.Change < shiftBelow && j.state.ModelMoved < 1)
	s.damping.jumped()
	return GoOn
}

// unsettle says that the next step will be large.
func (j *jointMoves) unsettle() {
	for k := range j.state.Left {
		j.state.Left[k] = math.Inf(1)
	}
}

// step moves gains and signals, or nothing where the system is beyond double
// precision. When asked it looks for entries to be shifted first.
func (j *jointMoves) step(shift bool) {
	if !j.assemble() || !j.solvable() {
		return
	}
	if shift && j.shift() {
		defer j.unsettle()
		if !j.assemble() || !j.solvable() {
			return
		}
	}
	e := j.state
	j.solveGains()
	lo, hi := e.calibration.Range()
	for mu, s := range e.S {
		j.ds[mu] = min(max(s+j.ds[mu], lo), hi) - s
	}
	parallel.Run(e.P, e.Threads, j.move)
	e.sumPulls()
}

// solveGains sets the changes of s, with signals eliminated.
func (j *jointMoves) solveGains() {
	clear(j.ds)
	for k := range j.signals {
		s := &j.signals[k]
		for mu, g := range s.solve(s.rest) {
			j.ds[mu] -= s.y[mu] * g
		}
	}
	dense.Solve(j.gains, j.ds)
}

// assemble sets up the system.
func (j *jointMoves) assemble() bool {
	e := j.state
	least := jointNoise * Mean(e.V)
	parallel.Run(e.P, e.Threads, func(k int) {
		j.read(k, least, e.X[k*e.N:(k+1)*e.N])
		j.choose(k)
		j.signals[k].eliminate(j.w)
	})
	j.sites()
	return j.follows()
}

// follows takes what signals leave open from the gains' system; false where one of them is beyond double precision.
func (j *jointMoves) follows() bool {
	for k := range j.signals {
		s := &j.signals[k]
		if !s.solvable {
			return false
		}
		if sign := s.sign(); len(s.active) > 0 {
			dense.AddProduct(j.gains, sign, s.follow.T(), s.follow, dense.Lower, j.state.Threads)
		}
	}
	return true
}

// sites sets the part of the gains' system that is their own.
func (j *jointMoves) sites() {
	e := j.state
	clear(j.gains.Data)
	for mu, broken := range e.Broken {
		// What the posterior of s knows beyond the likelihood is the prior's; of a
		// broken sensor it knows nothing else.
		j.tau[mu] = (1-broken)*max(0, 1/e.SVar[mu]-e.calibration.Information(e.Of(e.Stats, mu))) + broken/e.SVar[mu]
		total := j.tau[mu]
		for k := range j.signals {
			s := &j.signals[k]
			if !s.byReadings() {
				total += s.y[mu] * (s.y[mu] * s.weight[mu])
			}
		}
		j.gains.Data[mu*e.M+mu] = total
	}
}

// solvable factors the gains' system.
func (j *jointMoves) solvable() bool { return dense.Factor(j.gains, j.state.Threads) }

// read fills in the readings of signal k and what x leaves of them, with noise of no less than
// least.
func (j *jointMoves) read(k int, least float64, x []float64) {
	e, s := j.state, &j.signals[k]
	blas64.Gemv(blas.NoTrans, -1, j.w.RawMatrix(), vector(x), 0, vector(s.rest))
	for mu := range e.M {
		at := mu*e.P + k
		if y := e.Y[at]; math.IsNaN(y) {
			s.y[mu], s.weight[mu], s.rest[mu] = 0, 0, 0
		} else {
			noise := e.Noise(at)
			s.y[mu] = y
			s.weight[mu] = (1 - e.Broken[mu]) / max(noise, least)
			s.rest[mu] += e.S[mu]*y - noise*e.G[at]
		}
	}
}

// choose lists the entries of signal k that move, with their part of the system.
func (j *jointMoves) choose(k int) {
	e, s := j.state, &j.signals[k]
	s.active, s.inverse, s.pull = s.active[:0], s.inverse[:0], s.pull[:0]
	for i := range e.N {
		at, most := k*e.N+i, prior.At(e.model.Prior, i).Variance()
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
		pull := e.Onward[at] - (e.Lambda[at]-e.X[at])/sigma
		s.active, s.inverse, s.pull = append(s.active, i), append(s.inverse, inverse), append(s.pull, pull)
		for mu := range s.rest {
			s.rest[mu] -= j.w.At(mu, i) * inverse * pull
		}
	}
}

// byReadings reports whether the signal is eliminated in the space of its readings, which are fewer than the entries that move.
func (s *jointSignal) byReadings() bool { return len(s.active) > len(s.y) }

// eliminate expresses the signal by the gains.
func (s *jointSignal) eliminate(w *mat.Dense) {
	n, m := len(s.active), len(s.y)
	s.solvable = true
	if n == 0 {
		return
	}
	s.columns = resized(s.columns, n, m)
	for mu, weight := range s.weight {
		row, root := w.RawRowView(mu), math.Sqrt(weight)
		for a, i := range s.active {
			s.columns.Data[a*m+mu] = root * row[i]
		}
	}
	if s.byReadings() {
		s.ofReadings()
	} else {
		s.ofEntries()
	}
	if s.solvable {
		dense.SolveLower(s.factor, s.follow, 1)
	}
}

// ofEntries factors what is known of entries, whose part of the gains' system is y/Δ y less the square of follow.
func (s *jointSignal) ofEntries() {
	n, m := s.columns.Rows, s.columns.Columns
	s.factor, s.follow = cleared(s.factor, n, n), resized(s.follow, n, m)
	for a, inverse := range s.inverse {
		s.factor.Data[a*n+a] = 1 / inverse
		for mu, c := range s.columns.Row(a) {
			s.follow.Data[a*m+mu] = c * math.Sqrt(s.weight[mu]) * s.y[mu]
		}
	}
	dense.AddProduct(s.factor, 1, s.columns, s.columns.T(), dense.Lower, 1)
	s.solvable = dense.Factor(s.factor, 1)
}

// ofReadings factors how far readings spread, y/√Δ (1 + WΛ⁻¹Wᵀ/Δ)⁻¹ y/√Δ being the gains' system, the square of follow.
func (s *jointSignal) ofReadings() {
	m, spread := len(s.y), dense.New(s.columns.Rows, s.columns.Columns)
	s.factor, s.follow = cleared(s.factor, m, m), cleared(s.follow, m, m)
	for a, inverse := range s.inverse {
		floats.AddScaled(spread.Row(a), inverse, s.columns.Row(a))
	}
	for mu, weight := range s.weight {
		s.factor.Data[mu*m+mu], s.follow.Data[mu*m+mu] = 1, s.y[mu]*math.Sqrt(weight)
	}
	dense.AddProduct(s.factor, 1, s.columns.T(), spread, dense.Lower, 1)
	s.solvable = dense.Factor(s.factor, 1)
}

// sign is that of the square of follow in the gains' system.
func (s *jointSignal) sign() float64 {
	if s.byReadings() {
		return 1
	}
	return -1
}

// followed are how the active entries follow the gains (active×M), dx = K ds, and the variances of these with the gains known. The factor is used up.
func (s *jointSignal) followed() (moves dense.Matrix, alone []float64) {
	moves = dense.New(len(s.active), len(s.y))
	if !s.byReadings() {
		alone = dense.InvertDiagonal(s.factor, 1)
		dense.AddProduct(moves, 1, s.factor.T(), s.follow, dense.All, 1)
		return moves, alone
	}
	dense.SolveRight(s.factor, s.columns, 1)
	dense.AddProduct(moves, 1, s.columns, s.follow, dense.All, 1)
	alone = make([]float64, len(s.active))
	for a, inverse := range s.inverse {
		floats.Scale(inverse, moves.Row(a))
		alone[a] = max(0, inverse-inverse*inverse*floats.Dot(s.columns.Row(a), s.columns.Row(a)))
	}
	return moves, alone
}

// solve returns (Δ + W Λ⁻¹ Wᵀ)⁻¹ v.
func (s *jointSignal) solve(v []float64) []float64 {
	out := make([]float64, len(v))
	for mu, w := range s.weight {
		out[mu] = math.Sqrt(w) * v[mu]
	}
	switch {
	case s.byReadings():
		dense.Solve(s.factor, out)
	case len(s.active) > 0:
		a, columns := make([]float64, len(s.active)), general(s.columns)
		blas64.Gemv(blas.NoTrans, 1, columns, vector(out), 0, vector(a))
		dense.Solve(s.factor, a)
		blas64.Gemv(blas.Trans, -1, columns, vector(a), 1, vector(out))
	}
	for mu, w := range s.weight {
		out[mu] *= math.Sqrt(w)
	}
	return out
}

// move applies the step to signal k.
func (j *jointMoves) move(k int) {
	e, s := j.state, &j.signals[k]
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
	e.Left[k] = math.Sqrt(square)
	for i, d := range back {
		e.Centre[from+i] = e.X[from+i]
		if sigma := e.Sigma[from+i]; !math.IsInf(sigma, 1) {
			e.Lambda[from+i] = e.X[from+i] + sigma*(e.Onward[from+i]+d)
		}
	}
	j.moveFurther(k, dg)
}

// moveFurther does the same for the further entries and rows.
func (j *jointMoves) moveFurther(k int, dg []float64) {
	e := j.state
	all, further := &e.all, e.further
	for a, combination := range further.Combinations(k) {
		at := e.P*e.N + k*further.Extra + a
		all.x[at] = blas64.Dot(vector(combination), vector(e.X[k*e.N:(k+1)*e.N]))
		all.centre[at] = all.x[at]
		// A flat prior does not pull: W̃ᵀg stays zero.
		all.g[(e.M+a)*e.P+k] -= blas64.Dot(vector(j.border.RawRowView(a)), vector(dg)) / further.Pivots(k)[a]
	}
}

// general is a matrix that is no transpose, for products with a vector.
func general(a dense.Matrix) blas64.General {
	return blas64.General{Rows: a.Rows, Cols: a.Columns, Stride: a.Down, Data: a.Data}
}

// resized is a with another shape, and any content.
func resized(a dense.Matrix, rows, columns int) dense.Matrix {
	return dense.Of(slices.Grow(a.Data[:0], rows*columns)[:rows*columns], rows, columns)
}

// cleared is a matrix of zeros that takes the place of a.
func cleared(a dense.Matrix, rows, columns int) dense.Matrix {
	a = resized(a, rows, columns)
	clear(a.Data)
	return a
}
