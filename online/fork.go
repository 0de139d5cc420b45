package online

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
)

// Hypothesis says what of the past no longer holds when samples contradict it.
type Hypothesis struct {
	Model bool // the signals' prior and the noise are others
	Gains bool // so are the gains of some sensors
	Noise bool // Model, and the noise variance that was given no longer holds
	Range bool // the range of s that was given is too narrow, and nothing of the past holds
}

// fork is a stream as it would have gone on under a [Hypothesis] since the first of
// the samples that the state itself rejects.
type fork struct {
	Hypothesis
	State    *State
	Accepted int     // samples so far
	Evidence float64 // log-evidence of these, without the first one
	Changed  []bool  // M, sensors whose past did not hold
}

// alert is what is left of the watchfulness after a change: for so many samples the
// model moves fast, and sensors' pasts are doubted one by one where gains had changed.
type alert struct {
	Hypothesis
	Left int
}

const (
	// forkIterations bounds the iterations of a fork: those that come to nothing
	// cost no more than that.
	forkIterations = 150

	// A fork takes the state's place after forkSamples when it leads all that
	// disagree with it on the gains by forkLead in log-evidence, or after
	// mostForkSamples. The first sample does not count: it carries the one-off price of
	// saying which sensors changed.
	forkSamples     = 3
	mostForkSamples = 9
	forkLead        = 30

	// simplerBy is the lead that the more far-reaching hypothesis needs among those
	// that agree on the gains.
	simplerBy = 10

	alertSamples = 10

	// found is the part of the signal's own variance below which its posterior
	// variance must be: else anything would pass as noise.
	found = 0.5

	// Sensors that changed and others are separated in changePasses passes. Posterior probabilities of a
	// change beyond surely and its complement are taken as certain: a sharp past
	// would blur with the least doubt.
	changePasses = 3
	surely       = 0.95

	// apartBy is how many standard deviations a gain must have moved to be named.
	apartBy = 3

	// maskedPower is the variance, in mean squares of the readings used, of those
	// that were set aside.
	maskedPower = 10
)

func (f *fork) clone() fork {
	c := *f
	c.State, c.Changed = f.State.clone(), slices.Clone(f.Changed)
	return c
}

func (f *fork) validate(m, width int) error {
	if f.State == nil || len(f.Changed) != m || f.State.Sensors() != m || f.State.Width() != width || len(f.State.Forks) > 0 {
		return fmt.Errorf("state: a fork that is none of the stream's %d sensors", m)
	}
	if f.Accepted < 1 || math.IsNaN(f.Evidence-f.Evidence) {
		return fmt.Errorf("state: a fork of %d samples with the evidence %g", f.Accepted, f.Evidence)
	}
	return f.State.Validate()
}

// Change is what a stream found to have changed, when it goes on from a fork.
type Change struct {
	Hypothesis
	Sensors       []int  // rows of W from 0, whose gains have changed
	Before, After *Model // nil where the model is known
	Samples       int    // since the change was seen, this one included
}

// changedBy is the factor by which noise or power must have changed to be named.
const changedBy = 1.5

// settledSamples is how many samples a model must have been learned from for another one to be a change: noise
// hardly separates from gains that a sample or two have taught.
const settledSamples = 5

// What names it: "noise", "signals", "gains", "range".
func (c *Change) What() (names []string) {
	other := func(a, b float64) bool { return max(a, b) > changedBy*min(a, b) }
	if c.Model && c.Before != nil && c.After != nil {
		if other(c.Before.NoiseVar, c.After.NoiseVar) {
			names = append(names, "noise")
		}
		before, known := c.Before.Power()
		after, ok := c.After.Power()
		if known && ok && other(before, after) {
			names = append(names, "signals")
		}
		if len(names) == 0 && len(c.Sensors) == 0 {
			names = append(names, "signals") // of the same power, but others
		}
	}
	if len(c.Sensors) > 0 {
		names = append(names, "gains")
	}
	if c.Range {
		names = append(names, "range")
	}
	return names
}

// forks reports whether forks are made: where all samples are learned from, none contradicts.
func (c *Calibrator) forks() bool {
	return c.opt.Commit == Sane && !c.opt.Certain && !c.opt.Freeze && !c.warming() && (c.state.Samples > 0 || c.doubted() || c.mayFree())
}

// attempt solves the sample as the state's hypothesis has it. For some samples after a change
// of gains the sensors' pasts are still doubted one by one.
func (c *Calibrator) attempt(ctx context.Context) (Reject, error) {
	if a := c.state.Alert; a.Left > 0 && a.Gains {
		if err := c.solveApart(ctx); c.judge() == Accepted {
			return Accepted, err
		}
		c.begin()
	}
	err := c.solve(ctx)
	reject := c.judge()
	if err == nil && c.outliers != nil && reject.contradicts() {
		reject, err = c.solveWarily(ctx)
	}
	if _, follows := c.sample.Model().Prior.(following); err == nil && reject.contradicts() && follows && c.state.Model != nil {
		if !c.resembles() {
			return c.solveAnew(ctx)
		}
		c.predictMoved() // as it was before that was asked
	}
	return reject, err
}

