package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
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
