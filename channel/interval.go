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

// Quantile implements [Calibration].
func (p GainPrior) Quantile(stats []float64, level float64) float64 {
	return p.density(stats).quantile(level)
}

// gainDensity is s^n exp(-τ(s-t)²/2) on [lo, hi], with what its integral is.
// The position t = B/τ in place of B keeps the digits of narrow posteriors.
type gainDensity struct {
	n, tau, t, lo, hi float64
	mean, sd, logMass float64
}

func (p GainPrior) density(stats []float64) gainDensity {
	d := gainDensity{n: stats[readings], tau: stats[precision] + p.Precision, lo: p.Lo, hi: p.Hi}
	if d.tau > 0 {
		d.t = (stats[field] + p.Precision*p.Center) / d.tau
	}
	q := quadrature.NewGainPosterior(d.n, d.tau, d.t, d.lo, d.hi, quadrature.Full)
	d.mean, d.sd, d.logMass = q.Mean, math.Sqrt(q.Var), q.LogMass
	return d
}

// cdf integrates the side that does not hold the mean: the smaller part keeps
// its digits.
func (d gainDensity) cdf(at float64) float64 {
	part := func(lo, hi float64) float64 {
		q := quadrature.NewGainPosterior(d.n, d.tau, d.t, lo, hi, quadrature.Full)
		return min(1, math.Exp(q.LogMass-d.logMass))
	}
	switch {
	case at <= d.lo:
		return 0
	case at >= d.hi:
		return 1
	case at < d.mean:
		return part(d.lo, at)
	}
	return 1 - part(at, d.hi)
}

// at is the normalised density.
func (d gainDensity) at(s float64) float64 {
	return math.Exp(d.n*math.Log(s) - 0.5*d.tau*(s-d.t)*(s-d.t) - d.logMass)
}

// quantile is found by Newton's method, kept between bounds by bisection.
func (d gainDensity) quantile(level float64) float64 {
	bracket := search.Bracket{Lo: d.lo, Hi: d.hi}
	s := min(max(d.mean+d.sd*quadrature.NormalBound(2*level-1), d.lo), d.hi)
	for range 60 {
		next := bracket.Next(s, d.cdf(s)-level, d.at(s))
		step := math.Abs(next - s)
		s = next
		if step <= 1e-9*d.sd {
			break
		}
	}
	return s
}
