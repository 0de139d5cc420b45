package online

import (
	"context"
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
)

// A reading is what its sensor makes of the signal or, with probability r, an outlier, as it is offline: the odds are those of
//
//	r N(y; 0, v) / ((1-r) p(y | the sensor's past)),
//
// where the channel itself says p. They are looked at when the iteration has converged, since only then do V and the residuals
// say what they mean; what is farther off than [Sanity] allows was set aside long before. One that was left out teaches
// nothing, and says of its sensor no more than that r is larger for it: a sensor of which every other reading is an outlier is broken.

// outlierCount is the expected number of outliers among a stream's readings, and of how many. Those of sensors that
// are in doubt are in neither.
type outlierCount struct{ Outlying, Readings float64 }

const (
	// Before the first reading is counted outliers are as rare as half of one in beforehand readings.
	beforehand = 100
	halfOne    = 0.5

	// mostCounted is over how many readings they are counted: where they become more frequent that is seen.
	mostCounted = 1e5

	// inDoubt is the part of the health limit from which on a sensor's readings are not counted.
	inDoubt = 0.1

	// A reading is worth a look from [amp.Suspicious] standard deviations on, or from wild times the typical
	// one: of a sensor of which nothing is known a huge reading is but a few standard deviations off.
	wild = 6

	// Readings this many times the typical one are set aside from the start, where they are at most fewHuge of all: not even
	// the pattern of the others would emerge beside them.
	huge    = 10
	fewHuge = 0.05

	// A sample that contradicts what was learned is solved once more with noise that hides wrong readings, startHeat of the
	// readings' power, which is taken away slowly: by the factor coolingRate in an iteration, until heated of it is left.
	// At most mostLeftOut of its readings may be wrong for the sample to be good, and the others must fit.
	startHeat   = 0.1
	coolingRate = 0.9
	heated      = 1e-4
	mostLeftOut = 0.1

	// unlikely is the logarithm of the odds of what was not worth a look.
	unlikely = -40
)

// outliers is the workspace of looking for them.
type outliers struct {
	odds    []float64     // M, logarithms, of the sample being absorbed
	each    []float64     // M, probabilities, as they are reported
	block   channel.Block // of one reading
	typical float64       // variance of readings, in a column, but for those that are far larger

	heat    float64         // the noise that is added at present begins with it, 0 for none
	channel channel.Channel // without that
}

func newOutliers(c *Calibrator) *outliers {
	if !c.opt.Outliers.Look || c.opt.Commit == Always {
		return nil
	}
	return &outliers{odds: make([]float64, c.m), each: make([]float64, c.m), block: *channel.NewBlock(c.sample.Model().Channel, 1, c.columns)}
}

// rate is r.
func (n outlierCount) rate(given float64) float64 {
	if given > 0 {
		return given
	}
	return min((halfOne+n.Outlying)/(beforehand+n.Readings), amp.MostOutliers)
}

func (n outlierCount) validate() error {
	if !(n.Outlying >= 0 && n.Outlying <= n.Readings) || math.IsInf(n.Readings, 1) {
		return fmt.Errorf("state: %g outlying readings of %g", n.Outlying, n.Readings)
	}
	return nil
}

// AtFixedPoint implements [amp.Part]: it leaves out the readings that are outliers.
func (w *watch) AtFixedPoint(*amp.Solver) amp.Verdict {
	c := w.calibrator
	if c.outliers == nil {
		return amp.GoOn
	}
	if c.state.Samples == 0 && c.state.Range != nil {
		c.noise = channel.NoiseOf(c.sample.Model().Channel) // no sample says what it was before
	}
	c.predictMoved()
	c.residuals()
	if c.spread > amp.Strained {
		return amp.GoOn
	}
	c.judgeReadings()
	candidates, out := 0, 0
	for mu := range c.m {
		if c.candidate(mu) {
			candidates++
			out += int(bit(c.masked[mu] || c.outliers.odds[mu] > 0))
		}
	}
	if float64(out) > c.opt.Sanity.Faulty*float64(candidates) {
		return amp.GoOn // not the readings, the sample
	}
	verdict := amp.GoOn
	for mu := range c.m {
		if c.candidate(mu) && !c.masked[mu] && c.outliers.odds[mu] > 0 {
			c.masked[mu] = true
			c.give(mu, false)
			verdict = amp.Disturbed
		}
	}
	return verdict
}

// typicalSize is the root mean square of the sample's readings, but for those that are far larger; 0 where there are none.
func (c *Calibrator) typicalSize() float64 {
	c.sizes = c.sizes[:0]
	for mu := range c.m {
		if c.candidate(mu) {
			c.sizes = append(c.sizes, math.Sqrt(c.power(c.y, mu)))
		}
	}
	if len(c.sizes) == 0 {
		return 0
	}
	return median(c.sizes) / c.medianOfSize()
}

// setHugeAside sets readings aside that hide all others.
func (c *Calibrator) setHugeAside() {
	limit, count := huge*c.typicalSize(), 0
	for mu := range c.m {
		c.masked[mu] = c.candidate(mu) && math.Sqrt(c.power(c.y, mu)) > limit
		count += int(bit(c.masked[mu]))
	}
	if float64(count) > fewHuge*float64(len(c.sizes)) {
		clear(c.masked)
	}
}

