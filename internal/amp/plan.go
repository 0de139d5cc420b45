package amp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/joint"
	"github.com/calamp/calamp/internal/layers"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Problem is what a [Solver] is made for.
type Problem struct {
	W     operator.Operator
	Model Model
	P     int       // signals solved together
	Y     []float64 // M×P readings; nil for a stream, whose samples come one by one

	Shared Shared // sensors of several rows; the zero value for one a row

	// What is learned of the channel: its noise variance, and the distribution of
	// the calibration. Of the prior, what a [prior.Learner] says is.
	LearnNoise, LearnCalibration bool
	LearnSensorNoise             bool // that of every sensor, in place of one for all

	// LearnOffsets says that the standard deviation of the sensors' offsets is learned.
	LearnOffsets bool

	// LearnPhases says that the concentration of the phases of complex gains is learned.
	LearnPhases bool

	// Noise is the noise variance of every sensor (M), or of every reading (M×P), in
	// place of the channel's; nil where all have that.
	Noise []float64

	// MatrixError is by how much entries of W are wrong at random, relative to the root mean square of their row; 0 where they are right.
	// LearnMatrixError says that it is learned.
	MatrixError      float64
	LearnMatrixError bool

	// Spread (J) are the standard deviations of the parameters of sensors, where W is an [operator.Moved]; nil learns them.
	Spread []float64

	// Outliers leaves out single readings that nothing explains, of which there are OutlierRate
	// among all; 0 learns that.
	Outliers    bool
	OutlierRate float64

	// Outlying are the sensors of readings that are left out, and which of theirs they are, at first, where signals are integrated out.
	Outlying [][2]int

	// Beyond are places in Y of readings that are outliers whatever the model is. Where outliers are left out they become NaN there.
	Beyond []int

	// Start is where estimates begin, or nil: at the prior's. The model is then taken to be as good as they are.
	Start *Start

	// StartDraw is which of many random starts is taken where phases are free and the start decides.
	StartDraw uint64

	// UntilOffsets ends a run in which signals are integrated out as soon as its evidence surely rises with offsets, which sensors have not (see [Solver.OffsetScore]).
	UntilOffsets bool

	// Searches is for a run whose answer, where phases are free, is one of several: it ends sooner where it hovers.
	Searches bool

	// Joint says whether signals belong together (see [jointRows]).
	Joint solver.Joint

	// JointFound says that it was fields of independent signals that asked for joint rows: the run ends where its own are decided against them.
	JointFound bool

	// Mix says that steps are mixed with earlier ones (see [mixing]).
	Mix bool

	// Watch, or nil, is the caller's own part, and WatchFor what it is there for, as
	// the plan says it.
	Watch    Part
	WatchFor string
}

// Start is the means and variances of signals (P×N, signal by signal) at which a run begins, and calibrations (M) where signals are integrated out.
type Start struct {
	X, C []float64
	S    []complex128
}

// real reports whether complex signals of n entries, real parts before imaginary ones, have no imaginary part.
func (s *Start) real(n int) bool {
	for k := 1; (k+1)*n <= len(s.X); k += 2 {
		for _, v := range s.X[k*n:][:n] {
			if v != 0 {
				return false
			}
		}
	}
	return true
}

func (p *Problem) stream() bool { return p.Y == nil }

// table is the plan: everything that a run may do or leave, in the order in which it
// acts. Each line decides whether it goes along, with the reason, or with an error
// where it was asked for and is impossible; make is nil for what is no part of the
// loop.
var table = []struct {
	name   string
	decide func(*planner) (on bool, why string, err error)
	make   func(*planner, *Solver) (Part, error)
}{
	{"complex numbers", (*planner).complexNumbers, nil},
	{"displacements", (*planner).displacements, (*planner).makeDisplacements},
	{"network", (*planner).network, nil},
	{"vector AMP", (*planner).vectorAMP, nil},
	{"decomposition", (*planner).decomposition, nil},
	{"joint rows", (*planner).jointRows, nil},
	{"joint test", (*planner).jointTest, (*planner).makeJointTest},
	{"covariances", (*planner).covariances, nil},
	{"exact variances", (*planner).exactVariances, nil},
	{"mean removal", (*planner).meanRemoval, nil},
	{"new start", (*planner).newStart, nil},
	{"unequal noise", (*planner).unequalNoise, (*planner).makeUnequalNoise},
	{"offsets", (*planner).offsets, nil},
	{"uneven start", (*planner).unevenStart, nil},
	{"least noise", (*planner).leastNoise, nil},
	{"free scale", (*planner).freeScale, (*planner).makeFreeScale},
	{"scale step", (*planner).scaleStep, (*planner).makeScaleStep},
	{"phase step", (*planner).phaseStep, (*planner).makePhaseStep},
	{"mixing", (*planner).mixing, (*planner).makeMixing},
	{"faults", (*planner).faults, (*planner).makeFaults},
	{"release", (*planner).release, (*planner).makeRelease},
	{"outliers", (*planner).outliers, (*planner).makeOutliers},
	{"watch", (*planner).watch, (*planner).makeWatch},
	{"joint moves", (*planner).jointMoves, (*planner).makeJointMoves},
	{"latents and gains", (*planner).latentMoves, (*planner).makeLatentMoves},
	{"creep", (*planner).creep, (*planner).makeCreep},
	{"row shifts", (*planner).rowShifts, (*planner).makeRowShifts},
	{"range test", (*planner).rangeTest, (*planner).makeRangeTest},
	{"widening", (*planner).widening, (*planner).makeWidening},
	{"doubt of W", (*planner).matrixDoubt, (*planner).makeMatrixDoubt},
	{"joint error bars", (*planner).sharedBars, (*planner).makeSharedBars},
	{"amplitudes", (*planner).amplitudes, (*planner).makeAmplitudes},
	{"learning", (*planner).learning, (*planner).makeLearning},
	{"joint latents", (*planner).jointLatents, (*planner).makeJointLatents},
	{"mixture", (*planner).shape, (*planner).makeShape},
	{"gains together", (*planner).gainsTogether, nil},
	{"distribution of gains", (*planner).family, (*planner).makeFamily},
	{"standstill", (*planner).standstill, (*planner).makeStandstill},
	{"variances on demand", (*planner).variancesOnDemand, (*planner).makeOnDemand},
	{"single precision", (*planner).singlePrecision, (*planner).makeSinglePrecision},
}

