package online

import (
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/search"
)

// Flag says what is wrong with a sensor.
type Flag = channel.Fault

// The flags of a stream's sensors. A state file holds their numbers.
const (
	Healthy      = channel.Healthy
	Zero         = channel.Zero
	OutOfRange   = channel.OutOfRange
	Inconsistent = channel.Inconsistent
)

const (

	// One reading adds at most this fraction of the health limit, so that it
	// takes three to flag a sensor.
	mostOfHealth = 0.4

	// readmitAfter is how many consistent readings readmit a flagged sensor.
	readmitAfter = 8

	// uninformed is how many times that it takes when the readings are too noisy
	// to narrow s down.
	uninformed = 10

	// emerged is the part of the signal's own variance below which its posterior
	// variance must be before readings are judged: before that, the prediction
	// of a sparse signal's reading is far from Gaussian.
	emerged = 0.1

	// drifting is the residuals' spread² above which memory is shortened once
	// the iteration has settled: x̂ moves by less than settled of its posterior
	// standard deviation. On the way there spread² wanders up to 1.4 without any
	// drift, and only contradicted counts.
	drifting     = 1.25
	settled      = 0.1
	contradicted = 2

	// spreadSD times 1/√n is the standard deviation of the spread² of n normal
	// residuals (of the square of their median size).
	spreadSD = 2.33

	// patience is how many iterations a sample seldom needs.
	patience = 150

	// shortenEvery is how many iterations a shorter past is given to show.
	shortenEvery = 5

	// leastRetention is the shortest memory: all but nothing is inherited. For
	// not settling alone, memory is not shortened below unsettled: with
	// little past, samples settle slowly.
	leastRetention = 1e-4
	unsettled      = 0.03

	// relaxation is the power of target/spread² by which memory is changed
	// from one sample to the next. The target is a little above 1, so that memory
	// that nothing speaks against grows.
	relaxation = 0.25
	target     = 1.1
)

// predictMoved brings what the past says of every s to the scale of the last sweep.
func (c *Calibrator) predictMoved() {
	if by := c.moved(); c.pastMove != by {
		c.predict(by)
	}
}

// predict computes what the past says of every s, with all signals so far moved.
func (c *Calibrator) predict(by move) {
	copy(c.stats, c.past.Stats)
	c.carry(c.stats, c.retention, by)
	c.pastMove = by
	if c.columns > 1 {
		c.predictComplex()
		return
	}
	known := c.sample.Calibration()
	known.Posteriors(c.pastS, c.pastSVar, c.stats)
	c.predictMoves()
	offsets := c.offsets()
	for mu, y := range c.y[:c.m] {
		c.pastZ[mu], c.pastZVar[mu] = c.pastS[mu]*y, c.pastSVar[mu]*y*y
		if offsets != nil {
			c.pastZ[mu], c.pastZVar[mu] = offsets.Corrected(c.sample.Of(c.stats, mu)).At(y)
		}
	}
}

// residuals computes χ of every reading, those set aside included: their z is
// predicted by the other sensors alone, since their g is zero; for the readings
// used the Onsager term of AMP has taken their own part out.
func (c *Calibrator) residuals() {
	c.sizes = c.sizes[:0]
	for mu := range c.chi {
		if c.missing(mu) {
			c.chi[mu] = math.NaN()
			continue
		}
		c.chi[mu] = c.residual(mu)
		if c.candidate(mu) {
			c.sizes = append(c.sizes, math.Abs(c.chi[mu]))
		}
	}
	c.spread = 0
	if len(c.sizes) > 0 {
		c.spread = median(c.sizes) / c.medianOfSize()
	}
}

// residual is χ of the reading of sensor mu.
func (c *Calibrator) residual(mu int) (chi float64) {
	if c.columns > 1 {
		chi, _ = c.residualOf(mu, c.pastMean[mu], c.pastSVar[mu], c.sample.Of(c.stats, mu))
	} else {
		r, d := c.innovation(mu)
		chi = r / math.Sqrt(max(d, math.SmallestNonzeroFloat64))
		if math.Abs(chi) > amp.Suspicious {
			chi = c.likeNoOther(chi, mu)
		}
	}
	if c.learnsEach() {
		return c.heavyTailed(chi, mu)
	}
	return chi
}

