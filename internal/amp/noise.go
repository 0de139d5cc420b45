package amp

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
)

// Noise that differs from reading to reading is the channel's, which all have, and what a
// reading has beyond it. Readings are of u = z + that excess: a Gaussian of variance
// U = V + excess, so that a channel which is given U in place of V answers for u, and its g and ∂g are
// those for z. No channel needs to know of it.

// SetNoise gives the readings their noise variances: one value a sensor, or M×P. The channel
// has the least of them from now on.
func (s *State) SetNoise(variances []float64) {
	least := Least(variances)
	s.adoptWorking(channel.InOrder(s.model.Channel).(channel.Noisy).WithNoise(least))
	s.setExcess(variances, least)
}

func (s *State) setExcess(variances []float64, least float64) {
	each := s.P
	if len(variances) == len(s.Y) {
		each = 1
	}
	for j := range s.excess {
		s.excess[j] = variances[j/each] - least
	}
}

// Least is the smallest of several noise variances: that of the channel beside them.
func Least(variances []float64) float64 {
	least := math.Inf(1)
	for _, v := range variances {
		least = min(least, v)
	}
	return least
}

// seen sets U of count readings, from those of the row first on. Further rows have no noise.
func (s *State) seen(first, count int) {
	if s.excess == nil {
		return // U is V
	}
	from := first * s.P
	copy(s.all.u[from:from+count], s.all.v[from:from+count])
	for j := from; j < min(from+count, len(s.excess)); j++ {
		s.all.u[j] += s.excess[j]
	}
}

// contract makes the contractions of u, of sensors from first on, those of z (see
// [channel.Contracting]): with the ratio r of u's variances,
//
//	1 + V∂g = (excess + V r)/U.
func (s *State) contract(ratios []float64, first int) {
	if s.excess == nil {
		return
	}
	for i, r := range ratios {
		if j := first*s.P + i; s.U[j] > 0 && !math.IsNaN(s.Y[j]) {
			ratios[i] = (s.excess[j] + s.V[j]*r) / s.U[j]
		}
	}
}

// Noise is the noise variance of reading j.
func (s *State) Noise(j int) float64 {
	noise := channel.NoiseOf(s.model.Channel)
	if s.excess != nil {
		noise += s.excess[j]
	}
	return noise
}

// Doubt is the variance of sy given all but the reading j: V and its noise.
func (s *State) Doubt(j int) float64 { return s.U[j] + channel.NoiseOf(s.model.Channel) }

// Unequal reports whether noise differs from reading to reading.
func (s *State) Unequal() bool { return s.excess != nil }

// SensorNoise is the mean noise variance of every sensor's readings, of those that are there
// where any is.
func (s *State) SensorNoise() []float64 {
	means := make([]float64, s.M)
	for mu := range means {
		total, count, all := 0.0, 0.0, 0.0
		for j := mu * s.P; j < (mu+1)*s.P; j++ {
			all += s.Noise(j)
			if !math.IsNaN(s.Y[j]) {
				total += s.Noise(j)
				count++
			}
		}
		if means[mu] = all / float64(s.P); count > 0 {
			means[mu] = total / count
		}
	}
	return means
}

// TypicalNoise is the harmonic mean of the noise variances of readings, which is what a signal's
// error grows with; that of the channel where all have it.
func (s *State) TypicalNoise() float64 {
	noise := channel.NoiseOf(s.model.Channel)
	if s.excess == nil {
		return noise
	}
	total, count := 0.0, 0.0
	for j, y := range s.Y {
		if !math.IsNaN(y) && !s.OutOfOrder(j/s.P) {
			total += 1 / s.Noise(j)
			count++
		}
	}
	if count == 0 || math.IsInf(total, 1) {
		return noise
	}
	return count / total
}

// CheckNoise reports noise variances that no problem of m sensors and p signals has.
func CheckNoise(variances []float64, m, p int, c channel.Channel) error {
	if _, ok := channel.InOrder(c).(channel.Noisy); !ok {
		return fmt.Errorf("a %T has no noise that could differ from reading to reading: it is no channel.Noisy", channel.InOrder(c))
	}
	if len(variances) != m && len(variances) != m*p {
		return fmt.Errorf("%d noise variances for %d sensors and %d signals: expected one a sensor, or one a reading", len(variances), m, p)
	}
	for j, v := range variances {
		if !(v >= 0) || math.IsInf(v, 1) {
			at := fmt.Sprintf("sensor %d", j*m/len(variances))
			if len(variances) > m {
				at += fmt.Sprintf(", signal %d", j%p)
			}
			return fmt.Errorf("the noise variance of %s must be finite and not negative, found %g", at, v)
		}
	}
	return nil
}