// Reasons for which a part is left out that several have.
const (
	asked            = "asked"
	noCalibration    = "not needed: the channel does not calibrate"
	noConvergence    = "not needed: convergence is not looked for"
	fullInstead      = "not possible with full covariances"
	noneExchangeable = "not possible with exchangeable covariances"
	jointInstead     = "not possible, or not needed, with joint rows"
	oneByOne         = "not possible: readings come one by one"

	networkInstead = "not possible with signals that come out of a network"
	vectorInstead  = "not needed with vector AMP"
	realOnly       = "not possible with complex numbers"
	leftAlone      = "asked: without scale steps the recursion is left alone"
)

// reason is why a line of the plan is left out, where it is so.
type reason struct {
	so  bool
	why string
}

// against is the first of the reasons that holds; "" where none does.
func against(reasons []reason) string {
	if i := slices.IndexFunc(reasons, func(r reason) bool { return r.so }); i >= 0 {
		return reasons[i].why
	}
	return ""
}

// refusal is the error of the first reason that holds; nil where none does.
func refusal(reasons []reason) error {
	if why := against(reasons); why != "" {
		return errors.New(why)
	}
	return nil
}

// unless decides a line that goes along, and what for, where there is no reason against it.
func unless(what string, reasons []reason) (on bool, why string, err error) {
	if why = against(reasons); why != "" {
		return false, why, nil
	}
	return true, what, nil
}

// planner decides what a run does, with what it found out on the way.
type planner struct {
	*Problem
	*solver.Settings
	m, n     int
	plan     solver.Plan
	centred  *operator.Centred
	common   []float64 // of the readings, and their part of the power
	inCommon float64
	rounding float64 // noise that stands for what rounding took, as asked

	sweeps     operator.Sweeps // over W as it is
	demand     *onDemand       // nil where all sweeps are exact, or scalar
	single     operator.Stored // W in single precision; nil where all sweeps are in double precision
	givenPrior prior.Prior     // of signals that begin denser than was given; nil where they do not
	givenNoise float64         // noise that was given, to which a run of learning falls; 0 for none
	lost       float64         // mean square of what was rounded off of its entries

	layers layers.How // of a network

	own *ownNoise // of the sensors; nil where they add none
}

// NewSolver makes the solver of a problem, and says what it will do. The error names
// two things that exclude each other, or what cannot be read. A problem whose W is to
// be rounded gets a channel with more noise, of variance rounding.
func NewSolver(p Problem, settings solver.Settings) (s *Solver, plan *solver.Plan, rounding float64, err error) {
	b := &planner{Problem: &p, Settings: &settings}
	b.m, b.n = p.W.Dims()
	if err := b.startNoise(); err != nil {
		return nil, nil, 0, err
	}
	if err := b.takeOwnNoise(); err != nil {
		return nil, nil, 0, err
	}
	b.plan.Iteration, b.plan.Variance = settings.Covariance, settings.Variance
	if settings.Precision == solver.SinglePrecision {
		b.round()
	}
	if b.Shared.Rows > 0 {
		if err := SharedPossible(b.Problem, b.Settings); err != nil {
			return nil, nil, 0, err
		}
	}
	if b.separate() {
		if err := b.separatePossible(); err != nil {
			return nil, nil, 0, err
		}
	}
	for _, line := range table {
		if why := b.leftOut(line.name); why != "" {
			b.plan.Parts = append(b.plan.Parts, solver.Choice{Part: line.name, Why: why})
			continue
		}
		on, why, err := line.decide(b)
		if err != nil {
			return nil, nil, 0, err
		}
		b.plan.Parts = append(b.plan.Parts, solver.Choice{Part: line.name, On: on, Why: why})
	}
	if s, err = b.build(); err != nil {
		return nil, nil, 0, err
	}
	return s, &b.plan, b.rounding, nil
}

// leftOut is why a line of the plan does not go along with what the run is, whatever it would decide; "" where it is asked.
func (b *planner) leftOut(line string) string {
	switch {
	case b.separate() && separateLeaves[line]:
		return separateInstead
	case b.sharedLeaves(line) != "":
		return b.sharedLeaves(line)
	case b.evidence() && !evidenceKeeps[line]:
		return b.insteadOf(line)
	case b.joint() && jointLeaves[line]:
		return jointInstead
	case b.networked() && networkLeaves[line]:
		return networkInstead
	case b.displaced() != nil && displacedLeaves[line]:
		b.centred = nil
		return displacedInstead
	}
	return ""
}

