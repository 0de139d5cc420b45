package channel

import (
	"fmt"
	"math"
)

// Detector is noise that a sensor adds itself, behind its gain: of a reading y = (z + ε)/s + η the variance of η, as that of an amplifier. Of
// z + ε + sη it is s² times as much, which differs between sensors as their gains do. Photons add noise of a variance that is proportional to the
// reading that is expected, z/s where that is positive: shot noise, from some ten counts on (fewer have a likelihood of their own, [Counts]).
//
// A channel alone does not know it, since it depends on s: solvers take it from the present posterior, and give the channel the variance of
// z + sη for that of z (see [Block]).
type Detector struct {
	Read   float64 // a variance, in squares of the readings' units
	Photon float64 // what one photon adds to a reading, in its units: the variance divided by the expected reading

	ReadGiven, PhotonGiven bool // where noise is learned, this one is not
}

// Variance is that of a reading of which so much is expected.
func (d Detector) Variance(expected float64) float64 { return d.Read + d.Photon*max(0, expected) }

func (d Detector) validate() error {
	if !(d.Read >= 0) || math.IsInf(d.Read, 1) {
		return fmt.Errorf("the variance of noise at the reading must be finite and not negative, found %g", d.Read)
	}
	if !(d.Photon >= 0) || math.IsInf(d.Photon, 1) {
		return fmt.Errorf("what a photon adds to a reading must be finite and not negative, found %g", d.Photon)
	}
	return nil
}

// Detecting is a channel whose sensors may add noise of their own, beside that of [Noisy], which is before the division by s.
type Detecting interface {
	Noisy
	Detector() Detector // the zero value where they add none
	WithDetector(d Detector) Channel
}

// DetectorOf is the noise that the sensors of c add themselves; ok says whether there is any.
func DetectorOf(c Channel) (d Detector, ok bool) {
	if known, is := InOrder(c).(Detecting); is {
		d = known.Detector()
	}
	return d, d != Detector{}
}

// WithDetector is c, or the same beside broken sensors, with other noise of the sensors' own.
func WithDetector(c Channel, d Detector) Channel {
	known, is := InOrder(c).(Detecting)
	if !is {
		return c
	}
	return WithInOrder(c, known.WithDetector(d))
}

// Detector implements [Detecting].
func (c Gain) Detector() Detector { return c.Own }

// WithDetector implements [Detecting].
func (c Gain) WithDetector(d Detector) Channel {
	c.Own = d
	return c
}
