package amp

import (
	"context"
	"math"
	"runtime"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/layers"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Model is what is known of signals and sensors, or has been learned so far.
type Model struct {
	Prior   prior.Prior
	Channel channel.Channel
}

// State is what an iteration works on, and all that is read from it in the end, parted by who it belongs to.
// Arrays of signals' entries are P×N (signal by signal), those of readings M×P
// (sensor by sensor), both row-major. Where sensors have several rows, M×P stands for
// M×Each: a sensor's rows lie together (see [State.Each]).
//
// A matrix without its means has further entries and rows ([operator.Centred]).
// They stand behind the others in the arrays of all, which iterations use: P×Extra
// entries with a flat prior, and Extra×P readings of exactly zero without noise.
// Everybody else sees the arrays without them.
type State struct {
	sensorState
	messages
	modelState
	ledger
	gauge
	undo
}

// extent is how large the problem is, and its matrix.
type extent struct {
	M, N, P int // P counts columns: a complex signal has two, its real and its imaginary parts
	Each    int // readings of a sensor: P for each of its rows, one after the other
	Threads int
	W       operator.Operator // as it is read, with its means

	columns int               // of a signal: 2 where it is complex
	width   int               // of the statistics of a sensor
	further *operator.Centred // further entries and rows; without any where W is as given
}

// sensorState is what sensors have read, and what is known of them.
type sensorState struct {
	extent

	Y []float64 // M×P readings, NaN where missing; set by the caller

	Stats         []float64 // M×Width statistics of s
	S, SVar, LogZ []float64 // M posterior of s, log Z_out
	O, OVar       []float64 // M posterior of the sensors' offsets; 0 where the channel has none
	Phase         []float64 // M argument of the mean of s, whose modulus is S; 0 where gains are real
	Broken        []float64 // M probability that a sensor is broken

	Past Past

	excess      []float64     // M×P noise of a reading beyond the channel's; nil where all have that
	logPrior    []float64     // M, of the noise that was learned of every sensor; nil where none was
	learnedEach bool          // the noise of every sensor was learned from its own residuals
	sensors     channel.Block // all of them
	rest        channel.Block // the further rows
}

// messages are what entries and readings say of each other.
type messages struct {
	X, C           []float64 // P×N posterior mean, and variance, damped
	Lambda, Sigma  []float64 // P×N the field they were computed from
	Omega, V       []float64 // M×P mean and variance of z before its reading
	U              []float64 // M×P what channels see of V: with the noise of [State.SetNoise]; V itself without
	G, DG          []float64 // M×P output functions, damped
	Centre, Onward []float64 // P×N what fields are offsets from: X, damped; Σ W g of the last sweep; nil for vector AMP

	all    arrays
	linear [][]float64                           // arrays that are as large as the signals: the scale step multiplies them
	turned struct{ entries, readings []float64 } // of an iteration, as long as those of all, that turn with complex signals, too
	fresh  bool                                  // Reset, and not iterated since
	start  *Start                                // of x̂ and C; nil for those of the prior
	uneven []float64                             // P×N, what is added to x̂ at the start; nil for nothing

	// What signals have in common (see [exchangeable]): the covariance of two signals' z, which V has in it, and the sums of ∂g over
	// all pairs of signals (both M); nil in other iterations.
	common  []float64
	sumDG   []float64
	squares []float64 // N, (C + (x̂-λ)²)/Σ of an entry's signals together
}

// modelState is the model, and what goes beside it.
type modelState struct {
	model       Model
	calibration channel.Calibration // the model's; nil where there is none

	// Amplitude (P) is how large each signal is, relative to what the prior says; nil where
	// all are equally large.
	Amplitude []float64

	network       *layers.Node                                      // what signals come out of (see [planner.network]); nil where entries are independent
	networkScales bool                                              // signals of another scale are those of latents of another scale
	displaced     *Displacements                                    // whose rows of W move; nil where none does
	follows       *MatrixErrors                                     // whose excess follows the signals; nil where none does
	typicalRow    float64                                           // the squared norm of a typical row of W, where a prior is learned
	correlated    func(mu int, y, stats, without []float64) float64 // log Z_out of a sensor where covariances are followed; nil elsewhere (see [jointRows])
	steadied      func(ratio float64) float64                       // the factor of a step of the noise, for what the residuals say; nil where it is that
}

// ledger is how a run goes on, and what its parts tell each other.
type ledger struct {
	// Change of each signal in the last step, before damping: ‖x̂_new - x̂‖ and
	// ‖x̂_new‖, and the sum of its posterior variances. Along is the part of
	// Moved that only changes the signal's scale. Of a complex signal all of them
	// both columns, as root mean squares over the two.
	Moved, Norm, SumC, Along []float64

	// Left is how far parts know each signal to be from its fixed point; +Inf
	// where none has said so.
	Left []float64

	Added        float64 // the variance of noise that the channel has at present on top of the model's own
	ModelMoved   float64 // how far the latest re-fit moved the model, in standard errors
	Standing     bool    // the signals stand still, however the model may creep
	ScaleLearned bool    // the prior takes its scale from the signals

	// Placement is what is known of the logarithm of the factor by which X and S are to be
	// multiplied, and with it is the uncertainty of the scale (see [Solver.Report]).
	Placement Placement

	// Unscored says that the evidence is not asked for: LogZ is not computed where that spares anything.
	Unscored bool

	ctx context.Context // of the present run: blocks of sensors ask it
}

// gauge are sums of the evidence along the scale, from the last iteration, and of complex signals along the phase.
type gauge struct {
	fieldPull float64 // S = Σ x̂(λ-x̂)/Σ for the x̂ that went into the last sweep
	nextPull  float64 // the same for the current x̂

	fieldTurn, nextTurn float64 // Σ Im x̂(λ-x̂)*/Σ
}

// undo is what takes an iteration back.
type undo struct {
	list       [][]float64 // what Save keeps
	saved      [][]float64
	savedGauge gauge
	own        undoing // of an iteration; nil where all that it changes is in list
}

// arrays are those of [State] with the further entries and rows behind the others.
type arrays struct {
	x, c, centre, lambda, sigma, r                []float64
	y, omega, v, u, g, dg                         []float64
	stats, past, s, phase, sVar, logZ, brokenness []float64
	o, oVar                                       []float64
}

// Past is what earlier samples of a stream taught of the sensors; all zero where
// there were none. The scale step rescales it: it is a copy for one sample.
type Past struct {
	Stats             []float64 // M×Width
	Quadratic, Volume float64   // sums Q+S and κ of the evidence along the scale
}

// newState allocates the state of p signals for sweeps over w, which is that of
// further where there is one. With unequal noise [State.SetNoise] can be called.
func newState(w operator.Operator, further *operator.Centred, model Model, p, rowsEach, threads int, unequal bool) *State {
	m, n := w.Dims()
	m /= rowsEach
	s := &State{}
	s.extent = extent{M: m, N: n, P: p, Each: rowsEach * p, Threads: threads, W: w, further: further, columns: prior.ColumnsOf(model.Prior)}
	if further == nil {
		s.further = &operator.Centred{}
	}
	s.Adopt(model)
	if s.calibration != nil {
		s.width = s.calibration.Width()
	}
	extra := s.further.Extra
	a := &s.all
	entries, readings, rows := p*(n+extra), m*s.Each+extra*p, m+extra
	for _, v := range []*[]float64{&a.x, &a.c, &a.lambda, &a.sigma} {
		*v = make([]float64, entries)
	}
	for _, v := range []*[]float64{&a.y, &a.omega, &a.v, &a.g, &a.dg} {
		*v = make([]float64, readings)
	}
	a.u = a.v
	if unequal {
		a.u, s.excess = make([]float64, readings), make([]float64, m*s.Each)
		s.logPrior = make([]float64, m)
	}
	for _, v := range []*[]float64{&a.s, &a.phase, &a.sVar, &a.logZ, &a.brokenness, &a.o, &a.oVar} {
		*v = make([]float64, rows)
	}
	a.stats, a.past = make([]float64, rows*s.width), make([]float64, rows*s.width)
	for _, v := range []*[]float64{&s.Moved, &s.Norm, &s.SumC, &s.Along, &s.Left} {
		*v = make([]float64, p)
	}
	pn, mp := p*n, m*s.Each
	s.X, s.C, s.Lambda, s.Sigma = a.x[:pn], a.c[:pn], a.lambda[:pn], a.sigma[:pn]
	s.Y, s.Omega, s.V, s.U, s.G, s.DG = a.y[:mp], a.omega[:mp], a.v[:mp], a.u[:mp], a.g[:mp], a.dg[:mp]
	s.O, s.OVar = a.o[:m], a.oVar[:m]
	s.S, s.SVar, s.LogZ, s.Broken = a.s[:m], a.sVar[:m], a.logZ[:m], a.brokenness[:m]
	s.Phase = a.phase[:m]
	s.Stats, s.Past.Stats = a.stats[:m*s.width], a.past[:m*s.width]
	s.sensors, s.rest = s.block(0, m), s.block(m, rows)
	s.list = [][]float64{
		a.omega, a.v, a.g, a.dg,
		a.stats, a.s, a.phase, a.sVar, a.o, a.oVar, a.logZ, a.brokenness, s.Norm, s.SumC,
	}
	if unequal {
		s.list = append(s.list, a.u, s.excess)
	}
	s.linear = [][]float64{a.x, a.g} // with g the next Onsager term belongs to the new x̂
	s.Reset()
	return s
}

// findFields is for iterations that find fields by sweeps: they are offsets from estimates.
func (s *State) findFields() {
	a, pn := &s.all, s.P*s.N
	a.centre, a.r = make([]float64, len(a.x)), make([]float64, len(a.x))
	s.Centre, s.Onward = a.centre[:pn], a.r[:pn]
	s.linear = append(s.linear, a.centre)
	s.turned.entries = a.centre
	s.keep(a.x, a.c, a.centre, a.lambda, a.sigma)
}

// MeanSquare is that of the entries by which signals differ: of W without its means where these are taken out.
func (s *extent) MeanSquare() float64 {
	if s.further.Extra > 0 {
		return s.further.MeanSquare()
	}
	return s.W.MeanSquare()
}

// block is the view of the sensors from … to, or of further rows behind all of them, as channels see it.
func (s *State) block(from, to int) channel.Block {
	a, width, first, end := &s.all, s.width, s.reading(from), s.reading(to)
	b := channel.Block{
		First: from, P: (end - first) / max(1, to-from),
		Y: a.y[first:end], Omega: a.omega[first:end], V: a.u[first:end],
		Past: a.past[from*width : to*width],
		G:    a.g[first:end], DG: a.dg[first:end],
		Stats: a.stats[from*width : to*width], S: a.s[from:to], Phase: a.phase[from:to], SVar: a.sVar[from:to],
		LogZ: a.logZ[from:to], Unscored: s.Unscored, Broken: a.brokenness[from:to],
		Offset: a.o[from:to], OffsetVar: a.oVar[from:to],
	}
	if s.sumDG != nil {
		b.Common, b.SumDG = s.common[from:to], s.sumDG[from:to]
	}
	if s.logPrior != nil && from < s.M {
		b.LogPrior = s.logPrior[from:to]
	}
	return b
}

// interrupted reports whether the run was cancelled. What takes long asks it block by block, and leaves out what is left: an iteration during
// which a run was cancelled is taken back.
func (s *ledger) interrupted() bool { return s.ctx != nil && s.ctx.Err() != nil }

// Columns is how many columns a signal has: 2 where it is complex.
func (s *extent) Columns() int { return s.columns }

// Model is the present one.
func (s *modelState) Model() Model { return s.model }

// Calibration is what the model knows of the sensors' calibration beforehand; nil
// where the channel does not calibrate.
func (s *modelState) Calibration() channel.Calibration { return s.calibration }

// Adopt changes the model: the one way in which it changes.
func (s *modelState) Adopt(m Model) {
	s.model = m
	s.calibration = channel.CalibrationOf(m.Channel)
	s.adoptLatents()
}

// adoptWorking is Adopt for the channel of sensors in order, beside broken ones.
func (s *modelState) adoptWorking(c channel.Channel) {
	m := s.model
	if f, ok := m.Channel.(channel.Contaminated); ok {
		c = f.WithInOrder(c)
	}
	m.Channel = c
	s.Adopt(m)
}

// adoptCalibration is Adopt for what is known of s.
func (s *modelState) adoptCalibration(c channel.Calibration) {
	s.adoptWorking(channel.InOrder(s.model.Channel).(channel.Calibrating).WithCalibration(c))
}

// Of returns the statistics of sensor mu, of an array such as Stats.
func (s *extent) Of(stats []float64, mu int) []float64 {
	return stats[mu*s.width : (mu+1)*s.width]
}

// Reset starts over: x̂ and C are those of the prior, g = 0.
func (s *State) Reset() {
	for i := range s.N {
		p := prior.At(s.model.Prior, i)
		mean, variance := p.Mean(), p.Variance()
		for j := i; j < len(s.X); j += s.N {
			s.X[j], s.C[j] = mean, variance
		}
	}
	if s.start != nil {
		copy(s.X, s.start.X)
		copy(s.C, s.start.C)
	}
	for i, x := range s.uneven {
		s.X[i] += x
	}
	for i := range s.all.sigma {
		s.all.sigma[i] = math.Inf(1)
	}
	s.startFurther()
	s.startNetwork()
	clear(s.all.g)
	clear(s.all.dg)
	clear(s.Broken)
	s.gauge = gauge{}
	s.fresh = true
}

// StartCalibration sets s to what is known of it beforehand, which is the answer of a
// run that ends before its first iteration.
func (s *State) StartCalibration() {
	mean, variance := 1.0, 0.0
	if s.calibration != nil {
		mean, variance = s.calibration.Moments()
	}
	for mu := range s.S {
		s.S[mu], s.SVar[mu] = mean, variance
	}
	if known := s.offsets(); known != nil {
		for mu := range s.OVar {
			s.O[mu], s.OVar[mu] = 0, known.OffsetSD()*known.OffsetSD()
		}
	}
}

// startFurther makes the further entries what the signals' start says they are.
func (s *State) startFurther() {
	a, first := &s.all, s.P*s.N
	for k := range s.P {
		for j, combination := range s.further.Combinations(k) {
			at := first + k*s.further.Extra + j
			a.x[at], a.c[at] = 0, 0
			for i, q := range combination {
				a.x[at] += q * s.X[k*s.N+i]
				a.c[at] += q * (q * s.C[k*s.N+i])
			}
		}
	}
	copy(a.sigma[first:], a.c[first:])
}

// posterior is that of the entries of a signal that start at from.
func (s *State) posterior(mean, variance []float64, from int) {
	to := from + len(mean)
	s.PriorOf(from/s.N).Posterior(mean, variance, s.Lambda[from:to], s.Sigma[from:to])
}

// rescale multiplies the signals' estimates by c, those of the past with them.
func (s *State) rescale(c float64) {
	for _, v := range s.linear {
		scale(v, c)
	}
	s.nextPull *= c * c
	s.nextTurn *= c * c
	if s.calibration != nil {
		s.calibration.Carry(s.Past.Stats, 1, c)
	}
	s.Past.Quadratic *= c * c
}

// pull is Σ_i x̂(λ-x̂)/Σ of the entries of signal k: minus the derivative in c of the
// prior's part of the evidence when x̂ is multiplied by c. (Of further entries it is zero.)
func (s *State) pull(k int) float64 {
	total := 0.0
	for i := k * s.N; i < (k+1)*s.N; i++ {
		total += s.X[i] * ((s.Lambda[i] - s.X[i]) / s.Sigma[i])
	}
	return total
}

func (s *State) sumPulls() {
	s.nextPull = 0
	for k := range s.P {
		s.nextPull += s.pull(k)
	}
	s.pullNetwork()
	s.sumTurns()
}

// Misfit compares the residuals with what the iteration expects of them,
// Σ g² / Σ -∂g over all readings: 1 when the model is right and W has
// independent entries, growing when the iteration is about to diverge.
func (s *messages) Misfit() float64 {
	var square, slope float64
	for j, g := range s.G {
		square += g * g
		slope -= s.DG[j]
	}
	return square / slope
}

// Confidence compares the signals with the field that they were computed from,
// the mean of (C + (x̂-λ)²)/Σ over all entries: 1 when the model is right and W
// has independent entries, below where the posterior variances are too small.
func (s *State) Confidence() float64 {
	if s.squares != nil {
		return sum(s.squares) / float64(s.N*s.P)
	}
	total, count := 0.0, 0.0
	for i, sigma := range s.Sigma {
		if !math.IsInf(sigma, 1) {
			d := s.X[i] - s.Lambda[i]
			total += (s.C[i] + d*d) / sigma
			count++
		}
	}
	return total / count
}

// Power is the typical mean square of a sensor's corrected readings, whatever a
// few sensors do, and the number of readings.
func (s *sensorState) Power() (typical, count float64) {
	squares := make([]float64, 0, s.M)
	for mu, calibration := range s.S {
		if s.columns == 2 { // the mean of a complex one is none of its size while its phase is unknown
			calibration = math.Sqrt(calibration*calibration + s.SVar[mu])
		}
		total, n := 0.0, 0.0
		for _, y := range s.Y[mu*s.Each : (mu+1)*s.Each] {
			if y -= s.O[mu]; !math.IsNaN(y) {
				total += calibration * y * calibration * y
				n++
			}
		}
		if n > 0 {
			squares = append(squares, total/n)
			count += n
		}
	}
	if len(squares) == 0 {
		return 0, 0
	}
	return search.Select(squares, len(squares)/2), count
}

// meanPower is the mean square of the corrected readings in use. Where few readings have most of the power, as behind rows of a Hadamard matrix, it
// is far above the typical one.
func (s *sensorState) meanPower() float64 {
	total, count := 0.0, 0.0
	for mu, calibration := range s.S {
		if s.OutOfOrder(mu) {
			continue
		}
		square := calibration * calibration
		if s.columns == 2 {
			square += s.SVar[mu]
		}
		for _, y := range s.Y[mu*s.Each : (mu+1)*s.Each] {
			if y -= s.O[mu]; !math.IsNaN(y) {
				total += square * y * y
				count++
			}
		}
	}
	return total / max(count, 1)
}

// undoing is an iteration that can take its latest step back, as far as it is not in what Save keeps.
type undoing interface {
	takeBack()           // follows the return of what was kept
	forget() (bytes int) // gives up what it takes that from
}

// keep adds arrays of an iteration's own to what Save keeps.
func (s *undo) keep(arrays ...[]float64) { s.list = append(s.list, arrays...) }

// widen puts another array, and what Save kept of it, in the place of one.
func (s *undo) widen(array []float64, by func([]float64) []float64) (other []float64) {
	at := slices.IndexFunc(s.list, func(v []float64) bool { return &v[0] == &array[0] })
	other = slices.Clone(by(array))
	s.list[at] = other
	if s.saved != nil {
		s.saved[at] = by(s.saved[at])
	}
	return other
}

// Save keeps the present state for [State.Restore].
func (s *State) Save() {
	if s.saved == nil {
		s.saved = make([][]float64, len(s.list))
	}
	for i, v := range s.list {
		s.saved[i] = append(s.saved[i][:0], v...)
	}
	s.savedGauge = s.gauge
}

// Forget gives up what the latest [State.Save] kept: it is for a run that has ended. The
// memory of large problems is given back at once, since what is made of the state needs
// some, and the garbage collector would wait until twice as much is in use.
func (s *undo) Forget() {
	size := 0
	for _, v := range s.saved {
		size += 8 * len(v)
	}
	s.saved = nil
	if s.own != nil {
		size += s.own.forget()
	}
	if size > worthCollecting {
		runtime.GC()
	}
}

const worthCollecting = 64 << 20 // bytes

// Restore returns to the state of the latest [State.Save].
func (s *State) Restore() {
	for i, v := range s.saved {
		copy(s.list[i], v)
	}
	if s.own != nil {
		s.own.takeBack()
	}
	s.gauge = s.savedGauge
}

// finite reports whether the estimates can be returned: sums are no numbers where an entry is none.
func (s *State) finite() bool {
	return AllFinite(s.Norm) && AllFinite(s.SumC) && AllFinite(s.S)
}

// AllFinite reports whether none of the values is infinite, or no number.
func AllFinite(v []float64) bool {
	for _, x := range v {
		if math.IsNaN(x - x) {
			return false
		}
	}
	return true
}

func scale(v []float64, c float64) {
	for i := range v {
		v[i] *= c
	}
}

// Mean is the mean of values.
func Mean(v []float64) float64 { return sum(v) / float64(len(v)) }

func sum(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total
}
