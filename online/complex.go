package online

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/internal/moments"
	"github.com/calamp/calamp/solver"
)

// A complex reading is two columns, its real and its imaginary part, as everywhere in the solver. A stream sees it as one
// reading of one sensor: arrays of readings are M×columns, and residuals, masks and flags are of sensors. So it is with a sensor of several rows, of which all are one reading.

// complexColumns is how many columns a complex number takes.
const complexColumns = 2

// turning is what is known of complex gains; nil where they are real.
func (c *solvers) turning() channel.Turning {
	known, _ := c.sample.Calibration().(channel.Turning)
	return known
}

// row is what v (M×columns) has of sensor mu.
func (c *instrument) row(v []float64, mu int) []float64 { return v[mu*c.columns : (mu+1)*c.columns] }

// number is number j of v: a real one has no imaginary part.
func (c *instrument) number(v []float64, j int) complex128 {
	if c.parts == 1 {
		return complex(v[j], 0)
	}
	return complex(v[complexColumns*j], v[complexColumns*j+1])
}

// power is Σ|v|² over what v (M×columns) has of sensor mu, where that is there.
func (c *instrument) power(v []float64, mu int) (sum float64) {
	for _, x := range c.row(v, mu) {
		if !math.IsNaN(x) {
			sum += x * x
		}
	}
	return sum
}

// missing reports whether sensor mu has no reading, and zero whether it is exactly that.
func (c *Calibrator) missing(mu int) bool {
	for j := mu * c.columns; j < (mu+1)*c.columns; j += c.parts {
		if !math.IsNaN(c.y[j]) {
			return false
		}
	}
	return true
}

func (c *Calibrator) zero(mu int) bool { return !c.missing(mu) && c.power(c.y, mu) == 0 }

// Columns is how many numbers an entry of X is: 2 where signals are complex.
func (e *Estimate) Columns() int { return e.calibrator.parts }

func square(z complex128) float64 { return real(z)*real(z) + imag(z)*imag(z) }

// pair makes both parts of a complex reading missing where one is, and takes nominal phases off.
func (c *Calibrator) pair() {
	if c.parts == 1 {
		return
	}
	for j := range c.m * c.rows {
		y := c.y[complexColumns*j:]
		z := complex(y[0], y[1])
		switch {
		case cmplx.IsNaN(z):
			y[0], y[1] = math.NaN(), math.NaN()
		case c.opt.Phases != nil:
			z *= cmplx.Rect(1, c.opt.Phases[j/c.rows])
			y[0], y[1] = real(z), imag(z)
		}
	}
}

// move is what steps along scale and phase have done to all signals: a factor, and a turn in radians.
type move struct{ scale, turn float64 }

var unmoved = move{scale: 1}

// factor is that as a complex number.
func (m move) factor() complex128 { return cmplx.Rect(m.scale, m.turn) }

// moved is what they had done before the last sweep.
func (c *solvers) moved() move { return move{c.solver.SweepScale, c.solver.SweepTurn} }

// carry makes statistics, of several sensors at once, those that are inherited (see [channel.Calibration]).
func (c *solvers) carry(stats []float64, weight float64, by move) {
	c.sample.Calibration().Carry(stats, weight, by.scale)
	if by.turn != 0 {
		c.turning().Turn(stats, by.turn)
	}
}

// predictComplex is [Calibrator.predict] for complex gains, with their statistics in c.stats.
func (c *Calibrator) predictComplex() {
	c.posteriors(c.pastMean, c.pastSVar, c.stats)
	for mu, mean := range c.pastMean {
		c.pastS[mu] = cmplx.Abs(mean)
	}
}

// posteriors are the posterior means and variances of s given statistics of all sensors. Real means have no imaginary part.
func (c *Calibrator) posteriors(mean []complex128, variance, stats []float64) {
	if known := c.turning(); known != nil {
		for mu := range mean {
			mean[mu], variance[mu] = known.Posterior(c.sample.Of(stats, mu))
		}
		return
	}
	c.sample.Calibration().Posteriors(c.means, variance, stats)
	for mu, v := range c.means {
		mean[mu] = complex(v, 0)
	}
}

// setNormal writes statistics with which s of a sensor is about normal.
func (c *solvers) setNormal(stats []float64, mean complex128, variance float64) {
	if known := c.turning(); known != nil {
		known.SetPosterior(stats, mean, variance)
		return
	}
	c.sample.Calibration().SetNormal(stats, real(mean), variance)
}

