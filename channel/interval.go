package channel

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/search"
)

// CDF implements [Calibration].
func (p GainPrior) CDF(stats []float64, at float64) float64 {
	return p.density(stats).cdf(at)
}

// Quantile implements [Calibration]. It is found by Newton's method, kept between bounds by bisection.
func (p GainPrior) Quantile(stats []float64, level float64) float64 {
	d := p.density(stats)
	mean, sd := d.moments()
	bracket := search.Bracket{Lo: p.Lo, Hi: p.Hi}
	s := min(max(mean+sd*quadrature.NormalBound(2*level-1), p.Lo), p.Hi)
	for range 60 {
		next := bracket.Next(s, d.cdf(s)-level, d.at(s))
		step := math.Abs(next - s)
		s = next
		if step <= 1e-9*sd {
			break
		}
	}
	return s
}

// posteriorDensity is a density of s.
type posteriorDensity interface {
	moments() (mean, sd float64)
	cdf(at float64) float64
	at(s float64) float64 // normalised
}

func (p GainPrior) density(stats []float64) posteriorDensity {
	known, toward := p.own(stats, 0)
	tau, b := stats[precision]+known, stats[field]+toward
	var core posteriorDensity
	if p.Log {
		core = newLogDensity(p, stats[readings], tau, b)
	} else {
		core = newGainDensity(stats[readings], tau+p.Precision, b+p.Precision*p.Center, p.Lo, p.Hi)
	}
	if p.Tail == 0 {
		return core
	}
	var logMass, mean, variance, inTail [1]float64
	p.mixBatch(logMass[:], mean[:], variance[:], inTail[:], stats, 1)
	return &mixedDensity{
		core: core, tail: newGainDensity(stats[readings], stats[precision], stats[field], p.Lo, p.Hi),
		inTail: inTail[0], mean: mean[0], sd: math.Sqrt(variance[0]),
	}
}

// gainDensity is s^n exp(-τ(s-t)²/2) on [lo, hi], with what its integral is.
// The position t = B/τ in place of B keeps the digits of narrow posteriors.
type gainDensity struct {
	n, tau, t, lo, hi float64
	mean, sd, logMass float64
}

func newGainDensity(n, tau, b, lo, hi float64) *gainDensity {
	d := &gainDensity{n: n, tau: tau, lo: lo, hi: hi}
	if d.tau > 0 {
		d.t = b / d.tau
	}
	q := quadrature.NewGainPosterior(d.n, d.tau, d.t, d.lo, d.hi, quadrature.Full)
	d.mean, d.sd, d.logMass = q.Mean, math.Sqrt(q.Var), q.LogMass
	return d
}

func (d *gainDensity) moments() (mean, sd float64) { return d.mean, d.sd }

func (d *gainDensity) cdf(at float64) float64 {
	return cdfOf(at, d.lo, d.hi, d.mean, func(lo, hi float64) float64 {
		q := quadrature.NewGainPosterior(d.n, d.tau, d.t, lo, hi, quadrature.Full)
		return math.Exp(q.LogMass - d.logMass)
	})
}

// cdfOf integrates the side that does not hold the mean: the smaller part keeps
// its digits.
func cdfOf(at, lo, hi, mean float64, part func(lo, hi float64) float64) float64 {
	switch {
	case at <= lo:
		return 0
	case at >= hi:
		return 1
	case at < mean:
		return min(1, part(lo, at))
	}
	return 1 - min(1, part(at, hi))
}

func (d *gainDensity) at(s float64) float64 {
	return math.Exp(d.n*math.Log(s) - 0.5*d.tau*(s-d.t)*(s-d.t) - d.logMass)
}

// logDensity is the same times a log-normal density.
type logDensity struct {
	prior             GainPrior
	n, tau, t         float64
	mean, sd, logMass float64
}

func newLogDensity(p GainPrior, n, tau, b float64) *logDensity {
	d := &logDensity{prior: p, n: n, tau: tau}
	if tau > 0 {
		d.t = b / tau
	}
	q := d.integral(p.Lo, p.Hi)
	d.mean, d.sd, d.logMass = q.Mean, math.Sqrt(q.Var), q.LogMass
	return d
}

func (d *logDensity) integral(lo, hi float64) quadrature.LogNormalPosterior {
	return quadrature.NewLogNormalPosterior(d.n, d.tau, d.t, d.prior.Center, d.prior.Precision, lo, hi)
}

func (d *logDensity) moments() (mean, sd float64) { return d.mean, d.sd }

func (d *logDensity) cdf(at float64) float64 {
	return cdfOf(at, d.prior.Lo, d.prior.Hi, d.mean, func(lo, hi float64) float64 {
		return math.Exp(d.integral(lo, hi).LogMass - d.logMass)
	})
}

func (d *logDensity) at(s float64) float64 {
	return math.Exp(d.n*math.Log(s) + d.prior.LogDensity(s) - 0.5*d.tau*(s-d.t)*(s-d.t) - d.logMass)
}

// mixedDensity is the density under a prior with a tail.
type mixedDensity struct {
	core, tail       posteriorDensity
	inTail, mean, sd float64
}

func (d *mixedDensity) moments() (mean, sd float64) { return d.mean, d.sd }

func (d *mixedDensity) cdf(at float64) float64 {
	return (1-d.inTail)*d.core.cdf(at) + d.inTail*d.tail.cdf(at)
}

func (d *mixedDensity) at(s float64) float64 {
	return (1-d.inTail)*d.core.at(s) + d.inTail*d.tail.at(s)
}