// likeNoOther is the χ of a sensor's reading where its gain may be an outlier among gains, with the probability π that its past leaves: the
// other gain costs log 1/π², and then need not be near the others. Little is left of π once some readings agree with them.
func (c *Calibrator) likeNoOther(chi float64, mu int) float64 {
	known, ok := c.sample.Calibration().(channel.GainPrior)
	if !ok || known.Tail == 0 {
		return chi
	}
	chance, s, variance := known.InTail(c.sample.Of(c.stats, mu))
	y := c.y[mu]
	r := s*y - c.sample.Omega[mu]
	square := r*r/(c.sample.U[mu]+c.noise+variance*y*y) - 2*math.Log(chance)
	return math.Copysign(math.Sqrt(min(chi*chi, square)), chi)
}

// innovation is what a real reading of sensor mu differs by from what all others say, and its variance.
func (c *Calibrator) innovation(mu int) (r, variance float64) {
	r, variance = c.pastZ[mu]-c.sample.Omega[mu], c.sample.U[mu]+c.noise+c.pastZVar[mu]
	return c.ofMoves(mu, r, variance)
}

// median returns the median of v, which it reorders.
func median(v []float64) float64 {
	middle := len(v) / 2
	upper := search.Select(v, middle)
	if len(v)%2 == 1 {
		return upper
	}
	return 0.5 * (slices.Max(v[:middle]) + upper)
}

// watch is the part that looks at the readings after every iteration.
type watch struct {
	amp.Idle
	calibrator *Calibrator
}

// After implements [amp.Part].
func (w *watch) After(s *amp.Solver, l *amp.Line) amp.Verdict {
	c := w.calibrator
	if c.opt.Observe != nil {
		c.opt.Observe(l.Index, s.State.X, s.State.S)
	}
	if c.opt.Commit == Sane && c.watch() || s.State.Added > 0 {
		return amp.Disturbed
	}
	return amp.GoOn
}

// watch masks readings while the iteration runs. The variances V shrink in step
// with the errors of ω, as state evolution says, so that χ has mean square 1
// all along; a reading that does not fit shows as soon as V is small enough, and
// is taken out before it does harm. Left in, it would be far more wrong than D
// allows, and the iteration, too sure of itself, would wander without end.
func (c *Calibrator) watch() (changed bool) {
	e := c.sample
	if e.SumC[0] > emerged*float64(c.n)*e.Model().Prior.Variance() {
		return false
	}
	if _, own := channel.DetectorOf(e.Model().Channel); own {
		c.noise = channel.NoiseOf(e.Model().Channel) // which follows gains and signals
	}
	c.predictMoved()
	if !c.mayShorten() && c.fits() {
		return false
	}
	c.residuals()
	return c.shortenMemory() || c.mask()
}

// fits reports whether no real reading is so far off that it could be masked, and none is: a cheap test, which nearly
// every iteration ends with.
func (c *Calibrator) fits() bool {
	if c.columns > 1 || c.learnsEach() || c.outliers != nil && c.outliers.heat > 0 {
		return false
	}
	limit := c.opt.Sanity.Sensor * c.opt.Sanity.Sensor * (1 - 1e-9) // squares round
	for mu, masked := range c.masked {
		r, variance := c.innovation(mu) // NaN where the reading is missing
		if masked || r*r > limit*variance && c.candidate(mu) {
			return false
		}
	}
	return true
}

// chiSquare is the mean χ² of the readings used.
func (c *Calibrator) chiSquare() float64 {
	total, count := 0.0, 0
	for mu, chi := range c.chi {
		if c.uses(mu) {
			total += chi * chi
			count++
		}
	}
	return total / float64(max(1, count))
}

// chiSquareLimit is the option's, widened by four standard deviations of a mean
// of χ² over the readings used.
func (c *Calibrator) chiSquareLimit() float64 {
	return c.opt.Sanity.ChiSquare * (1 + 4*math.Sqrt(2/float64(max(1, c.columns*c.used()))))
}

// farOff is the |χ| from which on the reading of sensor mu is set aside while the iteration runs. A sample that contradicts what was learned, and is
// solved once more, has wrong readings in it, or so it is hoped: left in they would keep it from ever converging, after which their odds
// are looked at. Then it is the |χ| at which a reading is as likely an outlier,
//
//	r N(y; 0, v) = (1-r) N(χ; 0, 1)/√D,
//
// with a y of the typical size.
func (c *Calibrator) farOff(mu int) float64 {
	limit, o := c.opt.Sanity.Sensor, c.outliers
	if o == nil || o.heat == 0 || c.columns > 1 {
		return limit
	}
	rate := c.state.Outliers.rate(c.opt.Outliers.Rate)
	_, d := c.innovation(mu)
	even := 2*math.Log((1-rate)/rate) + math.Log(max(1, o.typical/d)) + 1
	return min(limit, math.Sqrt(max(amp.Suspicious*amp.Suspicious, even)))
}

