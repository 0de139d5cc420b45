package online

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Calibrator is online cal-AMP on one set of sensors. Its memory does not grow,
// and after the first sample absorbing allocates nothing (with one thread), but where the
// range of s is tested, ever more seldom. It
// serves one caller at a time.
type Calibrator struct {
	solvers
	state    State       // changed by commit alone
	followed prior.Prior // of the next sample, where nothing is learned and its support is that of this one; nil elsewhere
	latest   []scene     // of that one, whose scene the state does not have then
	scales
	watching

	// Of the sample being absorbed.
	absorbed
	prediction

	workspace
}

// instrument is what does not change along a stream.
type instrument struct {
	opt     Options
	m, n    int
	choice  *operator.Choice // of W by the sample; nil where it is one for all
	parts   int              // of a number: 2 where it is complex
	rows    int              // of W of a sensor, of which the last may be none
	order   []int            // rows of W as they were given, by sensor; nil where each is one
	columns int              // numbers that are read of a sensor: parts of all its rows
}

// solvers are those of samples, and the models that they have.
type solvers struct {
	instrument

	*engine              // what samples are solved with at present
	sample    *amp.State // the solver's: of the sample being absorbed, and what it inherits
	asGiven   *engine    // of the model as it was given
	freed     *engine    // which learns a noise variance that was given; nil until that is doubted
	newEngine func(learnNoise bool) (*engine, error)
}

// scales is what holds the common scale.
type scales struct {
	even   *channel.GainPrior // range of gains that were declared uniform; nil without
	given  *channel.GainPrior // the same where that is tested; nil where it is not
	anchor calamp.Anchor
	held   calamp.Anchored // scale of the present sample
}

// watching looks for what the model does not have.
type watching struct {
	bank        *bank     // nil when drifts are not followed
	outliers    *outliers // nil when outliers are not looked for
	watched     offsetWatch
	rowsWatched rowWatch
	bent        amp.Bent  // residuals that grow with parameters of sensors, of samples that were learned from
	apart       *apart    // nil until gains are suspected to have changed
	unrelated   unrelated // what says that signals do not come out of their network
}

// absorbed is the sample being absorbed.
type absorbed struct {
	matrix    []float64  // which W it has, as [operator.Choice] says; nil before it is known
	y         []float64  // M×columns, NaN where missing
	beyond    []bool     // M, readings out of the range of arithmetic; they count as missing
	masked    []bool     // M, readings set aside because they do not fit
	noise     float64    // noise variance that readings are judged by, as learned before
	past      amp.Past   // what the sample inherits
	retention float64    // what is left of the past, in (0, 1]
	shortened int        // iteration at which the past was last tempered
	tempering bool       // the past may be weakened, whatever the memory
	change    *Change    // found in this sample
	lately    brightness // of the signals before it
	newScene  bool       // it is solved as one of another scene
	outcome   amp.Outcome
	moves     moves
	chi       []float64 // M, standardised residuals, NaN where missing
	spread    float64   // of the residuals: their median size, 1 for N(0, 1)
	scene     []float64 // M×columns, of the sample; see [scene]
	weight    float64   // for how much the sample counts
	estimate  Estimate
}

// prediction is what the past says of the sample.
type prediction struct {
	pastS    []float64 // M, mean of s given its past, moved by pastMove
	pastSVar []float64
	pastZ    []float64 // M, mean and variance of the z of the reading, given that past
	pastZVar []float64
	pastMean []complex128 // M, of complex gains
	pastMove move
}

// workspace has nothing that outlives a function.
type workspace struct {
	sizes            []float64 // M
	stats            []float64 // M×Width
	none, one        []float64 // Width, statistics of nothing, and of one sensor
	means, variances []float64 // M
	basis            []float64 // mostScenes×M×columns
}