// build makes what was decided.
func (b *planner) build() (*Solver, error) {
	if b.plan.Has("outliers") {
		for _, j := range b.Beyond {
			b.Y[j] = math.NaN()
		}
	}
	if b.plan.Has("learning") && !b.stream() && b.Start == nil {
		if err := b.startLearning(); err != nil {
			return nil, err
		}
	}
	rowsFrom, rowsLearn := b.jointStart()
	slab := withDensity(b.Model.Prior, 1)
	var rowGroups *joint.Groups
	if b.joint() { // the rows learn what is learned of the prior
		if groups, is := b.Model.Prior.(prior.Groups); is {
			rowGroups, b.Model.Prior = jointGroups(groups, rowsFrom), groups.GroupsPrior()
		} else {
			b.Model.Prior = withColumns(rowsFrom, prior.ColumnsOf(b.Model.Prior))
		}
	}
	state := newState(b.W, b.centred, b.Model, b.P, b.Shared.rows(), Threads(b.Threads, b.m*b.n*b.P), b.plan.Has("unequal noise"))
	if known, ok := state.calibration.(channel.Informed); ok {
		if err := known.Inform(state.Past.Stats); err != nil {
			return nil, err
		}
	}
	if b.Noise != nil {
		state.setExcess(b.Noise, Least(b.Noise))
	}
	state.StartCalibration()
	if b.plan.Has("uneven start") {
		state.startUneven(b.StartDraw, b.shifts())
	}
	copy(state.Y, b.Y)
	if b.networked() {
		if err := state.takeNetwork(b.layers); err != nil {
			return nil, err
		}
	}
	if b.Start != nil {
		state.start = b.Start
		state.Reset()
	}
	s := &Solver{
		State: state, Matrix: b.matrix(), Tol: b.Tol, Reach: DefaultReach, approach: newApproach(b.P),
		Change: make([]float64, b.P), Settled: make([]int, b.P),
		accepted: make([]float64, b.P), counted: make([]float64, b.P),
	}
	s.startDamping, s.damping = b.damper(), b.damper()
	if !b.plan.Has("new start") {
		s.startDamping.stay()
	}
	if !b.vector() && !b.evidence() || b.joint() {
		state.findFields()
	}
	var err error
	switch {
	case b.evidence() && b.complex():
		g := newComplexSites(state, b)
		s.Iteration, s.Parts = g, append(s.Parts, g)
		return s, b.makeParts(s)
	case b.evidence():
		g := newGaussian(state, b)
		s.Iteration, s.Parts = g, append(s.Parts, g)
		return s, b.makeParts(s)
	case b.vector() && b.joint():
		rows := newJointRows(state, rowsFrom, rowGroups, rowsLearn, false, true)
		rows.found, rows.slab = b.JointFound, slab
		v := newJointVAMP(rows, b.linearHalf(state))
		v.mixes = !b.fixed() && b.Tol >= 0
		s.Iteration, s.Parts = v, append(s.Parts, rows)
		return s, b.makeParts(s)
	case b.vector():
		var v *vamp
		if b.exchangeable() {
			c := newVAMPCommon(state, b.linearHalf(state))
			v, s.Iteration = c.vamp, c
		} else {
			v = newVAMP(state, b.linearHalf(state))
			s.Iteration = v
		}
		v.mixes = !b.fixed() && b.Tol >= 0
		return s, b.makeParts(s)
	case b.joint():
		rows := newJointRows(state, rowsFrom, rowGroups, rowsLearn, b.Variance != solver.Scalar, false)
		rows.found, rows.slab = b.JointFound, slab
		s.Iteration, s.Parts = rows, append(s.Parts, rows)
	case b.full():
		s.Iteration = newFull(state)
	case b.exchangeable():
		s.Iteration = newExchangeable(state)
	default:
		if b.plan.Has("variances on demand") {
			w := s.Matrix
			if b.single != nil {
				w = b.single // to tell rows and columns apart that is enough
			}
			if b.demand, err = newOnDemand(state, w); err != nil {
				return nil, err
			}
		}
		s.Iteration = newDiagonal(state, b.Variance == solver.Scalar, b.demand)
	}
	if b.sweeps, err = s.Iteration.sweepsOver(operator.WholeBlocks(s.Matrix, b.Shared.rows())); err != nil {
		return nil, err
	}
	s.Iteration.use(b.sweeps)
	return s, b.makeParts(s)
}

// makeParts makes those that go along.
func (b *planner) makeParts(s *Solver) error {
	for i, line := range table {
		if !b.plan.Parts[i].On || line.make == nil {
			continue
		}
		part, err := line.make(b, s)
		if err != nil {
			return err
		}
		s.Parts = append(s.Parts, part)
	}
	return nil
}

// fixed reports whether the damping is as it was asked for.
func (b *planner) fixed() bool {
	_, fixed := b.Damping.Fixed()
	return fixed
}

func (b *planner) damper() damper {
	delta, fixed := b.Damping.Fixed()
	switch {
	case b.vector() && !fixed:
		return newVectorDamper()
	case b.joint() && !fixed:
		return newJointDamper()
	}
	return newDamper(delta, fixed)
}

