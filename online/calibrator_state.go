package online

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
)

// State is all that a Calibrator remembers: what it takes to go on after an
// interruption with the same bits.
type State struct {
	// Statistics of the M sensors over the samples absorbed, M×Width (see
	// [channel.Calibration]); for a [channel.Gain] precision, precision times mean,
	// number of readings. Of a flagged sensor: since it was flagged.
	Stats []float64

	Health []float64 // M, cumulative sums (see [Sanity])
	Flag   []Flag    // M

	// The scale's evidence over the samples absorbed, without flagged sensors:
	// Σ ω²/D + Σ x̂(λ-x̂)/Σ and Σ V g².
	Quadratic, Volume float64

	// Signals are what the samples' known variance says of the scale, where the gains may
	// turn out not to fill the range that was given.
	Signals amp.SignalSums

	// Range is the distribution of gains that do not fill the range that was given; nil where they do.
	Range *LearnedRange
	Doubt rangeDoubt // that they do, while Range is nil

	// Anchor is what held the common scale of what was reported. All that is in the
	// state is as without it.
	Anchor calamp.Anchor

	Retention float64 // factor that tempers the past at the next sample, in (0, 1]
	Samples   uint64  // committed so far

	Complex bool // readings are complex, and two columns each
	Rows    int  // of W, of a sensor of several; 0 where each is one

	Model *Model // as learned so far; nil when it is given, and before the first sample

	// Drift is what is known of how s walks; nil where drifts are not followed. Stats,
	// Quadratic and Volume are then what its members say together.
	Drift *Drift

	// Scenes are what the latest samples have looked like, so that those that look
	// similar count for less.
	Scenes []scene

	// Warm are the samples (each of M readings, NaN where missing, two numbers each where they are complex) that are kept until there are enough to be solved
	// together, and OffsetSD is what these have taught of the offsets; 0 where it is given.
	Warm     [][]float64
	OffsetSD float64

	// Block are the latest samples, which are to be solved together; nil for none.
	Block *Block

	// Spread (J) are the standard deviations of the parameters of sensors, as learned; nil where there are none, and before the first sample.
	Spread []float64

	// Outliers is how many readings were outliers; zero where that was not looked at.
	Outliers outlierCount

	// Brightness is how large signals were; zero where outliers were not looked for.
	Brightness brightness

	// Forks explain the latest samples, which contradict the state; none while it is
	// not contradicted. Alert is what is left of the watchfulness after a change.
	Forks []fork
	Alert alert
}

func newState(m, width int, retention float64) State {
	return State{
		Stats:  make([]float64, m*width),
		Health: make([]float64, m), Flag: make([]Flag, m), Retention: retention,
	}
}

// Snapshot returns a copy of the state.
func (c *Calibrator) Snapshot() *State {
	s := c.state.clone()
	s.Anchor = c.Anchor()
	return s
}

// Validate reports a state from which no stream could go on (see [State.Validate]), as one would after readings that arithmetic does
// not survive.
func (c *Calibrator) Validate() error { return c.state.Validate() }

func (s *State) clone() *State {
	c := *s
	c.Stats = slices.Clone(s.Stats)
	c.Health, c.Flag = slices.Clone(s.Health), slices.Clone(s.Flag)
	c.Model, c.Drift, c.Forks = s.Model.clone(), s.Drift.clone(), nil
	c.Range, c.Spread, c.Block = s.Range.clone(), slices.Clone(s.Spread), s.Block.clone()
	if s.Warm != nil {
		c.Warm = cloneAll(s.Warm)
	}
	c.Scenes = nil
	for i := range s.Scenes {
		c.Scenes = append(c.Scenes, s.Scenes[i].clone())
	}
	for i := range s.Forks {
		c.Forks = append(c.Forks, s.Forks[i].clone())
	}
	return &c
}

// drift is the rate at which gains drift; 0 before a drift was found.
func (s *State) drift() float64 {
	if s.Drift == nil || s.Drift.Since == 0 {
		return 0
	}
	return s.Drift.Rate()
}

