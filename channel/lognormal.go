package channel

import (
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/quadrature"
)

// What is no power times a Gaussian: log-normal distributions of s, and mixtures with a uniform one.

// mixed is posteriors for these: with weights (1-η)Z_c and ηZ_t of the core, which is all but the tail, and
// of the tail, that of the mixture of both.
func (p GainPrior) mixed(logMass, mean, variance, stats []float64, scale float64) {
	var own [batch]float64
	for from := 0; from < len(mean); from += batch {
		to := min(from+batch, len(mean))
		masses := own[:to-from]
		if logMass != nil {
			masses = logMass[from:to]
		}
		p.mixBatch(masses, mean[from:to], variance[from:to], nil, stats[from*p.Width():], scale)
	}
}

// mixBatch also writes the probabilities of being in the tail, unless tails is nil.
func (p GainPrior) mixBatch(logMass, mean, variance, tails, stats []float64, scale float64) {
	var data, whole, tail integrals
	for i := range mean {
		s := p.of(stats, i)
		known, toward := p.own(stats, i)
		data.set(i, s[readings], s[precision], scale*s[field])
		whole.set(i, s[readings], s[precision]+known, scale*s[field]+toward)
	}
	count := len(mean)
	p.core(&whole, count)
	copy(logMass, whole.logMass[:count])
	copy(mean, whole.mean[:count])
	copy(variance, whole.variance[:count])
	if p.Each != nil {
		p.normalise(logMass, mean, stats)
	}
	if p.Tail == 0 {
		return
	}
	tail = data
	Uniform(p.Lo, p.Hi).core(&tail, count)
	for i := range count {
		core := mean[i]
		// The readings' exponent at one place, less that at another.
		less := func(a, b float64) float64 { return (a - b) * (data.b[i] - 0.5*data.tau[i]*(a+b)) }
		inTail, inCore, log := mix(math.Log(p.Tail)+tail.logMass[i]+less(tail.mean[i], core), math.Log1p(-p.Tail)+logMass[i])
		if tails != nil {
			tails[i] = inTail
		}
		apart := tail.mean[i] - core
		mean[i] = core + inTail*apart
		variance[i] = inCore*variance[i] + inTail*(tail.variance[i]+inCore*apart*apart)
		logMass[i] = log + less(core, mean[i])
	}
}

// InTail is the posterior probability that a sensor with these statistics is in the tail, and the mean and variance of its s then.
func (p GainPrior) InTail(stats []float64) (chance, mean, variance float64) {
	var logMass, m, v, tails [1]float64
	p.mixBatch(logMass[:], m[:], v[:], tails[:], stats, 1)
	s := p.of(stats, 0)
	_, mean, variance = quadrature.GainMoments(s[readings], s[precision], s[field], p.Lo, p.Hi)
	return tails[0], mean, variance
}

// normalise takes off the mass of every sensor's own distribution, and adds its exponent at the mean.
func (p GainPrior) normalise(logMass, mean, stats []float64) {
	var before integrals
	for i := range logMass {
		own, field := p.own(stats, i)
		before.set(i, 0, own, field)
	}
	p.core(&before, len(logMass))
	for i := range logMass {
		m, m0 := mean[i], before.mean[i]
		logMass[i] += (m-m0)*(before.b[i]-0.5*before.tau[i]*(m+m0)) - before.logMass[i]
	}
}

// integrals are those of a batch of sensors: of p(s) s^n e^{-τs²/2+Bs}, the logarithm of the mass about the mean.
type integrals struct {
	n, tau, b, logMass, mean, variance [batch]float64
}

func (q *integrals) set(i int, n, tau, b float64) { q.n[i], q.tau[i], q.b[i] = n, tau, b }

// core integrates, with the mass 1 - Tail of the normalised distribution.
func (p GainPrior) core(q *integrals, count int) {
	if p.Log {
		mass := p.logNormalMass()
		for i := range count {
			q.logMass[i], q.mean[i], q.variance[i] = quadrature.LogNormalMoments(q.n[i], q.tau[i], q.b[i], p.Center, p.Precision, p.Lo, p.Hi)
			q.logMass[i] -= mass
		}
		return
	}
	p.Tail, p.Each = 0, nil
	quadrature.GainMomentsBatch(q.logMass[:count], q.mean[:count], q.variance[:count], q.n[:count], q.tau[:count], q.b[:count],
		p.Precision, p.Precision*p.Center, p.Lo, p.Hi)
	mass := p.logMass()
	for i := range count {
		q.logMass[i] += p.logWeight(q.mean[i]) - mass
	}
}

// logNormalMass is log ∫ exp(-λ log²(s/m)/2) ds/s over the range.
func (p GainPrior) logNormalMass() float64 {
	root := math.Sqrt(p.Precision)
	lo, hi := root*math.Log(p.Lo/p.Center), root*math.Log(p.Hi/p.Center)
	return logNormalMass(lo, hi) + 0.5*math.Log(2*math.Pi/p.Precision)
}

// logExcess is Excess of a log-normal.
func (p GainPrior) logExcess(stats []float64) float64 {
	const beyond = 1e3 // where no s is
	s := p.of(stats, 0)
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
	const (
		wide      = 10      // standard deviations: more are drawn from the Gaussian
		mostTries = 100_000 // of which one in five succeeds where the center is in the range
	)
	sd := 1 / math.Sqrt(p.Precision)
	for range mostTries {
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
	return nearest // the range is far out in a tail, all of which is at its end
}
