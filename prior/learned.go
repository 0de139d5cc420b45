package prior

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/vector"
)

// Learner is a prior with parameters that the solvers learn from the readings.
type Learner interface {
	Parametric

	// LearnsScale reports whether what is learned includes the scale of the
	// signals, so that nothing holds the common scale of signals and calibration
	// but the calibration.
	LearnsScale() bool

	// Balanced is where learning starts in a run whose readings expect entries
	// of this mean square: the receiver itself, or one that is not too far from
	// it. Iterations that are too sure of a wrong model blow up before anything
	// is learned.
	Balanced(square float64) Learner

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

// Name implements [Named]. Where learning starts is forgotten soon, and not in it.
func (g LearnedGaussBernoulli) Name() string {
	name := "gauss-bernoulli"
	for _, part := range []struct {
		name  string
		value float64
		bit   Parameters
	}{{"density", g.Density, Density}, {"mean", g.SignalMean, SignalMean}, {"variance", g.SignalVar, SignalVar}} {
		if g.Learn&part.bit != 0 {
			name += " " + part.name + "=learned"
		} else {
			name += fmt.Sprintf(" %s=%g", part.name, part.value)
		}
	}
	return name
}

// LearnsScale implements [Learner].
func (g LearnedGaussBernoulli) LearnsScale() bool { return g.Learn&SignalVar != 0 }

// Scaled implements [Scalable].
func (g LearnedGaussBernoulli) Scaled(c float64) Prior {
	g.GaussBernoulli = g.Times(c)
	return g
}

// WithValues implements [Parametric].
func (g LearnedGaussBernoulli) WithValues(v []float64) (Prior, error) {
	p, err := g.GaussBernoulli.WithValues(v)
	if err == nil {
		g.GaussBernoulli = p.(GaussBernoulli)
	}
	return g, err
}

// leastGuess is the least variance of an entry that is not zero, relative to its
// mean square, that [LearnedGaussBernoulli.Balanced] starts from.
const leastGuess = 0.1

// Balanced implements [Learner]: a mean square that is off by more than a factor of
// two is mended by the variance, or, where that is known, by the density.
func (g LearnedGaussBernoulli) Balanced(square float64) Learner {
	mean := g.GaussBernoulli.SignalMean
	ratio := square / (g.Variance() + g.Mean()*g.Mean())
	switch {
	case ratio > 0.5 && ratio < 2 || !(ratio > 0) || math.IsInf(ratio, 1):
	case g.Learn&SignalVar != 0:
		g.GaussBernoulli.SignalVar = max(square/g.Density-mean*mean, leastGuess*square/g.Density)
	case g.Learn&Density != 0:
		g.GaussBernoulli.Density = min(ratio*g.Density, max(0.5, g.Density))
	}
	return g
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

// LearnsScale implements [Learner].
func (m LearnedMixture) LearnsScale() bool { return true }

// Name implements [Named].
func (m LearnedMixture) Name() string {
	return fmt.Sprintf("mixture components=%d learned", len(m.Components))
}

// Balanced implements [Learner]: learning starts from what is given.
func (m LearnedMixture) Balanced(float64) Learner { return m }

// Scaled implements [Scalable].
func (m LearnedMixture) Scaled(c float64) Prior { return LearnedMixture{m.times(c)} }

// WithValues implements [Parametric].
func (m LearnedMixture) WithValues(v []float64) (Prior, error) {
	to, err := m.withValues(v)
	return LearnedMixture{to}, err
}

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
