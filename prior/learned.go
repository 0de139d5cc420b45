package prior

import (
	"math"

	"github.com/calamp/calamp/internal/vector"
)

// Learner is a prior with parameters that the solvers learn from the readings.
// A user's own is a [Prior] with one more method.
type Learner interface {
	Prior

	// Refit returns the prior of the same family that makes the fields
	// N(x; λ[i], Σ[i]) likelier, by one or a few steps of
	// expectation–maximisation: moved towards it by the fraction step, in
	// (0, 1], of the way. Σ[i] = +Inf says nothing. change is how far it moved, in
	// standard errors of the parameters: when that is small, it has settled. The
	// receiver stays as it is.
	Refit(lambda, sigma []float64, step float64) (next Learner, change float64)
}

// Parameters is a set of parameters of [GaussBernoulli].
type Parameters uint8

const (
	Density Parameters = 1 << iota
	SignalMean
	SignalVar
)

// LearnedGaussBernoulli is a [GaussBernoulli] prior of which the parameters
// Learn are learned. Its values are those that learning starts from.
type LearnedGaussBernoulli struct {
	GaussBernoulli
	Learn Parameters
}

const (
	refitSteps = 2

	// A density is kept away from 0 and 1, from where expectation–maximisation
	// never comes back, and a variance from 0.
	leastDensity = 1e-4
	leastSquare  = 1e-12 // of a variance relative to the mean square
)

// Refit implements [Learner].
func (g LearnedGaussBernoulli) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	fit := g.GaussBernoulli
	on, mean := make([]float64, len(lambda)), make([]float64, len(lambda))
	for range refitSteps {
		fit = fit.maximise(g.Learn, on, mean, lambda, sigma)
	}
	to := g
	to.Density += step * (fit.Density - g.Density)
	to.SignalMean += step * (fit.SignalMean - g.SignalMean)
	to.SignalVar *= math.Pow(fit.SignalVar/g.SignalVar, step)
	return to, to.distance(g.GaussBernoulli, float64(len(lambda)))
}

// maximise is one step of expectation–maximisation (J. P. Vila and P. Schniter,
// "Expectation-maximization Gaussian-mixture approximate message passing", IEEE
// Trans. Signal Process. 61, 2013; F. Krzakala et al., J. Stat. Mech. 2012,
// P08009). With πᵢ the probability that entry i is not zero, and mᵢ, uᵢ its mean
// and variance if it is not,
//
//	ρ = Σ πᵢ / n,   x̄ = Σ πᵢ mᵢ / Σ πᵢ,   v = Σ πᵢ (uᵢ + (mᵢ-x̄)²) / Σ πᵢ.
//
// on and mean are workspace.
func (g GaussBernoulli) maximise(learn Parameters, on, mean, lambda, sigma []float64) GaussBernoulli {
	logOdds := math.Log(g.Density) - math.Log1p(-g.Density)
	var n, total, first, spread float64
	for i, l := range lambda {
		on[i] = 0
		if math.IsInf(sigma[i], 1) {
			continue
		}
		m, u, odds := vector.Slab(l, sigma[i], g.SignalMean, g.SignalVar)
		on[i], mean[i] = 1/(1+math.Exp(-(logOdds+odds))), m
		n++
		total += on[i]
		first += on[i] * m
		spread += on[i] * u
	}
	next := g
	if !(total > leastDensity*n) {
		if learn&Density != 0 && n > 0 {
			next.Density = leastDensity
		}
		return next // what is not there has neither mean nor variance
	}
	if learn&Density != 0 {
		next.Density = min(max(total/n, leastDensity), 1-leastDensity)
	}
	if learn&SignalMean != 0 {
		next.SignalMean = first / total
	}
	if learn&SignalVar != 0 {
		square := 0.0
		for i, p := range on {
			d := mean[i] - next.SignalMean
			spread += p * d * d
			square += p * mean[i] * mean[i]
		}
		if v := max(spread, leastSquare*square) / total; v > 0 && !math.IsInf(v, 1) {
			next.SignalVar = v
		}
	}
	return next
}

// distance is how far g is from other, in standard errors of estimates from n
// known entries.
func (g GaussBernoulli) distance(other GaussBernoulli, n float64) float64 {
	if n == 0 {
		return 0
	}
	on := n * g.Density
	density := math.Abs(g.Density-other.Density) / math.Sqrt(g.Density*(1-g.Density)/n+1/(n*n))
	mean := math.Abs(g.SignalMean-other.SignalMean) * math.Sqrt(on/g.SignalVar)
	variance := math.Abs(math.Log(g.SignalVar/other.SignalVar)) * math.Sqrt(on/2)
	return max(density, mean, variance)
}

// LearnedMixture is a [Mixture] whose weights, means and variances are learned.
// Its values are those that learning starts from: components that are alike stay
// alike.
type LearnedMixture struct{ Mixture }

// Refit implements [Learner] by [Mixture.Update].
func (m LearnedMixture) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	fit := m.Mixture
	for range refitSteps {
		fit = fit.Update(lambda, sigma)
	}
	to := LearnedMixture{Mixture{make([]Component, len(m.Components))}}
	for j, from := range m.Components {
		c := fit.Components[j]
		c.Weight = from.Weight + step*(c.Weight-from.Weight)
		c.Mean = from.Mean + step*(c.Mean-from.Mean)
		c.Var = from.Var * math.Pow(c.Var/from.Var, step)
		to.Components[j] = c
		now := GaussBernoulli{min(c.Weight, 1), c.Mean, c.Var}
		change = max(change, now.distance(GaussBernoulli{min(from.Weight, 1), from.Mean, from.Var}, float64(len(lambda))))
	}
	return to, change
}
