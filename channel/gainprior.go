package channel

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// GainPrior is the distribution of a calibration variable, on [Lo, Hi].
type GainPrior struct {
	Lo, Hi float64 // 0 < Lo < Hi

	// A Gaussian factor exp(-Precision·(s-Center)²/2) on the range: the
	// truncated normal. Precision 0 is the uniform prior.
	Center, Precision float64

	// Log takes the Gaussian for one of log s: exp(-Precision·log²(s/Center)/2)/s, the log-normal
	// distribution with the median Center, cut to the range.
	Log bool

	// Tail is the probability of an outlying sensor: with s anywhere in the range, whatever the
	// Gaussian says. 0 where all are of the one distribution.
	Tail float64

	// Each is what is known of every sensor by itself, beside the distribution of all; nil for nothing.
	Each *Knowledge
}

// Uniform is the calibration prior of the paper, flat on [lo, hi].
func Uniform(lo, hi float64) GainPrior { return GainPrior{Lo: lo, Hi: hi} }

// TruncatedNormal is N(center, sd²) restricted to [lo, hi].
func TruncatedNormal(center, sd, lo, hi float64) GainPrior {
	return GainPrior{Lo: lo, Hi: hi, Center: center, Precision: 1 / (sd * sd)}
}

// LogNormal is exp(N(log median, sd²)) restricted to [lo, hi].
func LogNormal(median, sd, lo, hi float64) GainPrior {
	return GainPrior{Lo: lo, Hi: hi, Center: median, Precision: 1 / (sd * sd), Log: true}
}

// NormalAbout is the normal distribution of gains without a range: cut where no gain can be.
func NormalAbout(mean, sd float64) GainPrior {
	return TruncatedNormal(mean, sd, lowestCut*mean, highestCut*mean)
}

// LogNormalAbout is the log-normal one: cut there, too, or eight standard deviations out.
func LogNormalAbout(median, sd float64) GainPrior {
	cut := math.Exp(max(math.Log(highestCut), 8*sd))
	return LogNormal(median, sd, median/cut, median*cut)
}

// Mass is the probability that the Gaussian leaves to the range; 1 without one.
func (p GainPrior) Mass() float64 {
	if p.Precision == 0 {
		return 1
	}
	lo, hi, root := p.Lo-p.Center, p.Hi-p.Center, math.Sqrt(p.Precision)
	if p.Log {
		lo, hi = math.Log(p.Lo/p.Center), math.Log(p.Hi/p.Center)
	}
	return math.Exp(logNormalMass(root*lo, root*hi))
}

// NormalOf returns the mean and standard deviation of the normal factor of a calibration's
// distribution, before it is cut to its range, of a log-normal one its median and the standard
// deviation of log s; ok is false where it has none.
func NormalOf(c Calibration) (mean, sd float64, ok bool) {
	known, ok := c.(Gains)
	if !ok {
		return 0, 0, false
	}
	p := known.Gains()
	if p.Precision == 0 {
		return 0, 0, false
	}
	return p.Center, 1 / math.Sqrt(p.Precision), true
}

// Typical returns the mean and variance of a calibration's distribution without its tail of outlying sensors: few as
// they are, they make the variance several times as large where their range is wide.
func Typical(c Calibration) (mean, variance float64) {
	switch p := c.(type) {
	case OffsetPrior:
		return Typical(p.Gain)
	case GainPrior:
		p.Tail = 0
		return p.Moments()
	}
	return c.Moments()
}

// IsLog reports whether a calibration's distribution is a log-normal one.
func IsLog(c Calibration) bool {
	known, ok := c.(Gains)
	return ok && known.Gains().Log
}

// Middle is what stands for a distribution where the scale of s is a convention: the mean of a
// normal, the median of a log-normal, the middle of the range of any other.
func Middle(c Calibration) float64 {
	if p, ok := c.(GainPrior); ok && p.Each != nil {
		mean, _ := p.Moments()
		return mean
	}
	if center, _, ok := NormalOf(c); ok {
		return center
	}
	lo, hi := c.Range()
	return 0.5 * (lo + hi)
}