// NewCalibrator prepares for samples of the M sensors whose rows are w's, with
// the signals' prior p and the sensors' channel g: a [channel.Gain] or any other that
// calibrates. opt may be nil. It returns an error for a model or options that
// make no sense.
func NewCalibrator(w operator.Operator, p prior.Prior, g channel.Calibrating, opt *Options) (*Calibrator, error) {
	if w == nil || p == nil || g == nil {
		panic("calamp: NewCalibrator needs W, the signals' prior and the channel")
	}
	full := opt.withDefaults()
	if channel.LimitOf(g) > 0 {
		return nil, fmt.Errorf("the channel: a stream cannot learn from clipped readings, give them as missing (NaN)")
	}
	if _, codes := channel.CodedOf(g); codes {
		return nil, errors.New("the channel: codes and counts are for offline problems, a stream takes readings as they are")
	}
	if channel.CalibrationOf(g) == nil {
		return nil, fmt.Errorf("the channel: a %T calibrates nothing that a stream could learn", g)
	}
	if err := checkWarmUp(&full, g); err != nil {
		return nil, fmt.Errorf("the channel: %w", err)
	}
	if full.LearnSensorNoise && channel.ColumnsOf(g) > 1 {
		return nil, errors.New("the channel: the noise of every sensor is learned of real readings only: learn one for all (LearnNoise), or give it (NoiseVar)")
	}
	_, persists := p.(following)
	chosen := persists && full.Block == 0
	if chosen {
		full.Block = AutoBlock
	}
	if err := checkBlock(&full, p, g); err != nil && !chosen {
		return nil, err
	} else if err != nil {
		full.Block = 1
	}
	g = startOffsets(&full, g)
	w, err := full.moved(w)
	if err != nil {
		return nil, err
	}
	_, n := w.Dims()
	c := &Calibrator{}
	c.instrument = instrument{opt: full, n: n, parts: channel.ColumnsOf(g), rows: 1}
	if w, err = c.gather(w); err != nil {
		return nil, err
	}
	c.choice = operator.ChoiceOf(w)
	m := c.m
	c.columns = c.rows * c.parts
	c.newEngine = func(learnNoise bool) (*engine, error) {
		return newEngine(c, w, amp.Model{Prior: p, Channel: g}, learnNoise)
	}
	given, err := c.newEngine(full.LearnNoise)
	if err != nil {
		return nil, err
	}
	c.asGiven = given
	c.run(given)
	if err := c.SetAnchor(full.Anchor); err != nil {
		return nil, err
	}
	if err := c.checkPhases(); err != nil {
		return nil, err
	}
	c.even = evenRange(c.sample.Calibration())
	if !insisted(&full) {
		c.given = c.even
	}
	width := c.sample.Calibration().Width()
	c.state = newState(m, width, full.nominalRetention())
	c.state.Complex = c.parts > 1
	if c.order != nil {
		c.state.Rows = c.rows
	}
	if known, ok := c.sample.Calibration().(channel.Informed); ok {
		if err := known.Inform(c.state.Stats); err != nil {
			return nil, err
		}
	}
	if full.follows() {
		c.bank = newBank(m, width, c.columns)
		c.state.Drift = newDrift(&c.state)
	}
	c.y, c.chi = make([]float64, m*c.columns), make([]float64, m)
	c.pastZ, c.pastZVar = make([]float64, m), make([]float64, m)
	c.pastS, c.pastSVar, c.pastMean = make([]float64, m), make([]float64, m), make([]complex128, m)
	c.stats, c.none = make([]float64, m*width), make([]float64, width)
	c.one = make([]float64, width)
	c.means, c.variances = make([]float64, m), make([]float64, m)
	c.moves = newMoves(m, len(full.SensorDerivatives))
	c.moves.first = c.spreadNow()
	c.scene, c.basis = make([]float64, m*c.columns), make([]float64, mostScenes*m*c.columns)
	c.beyond, c.masked = make([]bool, m), make([]bool, m)
	c.outliers = newOutliers(c)
	if c.blocks() {
		if err := c.checkRows(); err != nil && !chosen {
			return nil, fmt.Errorf("blocks: %w", err)
		} else if err != nil {
			c.opt.Block = 1
		}
	}
	c.sizes = make([]float64, 0, m)
	c.estimate = Estimate{
		X: c.sample.X, XVar: c.sample.C, calibrator: c,
		Worst:  make([]Residual, 0, worstSensors),
		Masked: make([]int, 0, m), Flagged: make([]int, 0, m),
	}
	return c, nil
}

