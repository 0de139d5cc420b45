package channel

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/smooth"
)

// Knowledge is what is known of single sensors beforehand, from a factory's calibration or a former
// result: s of sensor µ is N(Mean[µ], SD[µ]²), beside what is known of all of them. A NaN in either says nothing.
type Knowledge struct {
	Mean, SD []float64 // M

	// ScaleSD is the relative standard deviation of an error that all means have in common. It is no part of SD.
	ScaleSD float64

	field *smooth.Field // of which this is what it says of each sensor; nil where nothing is learned
}

// About is a distribution for sensors each of which is known by itself: cut where no gain can be. One in a thousand
// may have changed altogether.
func About(known *Knowledge) GainPrior {
	var means []float64
	for mu, m := range known.Mean {
		if known.Knows(mu) {
			means = append(means, m)
		}
	}
	middle := 1.0
	if len(means) > 0 {
		slices.Sort(means)
		middle = means[len(means)/2]
	}
	p := Uniform(lowestCut*middle, highestCut*middle)
	if len(means) > 0 {
		p.Lo, p.Hi = min(p.Lo, lowestCut*means[0]), max(p.Hi, highestCut*means[len(means)-1])
	}
	p.Each, p.Tail = known, LikeNoOther
	return p
}

// LikeNoOther is the probability of a sensor whose gain has nothing to do with what is known of it or with the
// others': one pixel in a thousand of a detector. It need not be that of the instrument: one sensor's readings say far
// more of its gain than this does.
const LikeNoOther = 1e-3

// Knows reports whether sensor mu has a finite mean and standard deviation of its own.
func (k *Knowledge) Knows(mu int) bool {
	return k.Mean[mu] > 0 && k.SD[mu] > 0 && !math.IsInf(k.SD[mu], 1)
}

func (k *Knowledge) validate() error {
	if len(k.Mean) != len(k.SD) {
		return fmt.Errorf("what is known of single sensors are %d means and %d standard deviations", len(k.Mean), len(k.SD))
	}
	for mu, m := range k.Mean {
		sd := k.SD[mu]
		if m <= 0 || math.IsInf(m, 1) || sd <= 0 || math.IsInf(sd, -1) {
			return fmt.Errorf("what is known of sensor %d must be a positive mean and standard deviation, found %g ± %g", mu, m, sd)
		}
	}
	if !(k.ScaleSD >= 0) || math.IsInf(k.ScaleSD, 1) {
		return fmt.Errorf("the standard deviation of a common scale must be finite and not negative, found %g", k.ScaleSD)
	}
	return nil
}

// hash identifies what is known.
func (k *Knowledge) hash() uint64 {
	h := fnv.New64a()
	for _, list := range [][]float64{k.Mean, k.SD, {k.ScaleSD}} {
		for _, v := range list {
			fmt.Fprintf(h, "%x ", math.Float64bits(v))
		}
	}
	return h.Sum64()
}

// moments are those of s over the sensors.
func (k *Knowledge) moments() (mean, variance float64, ok bool) {
	count := 0.0
	for mu, m := range k.Mean {
		if k.Knows(mu) {
			count++
			mean += m
		}
	}
	if count == 0 {
		return 0, 0, false
	}
	mean /= count
	for mu, m := range k.Mean {
		if k.Knows(mu) {
			variance += ((m-mean)*(m-mean) + k.SD[mu]*k.SD[mu]) / count
		}
	}
	return mean, variance, true
}

// Surprise is by how many standard deviations what readings say of a sensor differs from what was known of it; ok is
// false where nothing was, or nothing was read.
func Surprise(c Calibration, stats []float64) (deviations float64, ok bool) {
	p, known := c.(GainPrior)
	if !known || p.Each == nil || !(stats[ownPrecision] > 0) || !(stats[precision] > 0) {
		return 0, false
	}
	off := p.Fit(stats) - stats[ownField]/stats[ownPrecision]
	return off / math.Sqrt(1/stats[ownPrecision]+1/stats[precision]), true
}

// Stated reports whether the distribution of s says more than between which bounds it lies: a normal one, or what is known of each sensor by itself.
func Stated(c Calibration) bool {
	known, ok := c.(Gains)
	return ok && (known.Gains().Precision > 0 || known.Gains().Each != nil)
}

// GainsKnown reports whether bounds say what s is, to a thousandth.
func GainsKnown(c Calibration) bool {
	known, ok := c.(Bounded)
	if !ok {
		return false
	}
	lo, hi := known.Range()
	return hi <= 1.001*lo
}

// UnitsOf are the s that each of m sensors is expected to have beforehand: what is known of it by itself, or the [Middle] of all.
func UnitsOf(c Calibration, m int) []float64 {
	units, middle := make([]float64, m), Middle(c)
	known, has := c.(Gains)
	for mu := range units {
		units[mu] = middle
		if has && known.Gains().Each != nil && known.Gains().Each.Knows(mu) {
			units[mu] = known.Gains().Each.Mean[mu]
		}
	}
	return units
}

// CommonScaleSD is the relative standard deviation of an error that all that is known of single sensors has in common:
// readings do not take it away.
func CommonScaleSD(c Calibration) float64 {
	if p, ok := c.(GainPrior); ok && p.Each != nil {
		return p.Each.ScaleSD
	}
	return 0
}

// Informed is a [Calibration] that may know something of single sensors.
type Informed interface {
	Calibration

	// Inform writes the statistics of M sensors of which nothing was read yet: what is known of each.
	Inform(stats []float64) error
}

// Where something is known of single sensors their statistics have two numbers more, which do not grow with the
// signals: the inverse variance of what is known of a sensor, and that times its mean.
const (
	ownPrecision = gainWidth + iota
	ownField
	informedWidth
)

// Inform implements [Informed].
func (p GainPrior) Inform(stats []float64) error {
	if p.Each == nil {
		return nil
	}
	if err := p.Each.checkSensors(len(stats) / informedWidth); err != nil {
		return err
	}
	for mu, mean := range p.Each.Mean {
		if p.Each.Knows(mu) {
			precision := 1 / (p.Each.SD[mu] * p.Each.SD[mu])
			stats[mu*informedWidth+ownPrecision], stats[mu*informedWidth+ownField] = precision, precision*mean
		}
	}
	return nil
}

// own is what is known of a sensor by itself; zeros where p.Each is not set.
func (p GainPrior) own(stats []float64, sensor int) (precision, field float64) {
	if p.Each == nil {
		return 0, 0
	}
	s := stats[sensor*informedWidth:]
	return s[ownPrecision], s[ownField]
}