// The statistics of a sensor, in this order: all that readings on which s acts as
// a factor say of it (see [Gain]).
const (
	precision = iota // τ
	field            // B
	readings         // n
	gainWidth
)

// GainStats are the statistics of a sensor with the sums τ, B and n (see [Gain]).
func GainStats(tau, b, n float64) []float64 {
	return []float64{precision: tau, field: b, readings: n}
}

// of are those of a sensor; what is known of it by itself comes after them. It is called for each: a p by value would be
// copied every time.
func (p *GainPrior) of(stats []float64, sensor int) *[gainWidth]float64 {
	width := gainWidth
	if p.Each != nil {
		width = informedWidth
	}
	return (*[gainWidth]float64)(stats[sensor*width:])
}

// Name implements [Calibration].
func (p GainPrior) Name() string {
	name := fmt.Sprintf("lo=%g hi=%g center=%g precision=%g", p.Lo, p.Hi, p.Center, p.Precision)
	if p.Log {
		name += " log"
	}
	if p.Tail > 0 {
		name += fmt.Sprintf(" tail=%g", p.Tail)
	}
	if p.Each != nil {
		name += fmt.Sprintf(" each=%016x", p.Each.hash())
	}
	return name
}

// Width implements [Calibration]: the statistics are τ, B and n, and where [GainPrior.Each] is set, what is known of a sensor by
// itself.
func (p GainPrior) Width() int {
	if p.Each != nil {
		return informedWidth
	}
	return gainWidth
}

// Range implements [Calibration].
func (p GainPrior) Range() (lo, hi float64) { return p.Lo, p.Hi }

// Scaled implements [Calibration].
func (p GainPrior) Scaled(c float64) Calibration { return p.Times(c) }

// Times returns the distribution of c·s.
func (p GainPrior) Times(c float64) GainPrior {
	p.Lo, p.Hi, p.Center = c*p.Lo, c*p.Hi, c*p.Center
	if !p.Log {
		p.Precision /= c * c
	}
	if p.together() {
		p.Each = p.Each.times(c)
	}
	return p
}

// Validate reports a parameter that describes no distribution.
func (p GainPrior) Validate() error {
	switch {
	case !(p.Lo > 0) || math.IsInf(p.Lo, 1):
		return fmt.Errorf("the range of s must start above 0, found [%g, %g]", p.Lo, p.Hi)
	case !(p.Hi > p.Lo) || math.IsInf(p.Hi, 1):
		return fmt.Errorf("the range of s must be [a, b] with a < b, found [%g, %g]", p.Lo, p.Hi)
	case !(p.Precision >= 0) || math.IsInf(p.Precision, 1) || math.IsNaN(p.Center) || math.IsInf(p.Center, 0):
		return fmt.Errorf("the calibration prior needs a finite center and a positive standard deviation, found center %g and precision %g", p.Center, p.Precision)
	case p.Log && !(p.Center > 0 && p.Precision > 0):
		return fmt.Errorf("a log-normal calibration prior needs a positive median and a positive standard deviation, found median %g and precision %g", p.Center, p.Precision)
	case !(p.Tail >= 0 && p.Tail < 1):
		return fmt.Errorf("the fraction of sensors with outlying gains must be in [0, 1), found %g", p.Tail)
	case p.Each != nil:
		return p.Each.validate()
	}
	return nil
}

// Moments returns the prior's own mean and variance.
func (p GainPrior) Moments() (mean, variance float64) {
	if p.normal() {
		_, mean, variance = p.posterior(0, 0, 0)
		return mean, variance
	}
	if p.Each != nil {
		if mean, variance, ok := p.Each.moments(); ok {
			return mean, variance
		}
	}
	var m, v [1]float64
	p.Posteriors(m[:], v[:], make([]float64, p.Width()))
	return m[0], v[0]
}

// normal reports whether the posterior is a power times a Gaussian, which is integrated by groups.
func (p *GainPrior) normal() bool { return !p.Log && p.Tail == 0 && p.Each == nil }