// engine solves samples, and learns of the model what is to be learned.
type engine struct {
	solver  *amp.Solver
	plan    *solver.Plan
	learner *learner // nil when the model is known
}

func newEngine(c *Calibrator, w operator.Operator, m amp.Model, learnNoise bool) (*engine, error) {
	opt := c.opt
	opt.LearnNoise = learnNoise
	if opt.NoiseVar != nil {
		if err := amp.CheckNoise(opt.NoiseVar, c.m, 1, m.Channel); err != nil {
			return nil, err
		}
		m.Channel = m.Channel.(channel.Noisy).WithNoise(amp.Least(opt.NoiseVar))
	}
	learner, model, err := newLearner(m, &opt)
	if err != nil {
		return nil, err
	}
	if err := validModel(&opt, model, w); err != nil {
		return nil, err
	}
	e := &engine{learner: learner}
	e.solver, e.plan, _, err = amp.NewSolver(amp.Problem{
		W: w, Model: model, P: c.parts, Shared: c.shared(), Noise: opt.NoiseVar, LearnNoise: learnNoise, LearnSensorNoise: opt.LearnSensorNoise, Spread: opt.SensorSpread, Watch: &watch{calibrator: c}, WatchFor: "readings that do not fit are set aside",
	}, opt.Settings)
	if err != nil {
		return nil, err
	}
	if learner != nil {
		learner.attach(e.solver)
		learner.SensorNoise = false // which one sample does not tell
	}
	return e, nil
}

// run solves samples with e from now on.
func (c *solvers) run(e *engine) {
	c.engine, c.sample = e, e.solver.State
	c.sample.Unscored = true // but for forks
}

// Plan is what samples are solved with, and why not with the rest.
func (c *Calibrator) Plan() *solver.Plan { return c.asGiven.plan }

// validModel checks the options and the model.
func validModel(opt *Options, m amp.Model, w operator.Operator) error {
	if err := opt.Validate(); err != nil {
		return err
	}
	_, n := w.Dims()
	if err := prior.ValidateFor(m.Prior, n); err != nil {
		return fmt.Errorf("the signal prior: %w", err)
	}
	if err := m.Channel.Validate(); err != nil {
		return fmt.Errorf("the channel: %w", err)
	}
	return nil
}

// sampleReach is how near a sample comes to its fixed point, in posterior standard
// deviations. What it then lacks is nothing beside its own error; five times as
// much shows in the error of the scale, which all samples share.
const sampleReach = 1e-3

// nominalRetention is the factor by which a sample's worth of forgetting
// tempers the past.
func (o *Options) nominalRetention() float64 {
	if o.Memory == 0 {
		return 1
	}
	return math.Exp(-1 / o.Memory)
}

// Use says which matrix the next sample has, where W is an [operator.Choice]. It is an error where it is not, or has no such matrix, and changes nothing.
func (c *Calibrator) Use(matrix []float64) error {
	if c.choice == nil {
		return errors.New("W is the same for all samples")
	}
	if err := c.choice.Use(matrix); err != nil {
		return err
	}
	c.matrix = append(c.matrix[:0], matrix...)
	return nil
}

// Absorb reconstructs one sample and, if it is sane, learns from it. y holds the
// M readings, NaN where one is missing; complex ones as 2M numbers, each a real part and an imaginary part. The estimate is valid until the next
// call.
//
// Not converging, or not fitting the model, is no error: it is the estimate's
// Status and Reject. Readings too large to compute with (above [solver.MostSize]) are left out, as other outliers are; a sample with
// many of them has diverged. A y of the wrong length or with an infinite reading is an
// error, and changes nothing. When ctx is cancelled the estimate so far is
// returned with ctx.Err(), and nothing is learned.
func (c *Calibrator) Absorb(ctx context.Context, y []float64) (*Estimate, error) {
	defer func() { c.matrix = c.matrix[:0] }() // that of the next sample is another
	if err := c.take(y); err != nil {
		return nil, err
	}
	if c.overflows() {
		c.noSample()
		c.outcome = amp.Diverged
		c.report(Diverged)
		return &c.estimate, ctx.Err()
	}
	if c.warming() {
		return c.warmUp(ctx)
	}
	before, err := c.endAtChange(ctx)
	if err != nil {
		return nil, err
	}
	c.beginBlock()
	e, err := c.absorb(ctx)
	if err != nil {
		return e, err
	}
	e.Together, err = c.lengthenBlock(ctx)
	if before != nil {
		e.Together = before // the sample is the first of another block
	}
	return e, err
}

