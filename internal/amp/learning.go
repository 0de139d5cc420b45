package amp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/evidence"
	"github.com/calamp/calamp/internal/moments"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Learning re-fits the model between iterations, towards the stationary points of the
// Bethe free energy: the prior when it is a [prior.Learner], and what else is asked for.
// Early estimates say little, and a parameter needs some iterations to show its effect:
// hence the schedule.
type Learning struct {
	Idle

	Noise       bool // the channel's noise variance; the channel must be [channel.Noisy]
	SensorNoise bool // that of every sensor, with Noise
	Calibration bool // the calibration's distribution; it must be [channel.Learnable]
	Offsets     bool // the offsets' standard deviation; the calibration must be [channel.Offsetting]
	Phases      bool // the concentration of the phases; the calibration must be a [channel.ComplexPrior]

	// GivenNoise is a noise variance that was given where something else is learned: the noise falls to it from where learning starts, as learned
	// noise does, and then stays. Sure of readings before it knows signals, a run would take sound sensors for broken ones. 0 for none.
	GivenNoise float64

	// GivenPrior takes the place of the prior with the first refit; nil where that is learned from where it starts (see [planner.startDense]).
	GivenPrior prior.Prior

	// Of a stream. Off leaves the model as it is. Step is how far a sample may move
	// the prior from where it started, 0 for all the way, and PastInformation what
	// earlier samples said of the noise variance (an inverse variance). Information
	// is what the latest run said.
	Off                          bool
	Step                         float64
	PastInformation, Information float64

	Blurred bool // gains may be equal, as far as readings can tell

	fromPrior    prior.Learner
	fromNoise    float64
	sensorsMoved float64
}

const (
	firstRefit = 6
	refitEvery = 3

	// noiseReach bounds the factor of one update of a noise variance: V
	// follows it only some iterations later. That of all readings may fall at once: a bound of
	// 1/noiseReach took up to 8 iterations more, and changed no answer (docs/log/validation.md).
	noiseReach = 4

	// leastNoise is the least noise variance learned or computed with, relative to the mean
	// square of the corrected readings: below, rounding is what is left of the residuals,
	// and of what they say of the scale.
	leastNoise = 1e-14

	// mostPower is how many times the readings' power a learned prior may expect.
	mostPower = 4

	// A model that moves by less than this, in standard errors of its parameters, has
	// settled. The ends of a range move in steps of at least rangeTolerance.
	modelTolerance = 1e-3

	// A model that moves by no more than creepTolerance while the signals stand still creeps; by more, it pulls where it is not let.
	creepTolerance = 1
	rangeTolerance = 0.05

	// rangePatience is after how many iterations larger moves are left out, too:
	// where noise hides the spread of s, the ends of its range wander for ever.
	rangePatience = 100

	// phasePatience is for how many iterations signals whose phases are open are waited for: from a weak
	// start recovery takes tens of iterations, in which they look like noise.
	phasePatience = 150

	// gaugeReach bounds how far the scale goes in one step that follows the prior.
	gaugeReach = 0.1
)

// Begin notes where a run starts.
func (l *Learning) Begin(s *Solver) {
	s.State.ModelMoved, s.State.learnedEach = math.Inf(1), false
	clear(s.State.logPrior)
	l.fromPrior = prior.LearnerOf(s.State.model.Prior)
	l.fromNoise = channel.NoiseOf(s.State.model.Channel)
}

// After re-fits the model when it is time. While noise is added to the channel, it is
// not the model's own.
func (l *Learning) After(s *Solver, line *Line) Verdict {
	if l.Off || line.Index < firstRefit || s.State.Added > 0 {
		return GoOn
	}
	if line.Index < phasePatience && s.State.phasesOpen() {
		return Disturbed
	}
	if l.SensorNoise && line.Index >= firstSensorRefit {
		l.sensorsMoved = s.State.refitSensorNoise()
	}
	if line.Index%refitEvery == 0 {
		s.State.ModelMoved = max(l.refit(s.State, line.Index), l.sensorsMoved)
	}
	if moved := s.State.ModelMoved; moved > modelTolerance && !(s.State.Standing && moved < creepTolerance) {
		return Disturbed
	}
	return GoOn
}

// refit moves the model and returns how far, in standard errors.
func (l *Learning) refit(s *State, t int) (change float64) {
	if l.Calibration {
		change = l.refitCalibration(s, t)
	}
	if l.Offsets {
		change = max(change, refitOffsets(s))
	}
	if l.Phases {
		change = max(change, refitPhases(s))
	}
	if l.falls(s) {
		change = max(change, l.fall(s, t))
	}
	if l.Noise && !(l.SensorNoise && t >= firstSensorRefit) {
		change = max(change, l.refitNoise(s))
	}
	if l.GivenPrior != nil {
		s.Adopt(Model{l.GivenPrior, s.model.Channel})
		l.GivenPrior, change = nil, max(change, 1)
	}
	if p := prior.LearnerOf(s.model.Prior); p != nil {
		change = max(change, l.refitPrior(s, p))
	}
	return change
}