// misfit reports whether the reading of sensor mu contradicts the model, by the
// sample's own measure where that is wider. One that was masked is taken back
// when it is half as far from it.
func (c *Calibrator) misfit(mu int) bool {
	limit := c.farOff(mu) * max(1, c.spread)
	if c.masked[mu] {
		limit *= 0.5
	}
	return c.beyond[mu] || math.Abs(c.chi[mu]) > limit
}

// mask sets aside the readings that do not fit, and takes back those that do
// after all. It reports whether anything changed.
func (c *Calibrator) mask() bool {
	bad, candidates := 0, 0
	for mu := range c.m {
		if c.candidate(mu) {
			candidates++
			if c.misfit(mu) {
				bad++
			}
		}
	}
	if float64(bad) > c.opt.Sanity.Faulty*float64(candidates) {
		return false // not the sensors, the sample
	}
	changed := false
	for mu := range c.m {
		if !c.candidate(mu) || c.masked[mu] == c.misfit(mu) {
			continue
		}
		c.masked[mu] = !c.masked[mu]
		c.give(mu, !c.masked[mu])
		changed = true
	}
	return changed
}

// shortenMemory forgets more of the past when most readings contradict it: their
// variance is too large by spread², and where the past of s makes it, tempering
// by as much makes up for it. A run that does not settle is too sure of
// something: then half of the past goes even so. It reports whether it did.
func (c *Calibrator) shortenMemory() bool {
	if !c.mayShorten() {
		return false
	}
	square, waited := c.spread*c.spread, c.solver.Iterations-c.shortened
	factor := 1 / min(square, 10)
	if waited > patience && square > 1 && c.retention > unsettled {
		factor = min(0.5, factor)
	} else if !(square > c.contradiction()) || waited < shortenEvery {
		return false
	}
	e := c.sample
	e.Calibration().Carry(e.Past.Stats, factor, 1)
	e.Past.Quadratic *= factor
	e.Past.Volume *= factor
	c.retention *= factor
	c.shortened = c.solver.Iterations
	c.predict(c.moved())
	return true
}

func (c *Calibrator) mayShorten() bool {
	return (c.opt.Memory > 0 || c.tempering) && c.state.Samples > 0 && c.retention > leastRetention
}

// contradiction is the residuals' spread² above which the past is wrong.
func (c *Calibrator) contradiction() float64 {
	e := c.sample
	if e.Moved[0] > settled*math.Sqrt(e.SumC[0]) {
		return contradicted
	}
	return max(drifting, 1+3*spreadSD/math.Sqrt(float64(max(1, len(c.sizes)))))
}

// tuneMemory chooses what the next sample starts with, so that residuals become
// as large as they should be: what served this sample, more of it where it was
// too cautious and less where it was too sure, and never more than was asked for.
func (c *Calibrator) tuneMemory() {
	if c.opt.Memory == 0 {
		return
	}
	nominal := c.opt.nominalRetention()
	factor := math.Pow(target/max(c.spread*c.spread, 0.1), relaxation)
	c.state.Retention = min(nominal, max(leastRetention, c.retention*factor))
}

// examineSensors updates every sensor's health after a committed sample.
func (c *Calibrator) examineSensors() {
	scaleSD := -1.0 // computed when first needed
	for mu := range c.chi {
		switch {
		case c.missing(mu) && !c.beyond[mu]:
		case c.state.Flag[mu] != Healthy:
			c.recalibrate(mu)
		default:
			c.monitor(mu)
			if c.state.Flag[mu] == Healthy && c.outside(mu, &scaleSD) {
				c.flag(mu, OutOfRange)
			}
		}
	}
}

// monitor adds a reading to the cumulative sum of a sensor in use.
func (c *Calibrator) monitor(mu int) {
	s, limit := &c.state, c.opt.Sanity.Health
	if c.zero(mu) && c.power(c.sample.Omega, mu) == 0 {
		return
	}
	chi := c.chi[mu] / max(1, c.spread)
	if c.beyond[mu] {
		chi = math.Inf(1)
	}
	evidence := float64(c.columns) * (0.375*chi*chi - math.Ln2)
	if c.outliers != nil && c.leftOut(mu) {
		evidence = min(evidence, c.ofOutlier())
	}
	if !c.misfit(mu) {
		evidence *= c.weight // what a scene is wrong by comes again with every sample of it
	}
	s.Health[mu] = max(0, s.Health[mu]+min(evidence, mostOfHealth*limit))
	if s.Health[mu] >= limit {
		c.flag(mu, c.diagnose(mu))
	}
}