// Sensors is M.
func (s *State) Sensors() int { return len(s.Flag) }

// columns is how many numbers are read of a sensor.
func (s *State) columns() int {
	columns := max(1, s.Rows)
	if s.Complex {
		columns *= complexColumns
	}
	return columns
}

// Width is how many statistics there are of each sensor; 0 for no sensors.
func (s *State) Width() int { return len(s.Stats) / max(1, len(s.Flag)) }

// Restore continues from a state: the samples that follow give the same bits as
// if there had been no interruption. A state that is not one of M sensors, or
// holds what no stream leaves behind, is an error and changes nothing.
//
// Without forgetting (Memory 0) the state's Retention is not used.
func (c *Calibrator) Restore(s *State) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Sensors() != c.m {
		return fmt.Errorf("the state is of %d sensors, but W is %d×%d", s.Sensors(), c.m, c.n)
	}
	if s.Width() != c.state.Width() {
		return fmt.Errorf("the state has %d statistics a sensor, and this channel keeps %d", s.Width(), c.state.Width())
	}
	if s.Spread != nil && len(s.Spread) != len(c.opt.SensorDerivatives) {
		return fmt.Errorf("the state is of %d parameters of every sensor, and this stream has %d", len(s.Spread), len(c.opt.SensorDerivatives))
	}
	if matrix := s.keptMatrix(); len(s.kept()) > 0 && (c.choice == nil && matrix > 0 || c.choice != nil && matrix != c.choice.Numbers()) {
		return errors.New("the state and the stream are not both of samples with matrices of their own, or not of the same")
	}
	if s.Rows != c.state.Rows {
		return fmt.Errorf("the state is of %d rows of W a sensor, and the stream of %d", max(1, s.Rows), c.rows)
	}
	if s.Complex != c.state.Complex {
		return errors.New("the state and the stream are not both of complex readings")
	}
	var model *Model
	c.followed, c.latest = nil, nil
	c.choose(c.frees(s))
	if s.Model != nil && c.learner != nil {
		model = s.Model.clone()
		if err := c.setModel(model); err != nil {
			return fmt.Errorf("state: learned model: %w", err)
		}
	}
	if err := c.SetAnchor(c.opt.Anchor.Or(s.Anchor)); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	copy(c.state.Stats, s.Stats)
	copy(c.state.Health, s.Health)
	copy(c.state.Flag, s.Flag)
	c.state.Quadratic, c.state.Volume, c.state.Samples = s.Quadratic, s.Volume, s.Samples
	c.state.Signals, c.state.Range, c.state.Doubt = s.Signals, nil, rangeDoubt{}
	if c.given != nil {
		c.state.Range, c.state.Doubt = s.Range.clone(), s.Doubt
	}
	c.state.Spread = slices.Clone(s.Spread)
	c.inheritSpread()
	c.state.Model, c.state.Outliers, c.state.Brightness = model, s.Outliers, s.Brightness
	c.adoptRange()
	rest := s.clone()
	c.state.Warm, c.state.OffsetSD = rest.Warm, rest.OffsetSD
	c.adoptOffsets()
	c.state.Block = nil
	if c.blocks() {
		c.state.Block = rest.Block
	}
	c.state.Forks, c.state.Alert, c.state.Scenes = nil, alert{}, nil
	if c.opt.Commit == Sane {
		c.state.Forks, c.state.Alert, c.state.Scenes = rest.Forks, rest.Alert, rest.Scenes
	}
	if c.bank != nil {
		c.state.Drift = s.Drift.clone()
		if s.Drift == nil { // of a run that did not look for drifts
			c.state.Drift = newDrift(&c.state)
		}
	}
	c.state.Retention = min(s.Retention, c.opt.nominalRetention())
	if c.opt.Memory == 0 || c.opt.Commit == Always {
		c.state.Retention = c.opt.nominalRetention()
	}
	return nil
}

// mostShown are the statistics of a sensor that an error shows: a channel of ours has no more.
const mostShown = 6