// absorb is Absorb of a sample that was taken, by itself.
func (c *Calibrator) absorb(ctx context.Context) (*Estimate, error) {
	c.estimate.Together = nil
	reject, err := c.attempt(ctx)
	if err == nil && c.dark(reject) {
		reject = NoSignal
	}
	switch {
	case reject == Accepted && c.opt.Freeze:
		reject = Frozen
		c.carryOn(reject)
	case reject == Accepted:
		c.commit()
		c.watchOffsets()
		c.watchRows()
		c.watchBent()
		if c.examineRange() {
			reject, err = c.startOver(ctx)
		}
	case reject.contradicts() && c.forks():
		c.report(reject)
		c.estimate.setAside()
		if reject, err = c.reconsider(ctx, reject); reject != Accepted {
			c.estimate.Reject = reject
			c.carryOn(reject)
			return &c.estimate, err
		}
	}
	if reject.contradicts() {
		c.loosen()
		c.carryOn(reject)
	}
	c.report(reject)
	return &c.estimate, err
}

func (c *Calibrator) take(y []float64) error {
	switch {
	case c.choice != nil && len(c.matrix) == 0:
		return errors.New("which matrix the sample has is not known (Use)")
	case len(y) == c.rowsGiven()*c.parts:
	case c.parts > 1:
		return fmt.Errorf("y has %d numbers, but W is %d×%d: expected a real and an imaginary part of each row's reading, %d", len(y), c.rowsGiven(), c.n, c.rowsGiven()*c.parts)
	default:
		return fmt.Errorf("y has %d readings, but W is %d×%d: expected one reading a row, %d", len(y), c.rowsGiven(), c.n, c.rowsGiven())
	}
	for j, v := range y {
		if math.IsInf(v, 0) {
			return fmt.Errorf("y: row %d reads %g, expected a finite reading, or NaN for a missing one", j/c.parts, v)
		}
	}
	c.arrange(y)
	c.leaveOutExtremes()
	c.pair()
	c.change, c.lately = nil, c.state.Brightness
	c.begin()
	return nil
}

// leaveOutExtremes makes readings missing that are too large to compute with, and zero those that are too small. The
// first are outliers, the second carry nothing, as other zeros.
func (c *Calibrator) leaveOutExtremes() {
	for mu := range c.m {
		size := 0.0 // NaN where the reading is missing
		for _, v := range c.row(c.y, mu) {
			if !math.IsNaN(v) || c.rows == 1 { // one of several rows may be without a reading
				size = max(size, math.Abs(v))
			}
		}
		c.beyond[mu] = size > solver.MostSize
		for j, v := range c.row(c.y, mu) {
			switch {
			case c.beyond[mu]:
				v = math.NaN()
			case size < solver.LeastSize && !math.IsNaN(v):
				v = 0
			}
			c.y[mu*c.columns+j] = v
		}
	}
}

// overflows reports whether so many readings are too large to compute with that it is not the sensors, but the sample.
func (c *Calibrator) overflows() bool {
	beyond, readings := 0, 0
	for mu := range c.m {
		beyond += int(bit(c.beyond[mu]))
		readings += int(bit(c.beyond[mu] || !c.missing(mu)))
	}
	return float64(beyond) > c.opt.Sanity.Faulty*float64(readings)
}

// leftOut reports whether the reading of a sensor in use is one that the sample was solved without, although it is there.
func (c *Calibrator) leftOut(mu int) bool {
	return c.masked[mu] || c.beyond[mu] && c.state.Flag[mu] == Healthy
}