// beforehand is the mean of s without readings, and its variance.
func (c *Calibrator) beforehand() (mean complex128, variance float64) {
	if known := c.turning(); known != nil {
		return known.Posterior(c.none)
	}
	m, variance := c.sample.Calibration().Moments()
	return complex(m, 0), variance
}

// residualOf is |χ| of what is read of sensor mu, of which s has this mean and variance: the mean square of its numbers is 1 under the model. Residuals r = ŝy - ω have the variances D and, by the error
// of s, the covariance Cˢyy*, so that
//
//	χ² = (Σ|r|²/D - a + a/(1 + CˢΣ|y|²/D))/n,   a = |Σ r y*/D|²/(Σ|y|²/D).
//
// wider is how many times as large as D the variance of one of n numbers is, the geometric mean. Where there are offsets both are of the sensor's statistics.
func (c *Calibrator) residualOf(mu int, mean complex128, sVar float64, stats []float64) (chi, wider float64) {
	if offsets := c.offsets(); offsets != nil {
		return c.residualOfLine(mu, offsets.Corrected(stats))
	}
	e := c.sample
	var square, information, n float64
	var along complex128
	for j := mu * c.rows; j < (mu+1)*c.rows; j++ {
		y := c.number(c.y, j)
		if cmplx.IsNaN(y) {
			continue
		}
		d := max(float64(c.parts)*(e.U[j*c.parts]+c.noise), math.SmallestNonzeroFloat64)
		r := mean*y - c.number(e.Omega, j)
		square += (real(r)*real(r) + imag(r)*imag(r)) / d
		information += (real(y)*real(y) + imag(y)*imag(y)) / d
		along += r * cmplx.Conj(y) / complex(d, 0)
		n++
	}
	by, a := 1+sVar*information, 0.0
	if information > 0 {
		a = (real(along)*real(along) + imag(along)*imag(along)) / information
	}
	across := max(0, square-a)
	if n == 1 && a > 0 {
		across = 0
	}
	return math.Sqrt((across + a/by) / n), math.Pow(by, 1/n)
}

// residualOfLine is the same of real readings of a sensor with an offset: by the errors of value and slope of the line, of covariance Q, residuals have the covariance AQAᵀ beside D, with rows
// (1, y - place) of A, and
//
//	χ² = (Σr²/D - bᵀ(1 + QM)⁻¹Qb)/n,   M = AᵀA/D,   b = Aᵀr/D.
func (c *Calibrator) residualOfLine(mu int, line channel.Line) (chi, wider float64) {
	e := c.sample
	var square, n, r0, r1, m00, m01, m11 float64
	for j := mu * c.rows; j < (mu+1)*c.rows; j++ {
		y := c.y[j]
		if math.IsNaN(y) {
			continue
		}
		weight := 1 / max(e.U[j]+c.noise, math.SmallestNonzeroFloat64)
		z, _ := line.At(y)
		r, d := z-e.Omega[j], y-line.Place
		square += r * r * weight
		r0, r1 = r0+r*weight, r1+r*d*weight
		m00, m01, m11 = m00+weight, m01+d*weight, m11+d*d*weight
		n++
	}
	q00, q01, q11 := line.ValueVar, line.Covariance, line.SlopeVar
	a, b, f, g := 1+q00*m00+q01*m01, q00*m01+q01*m11, q01*m00+q11*m01, 1+q01*m01+q11*m11
	u, v := q00*r0+q01*r1, q01*r0+q11*r1
	by := a*g - b*f
	known := (r0*(g*u-b*v) + r1*(a*v-f*u)) / by
	return math.Sqrt(max(0, square-known) / n), math.Pow(by, 1/n)
}

// medianOfSize is the median of the |χ| of sensors under the model: that of |N(0, 1)|, of |CN(0, 1)|, or after Wilson and Hilferty (1931) that of a mean of several squares.
func (c *instrument) medianOfSize() float64 {
	switch n := float64(c.columns); n {
	case 1:
		return moments.MedianOfNormal
	case complexColumns:
		return math.Sqrt(math.Ln2)
	default:
		return math.Pow(1-2/(9*n), 1.5)
	}
}