// Validate reports what no stream leaves behind.
func (s *State) Validate() error {
	m, width := s.Sensors(), s.Width()
	if len(s.Stats) != m*width || len(s.Health) != m {
		return fmt.Errorf("state: %d, %d and %d values of Stats, Health and Flag, expected as many of each sensor", len(s.Stats), len(s.Health), m)
	}
	for mu := range m {
		stats := s.Stats[mu*width : (mu+1)*width]
		if !amp.AllFinite(stats) || !amp.AllFinite(s.Health[mu:mu+1]) || s.Flag[mu] > Inconsistent {
			return fmt.Errorf("state: sensor %d has statistics %v, health %g, flag %d", mu, stats[:min(width, mostShown)], s.Health[mu], s.Flag[mu])
		}
		if width == gainWidth && !(stats[0] >= 0 && stats[2] >= 0) {
			return fmt.Errorf("state: sensor %d has τ = %g, B = %g, count %g", mu, stats[0], stats[1], stats[2])
		}
		if s.Complex && !(width == 4 && stats[0] >= 0 && stats[3] >= 0) {
			return fmt.Errorf("state: sensor %d has complex statistics %v", mu, stats[:min(width, mostShown)])
		}
	}
	if !amp.AllFinite([]float64{s.Quadratic, s.Volume}) || !(s.Retention > 0 && s.Retention <= 1) {
		return fmt.Errorf("state: scale sums %g and %g, retention %g", s.Quadratic, s.Volume, s.Retention)
	}
	if err := s.Anchor.Validate(); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if err := s.Anchor.ValidateFor(m); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if err := errors.Join(s.validateWarm(m), s.Outliers.validate(), s.Brightness.validate()); err != nil {
		return err
	}
	if !amp.AllFinite(s.Spread) || len(s.Spread) > 0 && !(slices.Min(s.Spread) > 0) {
		return fmt.Errorf("state: parameters of sensors with spreads of %v", s.Spread)
	}
	if s.Range != nil {
		if err := s.Range.Prior.Validate(); err != nil {
			return fmt.Errorf("state: learned distribution of s: %w", err)
		}
	}
	if g := s.Signals; !(g.Active >= 0) || !amp.AllFinite([]float64{g.Active, g.Pull}) {
		return fmt.Errorf("state: the signals' sums of the scale are %g and %g", g.Active, g.Pull)
	}
	for i := range s.Scenes {
		if err := s.Scenes[i].validate(m * s.columns()); err != nil {
			return err
		}
	}
	if len(s.Scenes) > mostScenes {
		return fmt.Errorf("state: %d scenes, expected at most %d", len(s.Scenes), mostScenes)
	}
	if s.Alert.Left < 0 || s.Alert.Left > alertSamples {
		return fmt.Errorf("state: an alert of %d samples", s.Alert.Left)
	}
	for i := range s.Forks {
		if err := s.Forks[i].validate(m, width); err != nil {
			return err
		}
	}
	if s.Drift != nil {
		if err := s.Drift.validate(len(s.Stats), m); err != nil {
			return err
		}
	}
	if s.Model != nil {
		if err := s.Model.Validate(); err != nil {
			return fmt.Errorf("state: learned model: %w", err)
		}
		if err := s.Model.Sensors.validate(m); err != nil {
			return err
		}
	}
	return nil
}