// outside reports whether a sensor's readings place its s outside the given range by
// more than the error of s and of the global scale explain.
func (c *Calibrator) outside(mu int, scaleSD *float64) bool {
	known, stats, limit := c.sample.Calibration(), c.statsOf(mu), c.opt.Sanity.Sensor*max(1, c.spread)
	excess := math.Abs(known.Excess(stats))
	if excess <= limit {
		return false
	}
	if *scaleSD < 0 {
		*scaleSD = c.evidenceSD()
	}
	_, hi := known.Range()
	common := *scaleSD * hi * math.Sqrt(known.Information(stats))
	return excess > limit*math.Hypot(1, common)
}

// diagnose says by the present reading why it does not fit.
func (c *Calibrator) diagnose(mu int) Flag {
	if c.zero(mu) {
		return Zero
	}
	sd := math.Sqrt(c.sample.U[mu*c.columns] + c.noise)
	if c.nearestFit(mu) > c.opt.Sanity.Sensor*max(1, c.spread)*sd {
		return OutOfRange
	}
	return Inconsistent
}

// flag takes a sensor out of use. Its past goes, and its share of the scale's
// evidence with it, which leaves the evidence stationary where it was.
func (c *Calibrator) flag(mu int, why Flag) {
	s := &c.state
	s.Quadratic = max(0, s.Quadratic-c.share(c.statsOf(mu)))
	s.Flag[mu] = why
	c.restart(mu)
}

// statsOf are the statistics of one sensor.
func (c *Calibrator) statsOf(mu int) []float64 { return c.sample.Of(c.state.Stats, mu) }

// share is what a sensor with these statistics adds to the slope of the scale's evidence: Bŝ for a gain.
func (c *solvers) share(stats []float64) float64 {
	var mean, variance [1]float64
	known := c.sample.Calibration()
	known.Posteriors(mean[:], variance[:], stats)
	return known.Pull(stats, mean[0])
}

// restart calibrates a flagged sensor from nothing.
func (c *Calibrator) restart(mu int) {
	s := &c.state
	clear(c.statsOf(mu))
	s.Health[mu] = c.opt.Sanity.Health
}

// recalibrate lets a flagged sensor's reading, which had no part in the
// reconstruction, improve its own calibration, and readmits it when it has been
// consistent for long enough.
func (c *Calibrator) recalibrate(mu int) {
	s, limit := &c.state, c.opt.Sanity.Health
	if c.misfit(mu) {
		if c.zero(mu) {
			s.Flag[mu] = Zero
		} else if s.Flag[mu] == Zero {
			s.Flag[mu] = c.diagnose(mu)
		}
		c.restart(mu)
		return
	}
	if c.zero(mu) {
		return // nothing was expected either
	}
	c.absorbAside(mu)
	s.Health[mu] -= limit / readmitAfter
	known, stats := c.sample.Calibration(), c.statsOf(mu)
	if math.Abs(known.Excess(stats)) > 0.5*c.opt.Sanity.Sensor {
		c.restart(mu)
		return
	}
	_, wide := known.Moments()
	narrow := known.Information(stats)*wide > 4
	if s.Health[mu] <= 0 && narrow || s.Health[mu] <= -uninformed*limit {
		s.Flag[mu], s.Health[mu] = Healthy, 0
		s.Quadratic += c.share(c.statsOf(mu))
	}
}

// absorbAside adds a flagged sensor's reading to its own statistics: its z is predicted
// by the other sensors.
func (c *Calibrator) absorbAside(mu int) {
	one := func() []float64 { return make([]float64, 1) }
	b := channel.Block{
		First: mu, P: c.columns, Y: c.row(c.y, mu), Omega: c.row(c.sample.Omega, mu), V: c.row(c.sample.U, mu),
		Past: c.statsOf(mu), Stats: make([]float64, len(c.none)),
		G: make([]float64, c.columns), DG: make([]float64, c.columns), S: one(), Phase: one(), SVar: one(), LogZ: one(), Broken: one(),
	}
	c.sample.Model().Channel.Output(&b)
	copy(c.statsOf(mu), b.Stats)
}