// begin prepares for solving the sample from the present state.
func (c *Calibrator) begin() {
	c.nothingMasked()
	c.inheritSpread()
	c.retention, c.shortened = c.state.Retention, 0
	if c.apart != nil {
		c.apart.active = false
	}
	c.inheritance()
}

// nothingMasked is where a sample begins.
func (c *Calibrator) nothingMasked() {
	clear(c.masked)
	if c.outliers != nil {
		for mu := range c.outliers.odds {
			c.outliers.odds[mu] = unlikely
		}
		c.setHugeAside()
	}
}

// solve runs the iteration on the sample.
func (c *Calibrator) solve(ctx context.Context) error {
	if err := c.startModel(); err != nil {
		c.outcome = amp.Cancelled
		return err
	}
	c.noise = channel.NoiseOf(c.sample.Model().Channel)
	c.inherit()
	c.predict(unmoved)
	c.sample.Reset()
	if c.used() == 0 {
		c.outcome = amp.AtLimit
		c.notRun()
		return ctx.Err()
	}
	c.solver.Reach = amp.DefaultReach // the first sample is an offline problem, and solved as such
	if c.state.Samples > 0 {
		c.solver.Reach = sampleReach
	}
	var err error
	c.outcome, err = c.solver.Run(ctx, c.opt.MaxIter)
	c.noise = channel.NoiseOf(c.sample.Model().Channel)
	c.predictMoved()
	c.residuals()
	return err
}

// notRun is for a solver that was not asked.
func (c *solvers) notRun() {
	s := c.solver
	s.Iterations, s.Scale, s.SweepScale, s.Turn, s.SweepTurn = 0, 1, 1, 0, 0
}

// inherit gives the solver the readings to be used and a copy of the past, which
// the scale step will rescale.
func (c *Calibrator) inherit() {
	p, s := c.sample, &c.state
	for mu := range c.m {
		c.give(mu, c.uses(mu))
	}
	copy(p.Past.Stats, c.past.Stats)
	p.Calibration().Carry(p.Past.Stats, c.retention, 1)
	for mu, flag := range s.Flag {
		if flag != Healthy {
			clear(p.Of(p.Past.Stats, mu)) // calibrated on the side: no part of the reconstruction
		}
	}
	p.Past.Quadratic, p.Past.Volume = c.retention*c.past.Quadratic, c.retention*c.past.Volume
}

// give gives the solver the reading of sensor mu, or says that it is missing.
func (c *Calibrator) give(mu int, use bool) {
	to := c.row(c.sample.Y, mu)
	copy(to, c.row(c.y, mu))
	if !use {
		for j := range to {
			to[j] = math.NaN()
		}
	}
}

// uses reports whether sensor mu's reading takes part in the reconstruction.
func (c *Calibrator) uses(mu int) bool {
	return c.candidate(mu) && !c.masked[mu]
}

// candidate reports whether sensor mu has a reading that could be used. A
// reading of exactly zero carries none.
func (c *Calibrator) candidate(mu int) bool {
	return !c.missing(mu) && !c.zero(mu) && c.state.Flag[mu] == Healthy
}

func (c *Calibrator) used() int {
	count := 0
	for mu := range c.m {
		if c.uses(mu) {
			count++
		}
	}
	return count
}

// judge is the commit rule.
func (c *Calibrator) judge() Reject {
	switch {
	case c.outcome == amp.Cancelled:
		return Interrupted
	case c.used() == 0:
		return NoReadings
	case c.outcome == amp.Diverged:
		return Diverged
	case !amp.AllFinite(c.sample.Stats):
		return Diverged
	case c.opt.Commit == Always:
		return Accepted
	case c.unfinished():
		return NotConverged
	case c.chiSquare() > c.chiSquareLimit() || c.otherNetwork():
		return Unexplained
	}
	return Accepted
}