// refitPrior lets the prior fit itself to the fields. It does not take a prior that
// expects far more power than the readings have: one signal whose estimate blows up
// would spoil the prior of all.
func (l *Learning) refitPrior(s *State, p prior.Learner) float64 {
	from, step := p, 1.0
	_, varied := p.(prior.Varied)
	if l.Step > 0 && (l.Step < 1 || varied) { // groups may have no more than one entry
		from, step = l.fromPrior, min(l.Step, 1)
	}
	lambda, sigma := s.priorFields()
	next, change := from, 0.0
	if s.jointLatents() == nil { // which are learned as rows
		next, change = from.Refit(lambda, sigma, step)
	}
	if n, ok := prior.NetworkOf(next); ok {
		var moved float64
		next, moved = n.RefitSlack(s.X, s.C, s.Lambda, s.Sigma, s.rate())
		change = max(change, moved)
	}
	expected := s.typicalRow * prior.Square(next)
	if power := s.meanPower(); !(expected <= mostPower*power) {
		return change
	}
	s.Adopt(Model{next, s.model.Channel})
	if step < 1 || varied && l.Step > 0 {
		return 0 // the fields tell whether they have settled; change is that from the start
	}
	return change
}

// refitNoise moves Δ towards the stationarity of the Bethe free energy,
//
//	∂/∂Δ Σ log Z_out = ½ Σ (g² + ∂g) = 0,
//
// by the factor Σ g² / Σ -∂g, each reading by the ratio of its noise to Δ where that differs (F. Krzakala et al., J. Stat. Mech. 2012, P08009,
// for a channel with known gains). Where AMP recovers, V is proportional to Δ, and
// the factor brings the residuals to what V+Δ expects at once. On a stream the
// sample's own estimate is averaged with the past, by their information on Δ, ½ Σ (∂g)²:
// samples whose signal or gains are little known say little of the noise.
func (l *Learning) refitNoise(s *State) float64 {
	var squares, slopes, information float64
	for j, y := range s.Y {
		if math.IsNaN(y) {
			continue
		}
		weight := s.relativeNoise(j)
		squares += weight * s.G[j] * s.G[j]
		slopes -= weight * s.DG[j]
		information += 0.5 * weight * weight * s.DG[j] * s.DG[j]
	}
	most, count := s.Power()
	if !(slopes > 0) || !(most > 0) {
		return 0
	}
	c := channel.InOrder(s.model.Channel).(channel.Noisy)
	least := leastNoise * most
	if codes, is := channel.CodesOf(s.model.Channel); is {
		least = max(least, codes.LeastLearned())
	}
	now := min(max(c.Noise(), least), most)
	ratio := squares / slopes
	if s.steadied != nil {
		ratio = s.steadied(ratio)
	}
	next := now * min(ratio, noiseReach)
	l.Information = information
	if weight := information / (information + l.PastInformation); weight < 0.5 {
		own := now + (ratio-1)*count/slopes
		next = min(max(l.fromNoise+weight*(own-l.fromNoise), now/noiseReach), now*noiseReach)
	}
	if s.follows != nil {
		next, change := s.follows.noiseStep(s, now, ratio)
		s.adoptWorking(c.WithNoise(min(max(next, least), most)))
		return change
	}
	next = min(max(next, least), most)
	step := next - c.Noise()
	s.scaleExcess(next / c.Noise())
	s.adoptWorking(c.WithNoise(c.Noise() + step))
	return math.Abs(math.Log(next/now)) * math.Sqrt(count/2)
}

// falls says that the noise is still above what was given.
func (l *Learning) falls(s *State) bool {
	return l.GivenNoise > 0 && channel.NoiseOf(s.model.Channel) > l.GivenNoise
}

// fall moves the noise as if it were learned, but not below what was given; a run that does not find the way there by itself is led.
func (l *Learning) fall(s *State, t int) float64 {
	change := l.refitNoise(s)
	if c := channel.InOrder(s.model.Channel).(channel.Noisy); c.Noise() <= l.GivenNoise || t >= rangePatience || change < modelTolerance {
		s.adoptWorking(c.WithNoise(l.GivenNoise))
	}
	return max(change, 1)
}