// matrix is what sweeps read.
func (b *planner) matrix() operator.Operator {
	if b.centred != nil {
		return b.centred
	}
	return b.W
}

// round makes the run one on a rounded W, whose noise is larger by what that takes away.
func (b *planner) round() {
	b.W, b.rounding = rounded(b.W, b.Model.Prior, Threads(b.Threads, b.m*b.n))
	if c, ok := b.Model.Channel.(channel.Noisy); ok && b.rounding > 0 {
		b.Model.Channel = c.WithNoise(c.Noise() + b.rounding)
	}
}

func (b *planner) vector() bool { return b.plan.Algorithm == solver.VAMP }

func (b *planner) full() bool { return b.Covariance == solver.Full }

func (b *planner) exchangeable() bool { return b.Covariance == solver.Exchangeable }

func (b *planner) learner() bool {
	return prior.LearnerOf(b.Model.Prior) != nil
}

func (b *planner) learns() bool {
	return b.learner() || b.own.learns() || b.LearnNoise || b.LearnSensorNoise || b.LearnCalibration || b.LearnOffsets || b.LearnPhases || b.learnsSpread()
}

func (b *planner) calibrates() bool { return channel.CalibrationOf(b.Model.Channel) != nil }

// clips reports whether readings do.
func (b *planner) clips() bool { return channel.LimitOf(b.Model.Channel) > 0 }

// codes reports whether readings are codes of converters, or counts.
func (b *planner) codes() bool {
	_, is := channel.CodedOf(b.Model.Channel)
	return is
}

// oneBit reports whether readings are signs, which have no size.
func (b *planner) oneBit() bool {
	codes, is := channel.CodesOf(b.Model.Channel)
	return is && codes.OneBit()
}

func (b *planner) covariances() (on bool, why string, err error) {
	switch {
	case b.exchangeable():
		b.Variance = solver.Scalar
		err = b.exchangeablePossible()
		return err == nil, asked, err
	case !b.full() && b.fewForOffsets():
		b.Covariance, b.Variance = solver.Exchangeable, solver.Scalar
		b.plan.Iteration, b.plan.Variance = b.Covariance, b.Variance
		return true, "what an offset does to one signal it does to all: one covariance for all pairs of signals", nil
	case !b.full():
		return false, "not needed: one variance a signal", nil
	case b.Variance == solver.Scalar:
		err = errors.New("full covariances need exact variances: scalar is for diagonal ones")
	case b.stream():
		err = errors.New("full covariances are for offline problems: streams have one variance a signal")
	case b.offsetting() != nil:
		err = errors.New("full covariances are for sensors without offsets: exchangeable ones follow what offsets do to all signals")
	case b.learns():
		err = errors.New("full covariances: learning the model needs diagonal ones")
	default:
		err = fullPossible(b.Model, b.n, b.P)
	}
	return err == nil, "asked", err
}

// exchangeablePossible says why signals have no covariances of one size, if they have none.
func (b *planner) exchangeablePossible() error {
	if err := refusal([]reason{
		{b.offsetting() == nil, "exchangeable covariances are for sensors with offsets: without them signals have none"},
		{b.separate(), "exchangeable covariances are for signals of one matrix: those of different ones have none"},
		{b.Shared.Rows > 1, "exchangeable covariances are for sensors of one row each"},
		{b.stream(), "exchangeable covariances are for offline problems: streams have one variance a signal"},
	}); err != nil || b.P < leastForOffsets { // which has the offsets as they were given
		return err
	}
	if partial := b.partial(); b.vector() && float64(partial) > mostPartial*float64(b.m) {
		return fmt.Errorf("exchangeable covariances by vector AMP leave out %d sensors of which single readings are missing, too many of %d", partial, b.m)
	}
	return nil
}

// mostPartial is the part of the sensors that may be left out for readings that they lack.
const mostPartial = 0.1

// partial is the number of sensors that lack some of their readings, but not all.
func (b *planner) partial() (count int) {
	for mu := range b.m {
		missing := 0
		for _, y := range b.Y[mu*b.P : (mu+1)*b.P] {
			if math.IsNaN(y) {
				missing++
			}
		}
		if missing > 0 && missing < b.P {
			count++
		}
	}
	return count
}

// mostExchangeable is the number of signals from which on what they have in common does not matter to error bars.
const mostExchangeable = 10

// fewForOffsets reports whether signals are so few that what offsets do to all of them in common must be followed, and whether it can be.
func (b *planner) fewForOffsets() bool {
	if !b.fewSignals() {
		return false
	}
	if b.vector() {
		return true
	}
	centred, err := b.withoutMeans()
	b.centred = centred
	return err == nil && centred == nil
}

// fewSignals is fewForOffsets where W has no means for AMP to remove.
func (b *planner) fewSignals() bool {
	return b.P < mostExchangeable && b.untouched() == "" && b.exchangeablePossible() == nil
}

func (b *planner) exactVariances() (on bool, why string, err error) {
	switch {
	case b.vector():
		return false, "not needed: vector AMP has one precision a signal", nil
	case b.Variance == solver.Scalar:
		return false, asked, nil
	case !operator.HasSquares(b.W):
		return false, "", operator.NoSquares(b.W)
	case operator.SquaresEqual(b.W) && !b.full():
		b.Variance = solver.Scalar // which is the same, with half of the sums
		return false, "not needed: the squared entries of W are all the same", nil
	}
	return true, "the squared entries of W", nil
}

