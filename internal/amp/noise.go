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

func (s *sensorState) setExcess(variances []float64, least float64) {
	each := s.Each
	if len(variances) == len(s.Y) {
		each = 1
	}
	for j := range s.excess {
		s.excess[j] = variances[j/each] - least
	}
}

// relativeNoise is the noise variance of reading j in units of the channel's. Beside noise that follows the signals that of the channel alone is learned.
func (s *State) relativeNoise(j int) float64 {
	if s.excess == nil || s.follows != nil {
		return 1
	}
	return s.Noise(j) / channel.NoiseOf(s.model.Channel)
}

// scaleExcess multiplies what readings have beyond the channel's noise.
func (s *sensorState) scaleExcess(factor float64) {
	for j := range s.excess {
		s.excess[j] *= factor
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

// becomeUnequal makes room for noise that differs from reading to reading, where all had the same.
func (s *State) becomeUnequal() {
	if s.excess == nil {
		s.all.u, s.excess = make([]float64, len(s.all.v)), make([]float64, s.M*s.Each)
		s.U = s.all.u[:len(s.V)]
	}
}

const (
	// firstSensorRefit is the iteration from which the noise of every sensor is learned.
	firstSensorRefit = 8

	// noiseShrinkage is how many readings the other sensors count for, and sensorReach
	// bounds the factor of one update.
	noiseShrinkage = 4
	sensorReach    = 3

	// outsideBy is by how many standard deviations the likeliest s of a sensor is outside its
	// range before that counts as no noise.
	outsideBy = 3
)

// refitSensorNoise moves the noise variance of every sensor towards the stationarity of the
// Bethe free energy under a prior that draws it to the harmonic mean Δ̄ of all, as ν₀ readings
// would,
//
//	Δ_µ ← Δ_µ (Δ_µ Σ g² + ν₀ Δ̄/Δ_µ) / (Δ_µ Σ -∂g + ν₀),
//
// and returns the root mean square of how far they moved, in standard errors.
func (s *State) refitSensorNoise() (moved float64) {
	most, _ := s.Power()
	if !(most > 0) {
		return 0
	}
	typical, noise := s.TypicalNoise(), s.SensorNoise()
	count := 0.0
	for mu, now := range noise {
		squares, slopes, n := s.explained(mu)
		if n == 0 {
			noise[mu] = typical
			continue
		}
		ratio := (now*squares + noiseShrinkage*typical/now) / (now*slopes + noiseShrinkage)
		next := now * min(max(ratio, 1.0/sensorReach), sensorReach)
		noise[mu] = min(max(next, leastNoise*most), most)
		s.logPrior[mu] = logPriorOf(noise[mu] / typical)
		change := math.Log(noise[mu] / now)
		moved += 0.5 * n * change * change
		count++
	}
	s.SetNoise(noise)
	s.learnedEach = true
	return math.Sqrt(moved / max(1, count))
}

// logPriorOf is the logarithm of the density of Δ/Δ̄ under the prior of [State.refitSensorNoise],
// relative to that at 1.
func logPriorOf(ratio float64) float64 {
	return -0.5 * noiseShrinkage * (math.Log(ratio) + 1/ratio - 1)
}

// explained are Σ g² and Σ -∂g of sensor mu, and how many readings it has. Those of a sensor that
// is called broken, or has its likeliest s outside its range, are as if it were in order with that s:
// a wrong s is no noise, and noise may be all that is wrong.
func (s *State) explained(mu int) (squares, slopes, n float64) {
	n = s.present(mu)
	calibration, own := s.likeliest(mu)
	for j := mu * s.Each; j < (mu+1)*s.Each; j++ {
		switch {
		case math.IsNaN(s.Y[j]):
		case own:
			d := s.Doubt(j)
			g := (calibration*s.Reading(j) - s.Omega[j]) / d
			squares += g * g
			slopes += (1 - 1/n) / d
		default:
			squares += s.G[j] * s.G[j]
			slopes -= s.DG[j] / (1 - s.yielding(j, n))
		}
	}
	return squares, slopes, n
}

// likeliest is the s of the largest likelihood, where the g of a sensor does not give it: up to outsideBy of
// its own standard deviations outside the range that is the end of the range.
func (s *State) likeliest(mu int) (calibration float64, own bool) {
	if _, may := s.model.Channel.(channel.Contaminated); !may {
		return 0, false
	}
	if s.calibration == nil {
		return s.S[mu], s.OutOfOrder(mu)
	}
	stats := s.Of(s.Stats, mu)
	excess := math.Abs(s.calibration.Excess(stats))
	if !s.OutOfOrder(mu) && excess <= outsideBy {
		return 0, false
	}
	lo, hi := s.calibration.Range()
	fit := s.calibration.Fit(stats)
	end := min(max(fit, lo), hi)
	return end + (fit-end)*max(0, 1-outsideBy/max(excess, outsideBy)), !math.IsNaN(fit)
}

// temper makes ∂g that of readings whose noise is learned from their own residuals: Δ̂ gives way
// to a residual, and g falls less than 1/D. With Σ g² + ν₀Δ̄/Δ² = Σ -∂g + ν₀/Δ at the estimate,
//
//	∂Δ̂/∂ω_j = -2 g_j D / (n/D + ν₀ D/Δ²),   ∂g_j = -(1-f)/D,   f = 2/(n + ν₀ (D/Δ)²),
//
// where g_j² stands for its mean 1/D.
func (s *State) temper(b *channel.Block) {
	if !s.learnedEach || b.First >= s.M {
		return
	}
	for row := range b.Rows() {
		n := s.present(b.First + row)
		for k := row * b.P; k < (row+1)*b.P; k++ {
			b.DG[k] *= 1 - s.yielding(b.First*b.P+k, n)
		}
	}
}

// yielding is f of reading j, of a sensor with n readings.
func (s *State) yielding(j int, n float64) float64 {
	if !s.learnedEach || n == 0 {
		return 0
	}
	share := s.Doubt(j) / s.Noise(j)
	return 2 / (n + noiseShrinkage*share*share)
}

// present is how many readings sensor mu has.
func (s *sensorState) present(mu int) (n float64) {
	for _, y := range s.Y[mu*s.Each : (mu+1)*s.Each] {
		if !math.IsNaN(y) {
			n++
		}
	}
	return n
}

// seen sets U of count readings, from those of the row first on. Further rows have no noise.
func (s *State) seen(first, count int) {
	if s.excess == nil {
		return // U is V
	}
	from := s.reading(first)
	copy(s.all.u[from:from+count], s.all.v[from:from+count])
	for j := from; j < min(from+count, len(s.excess)); j++ {
		s.all.u[j] += s.excess[j]
	}
}

// contract makes the contractions of u, of sensors from first on, those of z (see
// [channel.ContractionOf]): with the ratio r of u's variances,
//
//	1 + V∂g = (excess + V r)/U.
func (s *State) contract(ratios []float64, first int) {
	if s.excess == nil {
		return
	}
	for i, r := range ratios {
		if j := first*s.Each + i; s.U[j] > 0 && !math.IsNaN(s.Y[j]) {
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
func (s *sensorState) Unequal() bool { return s.excess != nil }

// SensorNoise is the mean noise variance of every sensor's readings, of those that are there
// where any is.
func (s *State) SensorNoise() []float64 {
	means := make([]float64, s.M)
	for mu := range means {
		total, count, all := 0.0, 0.0, 0.0
		for j := mu * s.Each; j < (mu+1)*s.Each; j++ {
			all += s.Noise(j)
			if !math.IsNaN(s.Y[j]) {
				total += s.Noise(j)
				count++
			}
		}
		if means[mu] = all / float64(s.Each); count > 0 {
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
		if !math.IsNaN(y) && !s.OutOfOrder(s.SensorOf(j)) {
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
