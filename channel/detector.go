package channel

import (
	"fmt"
	"math"
)

// Detector is noise that a sensor adds itself, behind its gain: of a reading y = (z + ε)/s + η the variance of η is
//
//	Read + Photon max(z/s, 0),
//
// that of an amplifier, and that of counting photons, of which a reading of Photon is one. Of z + ε + sη it is
// s² times as much, which differs between sensors as their gains do.
//
// A channel alone does not know it, since it depends on s and z: solvers take it from the present posterior of both, and give
// the channel the variance of z + sη for that of z (see [Block]). It takes photons for Gaussian, and readings of a few photons are not.
type Detector struct {
	Read   float64 // a variance, in squares of the readings' units
	Photon float64 // a variance over a reading, in the readings' units
}

// leastPhotons is the number of photons for which a reading of fewer counts: the variance of none is none, and what a reading says
// of a signal that is next to nothing has no Gaussian. Half a photon is where counts of 0 and 1 are about as probable.
const leastPhotons = 0.5

// Variance is that of sη for a sensor with the posterior mean size and mean square of s, where z is expected to be omega.
func (d Detector) Variance(size, square, omega float64) float64 {
	return d.Read*square + d.Photon*size*d.counted(size, omega)
}

// counted is z as far as it makes photon noise.
func (d Detector) counted(size, omega float64) float64 {
	return max(omega, leastPhotons*d.Photon*size)
}

// Derivatives are those of Variance by Read and by Photon, the latter at a given number of photons.
func (d Detector) Derivatives(size, square, omega float64) (read, photon float64) {
	return square, size * d.counted(size, omega)
}

func (d Detector) none() bool { return d == Detector{} }

func (d Detector) validate() error {
	if !(d.Read >= 0) || math.IsInf(d.Read, 1) {
		return fmt.Errorf("the variance of the readings' own noise must be finite and not negative, found %g", d.Read)
	}
	if !(d.Photon >= 0) || math.IsInf(d.Photon, 1) {
		return fmt.Errorf("the reading that is one photon must be finite and not negative, found %g", d.Photon)
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
	return d, !d.none()
}

// WithDetector is c, or the same beside broken sensors, with other noise of the sensors' own.
func WithDetector(c Channel, d Detector) Channel {
	known, is := InOrder(c).(Detecting)
	if !is {
		return c
	}
	if f, ok := c.(Contaminated); ok {
		return f.WithInOrder(known.WithDetector(d))
	}
	return known.WithDetector(d)
}

// Detector implements [Detecting].
func (c Gain) Detector() Detector { return c.Own }

// WithDetector implements [Detecting].
func (c Gain) WithDetector(d Detector) Channel {
	c.Own = d
	return c
}