func (b *planner) meanRemoval() (on bool, why string, err error) {
	_, table := b.W.(operator.Matrix)
	_, of := operator.Separate(b.W)
	if why = against([]reason{
		{b.vector(), vectorInstead},
		{b.NoMeanRemoval, asked},
		{b.full(), fullInstead},
		{b.exchangeable(), noneExchangeable},
		{b.Variance == solver.Scalar, "not possible with scalar variances: further entries have others"},
		{b.numbers() > 1, "not possible with complex numbers: their means are left in"},
		{!table && of == nil, "not possible: the entries of W cannot be seen"},
	}); why != "" {
		return false, why, nil
	}
	if b.centred == nil { // not looked at, or without
		b.centred, err = b.withoutMeans()
	}
	if err != nil || b.centred == nil {
		return false, "not needed: the means of W are those of independent entries", err
	}
	return true, "further entries and rows restore them exactly", nil
}

// newStart is for runs that can be begun anew: a model that is learned moves with
// estimates that blow up, a past has moved with them, and full covariances have more
// state than [State.Reset] knows.
func (b *planner) newStart() (on bool, why string, err error) {
	_, fixed := b.Damping.Fixed()
	return unless("with more damping, should the estimates blow up", []reason{
		{fixed, "asked: the damping is fixed"},
		{b.full(), fullInstead},
		{b.exchangeable(), noneExchangeable},
		{b.learns(), "not possible with a model that is learned"},
		{b.stream(), "not possible with a past"},
	})
}

// startNoise makes the channel's noise the least of what was given.
func (b *planner) startNoise() error {
	b.LearnNoise = b.LearnNoise || b.LearnSensorNoise
	switch {
	case b.Noise == nil:
		return nil
	case b.LearnSensorNoise:
		return errors.New("noise variances that were given are not learned: leave one of them out")
	}
	if err := CheckNoise(b.Noise, b.m/b.Shared.rows(), b.each(), b.Model.Channel); err != nil {
		return err
	}
	b.Model.Channel = b.Model.Channel.(channel.Noisy).WithNoise(Least(b.Noise))
	return nil
}

func (b *planner) unequalNoise() (on bool, why string, err error) {
	if b.follows() {
		err := b.followsPossible()
		return err == nil, "entries of W are wrong at random: noise that follows the signals", err
	}
	switch {
	case b.detects():
		return true, "sensors add noise of their own, behind their gains", nil
	case b.LearnSensorNoise:
		return true, "learned for every sensor", nil
	case b.Noise == nil:
		return false, "not needed: all readings have noise of one variance", nil
	case len(b.Noise) == b.m/b.Shared.rows():
		return true, "given for every sensor", nil
	}
	return true, "given for every reading", nil
}

// leastForOffsets is the number of signals below which nothing tells gains and offsets from the signals: every
// sensor has two numbers more.
const leastForOffsets = 3

func errFewForOffsets(signals int) error {
	return fmt.Errorf("offsets: with %d signals they cannot be separated from gains and signals, expected %d signals or more, better 10", signals, leastForOffsets)
}

// offsetting is what is known of the sensors' offsets; nil where the channel has none.
func (b *planner) offsetting() channel.Offsetting {
	known, _ := channel.CalibrationOf(b.Model.Channel).(channel.Offsetting)
	return known
}

func (b *planner) offsets() (on bool, why string, err error) {
	known := b.offsetting()
	switch {
	case known == nil:
		return false, "not needed: the channel has none", nil
	case !b.stream() && b.each() < leastForOffsets:
		return false, "", errFewForOffsets(b.each())
	case math.IsInf(known.OffsetSD(), 1) && density(b.Model.Prior) > mostDenseFlat:
		return false, "", errors.New("offsets of which nothing is known: where signals are not sparse, what all have in common is the same as offsets; give their standard deviation")
	}
	return true, fmt.Sprintf("standard deviation %.3g, in the units of the readings", known.OffsetSD()), nil
}

// mostDenseFlat is the density above which signals are not sparse enough for offsets of which nothing is known.
const mostDenseFlat = 0.95

// density is the part of a signal's entries that are not zero.
func density(p prior.Prior) float64 {
	if sparse, ok := p.(prior.Sparse); ok {
		return sparse.NonZero()
	}
	return 1
}

// untouched is why parts that change the recursion are left out of a run that asks for it as it is; "" where they
// are not.
func (b *planner) untouched() string {
	switch {
	case b.NoScaleStep:
		return leftAlone
	case b.Tol < 0:
		return noConvergence
	}
	return ""
}

// rowShifts are for offsets.
func (b *planner) rowShifts() (on bool, why string, err error) {
	return unless("every few iterations, where an entry is there in most signals", []reason{
		{b.offsetting() == nil, "not needed without offsets"},
		{b.stream(), oneByOne},
		{b.P < leastShiftable, fmt.Sprintf("not possible: with fewer than %d signals a common shift cannot be separated from the signals", leastShiftable)},
		{b.full(), fullInstead},
		{b.exchangeable(), noneExchangeable},
		{b.untouched() != "", b.untouched()},
	})
}