// nearestFit is how far from ω, in a column, the calibrated reading of sensor mu must be, whatever its s within the range.
func (c *Calibrator) nearestFit(mu int) float64 {
	lo, hi := c.sample.Calibration().Range()
	within := func(v float64) float64 { return min(max(v, lo), hi) }
	var along complex128 // Σ ωy*
	of := 0.0            // Σ|ω|²
	for j := mu * c.rows; j < (mu+1)*c.rows; j++ {
		if y, omega := c.number(c.y, j), c.number(c.sample.Omega, j); !cmplx.IsNaN(y) {
			along += omega * cmplx.Conj(y)
			of += square(omega)
		}
	}
	power := c.power(c.y, mu)
	field := cmplx.Abs(along)
	if channel.PhasesKnown(c.sample.Calibration()) {
		field = real(along)
	}
	nearest := within(field / power)
	return math.Sqrt(max(0, of-2*nearest*field+nearest*nearest*power) / float64(c.columns))
}

// free reports whether nothing is known of phases beforehand: the common phase is then a convention.
func (c *solvers) free() bool {
	return channel.PhasesFree(c.sample.Calibration())
}

// amplitudesOpen reports whether gains are complex, of unknown amplitude.
func (c *solvers) amplitudesOpen() bool {
	lo, hi := c.sample.Calibration().Range()
	return c.turning() != nil && lo < hi
}

// commonPhase is the phase that the convention takes for zero: of the anchored sensor, or of the sum of all s of which
// something is known. mean is the posterior mean of a sensor's s, of its statistics.
func (c *Calibrator) commonPhase(mean func(mu int) complex128) float64 {
	known := c.turning()
	counts := func(mu int) bool { return c.state.Flag[mu] == Healthy && known.Readings(c.statsOf(mu)) > 0 }
	if mu, ok := c.anchor.PhaseSensor(); ok && counts(mu) {
		return cmplx.Phase(mean(mu))
	}
	total := complex128(0)
	for mu := range c.m {
		if counts(mu) {
			total += mean(mu)
		}
	}
	return cmplx.Phase(total)
}

// meanOf is the posterior mean of the complex s of sensor mu.
func (c *Calibrator) meanOf(mu int) complex128 {
	mean, _ := c.turning().Posterior(c.statsOf(mu))
	return mean
}

// placePhase brings the sample's estimate to the phase of the convention.
func (c *Calibrator) placePhase() {
	if !c.free() {
		return
	}
	theta := -c.commonPhase(c.meanOf)
	turnSignals(c.sample.X, c.n, theta)
	if t := c.estimate.Together; t != nil {
		t.turn(theta)
	}
}

// turnSignals multiplies signals (each n real parts, then n imaginary parts) by e^{iθ}.
func turnSignals(x []float64, n int, theta float64) {
	sin, cos := math.Sincos(theta)
	for ; len(x) > 0; x = x[complexColumns*n:] {
		for i := range n {
			re, im := &x[i], &x[n+i]
			*re, *im = cos**re-sin**im, sin**re+cos**im
		}
	}
}

func (t *Together) turn(theta float64) {
	n, columns := t.X.Dims()
	for k := 0; k < columns; k += complexColumns {
		x := append(mat.Col(nil, k, t.X), mat.Col(nil, k+1, t.X)...)
		turnSignals(x, n, theta)
		t.X.SetCol(k, x[:n])
		t.X.SetCol(k+1, x[n:])
	}
}

// placePhases says what is known of the phases of a posterior with these means of s.
func (c *Calibrator) placePhases(p *Posterior, means []complex128) {
	if c.turning() == nil {
		return
	}
	common := 0.0
	if p.PhaseFree = c.free(); p.PhaseFree {
		common = c.commonPhase(func(mu int) complex128 {
			if slices.Equal(p.Calibration.Of(mu), c.statsOf(mu)) { // not so where gains drift
				return means[mu]
			}
			return c.meanOf(mu)
		})
	} else {
		p.PhaseSD = c.phaseSD()
	}
	p.Phase = make([]float64, c.m)
	for mu := range p.Phase {
		p.Phase[mu] = cmplx.Phase(means[mu]) - common
		if c.opt.Phases != nil {
			p.Phase[mu] += c.opt.Phases[mu]
		}
		p.Phase[mu] = math.Remainder(p.Phase[mu], 2*math.Pi)
	}
}

