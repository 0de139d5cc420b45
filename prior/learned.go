package prior

import (
	"fmt"
	"math"
)

// Learner is a prior with parameters that the solvers learn from the readings. Where that depends on
// its value a method Learns() bool says so, and [LearnerOf] asks it; one that has a prior of this package within needs such a method, too.
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

// LearnerOf is the prior p where something of it is learned; nil where all is as given.
func LearnerOf(p Prior) Learner {
	l, ok := p.(Learner)
	if some, depends := p.(interface{ Learns() bool }); !ok || depends && !some.Learns() {
		return nil
	}
	return l
}

// Name implements [Named]. Where learning starts is forgotten soon, and not in it.
func (g GaussBernoulli) Name() string {
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

// Parameters implements [Slabbed].
func (g GaussBernoulli) Parameters() Parameters { return Density | SignalMean | SignalVar }

// Learned implements [Slabbed].
func (g GaussBernoulli) Learned() Parameters { return g.Learn }

// Learning implements [Slabbed].
func (g GaussBernoulli) Learning(which Parameters) Slabbed {
	g.Learn = which
	return g
}

// Learns says whether anything is learned.
func (g GaussBernoulli) Learns() bool { return g.Learn != 0 }

// LearnsScale implements [Learner].
func (g GaussBernoulli) LearnsScale() bool { return g.Learn&SignalVar != 0 }

// leastGuess is the least variance of an entry that is not zero, relative to its
// mean square, that [GaussBernoulli.Balanced] starts from.
const leastGuess = 0.1

// Balanced implements [Learner]: a mean square that is off by more than a factor of
// two is mended by the variance, or, where that is known, by the density.
func (g GaussBernoulli) Balanced(square float64) Learner {
	mean := g.SignalMean
	ratio := square / (g.Variance() + g.Mean()*g.Mean())
	switch {
	case ratio > 0.5 && ratio < 2 || !(ratio > 0) || math.IsInf(ratio, 1):
	case g.Learn&SignalVar != 0:
		g.SignalVar = max(square/g.Density-mean*mean, leastGuess*square/g.Density)
	case g.Learn&Density != 0:
		g.Density = min(ratio*g.Density, max(0.5, g.Density))
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
func (g GaussBernoulli) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	fit := []sample{newSample(g, lambda, sigma)}
	for range refitSteps {
		maximise(g.Learn, 0, fit)
	}
	fit[0].score(g.Learn, g.SignalVar)
	to := g.towards(fit[0].g, step)
	return to, movedBy(fit, []GaussBernoulli{g}, []GaussBernoulli{to}, []int{0})
}

// towards is g moved by the fraction step of the way to fit.
func (g GaussBernoulli) towards(fit GaussBernoulli, step float64) GaussBernoulli {
	to := g
	to.Density += step * (fit.Density - g.Density)
	to.SignalMean += step * (fit.SignalMean - g.SignalMean)
	to.SignalVar *= math.Pow(fit.SignalVar/g.SignalVar, step)
	return to
}

// maximise is one step of expectation–maximisation (J. P. Vila and P. Schniter,
// "Expectation-maximization Gaussian-mixture approximate message passing", IEEE
// Trans. Signal Process. 61, 2013; F. Krzakala et al., J. Stat. Mech. 2012,
// P08009). With πᵢ the probability that entry i is not zero, and mᵢ, uᵢ its mean
// and variance if it is not,
//
//	ρ = Σ πᵢ / n,   x̄ = Σ πᵢ mᵢ / Σ πᵢ,   v = Σ πᵢ (uᵢ + (mᵢ-x̄)²) / Σ πᵢ.
//
// The samples share the parameters that are learned. Where they differ in those that are fixed,
// entries count for x̄ by 1/v of theirs, and have their own x̄ in v. Before them come
// ballast entries that are not zero, and as the present parameters expect them.
func maximise(learn Parameters, ballast float64, samples []sample) {
	var n, total, all, first, spread float64
	if ballast > 0 {
		g := samples[0].g
		n, total, all, first, spread = ballast/g.Density, ballast, ballast, ballast*g.SignalMean, ballast*g.SignalVar
	}
	for j := range samples {
		s := &samples[j]
		count, on, mean, variance := s.expect()
		weight := samples[0].g.SignalVar / s.g.SignalVar
		n, all = n+count, all+on
		total, first, spread = total+weight*on, first+weight*mean, spread+variance
	}
	shared := samples[0].g
	if !(all > leastDensity*n) { // what is not there has neither mean nor variance
		if learn&Density != 0 && n > 0 {
			shared.Density = leastDensity
		}
		share(learn&Density, shared, samples)
		return
	}
	if learn&Density != 0 {
		shared.Density = min(max(all/n, leastDensity), 1-leastDensity)
	}
	if learn&SignalMean != 0 {
		shared.SignalMean = first / total
	}
	share(learn&(Density|SignalMean), shared, samples)
	if learn&SignalVar != 0 {
		square := 0.0
		for j := range samples {
			s := &samples[j]
			for i, p := range s.on {
				d := s.mean[i] - s.g.SignalMean
				spread += p * d * d
				square += p * s.mean[i] * s.mean[i]
			}
		}
		if v := max(spread, leastSquare*square) / all; v > 0 && !math.IsInf(v, 1) {
			shared.SignalVar = v
		}
		share(SignalVar, shared, samples)
	}
}

// share gives samples the parameters of g.
func share(which Parameters, g GaussBernoulli, samples []sample) {
	for j := range samples {
		to := &samples[j].g
		if which&Density != 0 {
			to.Density = g.Density
		}
		if which&SignalMean != 0 {
			to.SignalMean = g.SignalMean
		}
		if which&SignalVar != 0 {
			to.SignalVar = g.SignalVar
		}
	}
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

// Learns says whether the components are learned.
func (m Mixture) Learns() bool { return m.Learn }

// LearnsScale implements [Learner].
func (m Mixture) LearnsScale() bool { return m.Learn }

// Balanced implements [Learner]: learning starts from what is given.
func (m Mixture) Balanced(float64) Learner { return m }

// Refit implements [Learner] by [Mixture.Update].
func (m Mixture) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	fit := m
	for range refitSteps {
		fit = fit.Update(lambda, sigma)
	}
	to := m.like()
	for j, from := range m.Components {
		c := fit.Components[j]
		c.Weight = from.Weight + step*(c.Weight-from.Weight)
		c.Mean = from.Mean + step*(c.Mean-from.Mean)
		c.Var = from.Var * math.Pow(c.Var/from.Var, step)
		to.Components[j] = c
		now := GaussBernoulli{Density: min(c.Weight, 1), SignalMean: c.Mean, SignalVar: c.Var}
		change = max(change, now.distance(GaussBernoulli{Density: min(from.Weight, 1), SignalMean: from.Mean, SignalVar: from.Var}, float64(len(lambda))))
	}
	return to, change
}