// Posterior is what has been learned of the sensors.
type Posterior struct {
	S       []float64 // M, posterior means of the calibration variables (y = z/s)
	SVar    []float64 // M, posterior variances, at a fixed global scale
	Gain    []float64 // M, the multiplicative gains 1/S
	Count   []float64 // M, readings absorbed; a weight when there is forgetting
	ScaleSD float64   // relative standard deviation of the global scale, common to all of S
	Samples uint64    // committed
	Factor  float64   // by which an anchor moved all that is at the scale of signals and s, 1 without one

	// Drift is the standard deviation of the relative step of the gains a sample while
	// they are found to drift; 0 otherwise (see [Drift]).
	Drift float64

	// OutlierRate is the part of readings that are outliers, as learned or given; 0 where that is not looked at.
	OutlierRate float64

	// Model is that of signals and noise as learned; nil when it was given, and
	// before the first sample.
	Model *Model

	// NoiseVar (M) is the noise variance of every sensor where that is learned for each; nil elsewhere.
	NoiseVar []float64

	// Range is there where the gains do not fill the range that was given.
	Range *rangeNotFilled

	// Warnings say so, and what else is to be known before trusting the scale.
	Warnings []calamp.Warning

	// Calibration is what S and SVar come from, and gives intervals.
	Calibration *channel.Posteriors

	// Offset and OffsetVar (M) are the posterior means and variances of the sensors' offsets, y = z/s + o, in the units
	// of the readings; nil unless the channel has them. OffsetSD is their standard deviation beforehand.
	Offset, OffsetVar []float64
	OffsetSD          float64

	// Theta and ThetaVar (M×J) are the posterior means and variances of the parameters of the sensors, Spread (J) their standard deviations over
	// the sensors; nil where Options.SensorDerivatives has none.
	Theta, ThetaVar *mat.Dense
	Spread          []float64

	// Phase (M) are the arguments of complex s, whose modulus is S, in radians. PhaseSD is the standard deviation of the
	// phase that they and all signals have in common; where nothing is known of phases beforehand that is a convention
	// (PhaseFree): of the anchored sensor, or that the sum of all s is positive.
	Phase     []float64
	PhaseSD   float64
	PhaseFree bool

	// Sensors that are not used at present. Their S is what they have been
	// recalibrated to since they were flagged.
	Flagged []FlaggedSensor
}

// FlaggedSensor is a sensor taken out of use, and why.
type FlaggedSensor struct {
	Sensor int // row of W, from 0
	Reason Flag
}

// Posterior returns the present posterior of the sensors, in new slices.
func (c *Calibrator) Posterior() *Posterior {
	s := &c.state
	p := &Posterior{
		S: make([]float64, c.m), SVar: make([]float64, c.m), Gain: make([]float64, c.m),
		Count: make([]float64, c.m), Samples: s.Samples, Factor: 1, Model: s.Model.clone(),
	}
	p.Drift = s.drift()
	known := c.sample.Calibration()
	p.ScaleSD = math.Hypot(c.scaleSD(), channel.CommonScaleSD(known))
	if s.Range != nil {
		p.Range = &rangeNotFilled{Given: *c.given, LearnedRange: *s.Range, ScaleSD: p.ScaleSD}
	}
	p.Calibration = &channel.Posteriors{Prior: known, Stats: slices.Clone(s.Stats)}
	c.blend(p.Calibration.Stats)
	means := make([]complex128, c.m)
	c.posteriors(means, p.SVar, p.Calibration.Stats)
	for mu, mean := range means {
		p.S[mu] = cmplx.Abs(mean)
	}
	if offsets := c.offsets(); offsets != nil {
		p.Offset, p.OffsetVar, p.OffsetSD = make([]float64, c.m), make([]float64, c.m), offsets.OffsetSD()
		offsets.Offsets(p.Offset, p.OffsetVar, s.Stats) // what blend says is of s alone
		if c.opt.Commit == Sane {
			scale(p.OffsetVar, beyondStated)
		}
	}
	c.placeMoves(p)
	for mu := range c.m {
		p.Count[mu] = known.Readings(c.statsOf(mu))
		p.Gain[mu] = 1 / p.S[mu]
		if s.Flag[mu] != Healthy {
			p.Flagged = append(p.Flagged, FlaggedSensor{mu, s.Flag[mu]})
		}
	}
	c.placePhases(p, means)
	c.widenForRows(p)
	if s.Model.unequal() {
		p.NoiseVar = make([]float64, c.m)
		s.Model.Sensors.variances(p.NoiseVar, s.Model.NoiseVar)
	}
	if c.anchor.Set() {
		c.hold(p)
	}
	if c.outliers != nil {
		p.OutlierRate = s.Outliers.rate(c.opt.Outliers.Rate)
	}
	c.doubtsNoise(p)
	c.doubtsNetwork(p)
	c.doubtsAmplitudes(p)
	c.doubtsPhases(p)
	c.doubtsSimilar(p)
	if p.Range != nil {
		p.Warnings = append(p.Warnings, calamp.Warning{Code: calamp.RangeNotFilled, Message: p.Range.String()})
	}
	found := []*diagnosis.Warning{c.watched.found, diagnosis.WarnRows(c.rowsWatched.found), diagnosis.Bent(c.bent.By())}
	if c.opt.Commit == Sane {
		found = append(found, diagnosis.CollinearColumns(c.sample.W, c.sample.Threads))
	}
	for _, w := range found {
		if w != nil {
			p.Warnings = append(p.Warnings, calamp.Warning{Code: calamp.WarningCode(w.Code), Message: w.Message})
		}
	}
	return p
}