// phaseSD is the standard deviation of the common phase given the samples absorbed.
func (c *Calibrator) phaseSD() float64 {
	sd, _ := c.sample.PastPhaseSD(amp.Past{Stats: c.inUse()})
	return sd
}

// checkPhases reports nominal phases, or an anchored one, that belong to nothing.
func (c *solvers) checkPhases() error {
	known := c.turning()
	complex := known != nil
	switch _, anchored := c.opt.Anchor.PhaseSensor(); {
	case c.opt.Phases != nil && !complex:
		return fmt.Errorf("nominal phases are for complex gains, found a %T", c.sample.Calibration())
	case c.opt.Phases != nil && c.free():
		return fmt.Errorf("nominal phases are given, and the prior says that nothing is known of phases")
	case c.opt.Phases != nil && len(c.opt.Phases) != c.m:
		return fmt.Errorf("%d nominal phases for %d sensors", len(c.opt.Phases), c.m)
	case anchored && !complex:
		return fmt.Errorf("the phase of a sensor is anchored, and gains are real")
	case anchored && !c.free():
		return fmt.Errorf("the phase of a sensor is anchored, but phases are known beforehand (κ = %g): an anchor is for phases of which nothing is known", known.Phases())
	}
	return nil
}

// doubtsPhases is the warning that phases are not spread as was given.
func (c *Calibrator) doubtsPhases(p *Posterior) {
	given := c.turning()
	if given == nil || c.opt.Commit == Always || c.state.Samples < 2 {
		return
	}
	if message := diagnosis.PhasesContradict(given, c.state.Stats, c.strangers()); message != "" {
		p.Warnings = append(p.Warnings, calamp.Warning{Code: calamp.PhaseSpread, Message: message})
	}
}

// doubtsSimilar is the warning that a stream of similar signals began with one of them alone while phases were unknown: what gains are
// wrong by looks then like the signals, and later ones do not separate the two. How much less they count follows from what they have in
// common where they begin right (see [Calibrator.weigh]).
func (c *Calibrator) doubtsSimilar(p *Posterior) {
	known := c.turning()
	if known == nil || channel.PhasesKnown(known) || c.opt.WarmUp > 1 {
		return
	}
	for _, scene := range c.state.Scenes {
		if scene.Samples >= leastSimilar && 2*scene.Samples > float64(c.state.Samples) {
			p.Warnings = append(p.Warnings, calamp.Warning{Code: calamp.SignalsAlike, Message: fmt.Sprintf("%.0f of %d samples have most of their power in common, and the first was solved alone: "+
				"error bars of s are then too small, by up to three times where phases are not known; begin with samples that are solved together: --warm-up 4", scene.Samples, c.state.Samples)})
			return
		}
	}
}

// leastSimilar are the samples of one scene that are no chance.
const leastSimilar = 3

// doubtsAmplitudes is the warning that amplitudes are not spread over the range that was given, which is kept all the same.
func (c *Calibrator) doubtsAmplitudes(p *Posterior) {
	given, bounded := c.sample.Calibration().(channel.Bounded)
	if c.turning() == nil || !bounded || given.Fills() != nil || c.opt.Commit == Always || c.opt.SPrior == solver.UniformS || c.state.Samples < 2 {
		return
	}
	outside := 0
	for mu, flag := range c.state.Flag {
		if flag == OutOfRange || flag == Healthy && math.Abs(given.Excess(c.statsOf(mu))) > 0.5*c.opt.Sanity.Sensor {
			outside++
		}
	}
	lo, hi := given.Range()
	ratio, _ := given.Contradiction(c.state.Stats, c.strangers())
	if few := max(1, outsideRange*float64(c.m)); ratio > amp.Contradicted || float64(outside) > few {
		p.Warnings = append(p.Warnings, calamp.Warning{
			Code: calamp.RangeNotFilled,
			Message: fmt.Sprintf("amplitudes are not spread evenly over the range [%g, %g] that was given (log-likelihood ratio %.3g, the likelihood of %d of %d sensors has its maximum beyond it): "+
				"a stream of complex readings keeps the range, and its scale and error bars depend on it; give the range of the amplitudes, or learn it with calamp solve", lo, hi, ratio, outside, c.m),
		})
	}
}
