package online

import (
	"context"
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// LearnedRange is what a stream has learned of how the gains are spread, where they do
// not fill the range that was given. Then the range determines the common scale no better than
// that it contains the gains, and s and the signals are where they are in the middle of what
// this, and the signals' power where it is known, leave open.
type LearnedRange struct {
	Prior     channel.GainPrior
	LogRatio  float64 // how much likelier the gains were under another distribution, when that was found
	TooNarrow bool    // gains lie outside the range that was given
}

func (r *LearnedRange) clone() *LearnedRange {
	if r == nil {
		return nil
	}
	c := *r
	return &c
}

// rangeNotFilled says so of a posterior.
type rangeNotFilled struct {
	Given channel.GainPrior
	LearnedRange
	ScaleSD float64 // relative
}

// String says it in a sentence.
func (f *rangeNotFilled) String() string {
	mean, variance := channel.Typical(f.Prior)
	sd := math.Sqrt(variance)
	learned := fmt.Sprintf("with mean %.4g and standard deviation %.2g; the common scale is known to ±%.2g %%", mean, sd, 100*f.ScaleSD)
	if f.TooNarrow {
		return fmt.Sprintf("the range [%g, %g] that was given is too narrow: gains lie outside of it. Their distribution was learned, %s; give a range that contains the gains", f.Given.Lo, f.Given.Hi, learned)
	}
	return fmt.Sprintf("the gains are not spread evenly over the range [%g, %g] that was given (log-likelihood ratio %.3g): their distribution was learned within it, %s", f.Given.Lo, f.Given.Hi, f.LogRatio, learned)
}

const (
	// rangeDoubted is for how many samples a stream begins anew where it turns out that the
	// gains do not fill the range: what was learned depends on signals that the range has
	// bent. Later on this is little, and sensors outside the range are broken ones.
	rangeDoubted = alarmFrom

	// outsideRange is the part of the sensors that lie outside, near the range, where
	// it is too narrow, and not they broken.
	outsideRange = 0.01
)

// insisted reports whether the range that was given is not tested.
func insisted(opt *Options) bool {
	return opt.SPrior == solver.UniformS || opt.Commit == Always || opt.NoScaleStep || opt.Tol < 0
}

// evenRange is the range of gains that were declared uniform; nil where another distribution was given.
func evenRange(known channel.Calibration) *channel.GainPrior {
	gains, ok := known.(channel.Gains)
	if _, complexGains := known.(channel.Turning); !ok || complexGains {
		return nil
	}
	given := gains.Gains()
	if given.Fills() != nil {
		return nil
	}
	return &given
}

// testNow reports whether the range is tested after so many samples: 2 to 9, 10, 20, …
// 90, 100, 200, …: what the samples say of the gains changes ever more slowly.
func testNow(samples uint64) bool {
	power := uint64(1)
	for power <= samples/10 {
		power *= 10
	}
	return samples > 1 && samples%power == 0
}

// examineRange tests, after a sample was learned from, whether the gains fill the range that
// was given, and learns how they are spread where they do not. It reports whether the stream
// is to begin anew with that.
func (c *Calibrator) examineRange() (anew bool) {
	s := &c.state
	switch {
	case c.given == nil:
		return false
	case s.Range != nil:
		c.refitRange()
		return false
	}
	if c.tooNarrow() {
		s.Range = &LearnedRange{Prior: c.given.Beyond(), TooNarrow: true}
		c.adoptRange()
		return true
	}
	if !testNow(s.Samples) || !c.novel() {
		return false
	}
	omit := c.strangers()
	ratio, odds := c.spreadAs(*c.given).Contradiction(s.Stats, omit)
	if !asksFamily(c.opt.SPrior) && !(ratio > amp.Contradicted) {
		s.Doubt = c.doubt(odds, omit)
		return false
	}
	s.Doubt = rangeDoubt{}
	learned := c.within(omit)
	if learned.Precision == 0 {
		return false // too few sensors
	}
	s.Range = &LearnedRange{Prior: learned, LogRatio: ratio}
	c.refitRange()
	if !c.mayStartOver() {
		return false
	}
	s.Range.Prior = s.Range.Prior.Spread(c.blur()) // the gains as bent signals show them
	return true
}

// novel reports whether the latest sample differs from those before, most of it: the distribution of gains is not determined by one scene, whose signal takes up
// a part of what they differ by.
func (c *Calibrator) novel() bool { return c.weight > 0.5 }

// spreadAs is what is known of the sensors where their gains are spread like this.
func (c *solvers) spreadAs(g channel.GainPrior) channel.Bounded {
	return c.sample.Calibration().(channel.Gains).WithGains(g) // as evenRange has made sure
}

// within is how the gains are spread that do not fill the range.
func (c *Calibrator) within(omit []bool) channel.GainPrior {
	return amp.Within(c.spreadAs(*c.given), c.opt.SPrior, c.state.Stats, omit).(channel.Gains).Gains()
}

// mayStartOver reports whether a stream begins anew where the range turns out to be wrong. The samples with which one begins that are
// solved together are not bent by it: they test it.
func (c *Calibrator) mayStartOver() bool {
	return c.state.Samples < rangeDoubted && c.opt.WarmUp == 0 && !c.oneSigned()
}

// asksFamily reports whether a kind of distribution is insisted on that is no range.
func asksFamily(p solver.SPrior) bool { return p == solver.NormalS || p == solver.LogNormalS }

// strangers says which sensors say nothing of the others' gains.
func (c *Calibrator) strangers() []bool {
	known, omit := c.sample.Calibration(), make([]bool, c.m)
	for mu, flag := range c.state.Flag {
		omit[mu] = flag != Healthy || known.Readings(c.statsOf(mu)) == 0
	}
	return omit
}

// refitRange learns how the gains are spread, and brings all to where the scale belongs.
func (c *Calibrator) refitRange() {
	s, omit := &c.state, c.strangers()
	if s.Samples > 1 && c.novel() {
		if learned := c.within(omit); learned.Precision > 0 {
			s.Range.Prior = channel.AsFarAsKnown(c.spreadAs(learned).(channel.Gains), s.Stats, omit, math.Inf(1))
		}
	}
	logScale, _ := c.learnedScale(omit)
	c.rescale(math.Exp(logScale))
	c.adoptRange()
}

// withDoubt is the standard deviation of the scale's logarithm while a given range is not rejected, where the evidence along the
// scale has sd.
func (c *Calibrator) withDoubt(sd float64) float64 {
	return c.state.Doubt.widened(max(sd, c.scaleFilling()))
}

// scaleFilling is how far from where it is the scale may be by what signals and the ends of a given range say, once
// gains are known better than the gaps that so many leave at the ends; 0 before. The evidence along the scale counts
// what the size of the residuals says, too, and that is right to order 1/N in each sample: in ten thousand of them it
// stated three quarters of the error. At a noise of 10⁻¹⁴ it is a difference of sums that a thousand samples round off.
func (c *Calibrator) scaleFilling() float64 {
	if c.even == nil || c.scaleLearned() {
		return 0
	}
	lo, hi := c.even.Range()
	if gap := (hi - lo) / float64(c.m); !(c.blur() < gap*gap) {
		return 0
	}
	center, sd := amp.ScaleWithin(*c.even, c.means, c.variances, c.strangers(), c.state.Signals, true)
	return math.Hypot(center, sd)
}

// learnedScale is where the scale belongs, seen from where it is, and how well that is known.
func (c *Calibrator) learnedScale(omit []bool) (log, sd float64) {
	s := &c.state
	known := *c.given
	if s.Range != nil {
		known = s.Range.Prior
	}
	mean, variance := make([]float64, c.m), make([]float64, c.m)
	c.spreadAs(known).Posteriors(mean, variance, s.Stats)
	return amp.ScaleWithin(*c.given, mean, variance, omit, s.Signals, false)
}

// rangeDoubt is that the gains may merely lie in a given range which they do not contradict, as of the latest test.
type rangeDoubt struct {
	Chance float64 // the probability of it (see [amp.Doubt]); 0 before the first test
	Apart  float64 // how far the scale's logarithm is then from where it is, root mean square
}

// doubt is what the samples so far leave of it.
func (c *Calibrator) doubt(odds float64, omit []bool) rangeDoubt {
	mean, sd := c.learnedScale(omit)
	return rangeDoubt{Chance: amp.Doubt(odds), Apart: math.Hypot(mean, sd)}
}

// widened is the standard deviation of the scale's logarithm with that doubt.
func (d rangeDoubt) widened(sd float64) float64 {
	return math.Sqrt((1-d.Chance)*sd*sd + d.Chance*d.Apart*d.Apart)
}

// blur is the mean posterior variance of s.
func (c *Calibrator) blur() (mean float64) {
	c.spreadAs(*c.even).Posteriors(c.means, c.variances, c.state.Stats)
	for _, v := range c.variances {
		mean += v / float64(c.m)
	}
	return mean
}

// loosen is for a stream that begins anew and rejects its first sample: what was
// learned of the gains is too narrow, or else it would reject all that follow.
func (c *Calibrator) loosen() {
	if r := c.state.Range; r != nil && c.state.Samples == 0 {
		_, variance := r.Prior.Moments()
		sd := math.Sqrt(variance)
		if most := c.given.Hi - c.given.Lo; sd < most {
			r.Prior = r.Prior.Spread(min(3*sd*sd, most*most-sd*sd)) // sd twice as large
		}
	}
}

// rescale multiplies all signals and gains by f, those of the present sample as well.
func (c *Calibrator) rescale(f float64) {
	s, known := &c.state, c.sample.Calibration()
	known.ScaleStats(s.Stats, f)
	if s.Drift != nil {
		for _, stats := range s.Drift.Stats {
			known.ScaleStats(stats, f)
		}
	}
	s.Signals.Pull *= f * f
	c.rescaleModel(s.Model, f)
	s.Range.Prior = s.Range.Prior.Times(f)
	c.rescaleSample(f)
}

// rescaleSample does so for the estimate of the present sample alone, or of all that were solved together.
func (c *Calibrator) rescaleSample(f float64) {
	if t := c.estimate.Together; t != nil {
		t.rescale(f)
	}
	for i := range c.sample.X {
		c.sample.X[i] *= f
		c.sample.C[i] *= f * f
	}
}

// rescaleModel brings what was learned of the model to signals f times as large. What was
// given stays.
func (c *solvers) rescaleModel(m *Model, f float64) {
	if m == nil {
		return
	}
	if c.learner.Noise {
		m.rescaleNoise(f)
	}
	if c.scaleLearned() {
		m.rescaleSignals(c.sample.Model().Prior, f)
	}
}

// scaleLearned reports whether the signals' own scale is learned: then they say nothing of
// the common one.
func (c *solvers) scaleLearned() bool {
	p := prior.LearnerOf(c.sample.Model().Prior)
	return p != nil && p.LearnsScale()
}

// hearsSignals reports whether what the signals' variance says of the common scale is summed up.
func (c *Calibrator) hearsSignals() bool {
	return (c.even != nil || c.parts > 1) && !c.scaleLearned()
}

// startOver begins anew with the present sample, with what is known of the range by now.
func (c *Calibrator) startOver(ctx context.Context) (Reject, error) {
	narrow := c.state.Range.TooNarrow
	c.goBack(c.anew(*c.state.Range))
	c.begin()
	if narrow {
		c.change = &Change{Hypothesis: Hypothesis{Range: true}, Samples: 1}
	}
	reject, err := c.attempt(ctx)
	if reject == Accepted {
		c.commit()
		c.refitRange()
	}
	return reject, err
}

// anew is the state of a stream that begins.
func (c *Calibrator) anew(r LearnedRange) State {
	s := newState(c.m, c.state.Width(), c.opt.nominalRetention())
	s.Range, s.Rows = &r, c.state.Rows
	if c.bank != nil {
		s.Drift = newDrift(&s)
	}
	return s
}

// doubted reports whether the range that was given may be too narrow.
func (c *Calibrator) doubted() bool {
	return c.given != nil && c.state.Range == nil && c.mayStartOver()
}

// tooNarrow reports whether sensors outside the range say that it is.
func (c *Calibrator) tooNarrow() bool {
	if !c.doubted() {
		return false
	}
	count, margin := 0, amp.NearRange*(c.given.Hi-c.given.Lo)
	for mu, flag := range c.state.Flag {
		if flag == OutOfRange {
			own := c.statsOf(mu)
			fit := c.given.Fit(own)
			if c.given.Readings(own) == 0 || fit > c.given.Lo-margin && fit < c.given.Hi+margin {
				count++
			}
		}
	}
	return float64(count) > max(1, outsideRange*float64(c.m))
}

// adoptRange takes up the distribution of s that the state has.
func (c *Calibrator) adoptRange() {
	if c.given == nil {
		return
	}
	spread := *c.given
	if r := c.state.Range; r != nil {
		spread = r.Prior
	}
	known := c.spreadAs(spread)
	if c.sample.Calibration() == channel.Calibration(known) {
		return
	}
	m := c.sample.Model()
	m.Channel = m.Channel.(channel.Calibrating).WithCalibration(known)
	c.sample.Adopt(m)
}
