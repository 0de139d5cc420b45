package calamp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/moments"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// A range of s and a noise variance that are true do not say how gains are distributed between the bounds, nor what W leaves out of the readings. A run that takes them for the whole
// truth may fail where one that learns both succeeds. Then they are learned, with all other ways of solving that this allows, and what was given is where the
// scale is, and what the answer is compared with.

// given is what a further try learns of what was given. The zero value is nothing.
type given struct {
	bounds channel.Bounded // of s; nil where they were not given
	noise  float64         // variance, of a column; 0 where it was not given
	noises float64         // geometric mean of those of sensors; 0 where they were not given

	density float64 // of the signals; 0 where it was not given
}

// learnedWithin is a problem whose range of s was given, with the distribution of s, the noise and the signals' prior learned; nil where they cannot be. A distribution of s that was given, or what
// is known of each sensor, is not learned: beside it the noise is.
func learnedWithin(asked *try) *try {
	if asked.problem == nil {
		return nil
	}
	p, opt := *asked.problem, asked.opt
	known, calibrates := channel.InOrder(p.Channel).(channel.Calibrating)
	_, own := channel.DetectorOf(p.Channel)
	if !calibrates || own || opt.Learn.Range || opt.Learn.SensorNoise || opt.Scale.Set() {
		return nil
	}
	if m, _ := p.Y.Dims(); p.NoiseVar != nil && (len(p.NoiseVar) != m || amp.Least(p.NoiseVar) == 0) {
		return nil
	}
	noisy, isNoisy := known.(channel.Noisy)
	bounds, isBounded := known.Calibration().(channel.Bounded)
	stated := channel.Stated(known.Calibration())
	if !isNoisy || !isBounded || stated && opt.Learn.Noise || !stated && bounds.Fills() != nil {
		return nil
	}
	if !stated && !opt.Anchor.Set() {
		opt.given.bounds = bounds
	}
	switch {
	case p.NoiseVar != nil:
		opt.given.noises = stat.GeometricMean(p.NoiseVar, nil)
	case !opt.Learn.Noise:
		opt.given.noise = noisy.Noise()
	}
	if !p.learnAll(&opt) {
		return nil
	}
	p.Channel = channel.WithInOrder(asked.problem.Channel, p.Channel)
	if opt.Learn.Noise = true; stated {
		return &try{name: "the noise learned", problem: &p, opt: opt}
	}
	opt.Learn.Range = true
	return &try{name: "the range of s and the noise learned", problem: &p, opt: opt}
}

// learnAll makes the model of p one that is learned, from where the readings suggest and with the middle of the range that was given, as if nothing had been. What was given of the signals' scale holds
// that. A prior of another family than zero or one Gaussian is left out, since message passing may fail with it: it reports whether all this is possible.
func (p *Problem) learnAll(opt *Options) bool {
	nan, y, known := math.NaN(), p.Y, channel.InOrder(p.Channel).(channel.Calibrating)
	if _, offsets := known.Calibration().(channel.Offsetting); offsets {
		m, signals := y.Dims()
		y = mat.NewDense(m, signals, moments.Centred(flat(y), signals*p.rows.rowsEach()))
	}
	signal, gain, err := Guess(p.W, y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan})
	if err != nil {
		return false
	}
	middle := channel.Middle(known.Calibration())
	signal.SignalVar *= middle * middle
	has, ok := known.Calibration().(channel.Gains)
	if !ok {
		return false
	}
	if !channel.Stated(has) {
		known = known.WithCalibration(has.WithGains(gain.Prior.Times(middle))).(channel.Calibrating)
	}
	noise := middle * middle * gain.NoiseVar
	p.Channel = known.(channel.Noisy).WithNoise(noise)
	if p.NoiseVar != nil { // what they are beside one another stays
		p.NoiseVar = slices.Clone(p.NoiseVar)
		floats.Scale(noise/stat.GeometricMean(p.NoiseVar, nil), p.NoiseVar)
	}
	return p.learnPrior(signal, opt)
}

// learnPrior is learnAll of the prior.
func (p *Problem) learnPrior(start prior.GaussBernoulli, opt *Options) bool {
	_, learned, ok := learning(p.Prior, everything)
	if !ok {
		l := prior.LearnerOf(p.Prior)
		return l != nil && l.LearnsScale()
	}
	mean, variance := p.Prior.(prior.Slabbed).Slab()
	density := p.Prior.(prior.Sparse).NonZero()
	if prior.ColumnsOf(p.Prior) == 1 { // of what is not zero, whatever its distribution
		mean = p.Prior.Mean() / density
		variance = prior.Square(p.Prior)/density - mean*mean
	}
	switch p.Prior.(type) { // of other families the density is another one
	case prior.GaussBernoulli, prior.ComplexGaussBernoulli:
		if learned&prior.Density == 0 {
			opt.given.density = density
		}
	}
	if learned&prior.SignalVar == 0 {
		opt.Scale.SignalVar = variance
	}
	if learned&prior.SignalMean == 0 {
		opt.Scale.SignalMean = mean
	}
	p.Prior = start.Learning(everything)
	if channel.ColumnsOf(p.Channel) > 1 {
		p.Prior = prior.ComplexGaussBernoulli{Density: start.Density, SignalVar: 2 * start.SignalVar, Learn: everything &^ prior.SignalMean}
	}
	return true
}

