package channel

import (
	"math"
	"runtime"

	"github.com/calamp/calamp/internal/parallel"
)

// Calibrating is a channel that estimates a calibration variable s of every
// sensor. The readings do not change when all signals and all s are multiplied by
// the same number, so a solver looks at the evidence along this common scale:
// when all ω are multiplied by c, that of the block's sensors is
//
//	Σ_µ (1-π_µ) log Z_out(y_µ, c ω_µ, V_µ) = Φ(c) - ½c² Q.
//
// A channel divides it into Φ and Q as it likes; what does not depend on c more
// than quadratically is cheaper in Q.
type Calibrating interface {
	Channel

	// Calibration is what is known of s beforehand, WithCalibration the channel
	// with another one in its place.
	Calibration() Calibration
	WithCalibration(c Calibration) Channel

	// ScaleQuadratic returns Q, added to sum.
	ScaleQuadratic(sum float64, b *Block) float64

	// ScaleDerivatives returns Φ'(c) and Φ''(c); b holds the statistics at c = 1. Several goroutines
	// may ask at a time.
	ScaleDerivatives(c float64, b *Block) (first, second float64)
}

// SlowScale is a [Calibrating] whose Φ may take long to compute.
type SlowScale interface {
	Calibrating

	// ScaleTangent returns Φ' and Φ'' as functions of c in which the parts that take
	// long are replaced by their second order around c = at; nil where nothing takes long.
	ScaleTangent(at float64, b *Block) func(c float64) (first, second float64)
}

// Edged is a [Calibrating] that says for which sensors the ends of the range of s matter.
type Edged interface {
	Calibrating

	// AtEdges parts the sensors of b into those whose posterior comes near an end of its range at some factor between lo and
	// hi, and the others, of which Φ' is smooth in between. Both are nil where that is not known.
	AtEdges(lo, hi float64, b *Block) (near, inside *Block)
}

// CalibrationOf is what is known beforehand of the calibration that c estimates;
// nil where it estimates none.
func CalibrationOf(c Channel) Calibration {
	if c, ok := c.(Calibrating); ok {
		return c.Calibration()
	}
	return nil
}

// Size is what a calibration variable is taken for before readings: its mean, and of a complex one,
// whose mean does not give its size where phases are unknown, the root mean square of its amplitude.
func Size(c Calibration) float64 {
	mean, variance := c.Moments()
	if _, is := c.(ComplexPrior); is {
		return math.Sqrt(mean*mean + variance)
	}
	return mean
}

// Calibration is what is known of a sensor's calibration variable s before its
// readings, a distribution, and what becomes of it given statistics: the few
// numbers a sensor to which a channel condenses its readings. [GainPrior] is one,
// and a user's own channel can use it. Arguments named stats are the statistics of
// one sensor, of length Width; of several, one after the other, where so said. The
// statistics of two lots of readings together are the sums of theirs, as those of
// an exponential family are; a stream mixes and weighs them so.
type Calibration interface {
	// Validate reports a parameter that describes no distribution.
	Validate() error

	// Name identifies the distribution, in a line of text.
	Name() string

	// Width is how many numbers the statistics of a sensor are. All of them are
	// zero where nothing was read.
	Width() int

	// Moments returns the mean and variance of s without readings, and Range the
	// bounds between which it lies.
	Moments() (mean, variance float64)
	Range() (lo, hi float64)

	// Posteriors writes the posterior mean and variance of s for each of
	// len(mean) sensors.
	Posteriors(mean, variance, stats []float64)

	// CDF is the posterior probability of s ≤ at, and Quantile where that is
	// level, in (0, 1).
	CDF(stats []float64, at float64) float64
	Quantile(stats []float64, level float64) float64

	// Readings is how many readings the statistics are of, Information what these
	// say of s (an inverse variance), and Fit the s that maximises their likelihood.
	Readings(stats []float64) float64
	Information(stats []float64) float64
	Fit(stats []float64) float64

	// Excess says by how many of its own standard deviations the posterior of s,
	// were it not cut to the range, would peak outside: negative below, positive
	// above, 0 inside.
	Excess(stats []float64) float64

	// SetNormal writes statistics (of no reading) with which the posterior has this
	// mean and variance: that of a normal distribution, cut to the range.
	SetNormal(stats []float64, mean, variance float64)

	// Carry makes statistics, of several sensors at once, those that a later sample
	// inherits: the likelihood is taken to the power weight, in [0, 1], and they are
	// of signals c times as large, with s as it is.
	Carry(stats []float64, weight, c float64)

	// Pull is how fast the logarithm of the posterior density at s grows with log c
	// when signals become c times as large, the part that is quadratic in c left out
	// (see [Calibrating]).
	Pull(stats []float64, s float64) float64

	// Scaled is the distribution of c·s, and ScaleStats makes statistics of s
	// those of c·s (several sensors at once).
	Scaled(c float64) Calibration
	ScaleStats(stats []float64, c float64)
}