// solveAnew solves the sample as one of a scene that has nothing in common with that before it. Else a new scene is refused for as long as the support of the one before it is
// expected, until a fork takes it for gains that have changed. A sample that resembles those before it is of their scene, and refused for another reason: solved anew it is found with another support now and then, by
// which those after it are wrong (60 sensors, amplitudes correlated by .99 and .9: errors of s .060 to .112 and .059 to .080 in the worst of six streams).
func (c *Calibrator) solveAnew(ctx context.Context) (Reject, error) {
	c.begin()
	c.newScene = true
	defer func() { c.newScene = false }()
	err := c.solve(ctx)
	return c.judge(), err
}

// reconsider is what becomes of a sample that contradicts the state: forks of
// the state try to explain it. The state stays as it is until one of them has
// explained several samples in a row.
func (c *Calibrator) reconsider(ctx context.Context, first Reject) (Reject, error) {
	base := c.state
	defer func(most int) { c.opt.MaxIter = most }(c.opt.MaxIter)
	c.opt.MaxIter = min(c.opt.MaxIter, forkIterations)
	before, last := base.Forks, -1
	var alive []fork
	var from []int // place of each among those before
	for i := range before {
		f := before[i].clone()
		ok, err := c.try(ctx, &f)
		if err != nil {
			c.goBack(base)
			return Interrupted, err
		}
		if last = i; ok {
			alive, from = append(alive, f), append(from, i)
		}
	}
	if i := leading(alive); i >= 0 {
		winner := alive[i]
		if from[i] != last { // solve again what is to be reported
			winner = before[from[i]].clone()
			if _, err := c.try(ctx, &winner); err != nil {
				c.goBack(base)
				return Interrupted, err
			}
		}
		c.promote(&base, &winner)
		return Accepted, nil
	}
	if len(alive) == 0 {
		var err error
		for _, h := range c.hypotheses() {
			c.goBack(base)
			f := fork{Hypothesis: h, State: base.clone(), Changed: make([]bool, c.m)}
			f.State.Forks, f.State.Alert, f.State.Block = nil, alert{h, alertSamples}, nil
			if h.Range {
				*f.State = c.anew(LearnedRange{Prior: c.given.Beyond(), TooNarrow: true})
			} else if h.Model {
				if f.State.Model, err = c.modelAnew(base.Model, h.Gains); err != nil {
					continue // a sample that no model describes
				}
			}
			ok, err := c.try(ctx, &f)
			if err != nil {
				c.goBack(base)
				return Interrupted, err
			}
			if ok {
				f.Evidence = 0
				alive = append(alive, f)
			}
		}
	}
	c.goBack(base)
	c.state.Forks = alive
	return first, nil
}

// hypotheses are those that a sample which contradicts the state may bear out.
func (c *Calibrator) hypotheses() (list []Hypothesis) {
	begun := c.state.Samples > 0
	if begun && c.asGiven.learner != nil {
		list = append(list, Hypothesis{Model: true})
	}
	if c.mayFree() {
		list = append(list, Hypothesis{Model: true, Noise: true})
	}
	if begun {
		list = append(list, Hypothesis{Gains: true})
	}
	if begun && c.learner != nil {
		list = append(list, Hypothesis{Model: true, Gains: true})
	}
	if c.doubted() {
		list = append(list, Hypothesis{Range: true})
	}
	return list
}

// modelAnew is where learning starts anew, on the sample. With gains that may be any,
// a single sample's residuals vanish: then the noise stays what it was.
func (c *Calibrator) modelAnew(was *Model, keepNoise bool) (*Model, error) {
	if !keepNoise || was == nil {
		return nil, nil
	}
	m, err := c.learner.guess(c, c.present())
	if err == nil {
		m.NoiseVar, m.NoiseInformation, m.Sensors = was.NoiseVar, was.NoiseInformation, was.Sensors.clone()
		err = m.Validate()
	}
	return m, err
}

// goBack makes s the state again.
func (c *Calibrator) goBack(s State) {
	c.state = s
	c.choose(c.frees(&s))
	c.goOn()
}

// goOn takes up the model and the range of the state.
func (c *Calibrator) goOn() {
	if m := c.state.Model; m != nil && c.learner != nil {
		c.setModel(m) // it was set before
	}
	c.adoptOffsets()
	c.adoptRange()
}