// bounding is a learned distribution of s with the bounds that were given; sensors may have got offsets meanwhile.
func (g given) bounding(c channel.Calibration) channel.Calibration {
	if has, ok := c.(channel.Gains); ok {
		return has.WithGains(has.Gains().Between(g.bounds.Range()))
	}
	return g.bounds.Bounding(c)
}

// scale is what the bounds say of the common scale of a result.
func (g given) scale(res *Result) held {
	mean, sd := amp.ScaleWithin(g.bounds, res.S, res.SVar, res.unknownSensors(), amp.SignalSums{}, false)
	return held{name: "the range of s", logScale: mean, sd: sd}
}

// asGiven takes what was given for the whole truth at first, and learns within it where that is no answer.
func (t *tries) asGiven(asked, within *try) (*try, error) {
	t.given = true
	if err := t.start(asked, within); err != nil || asked.opt.Algorithm != solver.AutoAlgorithm || tooLong(asked) || asked.res.oneScene {
		return asked, err
	}
	if asked.answers() && asked.fills() {
		if asked.unexplained() && !asked.integrated() {
			return t.lessOpen(asked, within)
		}
		return t.notByNoise(asked, within)
	}
	if asked.gainsKnown() {
		_, err := t.goOn(asked, asked.inFull)
		t.sites = false // gains that are learned are another model
		if err != nil || t.likeliest().answers() {
			return nil, errors.Join(err, t.orUnknown(within.after(asked)))
		}
	}
	if hopeless(within.problem, &within.opt) == nil {
		if err := t.within(asked, within); err != nil || t.likeliest().answers() {
			return nil, err
		}
	}
	if hasFreePhases(asked) && len(t.done) > 1 {
		return nil, nil // all starts have been tried
	}
	_, err := t.goOn(asked, unless(asked, asked))
	return nil, err
}

// after is a try that has not been solved, with the result of another one to go on from.
func (t *try) after(other *try) *try {
	next := *t
	next.res = other.res
	return &next
}

// lessOpen is an answer that leaves more open than noise explains, or that with signals integrated out where this is one as well and likelier. Of lines of a scan (push-broom 1 of the field problems) the former had an error of .094, the latter .045.
func (t *tries) lessOpen(asked, within *try) (*try, error) {
	again := t.integrated(within.after(asked))
	if again == nil {
		return asked, nil
	}
	if err := t.run(again); err != nil || again.res == nil || !again.answers() || t.likeliest() != again {
		return asked, err
	}
	return again, nil
}

// notByNoise is the likelier one of an answer whose range of s was given, or one that has learned the range. Learned noise takes up gains that a range does not hold, all but a few: behind 0/1 masks, with gains from .7 to 1.3, a range
// of [.95, 1.05] had x wrong by 54 % and one sensor left out, with 2000 times the noise.
func (t *tries) notByNoise(asked, within *try) (*try, error) {
	if !asked.opt.Learn.Noise || !asked.res.leavesRange() {
		return asked, nil
	}
	if err := t.run(within); err != nil || t.likeliest() == asked {
		return asked, err
	}
	return within, nil
}

// orUnknown integrates signals out with gains unknown, where they were with gains that are known: the evidence of both says which of it is true. Learned noise takes up gains, and all else that W leaves out.
func (t *tries) orUnknown(within *try) error {
	if !t.likeliest().integrated() {
		return nil
	}
	if again := t.integrated(within); again != nil {
		return t.run(again)
	}
	return nil
}

// leavesRange reports whether a sensor is likeliest outside of the range of s.
func (r *Result) leavesRange() bool {
	return r.warns(SensorAtEdge) || slices.ContainsFunc(r.BrokenSensors, func(b channel.BrokenSensor) bool { return b.Fault == channel.OutOfRange })
}

// gainsKnown reports whether a range says that gains are known, to a thousandth. To learn them throws that away, so all else is tried before: with one snapshot they are unknown to 14 % then, and of three
// tomographic images with known gains two had errors of 15 and 24 %, in place of 1.2 and 1.0 %.
func (t *try) gainsKnown() bool {
	return !t.opt.Learn.Range && channel.GainsKnown(channel.CalibrationOf(t.problem.Channel))
}

