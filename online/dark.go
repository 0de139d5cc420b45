package online

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// A sample may have no signal: a shutter was closed, a source was off. What it then says of signals is that they are as small as the noise, and what
// it says of gains is nothing, z = 0 whatever they are. Learned from all the same it would teach a signal variance that lets every sample
// pass for noise, and noise that is as much too small, and samples with a signal would contradict that for ever. So that a
// sample has no signal, x = 0, is a hypothesis beside that of the model, and the evidence decides,
//
//	Σ_µ log ∫ p(s | past) s N(sy; 0, Δ) ds   against   log p(y | past, model).
//
// Both are taken at the noise variance that the sample, explained in this way, and its past say together, and are the less the farther
// that is from what the past says alone: signals explain readings far below the noise, too, as exactly as noise may fall.

// dark reports whether the sample, as solved, has no signal: noise explains its readings, and better than signals do.
func (c *Calibrator) dark(reject Reject) bool {
	if c.opt.Commit != Sane || c.opt.Certain || reject.unsolved() || c.used() == 0 {
		return false
	}
	c.predictMoved()
	power := c.readingsPower()
	if reject != Accepted {
		return c.faint(power)
	}
	noise := c.noiseWithout(power)
	with := channel.NoiseOf(c.sample.Model().Channel)
	return power > 0 && power <= c.chiSquareLimit()*noise && c.evidenceWithout(noise)+c.logPriorOf(noise) > c.evidenceWith()+c.logPriorOf(with) && !c.repeats()
}

// repeats reports whether most of the sample's power is in patterns of samples before it: noise repeats none. Of few sensors one sample hardly tells signals from noise, and one in eight of a scene that
// does not change was taken for that.
func (c *Calibrator) repeats() bool {
	c.novelReadings(c.scene)
	return normalise(c.scene) && c.novelTo(c.state.Scenes) < 1-sameScene
}

// faint reports whether readings of such a power, which no signal was found to explain, are nearer to noise than to signals as these are known:
// below the geometric mean of both. Before the first sample nothing is known of either.
func (c *Calibrator) faint(power float64) bool {
	now := c.sample.Model()
	signal, noise := now.Prior, channel.NoiseOf(now.Channel)
	if c.learner != nil {
		m := c.state.Model
		if m == nil {
			return false
		}
		noise = m.NoiseVar
		if p, ok := signal.(prior.Parametric); ok && len(m.Values) > 0 {
			if was, err := p.WithValues(m.Values); err == nil { // it was one before
				signal = was
			}
		}
	}
	return power*power < noise*c.sample.W.MeanSquare()*float64(c.n)*prior.Square(signal)
}

// readingsPower is the mean square of z, in a column, as the readings used and the past say.
func (c *Calibrator) readingsPower() (power float64) {
	for mu := range c.m {
		if c.uses(mu) {
			power += c.squareOfZ(mu)
		}
	}
	return power / float64(c.columns*c.used())
}

// squareOfZ is that of one reading, |z|² of a complex one.
func (c *Calibrator) squareOfZ(mu int) float64 {
	if offsets := c.offsets(); offsets != nil && c.columns > 1 {
		line := offsets.Corrected(c.sample.Of(c.stats, mu))
		total := 0.0
		for _, y := range c.row(c.y, mu) {
			if !math.IsNaN(y) {
				mean, variance := line.At(y)
				total += mean*mean + variance
			}
		}
		return total
	}
	if c.columns > 1 {
		return (square(c.pastMean[mu]) + c.pastSVar[mu]) * c.power(c.y, mu)
	}
	return c.pastZ[mu]*c.pastZ[mu] + c.pastZVar[mu]
}

// noiseWithout is the noise variance without a signal: what was learned of it counts for ν = 2IΔ² readings, where I is its inverse variance.
func (c *Calibrator) noiseWithout(power float64) float64 {
	l := c.learner
	if l == nil || !l.Noise {
		return channel.NoiseOf(c.sample.Model().Channel)
	}
	if c.state.Model == nil {
		return power
	}
	was, own := c.state.Model.NoiseVar, float64(c.columns*c.used())
	nu := c.pastReadings()
	return (nu*was + own*power) / (nu + own)
}

// pastReadings is ν.
func (c *Calibrator) pastReadings() float64 {
	was := c.state.Model.NoiseVar
	return 2 * c.learner.PastInformation * was * was
}

// logPriorOf is the logarithm of what ν readings of the past say of a noise variance Δ, beside that of theirs, Δ′: -ν/2 (log Δ/Δ′ + Δ′/Δ - 1), a scaled
// inverse χ² distribution. It is 0 where the noise variance is given, and before the first sample.
func (c *Calibrator) logPriorOf(noise float64) float64 {
	if c.learner == nil || !c.learner.Noise || c.state.Model == nil || c.state.Model.unequal() {
		return 0
	}
	ratio := c.state.Model.NoiseVar / noise
	return -0.5 * c.pastReadings() * (ratio - 1 - math.Log(ratio))
}

// evidenceWithout is the log-evidence of the sample without a signal, at that noise.
func (c *Calibrator) evidenceWithout(noise float64) float64 {
	b, e := c.doubts().block, c.sample
	to := e.Model().Channel
	if noisy, ok := to.(channel.Noisy); ok {
		to = noisy.WithNoise(noise)
	}
	b.Omega, b.V = make([]float64, len(e.Omega)), make([]float64, len(e.Omega))
	for j := range b.V {
		b.V[j] = e.U[j] - e.V[j] // of unequal noise
	}
	return c.ofReadings(&b, to, nil)
}

// evidenceWith is the log-evidence of the sample as solved, given its past.
func (c *Calibrator) evidenceWith() float64 {
	b, e := c.doubts().block, c.sample
	b.Omega, b.V = e.Omega, e.U
	ofChannel := c.ofReadings(&b, e.Model().Channel, e.LogZ) // which a sample leaves out that is not asked for its evidence
	return ofChannel + c.solver.Iteration.LogEvidence() - sum(e.LogZ)
}

// ofReadings is the log-evidence of the readings used, given the past. That of each sensor goes to each, with what the past is without one.
func (c *Calibrator) ofReadings(b *channel.Block, to channel.Channel, each []float64) float64 {
	b.Past, b.Y = c.sample.Past.Stats, c.doubts().missing
	to.Output(b)
	before := sum(b.LogZ)
	b.Y = c.sample.Y
	to.Output(b)
	copy(each, b.LogZ)
	return sum(b.LogZ) - before
}

func sum(v []float64) (total float64) {
	for _, x := range v {
		total += x
	}
	return total
}