// few is the part of the sensors below which a fork that looks for changed gains has
// found none.
const few = 0.02

// gains reports whether the fork holds that gains have changed.
func (f *fork) gains() bool {
	count := 0
	for _, changed := range f.Changed {
		count += int(bit(changed))
	}
	return f.Gains && float64(count) > few*float64(len(f.Changed))
}

// leading is the fork that takes the state's place, -1 for none yet.
func leading(forks []fork) int {
	best := -1
	for i, f := range forks {
		if best < 0 || f.Evidence > forks[best].Evidence+simplerBy {
			best = i
		}
	}
	if best < 0 || forks[best].Accepted < forkSamples {
		return -1
	}
	for _, f := range forks {
		disagrees := (f.gains() != forks[best].gains() || f.Range != forks[best].Range) && f.Evidence > forks[best].Evidence-forkLead
		if disagrees && forks[best].Accepted < mostForkSamples {
			return -1
		}
	}
	return best
}

// try solves the sample from a fork's state, and lets the fork learn from it when it
// explains it. It leaves the calibrator with the fork's state.
func (c *Calibrator) try(ctx context.Context, f *fork) (ok bool, err error) {
	c.goBack(*f.State)
	if f.Noise {
		c.choose(true)
		c.goOn()
	}
	c.begin()
	c.sample.Unscored = false
	if f.Gains {
		err = c.solveApart(ctx)
	} else {
		err = c.solve(ctx)
	}
	c.sample.Unscored = true
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil || c.judge() != Accepted || c.sample.SumC[0] > found*float64(c.n)*c.sample.Model().Prior.Variance() {
		return false, nil // an error here is that of a model which no prior takes
	}
	f.Evidence += c.evidence()
	for mu := range f.Changed {
		f.Changed[mu] = f.Changed[mu] || c.changed(mu)
	}
	c.commit()
	if c.state.Range != nil {
		c.refitRange()
	}
	if f.Noise && !c.grown() {
		return false, nil
	}
	f.Accepted++
	*f.State = c.state
	return true, nil
}

// promote makes the state that of a fork, and says what has changed.
func (c *Calibrator) promote(base *State, f *fork) {
	if !f.Range { // else all begins anew
		c.state.Alert = alert{f.Hypothesis, alertSamples}
	}
	if f.Hypothesis == (Hypothesis{Model: true}) && base.Model != nil && base.Samples < settledSamples {
		return // nothing has changed: what the first samples taught was wrong
	}
	c.change = &Change{Hypothesis: f.Hypothesis, Samples: f.Accepted}
	if f.Model {
		c.state.Brightness = brightness{}
	}
	if f.Model {
		c.change.Before, c.change.After = base.Model.clone(), c.state.Model.clone()
		if base.Model == nil {
			c.change.Before = c.givenModel()
		}
	}
	if !f.Gains {
		return
	}
	// Single samples take a large residual for a change now and then: what counts is
	// where a sensor's past and all samples since disagree.
	was, is, wasVariance := make([]complex128, c.m), make([]complex128, c.m), make([]float64, c.m)
	c.posteriors(was, wasVariance, base.Stats)
	c.posteriors(is, c.variances, c.state.Stats)
	for mu, changed := range f.Changed {
		if changed && square(is[mu]-was[mu]) > apartBy*apartBy*(wasVariance[mu]+c.variances[mu]) {
			c.change.Sensors = append(c.change.Sensors, mu)
		}
	}
}

// apart is the workspace of telling sensors apart whose gains have changed.
type apart struct {
	block       channel.Block
	whole, kept amp.Past
	missing     []float64    // M×columns, NaN
	mean        []complex128 // M, posterior means of s
	nothing     []float64    // M×Width, zero
	chance      []float64    // M, posterior probabilities of a change
	rate        float64      // part of the sensors with one
	active      bool         // of the present solution
	ratio       []float64    // M, log-likelihood ratios of a change; NaN where nothing is known
}

func newApart(m, columns, width int) *apart {
	some := func(n int) []float64 { return make([]float64, n) }
	a := &apart{missing: some(m * columns), mean: make([]complex128, m), chance: some(m), ratio: some(m)}
	a.kept.Stats, a.nothing = some(m*width), some(m*width)
	for mu := range a.missing {
		a.missing[mu] = math.NaN()
	}
	a.block = channel.Block{P: columns, Stats: some(m * width), G: some(m * columns), DG: some(m * columns), S: some(m), Phase: some(m), SVar: some(m), LogZ: some(m), Broken: some(m)}
	return a
}

// doubts is that workspace.
func (c *Calibrator) doubts() *apart {
	if c.apart == nil {
		c.apart = newApart(c.m, c.columns, c.sample.Calibration().Width())
	}
	return c.apart
}