// refitCalibration moves the distribution of s, and the global scale with it: one
// that is free, such as a range, has no scale of its own.
func (l *Learning) refitCalibration(s *State, t int) float64 {
	known := s.calibration.(channel.Learnable)
	fit, change := known.Refit(s.Stats, s.outOfOrder())
	late := max(1, float64(t)/rangePatience)
	// The mean of a normal follows at once: one that is a little off pulls at the scale for ever.
	if _, _, normal := channel.NormalOf(known); !normal && change < rangeTolerance*late*late {
		fit, change = known, 0
	}
	c := 1.0
	switch {
	case s.scaleOfNetwork(): // the iteration finds it
	case !s.ScaleLearned:
		sums := s.SignalSums()
		c = sums.step()
		if shift := math.Abs(math.Log(c)) * math.Sqrt(2*sums.Active); shift > scaleTolerance*late*late {
			change = max(change, shift) // in standard errors, too
		}
	case change > 0: // nothing determines the scale: the middle of the range stays where it is
		c = channel.Middle(known) / channel.Middle(fit)
	}
	s.rescale(c)
	s.adoptCalibration(fit.Scaled(c))
	if known, ok := s.calibration.(channel.Informed); ok {
		if err := known.Inform(s.Past.Stats); err != nil {
			panic("calamp: " + err.Error()) // the same sensors as before
		}
	}
	return change
}

// Report implements [Part]. Gains that differ by less than chance blurs them need not be equal: their error bars are those of a spread as large as that. One text
// behind 188 masks, whose gains differ by 10 %, was taken for noise of equal gains, ± 0.01 %.
func (l *Learning) Report(s *Solver) {
	e := s.State
	known, gains := e.calibration.(channel.GainPrior)
	if _, _, normal := channel.NormalOf(e.calibration); !l.Calibration || !gains || !normal {
		return
	}
	most := evidence.FirstSpread * channel.Middle(known)
	if wide := channel.AsFarAsKnown(known, e.Stats, e.outOfOrder(), most*most); wide != known {
		l.Blurred = true
		e.adoptCalibration(wide)
		mean := make([]float64, e.M)
		wide.Posteriors(mean, e.SVar, e.Stats)
		for mu, s := range e.S {
			e.SVar[mu] += (mean[mu] - s) * (mean[mu] - s) // the gains stay those of the signals
		}
	}
}

func refitOffsets(s *State) float64 {
	next, change := s.offsets().RefitOffsets(s.Stats, s.outOfOrder())
	s.adoptCalibration(next)
	return change
}

// phaseReach bounds the factor of one update of the concentration of the phases.
const phaseReach = 4

// refitPhases moves the concentration of the phases to the one that the readings are likeliest under, whatever the phases are: at a fixed point that
// is where the free energy is stationary in it. Its logarithm is known to √(2/M).
func refitPhases(s *State) float64 {
	known := s.calibration.(channel.Turning)
	likeliest, _ := known.PhaseSpread(s.Stats, s.outOfOrder())
	now := known.Phases()
	next := min(max(likeliest, now/phaseReach), now*phaseReach)
	s.adoptCalibration(known.WithPhases(next))
	return math.Abs(math.Log(next/now)) * math.Sqrt(0.5*float64(s.M))
}

// step is the factor by which the signals are to be multiplied to be likeliest
// under the prior: a Newton step to the zero of the derivative by log c of the evidence
// for a prior that is stretched by c,
//
//	Σ_i (x̂(λ-x̂) - C)/Σ,
//
// whose slope is about twice the number of entries that are not zero, Σ C/Σ (see [State.scaleInformation]).
func (s SignalSums) step() float64 {
	if !(s.Active > 0) {
		return 1
	}
	step := (s.Pull - s.Active) / (2 * s.Active)
	return math.Exp(-min(max(step, -gaugeReach), gaugeReach))
}

// outOfOrder tells which sensors are more likely broken than not.
func (s *sensorState) outOfOrder() []bool {
	omit := make([]bool, s.M)
	for mu := range omit {
		omit[mu] = s.OutOfOrder(mu)
	}
	return omit
}

// noneInOrder reports whether all sensors are taken for broken, so that nothing is read: of fifty texts behind masks all were from the tenth iteration to the last.
func (s *sensorState) noneInOrder() bool { return !slices.Contains(s.outOfOrder(), false) }

// OutOfOrder tells whether a sensor is more likely broken than not.
func (s *sensorState) OutOfOrder(mu int) bool { return s.Broken[mu] > 0.5 }

// meanNoise is that of all readings, as far as it is given.
func (b *planner) meanNoise() float64 {
	if b.Noise != nil {
		return channel.MeanNoise(b.Noise)
	}
	return max(channel.NoiseOf(b.Model.Channel), b.ownLevel())
}

