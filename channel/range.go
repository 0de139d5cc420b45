package channel

import (
	"errors"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/search"
)

const (
	// reach bounds how far Refit moves an end, relative to the range's width:
	// early statistics are poor.
	reach = 0.2

	// inside is how many standard deviations within the range a sensor must be for nothing to be cut off.
	inside = 9

	// narrowest is the least half-width of a learned range, relative to its
	// middle: readings without a trace of different gains would shrink it to a point.
	narrowest = 1e-3

	// narrowestOfOne is that where no sensor has more than one reading. A spread far below the noise then cannot be distinguished from it, and
	// shrinks to nothing, with error bars that are too small (s ±5 %, noise of 3 %: coverage .27). It is what is assumed of gains where nothing is learned.
	narrowestOfOne = 0.05
)

// Refit returns the prior with the ends of the range that explain the sensors'
// statistics (see [Gain]) best: they maximise the likelihood
//
//	Σ_µ log ∫ q̃_µ(s) ds / (Hi-Lo)
//
// with each q̃ taken as the Gaussian around its mode, and stand apart from there by
// 1/M of the width at either end, since the extremes of M uniform numbers lie
// inside their range by that much on average. change is how far the ends moved, in
// their standard errors. Sensors without readings do not count.
//
// Of a truncated normal the mean and the standard deviation are learned in the same
// way, and its walls are moved out to where no s can be.
func (p GainPrior) Refit(stats []float64, omit []bool) (Calibration, float64) {
	switch {
	case p.together():
		return p.refitTogether(stats, omit)
	case p.Precision > 0:
		return p.refitNormal(stats, omit)
	}
	return p.refit(stats, omit)
}

// Learns implements [Learnable].
func (p GainPrior) Learns() error {
	if p.Each != nil && !p.together() {
		return errors.New("the range of s cannot be learned where every sensor is known by itself")
	}
	return nil
}

func (p GainPrior) refit(stats []float64, omit []bool) (next GainPrior, change float64) {
	peaks, blur := p.peaks(stats, omit)
	if len(peaks) == 0 {
		return p, 0
	}
	least := narrowest
	if p.readOnce(stats) {
		least = narrowestOfOne
	}
	m := float64(len(peaks))
	width := p.Hi - p.Lo
	lo, hi := p.Lo, p.Hi
	hi = maximum(func(hi float64) float64 { return peaks.evidence(lo, hi) }, max(hi-reach*width, 0.5*(lo+hi)), hi+reach*width)
	lo = maximum(func(lo float64) float64 { return peaks.evidence(lo, hi) }, max(lo-reach*width, 0.5*lo), min(lo+reach*width, 0.5*(lo+hi)))
	middle := 0.5 * (lo + hi)
	half := max((0.5+1/m)*(hi-lo), least*middle)
	next = p
	next.Lo, next.Hi = max(middle-half, 0.5*lo), middle+half
	error := width/m + blur/math.Sqrt(m)
	return next, max(math.Abs(next.Lo-p.Lo), math.Abs(next.Hi-p.Hi)) / error
}

// readOnce says that no sensor has more than one reading.
func (p GainPrior) readOnce(stats []float64) bool {
	for mu := range len(stats) / p.Width() {
		if p.of(stats, mu)[readings] > 1 {
			return false
		}
	}
	return true
}

// peak is a sensor's q̃ as a Gaussian.
type peak struct{ mode, inverseSD float64 }

type peaks []peak

// peaks returns those of the sensors with readings that are not left out, and their
// mean standard deviation.
func (p GainPrior) peaks(stats []float64, omit []bool) (all peaks, blur float64) {
	for mu := range len(stats) / p.Width() {
		s := p.of(stats, mu)
		n, t, b := s[readings], s[precision]+p.Precision, s[field]+p.Precision*p.Center
		if n == 0 || !(t > 0) || omit != nil && omit[mu] {
			continue
		}
		mode := quadrature.GainMode(n, t, b)
		curvature := math.Sqrt(t + n/(mode*mode)) // of -log q̃
		all = append(all, peak{mode, curvature})
		blur += 1 / curvature
	}
	return all, blur / float64(len(all))
}

// evidence is the log-likelihood of a range, up to a constant.
func (p peaks) evidence(lo, hi float64) float64 {
	total, masses, table := -float64(len(p))*math.Log(hi-lo), logProduct{value: 1}, normalMass()
	for _, s := range p {
		a, b := (lo-s.mode)*s.inverseSD, (hi-s.mode)*s.inverseSD
		if a <= -inside && b >= inside {
			continue
		}
		if mass := table.below(b) - table.below(a); mass > tabled {
			masses.multiply(mass)
		} else {
			total += logNormalMass(a, b)
		}
	}
	return total + masses.log()
}

// tabled is a mass of which the table has eight digits.
const tabled = 0.01

// logNormalMass is the logarithm of the standard normal's mass on [a, b].
func logNormalMass(a, b float64) float64 {
	if a+b < 0 {
		a, b = -b, -a // now the farther tail is on the right
	}
	if a > 20 { // erfc will underflow: its asymptotic series
		return -0.5*a*a - math.Log(a*math.Sqrt(2*math.Pi)) + math.Log1p(-1/(a*a)) + math.Log(-math.Expm1(-0.5*(b-a)*(b+a)))
	}
	return math.Log(0.5 * (math.Erfc(a/math.Sqrt2) - math.Erfc(b/math.Sqrt2)))
}

// maximum returns where f is largest on [a, b], by golden sections.
func maximum(f func(float64) float64, a, b float64) float64 {
	tol := 1e-6 * (b - a)
	g := search.NewGolden(f, a, b)
	for g.B-g.A > tol && g.Narrow() {
	}
	return 0.5 * (g.A + g.B)
}