// scaleSD is the standard deviation of the global scale given the samples
// absorbed and the sensors in use.
func (c *Calibrator) scaleSD() float64 {
	s := &c.state
	if s.Range != nil {
		_, sd := c.learnedScale(c.strangers())
		return sd
	}
	if c.amplitudesOpen() {
		return c.sample.PastAmplitudeScaleSD(c.inUse(), s.Signals)
	}
	return c.withDoubt(c.evidenceSD())
}

// evidenceSD is what the evidence along the scale says of it.
func (c *Calibrator) evidenceSD() float64 {
	return c.sample.PastScaleSD(amp.Past{Stats: c.inUse(), Quadratic: c.state.Quadratic, Volume: c.state.Volume})
}

// unlearnedSD is what that would be with the present sample, which was not learned from.
func (c *Calibrator) unlearnedSD() float64 {
	quadratic, volume := c.solver.Sums()
	scale := c.moved().scale
	return c.sample.PastScaleSD(amp.Past{
		Stats:     c.sample.Stats,
		Quadratic: c.retention*scale*scale*c.past.Quadratic + quadratic,
		Volume:    c.retention*c.past.Volume + volume,
	})
}

// inUse are the statistics of the sensors in use, and nothing of the others.
func (c *Calibrator) inUse() []float64 {
	stats := slices.Clone(c.state.Stats)
	for mu, f := range c.state.Flag {
		if f != Healthy {
			clear(c.sample.Of(stats, mu))
		}
	}
	return stats
}

// keptMatrix is how many numbers say which matrix a sample that is kept has.
func (s *State) keptMatrix() int {
	if len(s.kept()) == 0 {
		return 0
	}
	return max(0, len(s.kept()[0])-s.Sensors()*s.columns())
}

// kept are the samples that the state holds.
func (s *State) kept() [][]float64 {
	if s.Block != nil {
		return s.Block.Samples
	}
	return s.Warm
}

// validateWarm reports kept samples that no stream keeps.
func (s *State) validateWarm(m int) error {
	if len(s.Warm) > mostWarmUp || len(s.Warm) > 0 && s.Samples > 0 {
		return fmt.Errorf("state: %d samples kept to be solved together, after %d", len(s.Warm), s.Samples)
	}
	if err := s.Block.validate(s); err != nil {
		return err
	}
	for k, y := range s.kept() {
		if len(y) != m*s.columns()+s.keptMatrix() || slices.ContainsFunc(y, func(v float64) bool { return math.IsInf(v, 0) }) {
			return fmt.Errorf("state: kept sample %d is none of %d sensors", k, m)
		}
	}
	if d := s.Doubt; !(d.Chance >= 0 && d.Chance <= 1) || !(d.Apart >= 0) || math.IsInf(d.Apart, 1) {
		return fmt.Errorf("state: a range doubted with probability %g, the scale %g apart", d.Chance, d.Apart)
	}
	if !(s.OffsetSD >= 0) || math.IsInf(s.OffsetSD, 1) {
		return fmt.Errorf("state: offsets with a standard deviation of %g", s.OffsetSD)
	}
	return nil
}