func (b *planner) makeRowShifts(*Solver) (Part, error) {
	return &rowShifts{by: make([]float64, b.P*b.n), lambda: make([]float64, b.P), sigma: make([]float64, b.P)}, nil
}

// leastNoise takes noise that is too small to compute with for as much as can be: what
// readings say of the common scale, and of sensors that may be broken, is then a
// difference of numbers of the size of power/noise.
func (b *planner) leastNoise() (on bool, why string, err error) {
	noisy, ok := channel.InOrder(b.Model.Channel).(channel.Noisy)
	switch {
	case !ok || !b.calibrates():
		return false, noCalibration, nil
	case b.NoScaleStep || b.Tol < 0:
		return false, "asked: the recursion as it is", nil
	}
	least := leastNoise * b.power()
	switch {
	case max(noisy.Noise(), b.ownLevel()) >= least:
		return false, "not needed: there is more", nil
	case math.IsInf(least, 1):
		return false, "not possible: the readings have no squares in double precision", nil
	}
	b.Model.Channel = b.Model.Channel.(channel.Noisy).WithNoise(least)
	return true, fmt.Sprintf("%.2g, for double precision", least), nil
}

// power is the typical mean square of corrected readings; on a stream, what the model
// expects of it.
func (b *planner) power() float64 {
	if b.stream() {
		return b.W.MeanSquare() * float64(b.n) * prior.Square(b.Model.Prior)
	}
	size := channel.Size(channel.CalibrationOf(b.Model.Channel))
	return size * size * channel.TypicalSquare(b.Y, b.each())
}

func (b *planner) freeScale() (on bool, why string, err error) {
	return unless("what only changes the common scale is taken back", []reason{
		{!b.LearnCalibration, "not needed: the model holds the scale"},
		{b.networkHoldsScale(), "not needed: the network holds the scale"},
	})
}

func (b *planner) makeFreeScale(*Solver) (Part, error) { return freeScale{}, nil }

func (b *planner) scaleStep() (on bool, why string, err error) {
	return unless("every few iterations", []reason{
		{b.NoScaleStep, asked},
		{!b.calibrates(), noCalibration},
		{b.networkHoldsScale(), "not needed: the network holds the scale"},
		{b.LearnCalibration, "not needed: with a calibration that is learned the scale is a convention"},
	})
}

func (b *planner) makeScaleStep(*Solver) (Part, error) {
	return &scaleStep{atPeak: b.ScaleAtPeak || b.Tol < 0, leastNoise: b.plan.Has("least noise")}, nil
}

func (b *planner) faults() (on bool, why string, err error) {
	_, ok := b.Model.Channel.(channel.Contaminated)
	switch {
	case !ok:
		return false, "not needed: the channel has no broken sensors", nil
	case b.stream():
		return false, "", errors.New("a stream finds broken sensors by its own means: give it the channel of those in order")
	case b.oneBit():
		return false, "", errors.New("broken sensors are not found by one bit: give the channel of those in order")
	}
	return true, "what is not given of them is learned", nil
}

func (b *planner) makeFaults(*Solver) (Part, error) {
	return &faults{given: b.Model.Channel.(channel.Contaminated)}, nil
}

func (b *planner) release() (on bool, why string, err error) {
	return unless("", []reason{
		{!b.plan.Has("faults"), "not needed without broken sensors"},
		{!b.plan.Has("scale step"), "not needed without scale steps"},
		{b.full(), fullInstead},
		{b.exchangeable(), noneExchangeable},
		{b.Tol < 0, noConvergence},
	})
}

func (b *planner) makeRelease(*Solver) (Part, error) { return &release{}, nil }

// rangeTest is for ranges that were given: s-prior says what becomes of them.
func (b *planner) rangeTest() (on bool, why string, err error) {
	switch {
	case b.SPrior == solver.UniformS:
		return false, asked, nil
	case b.stream():
		return false, "not needed: a stream is tested by its own means, as it goes on", nil
	}
	why = b.cannotTest()
	if why != "" && b.asksFamily() && !b.LearnCalibration {
		return false, "", fmt.Errorf("a %v distribution of s cannot be learned here (%s)", b.SPrior, why)
	}
	return why == "", why, nil
}

// cannotTest is why the distribution of s within its range cannot be learned; empty
// where it can.
func (b *planner) cannotTest() (why string) {
	known, ok := channel.CalibrationOf(b.Model.Channel).(channel.Bounded)
	why = against([]reason{
		{!b.calibrates(), noCalibration},
		{b.LearnCalibration, "not needed: the range is learned"},
		{b.untouched() != "", b.untouched()},
		{b.full(), fullInstead},
		{b.each() < 2, "not possible: one signal does not separate the gains' spread from noise"},
		{b.clips(), "not possible with clipped readings"},
		{b.plan.Has("joint moves"), "not possible with joint moves"},
		{!ok, fmt.Sprintf("not possible: a %T has no range to be tested", channel.CalibrationOf(b.Model.Channel))},
	})
	if why != "" {
		return why
	}
	if err := known.Fills(); err != nil {
		return "not needed: " + err.Error()
	}
	return ""
}

func (b *planner) makeRangeTest(*Solver) (Part, error) {
	given := channel.CalibrationOf(b.Model.Channel).(channel.Bounded)
	return &RangeTest{Given: given, insist: b.asksFamily(), asked: b.SPrior}, nil
}