// unfinished reports whether x̂ still moves by more than a small part of its
// posterior standard deviation.
func (c *Calibrator) unfinished() bool {
	e := c.sample
	return c.opt.Tol >= 0 && c.outcome != amp.Converged &&
		e.Moved[0] > c.opt.Sanity.Unfinished*math.Sqrt(e.SumC[0])
}

// commit makes the present sample past. The sums are those of the last sweep,
// whose scale and phase are those of the state, moved.
func (c *Calibrator) commit() {
	p, s := c.sample, &c.state
	known, by := p.Calibration(), c.moved()
	copy(c.stats, c.past.Stats)
	c.carry(c.stats, c.retention, by)
	for mu, flag := range s.Flag {
		if flag != Healthy {
			clear(p.Of(c.stats, mu))
		}
	}
	c.weight = 1
	if c.opt.Commit == Sane && !c.opt.Still {
		c.weight = c.weigh()
	}
	quadratic, volume := c.solver.Sums()
	quadratic *= c.weight
	volume *= c.weight
	for mu, flag := range s.Flag {
		if flag == Healthy {
			added, past := p.Of(c.stats, mu), c.one
			copy(past, added)
			copy(added, p.Of(p.Stats, mu))
			channel.Remove(known, added, past)
			known.Carry(added, c.weight, 1)
		}
	}
	c.accumulate(by, quadratic, volume)
	s.Samples++
	s.Model = c.learned()
	s.Spread = c.spreadNow()
	if c.outliers != nil && c.parts == 1 {
		s.Brightness.absorb(p.Brightness(0))
	}
	s.Forks = nil
	s.Alert.Left = max(0, s.Alert.Left-1)
	if s.Drift != nil {
		copy(c.bank.before, s.Flag)
		c.follow(c.stats, by, quadratic, volume)
	}
	c.moveBlock(by.scale)
	if c.opt.Commit == Sane {
		c.tuneMemory()
		c.countOutliers()
		c.examineSensors()
	}
	if s.Drift != nil {
		c.mix()
	}
}

// accumulate adds the sample, whose part of the statistics is in c.stats, to the
// sums of the past. Where gains have changed, sensors without a change keep all of their past
// and the others none; what the past said of the scale is then taken to be
// stationary where it is.
func (c *Calibrator) accumulate(by move, quadratic, volume float64) {
	p, s, past, scale := c.sample, &c.state, c.past, by.scale
	apart := c.apart != nil && c.apart.active
	if apart {
		past = c.apart.whole
	}
	for mu, flag := range s.Flag {
		own := p.Of(s.Stats, mu)
		switch {
		case flag != Healthy:
			c.carry(own, c.retention, by)
		case !apart && c.weight == 1:
			copy(own, p.Of(p.Stats, mu))
		default:
			copy(own, p.Of(past.Stats, mu))
			if c.changed(mu) {
				clear(own)
			}
			c.carry(own, c.retention, by)
			channel.Merge(p.Calibration(), own, p.Of(c.stats, mu))
		}
	}
	s.Quadratic = c.retention*scale*scale*past.Quadratic + quadratic
	s.Volume = c.retention*past.Volume + volume
	if c.hearsSignals() {
		now := p.SignalSums()
		s.Signals.Active = c.retention*s.Signals.Active + c.weight*now.Active
		s.Signals.Pull = c.retention*scale*scale*s.Signals.Pull + c.weight*now.Pull
	}
	if !c.addsUp() {
		s.Quadratic = s.Volume + c.pulls(s.Stats)
	}
}

// addsUp reports whether the scale's evidence of a sample adds to that of the past. It does not where gains have changed, nor where
// only a part of a sample counts and its statistics do not add up, or rows of W have moved between samples: then it is taken to be stationary where it is.
func (c *Calibrator) addsUp() bool {
	_, merging := c.sample.Calibration().(channel.Merging)
	_, moved := c.sample.Calibration().(channel.Parametric)
	return !(c.apart != nil && c.apart.active) && !(merging && c.weight != 1) && !moved
}

// Freeze switches learning off or on between samples, as Options.Freeze does
// from the start.
func (c *Calibrator) Freeze(frozen bool) { c.opt.Freeze, c.followed, c.latest = frozen, nil, nil }