// noiseFalls says that noise that was given is where learning ends, and not where it starts.
func (b *planner) noiseFalls() bool {
	c, ok := channel.InOrder(b.Model.Channel).(channel.Noisy)
	return ok && b.Tol >= 0 && !b.stream() && !b.LearnNoise && !b.LearnSensorNoise && b.Noise == nil && c.Noise() > 0 && b.learns()
}

// typicalRow is the squared norm of a row of W, whatever a few rows are: what a typical sensor's readings are compared with. It is 0 where all
// are zero.
func (b *planner) typicalRow() (float64, error) {
	norms, err := operator.RowSquares(b.W, Threads(b.Threads, b.m*b.n))
	if err != nil {
		return 0, err
	}
	norms = slices.DeleteFunc(norms, func(v float64) bool { return v == 0 })
	if len(norms) == 0 {
		return 0, nil
	}
	return search.Select(norms, len(norms)/2), nil
}

// expectedPower is the mean square of z that a prior expects of rows of this mean square norm,
//
//	E z² = ‖w‖² Var x + (Σ w)² (E x)²:
//
// entries that cannot be negative add up in rows of W with a mean, as masks of 0 and 1 have.
func (b *planner) expectedPower(p prior.Prior, row float64) (float64, error) {
	mean, square := p.Mean(), prior.Square(p)
	if mean == 0 {
		return row * square, nil
	}
	means, err := operator.MeansOf(b.W, Threads(b.Threads, b.m*b.n))
	sums := 0.0
	for _, v := range means.Rows {
		sums += float64(b.n) * float64(b.n) * v * v / float64(len(means.Rows))
	}
	return row*(square-mean*mean) + sums*mean*mean, err
}

// startDense begins with signals as dense as where nothing is known of them, and of the same power, where a density was given that is less, until other parts of the model are first learned. A prior
// that is sure of few entries takes wrong ones before it knows the gains: complex signals of two snapshots then blew up in three iterations, and sensors were blamed.
func (b *planner) startDense() {
	p, ok := b.Model.Prior.(prior.Slabbed)
	if !ok || b.Tol < 0 || b.stream() || p.Learned()&prior.Density != 0 {
		return
	}
	density := moments.Density(b.m, b.n)
	values := p.Values()
	if p.NonZero() >= density || values[0] != p.NonZero() {
		return
	}
	values[0] = density
	dense, err := p.WithValues(values)
	if err != nil {
		return
	}
	mean, variance := p.Slab()
	factor := p.NonZero() / density
	b.givenPrior, b.Model.Prior = p, dense.(prior.Slabbed).WithSlab(math.Sqrt(factor)*mean, factor*variance)
}

// startLearning brings what is to be learned to where learning can start: a noise no
// smaller than a hundredth of the readings' power, and a prior that expects that power
// to within a factor of two. AMP that is too sure of a wrong model blows up before
// anything is learned.
func (b *planner) startLearning() error {
	y := b.Y
	if b.offsetting() != nil {
		y = moments.Centred(y, b.P)
	}
	powers, err := moments.Of(b.W, y, b.P)
	if err != nil {
		return err
	}
	middle := 1.0
	if c := channel.CalibrationOf(b.Model.Channel); c != nil {
		middle = channel.Size(c)
	}
	row := b.W.MeanSquare() * float64(b.n)
	power := powers.Power(row, middle)
	if b.noiseFalls() {
		b.givenNoise = channel.NoiseOf(b.Model.Channel)
	}
	noisy, _ := b.Model.Channel.(channel.Noisy)
	switch {
	case b.LearnNoise && b.Noise != nil: // their common factor is learned
		b.Noise = slices.Clone(b.Noise)
		floats.Scale(max(1, power/(1+moments.SignalToNoise)/channel.MeanNoise(b.Noise)), b.Noise)
		b.Model.Channel = noisy.WithNoise(Least(b.Noise))
	case b.LearnNoise || b.givenNoise > 0:
		b.Model.Channel = noisy.WithNoise(noisy.Noise() + max(0, power/(1+moments.SignalToNoise)-noisy.Noise()))
	}
	b.startOwnNoise(power)
	if p := prior.LearnerOf(b.Model.Prior); p != nil {
		expected, err := b.expectedPower(p, row)
		if err != nil {
			return err
		}
		b.Model.Prior = p.Balanced(moments.Signal(power, b.meanNoise()) / expected * prior.Square(p))
	}
	b.startDense()
	if n, ok := prior.NetworkOf(b.Model.Prior); ok {
		b.Model.Prior = n.StartSlack(1.0 / (1 + moments.SignalToNoise))
	}
	return nil
}
