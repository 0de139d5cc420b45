package channel

import (
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/quadrature"
)

// What is no power times a Gaussian: log-normal distributions of s, and mixtures with a uniform one.

// core is the distribution of all sensors but those like no other.
func (p GainPrior) core() GainPrior {
	p.Tail = 0
	return p
}

// mixed is posteriors for these: with weights (1-η)Z_c and ηZ_t of the core and of the tail,
// that of the mixture of both.
func (p GainPrior) mixed(logMass, mean, variance, stats []float64, scale float64) {
	p.core().normalised(logMass, mean, variance, stats, scale)
	if p.Tail == 0 {
		return
	}
	var tailMass, tailMean, tailVar [batch]float64
	for from := 0; from < len(mean); from += batch {
		to := min(from+batch, len(mean))
		Uniform(p.Lo, p.Hi).normalised(tailMass[:], tailMean[:to-from], tailVar[:to-from], stats[from*gainWidth:], scale)
		for i := range to - from {
			s, at := gainStats(stats, from+i), from+i
			// The exponent -τs²/2+Bs at one place, less that at another.
			less := func(a, b float64) float64 { return (a - b) * (scale*s[field] - 0.5*s[precision]*(a+b)) }
			core := mean[at]
			inTail, inCore, log := mix(math.Log(p.Tail)+tailMass[i]+less(tailMean[i], core), math.Log1p(-p.Tail)+logMass[at])
			apart := tailMean[i] - core
			mean[at] = core + inTail*apart
			variance[at] = inCore*variance[at] + inTail*(tailVar[i]+inCore*apart*apart)
			logMass[at] = log + less(core, mean[at])
		}
	}
}

// normalised is posteriors with the mass of the normalised prior.
func (p GainPrior) normalised(logMass, mean, variance, stats []float64, scale float64) {
	if !p.Log {
		p.posteriors(logMass[:len(mean)], mean, variance, stats, scale)
		mass := p.logMass()
		for i, m := range mean {
			logMass[i] += p.logWeight(m) - mass
		}
		return
	}
	mass := p.logNormalMass()
	for i := range mean {
		s := gainStats(stats, i)
		logMass[i], mean[i], variance[i] = quadrature.LogNormalMoments(s[readings], s[precision], scale*s[field], p.Center, p.Precision, p.Lo, p.Hi)
		logMass[i] -= mass
	}
}

// logNormalMass is log ∫ exp(-λ log²(s/m)/2) ds/s over the range.
func (p GainPrior) logNormalMass() float64 {
	root := math.Sqrt(p.Precision)
	lo, hi := root*math.Log(p.Lo/p.Center), root*math.Log(p.Hi/p.Center)
	return logNormalMass(lo, hi) + 0.5*math.Log(2*math.Pi/p.Precision)
}

// setLogNormal is SetNormal: mode and curvature are those of the normal.
func (p GainPrior) setLogNormal(stats []float64, mean, variance float64) {
	pull := 1 + p.Precision*math.Log(mean/p.Center) // minus s times the slope of log p(s)
	tau := max(0, 1/variance-(p.Precision-pull)/(mean*mean))
	*gainStats(stats, 0) = [gainWidth]float64{precision: tau, field: tau*mean + pull/mean}
}

// logExcess is Excess of a log-normal.
func (p GainPrior) logExcess(stats []float64) float64 {
	const beyond = 1e3 // where no s is
	s := gainStats(stats, 0)
	mode, curvature := quadrature.LogNormalMode(s[readings], s[precision], s[field], p.Center, p.Precision, p.Lo/beyond, p.Hi*beyond)
	return (mode - min(max(mode, p.Lo), p.Hi)) * math.Sqrt(curvature)
}

// LogDensity is the logarithm of the density at s in the range, up to a constant; the tail is not in it.
func (p GainPrior) LogDensity(s float64) float64 {
	if p.Log {
		l := math.Log(s / p.Center)
		return -0.5*p.Precision*l*l - math.Log(s)
	}
	d := s - p.Center
	return -0.5 * p.Precision * d * d
}

// Sample draws s. Without a Gaussian, or where that is wide, it is drawn by rejection from the uniform
// distribution on the range (of log s, for a log-normal), otherwise from the Gaussian.
func (p GainPrior) Sample(rng *rand.Rand) float64 {
	if p.Tail > 0 && rng.Float64() < p.Tail {
		return p.Lo + (p.Hi-p.Lo)*rng.Float64()
	}
	lo, hi, center := p.Lo, p.Hi, p.Center
	if p.Log {
		lo, hi, center = math.Log(p.Lo), math.Log(p.Hi), math.Log(p.Center)
	}
	s := p.sampleNormal(rng, lo, hi, center)
	if p.Log {
		s = math.Exp(s)
	}
	return min(max(s, p.Lo), p.Hi)
}

func (p GainPrior) sampleNormal(rng *rand.Rand, lo, hi, center float64) float64 {
	nearest := min(max(center, lo), hi)
	peak := -0.5 * p.Precision * (nearest - center) * (nearest - center)
	const wide = 10 // standard deviations: more are drawn from the Gaussian
	sd := 1 / math.Sqrt(p.Precision)
	for {
		if nearest == center && hi-lo > wide*sd {
			if s := center + sd*rng.NormFloat64(); s >= lo && s <= hi {
				return s
			}
			continue
		}
		s := lo + (hi-lo)*rng.Float64()
		if d := s - center; rng.Float64() <= math.Exp(-0.5*p.Precision*d*d-peak) {
			return s
		}
	}
}