// asksFamily reports whether a kind of distribution is insisted on that is no range.
func (b *planner) asksFamily() bool {
	return b.SPrior == solver.NormalS || b.SPrior == solver.LogNormalS
}

// gainsTogether is for gains whose distribution is one of all of them, which only learning finds.
func (b *planner) gainsTogether() (on bool, why string, err error) {
	known := channel.CalibrationOf(b.Model.Channel)
	if _, together := channel.SmoothOf(known); !together {
		return false, "not needed: every gain is one by itself", nil
	}
	switch {
	case b.stream():
		why = "readings come one by one"
	case !b.LearnCalibration:
		why = "their distribution is learned, and this run learns none"
	case b.evidence():
		why = "signals are integrated out"
	case b.asksFamily():
		why = fmt.Sprintf("a %v distribution of each is asked for", b.SPrior)
	case b.clips():
		why = "readings clip"
	default:
		return true, "what readings say of the others is known of each sensor", nil
	}
	return false, "", fmt.Errorf("gains that belong together are not possible here: %s", why)
}

// family is for a distribution of s that is learned from the start.
func (b *planner) family() (on bool, why string, err error) {
	_, ok := channel.CalibrationOf(b.Model.Channel).(channel.Families)
	switch {
	case !b.LearnCalibration:
		return false, "not needed: the range of s is given", nil
	case b.plan.Has("gains together"):
		return false, "not needed: gains that belong together are of one kind", nil
	case b.SPrior == solver.UniformS:
		return false, asked, nil
	case !ok:
		why = fmt.Sprintf("not possible: a %T is of one kind", channel.CalibrationOf(b.Model.Channel))
	case b.Tol < 0:
		why = noConvergence
	case b.stream():
		why = oneByOne
	case b.clips():
		why = "not possible with clipped readings"
	case b.asksFamily():
		return true, asked, nil
	default:
		return true, "the likeliest of uniform, normal and log-normal", nil
	}
	if b.asksFamily() {
		return false, "", fmt.Errorf("a %v distribution of s cannot be learned here (%s)", b.SPrior, why)
	}
	return false, why, nil
}

func (b *planner) makeFamily(*Solver) (Part, error) { return &family{asked: b.SPrior}, nil }

func (b *planner) outliers() (on bool, why string, err error) {
	apart := channel.Correlates(b.Model.Channel)
	return unless("single readings that nothing explains are left out", []reason{
		{!b.Outliers, asked},
		{b.stream(), "not needed: a stream sets readings aside by its own means"},
		{b.complex(), "not possible with complex readings, which are pairs of columns"},
		{b.oneBit(), "not possible: one bit cannot show that it is wrong"},
		{b.joint() && apart != nil, fmt.Sprintf("not possible with joint rows: %v", apart)},
		{b.each() < leastOutlying, "not possible: so few readings of a sensor do not show which of them is wrong"},
	})
}

func (b *planner) makeOutliers(*Solver) (Part, error) {
	return &outliers{given: b.OutlierRate, beyond: b.Beyond}, nil
}

func (b *planner) watch() (on bool, why string, err error) {
	return unless(b.WatchFor, []reason{{b.Watch == nil, "not needed: the run is not watched"}})
}

func (b *planner) makeWatch(*Solver) (Part, error) { return b.Watch, nil }

func (b *planner) jointMoves() (on bool, why string, err error) {
	_, ok := b.W.(operator.Matrix)
	_, streamed := b.W.(operator.Streamed)
	_, noisy := channel.InOrder(b.Model.Channel).(channel.Noisy)
	if why = against([]reason{
		{b.stream(), oneByOne},
		{b.P < 2, "not needed: there is one signal"},
		{!b.calibrates(), noCalibration},
		{b.full(), fullInstead},
		{b.exchangeable(), noneExchangeable},
		{b.complex(), realOnly},
		{b.vector(), "not possible with vector AMP"},
		{b.untouched() != "", b.untouched()},
		{b.offsetting() != nil, "not possible with offsets"},
	}); why != "" {
		return false, why, nil
	}
	if b.common, b.inCommon = Proportions(b.Y, b.P); !(b.inCommon > MostInCommon) {
		return false, fmt.Sprintf("not needed: the signals differ (%.2g of the readings' power is in common proportions)", b.inCommon), nil
	}
	return unless(fmt.Sprintf("%.3g of the readings' power is in common proportions", b.inCommon), []reason{
		{b.clips(), "not possible with clipped readings"},
		{b.codes(), "not possible with codes"},
		{!noisy, "not possible: the channel's noise cannot be raised"},
		{!ok || streamed, "not possible: W is no matrix in memory"},
		{b.m*b.n > mostJoint, fmt.Sprintf("not possible: a step would take too long with more than %d entries of W", mostJoint)},
		{!b.Fits(16 * int64(b.m) * int64(b.n) * int64(b.P)), "not possible: too little memory"},
	})
}

func (b *planner) makeJointMoves(s *Solver) (Part, error) {
	return newJointMoves(s.State, b.W.(operator.Matrix), b.common)
}