// within learns what was given. Where message passing has not converged, signals are integrated out, and without what it left out as well, before it is tried for longer.
func (t *tries) within(asked, within *try) error {
	if !asked.trusted() {
		learning := within.after(asked)
		for _, next := range []func(*try) *try{t.integrated, t.withoutBlamed, asked.inFull} {
			again := next(learning)
			if again == nil {
				continue
			}
			if err := t.run(again); err != nil || t.answered(true) {
				return err
			}
			if found, err := t.withOffsets(within); found || err != nil {
				return err
			}
		}
	}
	if err := t.start(within, within); err != nil || within.res == nil || t.answered(true) {
		return err
	}
	_, err := t.goOn(within, unless(within, within))
	return err
}

// fills reports whether readings could show that gains do not fill the range that was given: one signal does not, and a normal distribution in the middle of the range may be likelier by far.
func (t *try) fills() bool {
	_, signals := t.problem.Y.Dims()
	return signals > t.res.ColumnsPerSignal()
}

// inFull is a first try again that was ended early.
func (t *try) inFull(*try) *try {
	if t.res.Status != NotConverged || t.res.Iterations != mostFirst || t.opt.MaxIter == mostFirst {
		return nil
	}
	again := *t
	again.name, again.res = t.name+", for longer", nil
	return &again
}

// spreadPhases reports whether phases were learned that are nowhere near the nominal ones, which freePhases asks.
func (t *try) spreadPhases() bool {
	return t.opt.Learn.PhasesOrFree && channel.PhasesOf(channel.CalibrationOf(t.res.Channel)) < nearNominal
}

// answers reports whether a try is an answer of a problem of which something was given, and nothing better is looked for: one that can be used, and that what was given does not contradict.
func (t *try) answers() bool {
	return t.trusted() && !t.spreadPhases() && t.res.Untrusted() == nil && !t.res.odd &&
		(t.opt.given != (given{}) || !t.res.warns(ToldContradicted))
}

// mostOutside is how many sensors may lie outside of a range before it is not theirs: one may be an outlier.
const mostOutside = 1

// compare says where a result that has learned what was given is at odds with it. Noise may be more than was given, by all that the model leaves out; less, or gains outside of their
// range, are those of a wrong answer, or of a wrong word.
func (g given) compare(res *Result) *Warning {
	var words []string
	if g.noise > 0 {
		now := res.meanNoise()
		if apart(now/g.noise, res.noiseSD()) {
			columns := float64(channel.ColumnsOf(res.Channel))
			words, res.odd = append(words, where("the noise variance", columns*g.noise, columns*now)), now < g.noise
		}
	}
	if g.noises > 0 && len(res.NoiseVar) > 0 {
		if factor := stat.GeometricMean(res.NoiseVar, nil) / g.noises; apart(factor, res.noiseSD()) {
			words, res.odd = append(words, timesNoise(factor)), factor < 1
		}
	}
	if count := g.outside(res); count > mostOutside {
		lo, hi := g.bounds.Range()
		words, res.odd = append(words, fmt.Sprintf("the range of s as %.4g to %.4g, which does not hold %d sensors", lo, hi, count)), true
	} else if spread, most := g.spread(res); spread > most {
		words, res.odd = append(words, fmt.Sprintf("the range of s, within which sensors differ by ±%.2g %% at most, where the likelihood has its maximum at about ±%.2g %%", 100*most, 100*spread)), true
	}
	if signals, is := independent(res.Prior).(prior.Sparse); is && g.density > 0 {
		rows, columns := res.X.Dims()
		if now := signals.NonZero(); apart(now/g.density, math.Sqrt(float64(res.ColumnsPerSignal())/(now*float64(rows*columns)))) {
			words = append(words, where("the density", g.density, now))
		}
	}
	return contradiction(words)
}

// spread is the relative standard deviation of s that was learned, less two standard errors, and the largest of all distributions within the range that was given. Gains of one snapshot are hardly known one by one, so that none of them is outside of any range.
func (g given) spread(res *Result) (learned, most float64) {
	has, ok := channel.CalibrationOf(res.Channel).(channel.Gains)
	if g.bounds == nil || !ok || has.Gains().Precision == 0 {
		return 0, 0
	}
	lo, hi := g.bounds.Range()
	if learned = 1 / math.Sqrt(has.Gains().Precision); !has.Gains().Log {
		learned /= has.Gains().Center
	}
	return learned * (1 - math.Sqrt(2/float64(len(res.S)))), (hi - lo) / (hi + lo)
}

// outside is how many sensors the range does not hold.
func (g given) outside(res *Result) (count int) {
	if g.bounds == nil {
		return 0
	}
	omit := res.unknownSensors()
	for mu, s := range res.S {
		if _, out := g.bounds.LogInside(s, math.Sqrt(res.SVar[mu])); out && !omit[mu] {
			count++
		}
	}
	return count
}

// unknownSensors are those that are broken, or of which readings say nothing.
func (r *Result) unknownSensors() []bool {
	omit := make([]bool, len(r.S))
	for mu := range omit {
		omit[mu] = r.Broken != nil && r.Broken[mu] > 0.5 || r.Calibration.Prior.Information(r.Calibration.Of(mu)) == 0
	}
	return omit
}
