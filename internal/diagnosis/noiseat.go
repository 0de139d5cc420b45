package diagnosis

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/search"
)

const (
	// elsewhere is the logarithm of a likelihood ratio from which on noise has its place: an odds of 150. Both places have one level, which is
	// fitted. In TestNoiseAtTheReading the wrong place was named 6 times of 6, by e⁵⁵ to e¹⁰³, and the right one never.
	elsewhere = 5

	// levelReach is how many factors of e around the mean square of residuals a level of noise is looked for.
	levelReach = 14

	// levelSteps find it to levelReach 0.618^30, 1e-5, of whose square the likelihood is off; mostResiduals are enough for the rest.
	levelSteps    = 30
	mostResiduals = 200_000
)

// warnNoiseAt compares at the fixed point the likelihoods of residuals under noise before and behind the division by s, of variances Δ and σ²E[s²] before it,
// each with the level that suits it best.
func (r *Run) warnNoiseAt() *Warning {
	if r.Solver.Iterations == 0 || !r.Converged || !r.blind() || r.complex() || r.state.Offsets() || !r.additive() {
		return nil
	}
	detector, own := channel.DetectorOf(r.model().Channel)
	if r.state.Unequal() != own || detector.Photon > 0 {
		return nil
	}
	signal, reading := r.likelihoodOf(func(int) float64 { return 1 }), r.likelihoodOf(func(mu int) float64 {
		return r.state.S[mu]*r.state.S[mu] + r.state.SVar[mu]
	})
	switch {
	case !own && reading-signal > elsewhere:
		return &Warning{Code: NoiseElsewhere, Message: fmt.Sprintf("the residuals are e^%.3g times likelier if noise is added after the division by s than before it, as was assumed: error bars of sensors with large s are too narrow, and those of others too wide (--noise-at reading)", reading-signal)}
	case own && signal-reading > elsewhere:
		return &Warning{Code: NoiseElsewhere, Message: fmt.Sprintf("the residuals are e^%.3g times likelier if noise is added before the division by s than after it, as was assumed: error bars of sensors with small s are too narrow, and those of others too wide (--noise-at signal)", signal-reading)}
	}
	return nil
}

// likelihoodOf is the largest logarithm of Π N(e; 0, V + Δw) over Δ, with the weights w of sensors. Of residuals e² = g²D/(-∂g), whose mean is D
// = V + Δ whatever the posterior of s has taken of them.
func (r *Run) likelihoodOf(weight func(mu int) float64) float64 {
	s := r.state
	var v, w, square []float64
	total := 0.0
	for j := 0; j < len(s.G); j += 1 + len(s.G)/mostResiduals {
		mu, g := s.SensorOf(j), s.G[j]
		if math.IsNaN(s.Y[j]) || r.isBroken(mu) || !(s.DG[j] < 0) {
			continue
		}
		e := g * g * s.Doubt(j) / -s.DG[j]
		v, w, square = append(v, s.V[j]), append(w, weight(mu)), append(square, e)
		total += e
	}
	if !(total > 0) {
		return 0
	}
	middle := math.Log(total / float64(len(v)))
	search := search.NewGolden(func(log float64) float64 {
		level, sum := math.Exp(middle+log), 0.0
		for j, w := range w {
			d := v[j] + level*w
			sum += math.Log(d) + square[j]/d
		}
		return -0.5 * sum
	}, -levelReach, levelReach)
	for range levelSteps {
		search.Narrow()
	}
	return max(search.FC, search.FD)
}