// Merging is a [Calibration] whose statistics of two lots of readings together are not the sums of theirs.
type Merging interface {
	Calibration

	// Merge makes the statistics of one sensor those of its readings and more, and Remove takes a lot back out.
	Merge(stats, more []float64)
	Remove(stats, less []float64)
}

// Merge makes statistics of sensors, one or several, those of their readings and of more.
func Merge(c Calibration, stats, more []float64) {
	if m, ok := c.(Merging); ok {
		for width := c.Width(); len(more) > 0; stats, more = stats[width:], more[width:] {
			m.Merge(stats[:width], more[:width])
		}
		return
	}
	for j, v := range more {
		stats[j] += v
	}
}

// Remove takes a lot back out of the statistics of one sensor.
func Remove(c Calibration, stats, less []float64) {
	if m, ok := c.(Merging); ok {
		m.Remove(stats, less)
		return
	}
	for j, v := range less {
		stats[j] -= v
	}
}

// Named is a channel that is identified by a line of text, which the
// state file of a stream holds: a state is good for one model. The noise variance of
// a [Noisy] is not in it, nor is the calibration, which has a line of its own.
type Named interface {
	Channel
	Name() string
}

// Learnable is a [Calibration] with parameters that are learned from the sensors'
// statistics.
type Learnable interface {
	Calibration

	// Learns reports whether this one can be learned, and why not.
	Learns() error

	// Refit returns the distribution of the same family that explains the
	// statistics of several sensors better, and how far its parameters moved, in
	// standard errors. Sensors for which omit, nil or one value a sensor, is true do not count.
	Refit(stats []float64, omit []bool) (next Calibration, change float64)
}

// Bounded is a [Calibration] that says little more than between which bounds s lies.
// Readings may show that s is distributed otherwise between them: then what they
// say takes its place.
type Bounded interface {
	Calibration

	// Fills reports whether this one can be tested, and why not.
	Fills() error

	// Contradiction is the logarithm of how much likelier the statistics of several
	// sensors are under another distribution than under this one: most under the best
	// one, 0 or more, and mean on average over those that this one may merely contain, -Inf
	// where the statistics do not determine it. Sensors for which omit, nil or one value a sensor, is true do
	// not count.
	Contradiction(stats []float64, omit []bool) (most, mean float64)

	// Within is the distribution that is learned in its place.
	Within(stats []float64, omit []bool) Learnable

	// Bounding is a distribution with these bounds, as far as it has any.
	Bounding(c Calibration) Calibration

	// LogInside is the logarithm of the probability that an s of which N(mean, sd²)
	// is known lies between the bounds, with a floor, and whether it is at that floor.
	LogInside(mean, sd float64) (log float64, outside bool)
}

// Posteriors is what the readings say of the calibration of all sensors, at a
// fixed global scale.
type Posteriors struct {
	Prior Calibration
	Stats []float64 // M×width, see [Calibration]
}

// Of returns the statistics of sensor mu.
func (p *Posteriors) Of(mu int) []float64 {
	width := p.Prior.Width()
	return p.Stats[mu*width : (mu+1)*width]
}

// Interval returns for every sensor the bounds between which its s lies with
// the given probability, in (0, 1), half of the rest on either side.
func (p *Posteriors) Interval(level float64) (lo, hi []float64) {
	m := len(p.Stats) / p.Prior.Width()
	lo, hi = make([]float64, m), make([]float64, m)
	const each = 256 // a quantile takes some ten microseconds
	parallel.Run((m+each-1)/each, runtime.GOMAXPROCS(0), func(i int) {
		for mu := i * each; mu < min((i+1)*each, m); mu++ {
			lo[mu] = p.Prior.Quantile(p.Of(mu), 0.5*(1-level))
			hi[mu] = p.Prior.Quantile(p.Of(mu), 0.5*(1+level))
		}
	})
	return lo, hi
}