// solveWarily solves a sample that contradicts what was learned once more.
func (c *Calibrator) solveWarily(ctx context.Context) (Reject, error) {
	c.begin()
	size := c.typicalSize()
	c.outliers.typical = size * size / float64(c.columns)
	c.outliers.heat = startHeat * c.outliers.typical
	defer func() { c.outliers.heat = 0 }()
	err := c.solve(ctx)
	reject := c.judge()
	if out := float64(c.countLeftOut()); reject == Accepted && (out > mostLeftOut*float64(c.used()) || out > 0 && c.spread > amp.Strained) {
		reject = Unexplained // not by wrong readings: without them the others do not fit
	}
	return reject, err
}

func (c *Calibrator) countLeftOut() (count int) {
	for mu := range c.m {
		count += int(bit(c.leftOut(mu)))
	}
	return count
}

// Begin implements [amp.Part].
func (w *watch) Begin(s *amp.Solver) {
	if o := w.calibrator.outliers; o != nil && o.heat > 0 {
		o.channel, s.State.Added = s.State.Model().Channel, o.heat
	}
}

// Before implements [amp.Part]: it takes away some of the noise that was added, and in the end all of it.
func (w *watch) Before(s *amp.Solver) {
	o, e := w.calibrator.outliers, s.State
	if e.Added == 0 {
		return
	}
	if e.Added *= coolingRate; e.Added < heated*o.heat {
		w.End(s)
		return
	}
	noisy := o.channel.(channel.Noisy)
	w.adopt(e, noisy.WithNoise(noisy.Noise()+e.Added))
}

// End implements [amp.Part].
func (w *watch) End(s *amp.Solver) {
	if s.State.Added > 0 {
		s.State.Added = 0
		w.adopt(s.State, w.calibrator.outliers.channel)
	}
}

func (w *watch) adopt(e *amp.State, to channel.Channel) {
	e.Adopt(amp.Model{Prior: e.Model().Prior, Channel: to})
	w.calibrator.noise = channel.NoiseOf(to)
}

// judgeReadings sets the odds of all readings, given the residuals.
func (c *Calibrator) judgeReadings() {
	o := c.outliers
	size := c.typicalSize()
	o.typical = size * size / float64(c.columns)
	for mu := range c.m {
		o.odds[mu] = unlikely
		if c.candidate(mu) && (math.Abs(c.chi[mu]) > amp.Suspicious || math.Sqrt(c.power(c.y, mu)) > wild*size) {
			o.odds[mu] = c.oddsOf(mu)
			if doubt := c.state.Health[mu]; c.mayDiffer(mu) && doubt > 0 {
				o.odds[mu] -= doubt
			} else if c.mayDiffer(mu) {
				o.odds[mu] = max(o.odds[mu], 1)
			}
		}
	}
}

// mayDiffer reports whether a sensor of which nothing was read yet may have an outlying gain: a reading that does not fit the others' gains is
// from such a gain, or an outlier. One alone does not decide that, and would stay in the posterior of the sensor. So the first is left out, which raises
// the sensor's cumulative sum, and with that as their logarithm the odds of the next one fall.
func (c *Calibrator) mayDiffer(mu int) bool {
	known, ok := c.sample.Calibration().(channel.GainPrior)
	return ok && known.Tail > 0 && known.Readings(c.statsOf(mu)) == 0 && math.Abs(c.chi[mu]) > amp.Suspicious
}

// oddsOf is the logarithm of the odds of one reading.
func (c *Calibrator) oddsOf(mu int) float64 {
	e, b := c.sample, &c.outliers.block
	b.First = mu
	copy(b.Y, c.row(c.y, mu))
	copy(b.Omega, c.row(e.Omega, mu))
	copy(b.V, c.row(e.U, mu))
	copy(b.Past, e.Of(c.stats, mu))
	e.Model().Channel.Output(b)
	with := b.LogZ[0]
	for j := range b.Y {
		b.Y[j] = math.NaN()
	}
	e.Model().Channel.Output(b)
	own := with - b.LogZ[0]
	if math.IsNaN(own) { // beyond double precision
		own = math.Inf(-1)
	}
	return amp.LogOutlier(c.state.Outliers.rate(c.opt.Outliers.Rate), c.outliers.typical, c.power(c.y, mu), c.columns) - own
}

// outlying is the probability of each reading (M) of the sample to be an outlier, 0 where it is missing; nil where that
// is not looked at.
func (c *Calibrator) outlying() []float64 {
	o := c.outliers
	if o == nil {
		return nil
	}
	for mu := range o.each {
		o.each[mu] = 0
		if c.candidate(mu) {
			o.each[mu] = 1 / (1 + math.Exp(-o.odds[mu]))
		}
		if c.leftOut(mu) {
			o.each[mu] = max(o.each[mu], amp.LeftOut)
		}
	}
	return o.each
}

// countOutliers learns r from a committed sample.
func (c *Calibrator) countOutliers() {
	n := &c.state.Outliers
	for mu, p := range c.outlying() {
		if (c.candidate(mu) || c.leftOut(mu)) && c.state.Health[mu] <= inDoubt*c.opt.Sanity.Health {
			n.Outlying += p
			n.Readings++
		}
	}
	if n.Readings > mostCounted {
		n.Outlying *= mostCounted / n.Readings
		n.Readings = mostCounted
	}
}

// ofOutlier is what a reading that was left out says against its sensor: log ½/r, as one of which every other reading is
// an outlier has them that much more often.
func (c *Calibrator) ofOutlier() float64 {
	return math.Log(0.5 / c.state.Outliers.rate(c.opt.Outliers.Rate))
}
