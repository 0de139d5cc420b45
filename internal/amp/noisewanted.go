package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/evidence"
)

// Fields are what the readings say of all entries, or latents of a network, as if signals were equally large (see [prior.Learner.Refit]).
func (s *State) Fields() (lambda, sigma []float64) { return s.priorFields() }

// NoiseWanted is the noise variance by maximum likelihood, as learning would have it (see refitNoise), and the standard error of its logarithm.
// It is that of the run where readings do not determine it. A run computes with no less than leastNoise: a smaller maximum is rounding.
func (s *State) NoiseWanted() (noise, sd float64) {
	noise = channel.NoiseOf(channel.InOrder(s.model.Channel))
	var squares, slopes, count float64
	for j, y := range s.Y {
		if math.IsNaN(y) || s.OutOfOrder(s.SensorOf(j)) {
			continue
		}
		squares += s.G[j] * s.G[j]
		slopes -= s.DG[j]
		count++
	}
	if slopes > 0 {
		noise *= squares / slopes
	}
	return noise, math.Sqrt(2 / count)
}

// LogNoiseSD is the standard deviation of the logarithm of the noise variance that readings leave: Fisher's information is ½ Σ (Δ ∂g)². Where signals and gains take up nearly all of a reading it says little of its noise.
func (s *State) LogNoiseSD() float64 {
	information := 0.0
	for j := range s.Y {
		noise, _, slope := s.noiseSeen(s.SensorOf(j), j%s.Each)
		information += 0.5 * noise * noise * slope * slope
	}
	return 1 / math.Sqrt(information)
}

// NoiseMisfit is what readings say of noise variances that were given, one of each sensor (M) or reading (M×P), of positive ones; nil where that was not asked.
func (s *Solver) NoiseMisfit(given []float64) *evidence.NoiseMisfit {
	if i, is := s.Iteration.(integrating); is {
		return i.noiseMisfit()
	}
	found := evidence.MisfitOfNoise(s.State.M, s.State.Each, s.State.noiseSeen)
	found.Factor *= s.State.Noise(0) / given[0] // they are scaled together
	return &found
}

// noiseSeen is the noise variance of a reading, its g and -∂g; zeros where it does not count.
func (s *State) noiseSeen(mu, k int) (noise, g, slope float64) {
	j := mu*s.Each + k
	if math.IsNaN(s.Y[j]) || s.OutOfOrder(mu) {
		return 0, 0, 0
	}
	return s.Noise(j), s.G[j], -s.DG[j]
}