// posterior returns log ∫ p(s) s^n e^{-τs²/2+Bs} ds, and the mean and variance
// of that density; the prior only shifts τ and B, and adds its normaliser.
func (p GainPrior) posterior(n, tau, b float64) (logNorm, mean, variance float64) {
	return quadrature.GainMoments(n, tau+p.Precision, b+p.Precision*p.Center, p.Lo, p.Hi)
}

// batch is how many sensors are integrated at a time.
const batch = 64

// Posteriors implements [Calibration].
func (p GainPrior) Posteriors(mean, variance, stats []float64) {
	p.posteriors(nil, mean, variance, stats, 1)
}

// posteriors is posterior for len(mean) sensors, with every B multiplied by scale, and
// with the mass about the mean in place of logNorm (see [quadrature.GainMomentsBatch]):
// the exponent of the prior's normal and of the readings at the mean is not in it. A nil logMass is
// left out.
//
// Of any other prior the mass is that of the whole prior, normalised, times the readings' part about
// the mean: then logWeight and logMass add nothing.
func (p GainPrior) posteriors(logMass, mean, variance, stats []float64, scale float64) {
	if !p.normal() {
		p.mixed(logMass, mean, variance, stats, scale)
		return
	}
	var n, tau, b [batch]float64
	for from := 0; from < len(mean); from += batch {
		to := min(from+batch, len(mean))
		count := to - from
		for i, of := 0, stats[from*gainWidth:to*gainWidth]; i < count; i, of = i+1, of[gainWidth:] {
			n[i], tau[i], b[i] = of[readings], of[precision], scale*of[field]
		}
		var masses []float64
		if logMass != nil {
			masses = logMass[from:to]
		}
		quadrature.GainMomentsBatch(masses, mean[from:to], variance[from:to], n[:count], tau[:count], b[:count],
			p.Precision, p.Precision*p.Center, p.Lo, p.Hi)
	}
}

// LogEvidence is log ∫ p(s) s^n e^{-τs²/2+Bs} ds: what the readings of a sensor say for
// this prior, but for what does not depend on s.
func (p GainPrior) LogEvidence(stats []float64) float64 {
	s := p.of(stats, 0)
	if !p.normal() {
		var l, mean, variance [1]float64
		p.posteriors(l[:], mean[:], variance[:], stats, 1)
		return l[0] + mean[0]*(s[field]-0.5*s[precision]*mean[0])
	}
	logNorm, _, _ := p.posterior(s[readings], s[precision], s[field])
	return logNorm - p.logMass()
}

// ScaleDerivatives returns the first and second derivative in c of
//
//	Σ_µ (1-π_µ) log ∫ p(s) s^n e^{-τ_µ s²/2 + c B_µ s} ds
//
// at c = scale, where π (broken) and the statistics are those of several sensors: the
// posterior means give the first, the variances the second.
func (p GainPrior) ScaleDerivatives(scale float64, broken, stats []float64) (first, second float64) {
	var s, sVar [batch]float64
	for from := 0; from < len(broken); from += batch {
		to := min(from+batch, len(broken))
		count := to - from
		p.posteriors(nil, s[:count], sVar[:count], stats[from*p.Width():], scale)
		for i, pi := range broken[from:to] {
			working := 1 - pi
			if working == 0 {
				continue // its numbers may be beyond double precision
			}
			b := p.of(stats, from+i)[field]
			first += working * (b * s[i])
			second += working * (b * (b * sVar[i]))
		}
	}
	return first, second
}

// Readings implements [Calibration].
func (p GainPrior) Readings(stats []float64) float64 { return stats[readings] }

// Information implements [Calibration]: τ.
func (p GainPrior) Information(stats []float64) float64 { return stats[precision] }

// Fit implements [Calibration]: the least-squares B/τ.
func (p GainPrior) Fit(stats []float64) float64 {
	return quadrature.GainMode(0, stats[precision], stats[field])
}