// changed reports whether the past of a sensor was found not to hold.
func (c *watching) changed(mu int) bool {
	return c.apart != nil && c.apart.active && c.apart.chance[mu] > 0.5
}

// solveApart solves the sample while it finds out which sensors' gains have changed:
// first with all of the past weakened as far as it takes, then with each sensor's
// past as far as the solution before bears it out.
func (c *Calibrator) solveApart(ctx context.Context) error {
	a := c.doubts()
	a.whole = c.past
	c.tempering = true
	defer func() { c.tempering = false }()
	clear(a.chance)
	for pass := 0; ; pass++ {
		if err := c.solve(ctx); err != nil {
			return err
		}
		reject := c.judge()
		// The first pass only has to find which sensors to doubt.
		if pass == changePasses || reject != Accepted && (pass > 0 || reject != NotConverged) {
			break
		}
		c.tellApart(a.whole)
		c.past = a.kept
		c.nothingMasked()
		c.retention, c.shortened = c.state.Retention, 0
	}
	a.active = true
	return nil
}

// tellApart finds each sensor's probability that its past does not hold, given the
// signal as solved, and what of the past is then to be kept.
func (c *Calibrator) tellApart(whole amp.Past) {
	a, known := c.apart, c.sample.Calibration()
	copy(c.stats, whole.Stats)
	c.carry(c.stats, 1, c.moved())
	c.logZ(a.ratio, c.y, nil, +1)
	c.logZ(a.ratio, c.y, c.stats, -1)
	c.logZ(a.ratio, a.missing, c.stats, +1)
	count := 0.0
	for mu := range a.ratio {
		if !c.candidate(mu) || known.Information(c.statsOf(mu)) == 0 {
			a.ratio[mu] = math.NaN()
			continue
		}
		count++
	}
	c.rateOfChange(count)
	mean, variance := c.beforehand()
	c.posteriors(a.mean, a.block.SVar, whole.Stats)
	for mu, p := range a.chance {
		own := c.sample.Of(a.kept.Stats, mu)
		copy(own, c.sample.Of(whole.Stats, mu))
		switch {
		case p > surely:
			clear(own)
		case p > 1-surely:
			both := complex(1-p, 0)*a.mean[mu] + complex(p, 0)*mean
			c.setNormal(own, both, (1-p)*a.block.SVar[mu]+p*variance+p*(1-p)*square(mean-a.mean[mu]))
		}
	}
	a.kept.Volume = 0
	a.kept.Quadratic = c.pulls(a.kept.Stats)
}

// rateOfChange finds the part of count sensors that have changed, by expectation and
// maximisation, and each one's probability.
func (c *watching) rateOfChange(count float64) {
	a := c.apart
	a.rate = 0.1
	for range 20 {
		total := 0.5 // as if half of five more sensors' … had changed
		for mu, ratio := range a.ratio {
			a.chance[mu] = 0
			if !math.IsNaN(ratio) {
				a.chance[mu] = 1 / (1 + math.Exp(-ratio)*(1-a.rate)/a.rate)
				total += a.chance[mu]
			}
		}
		a.rate = min(max(total/(count+5), 1e-4), 0.7)
	}
}

// logZ adds sign times the log-evidence of readings y, given statistics of the past
// (nil for none) and the signal as solved, to that of each sensor.
func (c *Calibrator) logZ(sum, y, past []float64, sign float64) {
	b := &c.apart.block
	b.Y, b.Omega, b.V, b.Past = y, c.sample.Omega, c.sample.U, past
	if past == nil {
		b.Past = c.apart.nothing
	}
	c.sample.Model().Channel.Output(b)
	if sign > 0 && past == nil {
		clear(sum)
	}
	for mu, v := range b.LogZ {
		sum[mu] += sign * v
	}
}

// evidence is the log-evidence of the sample as solved, given its past.
func (c *Calibrator) evidence() float64 {
	a, total := c.doubts(), c.solver.Iteration.LogEvidence()
	norm := make([]float64, c.m)
	c.logZ(norm, a.missing, c.sample.Past.Stats, -1)
	var power, used float64
	columns := float64(c.columns) // each has its part
	for mu, v := range norm {
		total += v
		if c.uses(mu) {
			power += c.power(c.y, mu) / columns
			used++
		}
		if a.active && !math.IsNaN(a.ratio[mu]) {
			if c.changed(mu) {
				total += math.Log(a.rate)
			} else {
				total += math.Log1p(-a.rate)
			}
		}
	}
	typical := maskedPower * power / max(1, used)
	for mu, masked := range c.masked {
		if masked {
			total -= columns * (0.5*math.Log(2*math.Pi*max(typical, c.power(c.y, mu)/columns)) + 0.5)
		}
	}
	return total
}