func (b *planner) widening() (on bool, why string, err error) {
	return unless("", []reason{
		{b.stream(), oneByOne},
		{b.P <= prior.ColumnsOf(b.Model.Prior), "not needed: there is one signal"},
		{!b.calibrates(), noCalibration},
		{b.untouched() != "", b.untouched()},
		{b.sharesBars() && alwaysGaussian(b.Model.Prior), "not needed: signals are Gaussian, and joint error bars know what they have in common"},
	})
}

func (b *planner) makeWidening(*Solver) (Part, error) { return &widening{factor: 1}, nil }

func (b *planner) learning() (on bool, why string, err error) {
	working := channel.InOrder(b.Model.Channel)
	if _, noisy := working.(channel.Noisy); b.LearnNoise && !noisy {
		return false, "", fmt.Errorf("the noise variance of a %T cannot be learned: it is no channel.Noisy", working)
	}
	if b.LearnSensorNoise && b.codes() {
		return false, "", errors.New("the noise of every sensor is not learned from codes: learn one for all, or give it")
	}
	if b.LearnCalibration {
		known, ok := channel.CalibrationOf(working).(channel.Learnable)
		if !ok {
			return false, "", fmt.Errorf("a %T has no range of s to be learned", working)
		}
		if err := known.Learns(); err != nil {
			return false, "", err
		}
	}
	if b.LearnOffsets && b.offsetting() == nil {
		return false, "", fmt.Errorf("a %T has no offsets to be learned", working)
	}
	if known, ok := complexPriorOf(b.Model); b.LearnPhases && (!ok || known.Free() || known.Known()) {
		return false, "", errors.New("how phases are spread is learned of complex gains, from a concentration that is neither 0 nor infinite")
	}
	return unless("the model is re-fitted between iterations", []reason{{!b.learns(), "not needed: the model is known"}})
}

func (b *planner) makeLearning(s *Solver) (Part, error) {
	learner := prior.LearnerOf(b.Model.Prior)
	s.State.ScaleLearned = learner != nil && learner.LearnsScale() && !b.stream()
	if learner != nil {
		var err error
		if s.State.typicalRow, err = b.typicalRow(); err != nil {
			return nil, err
		}
	}
	return &Learning{Noise: b.LearnNoise, SensorNoise: b.LearnSensorNoise, Calibration: b.LearnCalibration, Offsets: b.LearnOffsets, Phases: b.LearnPhases, GivenNoise: b.givenNoise, GivenPrior: b.givenPrior}, nil
}

// variancesOnDemand follows the other parts, which change what the variances depend on.
func (b *planner) variancesOnDemand() (on bool, why string, err error) {
	switch {
	case b.vector():
		return false, vectorInstead, nil
	case b.Variance != solver.OnDemand:
		return false, asked, nil
	case b.full():
		why = fullInstead
	case b.separate():
		why = separateInstead
	case b.untouched() != "":
		why = b.untouched()
	default:
		return true, "the squares of W every few iterations, and in the last", nil
	}
	b.plan.Variance = solver.Exact
	return false, why, nil
}

func (b *planner) makeOnDemand(*Solver) (Part, error) { return b.demand, nil }

func (b *planner) singlePrecision() (on bool, why string, err error) {
	w, ok := b.matrix().(operator.Stored)
	power := prior.Square(b.Model.Prior)
	switch {
	case b.Precision == solver.DoublePrecision:
		return false, asked, nil
	case b.full():
		return false, fullInstead, nil
	case b.exchangeable():
		return false, noneExchangeable, nil
	case b.untouched() != "":
		return false, b.untouched(), nil
	case b.vector():
		return false, "not possible with vector AMP: the decomposition is that of W", nil
	case !ok || w.Storage() == "":
		return false, "not possible: the entries of W cannot be seen", nil
	case b.m*b.n < leastSingle:
		return false, "not needed: W is small", nil
	case !withinSingle(w.MeanSquare()) || !withinSingle(power):
		return false, "not possible: W or the signals are too large or too small for single precision", nil
	case operator.HasSingle(w):
		b.single = w
		return true, "W is in single precision: so is the arithmetic, but for what that could change", nil
	}
	rounder, ok := w.(operator.Rounder)
	switch {
	case !ok:
		return false, "not possible: W cannot be rounded", nil
	case !b.Fits(12 * int64(b.m) * int64(b.n) * b.numbers()):
		return false, "not possible: too little memory", nil
	}
	if b.single, b.lost = rounder.Rounded(Threads(b.Threads, b.m*b.n)); b.single == nil || !operator.HasSingle(b.single) {
		return false, "not possible: an entry of W is too large for single precision", nil
	}
	return true, "W and the arithmetic, but for what that could change", nil
}

func withinSingle(meanSquare float64) bool {
	return meanSquare >= 1/singleRange && meanSquare <= singleRange
}

func (b *planner) makeSinglePrecision(s *Solver) (Part, error) {
	lent := b.sweeps
	if b.single != b.matrix() || lent.Single.Exact == nil {
		var err error
		if lent, err = operator.NewSweeps(b.single, b.P, s.State.Threads); err != nil {
			return nil, err
		}
	}
	p := newPrecision(s.State, b.demand, lent, b.single.Storage(), b.lost)
	if b.demand != nil && operator.BytesPay(b.m*b.n) && b.Fits(int64(b.m)*int64(b.n)) {
		if err := p.useBytes(s.State, b.single); err != nil {
			return nil, err
		}
	}
	s.Iteration.(*diagonal).precision = p
	return p, nil
}