// SetNormal implements [Calibration].
func (p GainPrior) SetNormal(stats []float64, mean, variance float64) {
	clear(stats) // what was known of the sensor is in the normal
	if p.likeNoOther(mean, variance) {
		p.Log, p.Precision, p.Tail = false, 0, 0
	}
	switch {
	case p.cuts(mean, variance):
		p.setCutNormal(p.of(stats, 0), mean, variance)
	case p.Log: // outside the range, where the prior says nothing
		*p.of(stats, 0) = [gainWidth]float64{precision: 1 / variance, field: mean / variance}
	default:
		tau := max(0, 1/variance-p.Precision) // no less is known than beforehand
		*p.of(stats, 0) = [gainWidth]float64{precision: tau, field: mean*(tau+p.Precision) - p.Precision*p.Center}
	}
	if p.Tail > 0 && p.Precision > 0 {
		p.holdInCore(p.of(stats, 0))
	}
}

// holdInCore brings B/τ, the maximum of the statistics' likelihood, to within wallSlack standard deviations of the core's middle where they
// say less than the core does: they are then a difference of nearly the same numbers, and what is left of it would be in the tail.
func (p *GainPrior) holdInCore(s *[gainWidth]float64) {
	tau, known := s[precision], p.Precision
	if p.Log {
		known /= p.Center * p.Center
	}
	if tau < known {
		most, middle := wallSlack*math.Sqrt(tau*(1+tau/known)), tau*p.Center // τ times √(1/τ + 1/P)
		s[field] = middle + min(max(s[field]-middle, -most), most)
	}
}

// likeNoOther reports whether a sensor of which N(mean, variance) is known is more likely in the tail than of the
// distribution of the others.
func (p GainPrior) likeNoOther(mean, variance float64) bool {
	if p.Tail == 0 || p.Precision == 0 {
		return false
	}
	off, spread := mean-p.Center, 1/p.Precision
	if p.Log {
		off, variance = math.Log(mean/p.Center), variance/(mean*mean)
	}
	spread += variance
	inCore := math.Log1p(-p.Tail) - 0.5*(off*off/spread+math.Log(2*math.Pi*spread))
	if p.Log {
		inCore -= math.Log(mean) // the density of s, as that of the tail
	}
	return inCore < math.Log(p.Tail/(p.Hi-p.Lo))
}

// Carry implements [Calibration].
func (p GainPrior) Carry(stats []float64, weight, c float64) {
	for i, width := 0, p.Width(); i < len(stats); i += width {
		stats[i+precision] *= weight
		stats[i+field] *= weight * c
		stats[i+readings] *= weight
		if p.Each != nil { // nothing that signals could change
			stats[i+ownPrecision] *= weight
			stats[i+ownField] *= weight
		}
	}
}

// Pull implements [Calibration]: sB.
func (p GainPrior) Pull(stats []float64, s float64) float64 { return s * stats[field] }

// ScaleStats implements [Calibration].
func (p GainPrior) ScaleStats(stats []float64, c float64) {
	for i, width := 0, p.Width(); i < len(stats); i += width {
		stats[i+precision] /= c * c
		stats[i+field] /= c
		if p.Each != nil {
			stats[i+ownPrecision] /= c * c
			stats[i+ownField] /= c
		}
	}
}

// Excess implements [Calibration].
func (p GainPrior) Excess(stats []float64) float64 {
	switch {
	case stats[readings] == 0: // nothing was read that the range could contradict
		return 0
	case p.Tail > 0: // only the range itself forbids
		return Uniform(p.Lo, p.Hi).Excess(stats)
	case p.Log:
		return p.logExcess(stats)
	}
	tau, b := stats[precision]+p.Precision, stats[field]+p.Precision*p.Center
	if tau == 0 {
		return 0
	}
	mode := quadrature.GainMode(stats[readings], tau, b)
	return (mode - min(max(mode, p.Lo), p.Hi)) * math.Sqrt(tau)
}

// logWeight is the exponent of the prior's normal factor at s, without the constant
// -Precision·Center²/2, which logMass is without, too.
func (p *GainPrior) logWeight(s float64) float64 {
	if !p.normal() {
		return 0
	}
	return p.Precision * s * (p.Center - 0.5*s)
}

// logMass is log ∫ of the unnormalised prior density over its range.
func (p GainPrior) logMass() float64 {
	if !p.normal() {
		return 0
	}
	if p.Precision == 0 {
		return math.Log(p.Hi - p.Lo)
	}
	logNorm, _, _ := p.posterior(0, 0, 0)
	return logNorm
}
