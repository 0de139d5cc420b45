package online

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/vector"
)

// Drift follows gains that drift, with a bank of random walks: for each member the
// statistics of all sensors under the assumption that s walks by so much a
// sample. Before a sample every member's posterior is widened by one step of its walk;
// after it, each is scored by how well it had predicted the readings. Every sensor's
// past is the members' statistics with weights that follow from their scores and
// from how many sensors each member describes.
//
// A drift of a tenth of what a single reading says of s cannot be seen in any sample's
// residuals: it shows only in the sum over sensors and time, which the scores are.
type Drift struct {
	Stats  [][]float64 // of each member: M×Width statistics, as State.Stats
	Scores [][]float64 // of each member: M sums of log-likelihoods, forgotten over scoreMemory samples
	Parts  []float64   // part of the sensors that each member describes

	// Of the first member, which does not walk: what State has of the scale's evidence.
	Quadratic, Volume float64

	// Sums are each member's cumulative sums of log-likelihood ratios to the first
	// one, at least 0 (E. S. Page, 1954). Since is how many samples were committed when
	// one of them reached the alarm; 0 when the gains stay.
	Sums  []float64
	Since uint64
}

// walks are the members: standard deviations of the relative steps of s a sample.
var walks = [...]float64{0, 3e-5, 1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3, 6.4e-3, 1.3e-2, 5e-2}

const (
	// scoreMemory is over how many samples scores are forgotten, and leastScore
	// the least that a reading adds: one outlier proves no drift.
	scoreMemory = 100
	leastScore  = -30

	// walkingPart is the part of the sensors that each walking member starts
	// with, leastPart what it keeps; below stillPart of sensors that do not walk the
	// members are mixed.
	walkingPart = 0.02
	leastPart   = 1e-6
	stillPart   = 0.999

	// wellKnown is how many times more than the prior the readings must say of a sensor,
	// as inverse variances, for its posterior to be about normal.
	wellKnown = 10

	// driftAlarm is the cumulative sum at which a drift is reported, from sample
	// alarmFrom on: while gains are hardly known, sums are large by chance. Without
	// drift e^driftAlarm/10 samples go by before a false alarm (G. Lorden, 1971).
	driftAlarm = 25
	alarmFrom  = 20
)

func newDrift(s *State) *Drift {
	d := &Drift{
		Parts: make([]float64, len(walks)), Sums: make([]float64, len(walks)),
		Quadratic: s.Quadratic, Volume: s.Volume,
	}
	for l := range walks {
		d.Stats = append(d.Stats, slices.Clone(s.Stats))
		d.Scores = append(d.Scores, make([]float64, s.Sensors()))
		d.Parts[l] = walkingPart
	}
	d.Parts[0] = 1 - walkingPart*float64(len(walks)-1)
	return d
}

func (d *Drift) clone() *Drift {
	if d == nil {
		return nil
	}
	c := *d
	c.Stats, c.Scores = cloneAll(d.Stats), cloneAll(d.Scores)
	c.Parts, c.Sums = slices.Clone(d.Parts), slices.Clone(d.Sums)
	return &c
}

func cloneAll(lists [][]float64) [][]float64 {
	out := make([][]float64, len(lists))
	for i, v := range lists {
		out[i] = slices.Clone(v)
	}
	return out
}

// Rate is the standard deviation of the relative step of s a sample that the
// readings so far make likely, root mean square over the sensors.
func (d *Drift) Rate() float64 {
	total := 0.0
	for l, part := range d.Parts {
		total += part * walks[l] * walks[l]
	}
	return math.Sqrt(total)
}

// Validate reports what no stream leaves behind, for so many numbers of statistics and
// of sensors.
func (d *Drift) validate(stats, sensors int) error {
	if len(d.Stats) != len(walks) || len(d.Scores) != len(walks) || len(d.Parts) != len(walks) || len(d.Sums) != len(walks) {
		return fmt.Errorf("state: a drift of %d members, expected %d", len(d.Stats), len(walks))
	}
	for l := range walks {
		if len(d.Stats[l]) != stats || len(d.Scores[l]) != sensors || !amp.AllFinite(d.Stats[l]) || !amp.AllFinite(d.Scores[l]) {
			return fmt.Errorf("state: drift: member %d has impossible statistics", l)
		}
		if !(d.Parts[l] > 0 && d.Parts[l] <= 1) || !(d.Sums[l] >= 0) || math.IsInf(d.Sums[l], 1) {
			return fmt.Errorf("state: drift: member %d describes the part %g, with the sum %g", l, d.Parts[l], d.Sums[l])
		}
	}
	if !amp.AllFinite([]float64{d.Quadratic, d.Volume}) {
		return fmt.Errorf("state: drift: scale sums %g and %g", d.Quadratic, d.Volume)
	}
	return nil
}

// bank is the workspace of a calibrator that follows drifts.
type bank struct {
	ahead          [][]float64    // the members' statistics, one step of their walks later
	mean, variance [][]float64    // M for each member, at the state's scale: after that step; of complex s the size
	turned         [][]complex128 // M for each member, the same with their phases; nil for real s
	pooled         []float64      // what the sample inherits
	still          float64        // the first member's log-likelihood of the sample
	weights, parts []float64      // of one sensor, and their means
	before         []Flag         // M, of the sensors before the sample
	square, wider  []float64      // M, of a member's residuals: square in those expected, variance in that given s
	logs           []float64      // M padded, workspace
	logParts       []float64      // of the members' parts
	used           []bool         // M, the sensors whose readings members are scored on
}

func newBank(m, width, columns int) *bank {
	b := &bank{
		pooled: make([]float64, m*width), weights: newWeights(), parts: make([]float64, len(walks)), before: make([]Flag, m),
		square: make([]float64, m), wider: make([]float64, m), logs: make([]float64, vector.Padded(m)), logParts: make([]float64, len(walks)), used: make([]bool, m),
	}
	for range walks {
		b.ahead = append(b.ahead, make([]float64, m*width))
		b.mean, b.variance = append(b.mean, make([]float64, m)), append(b.variance, make([]float64, m))
		if columns > 1 {
			b.turned = append(b.turned, make([]complex128, m))
		}
	}
	return b
}

// inheritance says what the next sample inherits.
func (c *Calibrator) inheritance() {
	s := &c.state
	c.past = amp.Past{Stats: s.Stats, Quadratic: s.Quadratic, Volume: s.Volume}
	if s.Drift == nil {
		return
	}
	c.walk()
	copy(c.bank.pooled, s.Stats) // of flagged sensors
	c.past = c.pool(c.bank.ahead, c.bank.pooled)
}

// walk widens every member's posterior by a step. With what the readings say of s as
// an inverse variance I, the likelihood to the power 1/(1+qI) has the variance
// 1/I + q when it is Gaussian.
func (c *Calibrator) walk() {
	b, d, known := c.bank, c.state.Drift, c.sample.Calibration()
	_, prior := channel.Typical(known)
	for l, step := range walks {
		copy(b.ahead[l], d.Stats[l])
		mean, variance := b.mean[l], b.variance[l]
		if b.turned != nil {
			c.posteriors(b.turned[l], variance, d.Stats[l])
			for mu, v := range b.turned[l] {
				mean[mu] = cmplx.Abs(v)
			}
		} else {
			known.Posteriors(mean, variance, d.Stats[l])
		}
		if step == 0 {
			continue
		}
		for mu, v := range variance {
			information := max(0, 1/v-1/prior)
			keep := 1 / (1 + step*step*mean[mu]*mean[mu]*information)
			known.Carry(c.sample.Of(b.ahead[l], mu), keep, 1)
			variance[mu] = 1 / (keep*information + 1/prior)
		}
	}
}

// pool mixes the members' statistics into to, for all sensors in use.
func (c *Calibrator) pool(members [][]float64, to []float64) amp.Past {
	b, d, known := c.bank, c.state.Drift, c.sample.Calibration()
	past := amp.Past{Stats: to, Quadratic: d.Quadratic, Volume: d.Volume}
	still := d.still(c.state.Samples)
	d.logs(b.logParts)
	var kept, all float64
	for mu, flag := range c.state.Flag {
		if flag != Healthy {
			continue
		}
		own := c.sample.Of(to, mu)
		if still {
			copy(own, c.sample.Of(members[0], mu))
			continue
		}
		clear(own)
		d.weigh(b.weights, b.logParts, mu)
		for l, w := range b.weights {
			copy(c.one, c.sample.Of(members[l], mu))
			known.Carry(c.one, w, 1)
			channel.Merge(known, own, c.one)
		}
		kept += known.Readings(own)
		all += known.Readings(c.sample.Of(members[0], mu))
	}
	if still || all == 0 {
		return past
	}
	past.Volume *= kept / all
	past.Quadratic = past.Volume + c.pulls(to)
	return past
}

// blend makes the posteriors in stats, for a report, as wide as the members disagree: the
// pool of their statistics is narrower than the mixture of their posteriors, most of all for
// the sensors that walk where most do not.
func (c *Calibrator) blend(stats []float64) {
	d, known := c.state.Drift, c.sample.Calibration()
	if d == nil || d.still(c.state.Samples) {
		return
	}
	mean, variance := make([][]complex128, len(walks)), cloneAll(c.bank.variance)
	for l := range walks {
		mean[l] = make([]complex128, c.m)
		c.posteriors(mean[l], variance[l], d.Stats[l])
	}
	weights, logParts := newWeights(), make([]float64, len(walks))
	d.logs(logParts)
	_, wide := channel.Typical(known)
	for mu, flag := range c.state.Flag {
		if flag != Healthy || known.Information(c.statsOf(mu))*wide < wellKnown {
			continue // a normal distribution is none of what its range cuts
		}
		d.weigh(weights, logParts, mu)
		m, v := complex128(0), 0.0
		for l, w := range weights {
			m += complex(w, 0) * mean[l][mu]
		}
		for l, w := range weights {
			v += w * (variance[l][mu] + square(mean[l][mu]-m))
		}
		c.setNormal(c.sample.Of(stats, mu), m, v)
	}
}

// still reports whether the gains are taken to stay, after so many samples: while
// gains are hardly known, unless most sensors speak against it.
func (d *Drift) still(samples uint64) bool {
	return d.Parts[0] >= stillPart || samples < alarmFrom && d.Parts[0] > 0.5
}

// pulls is Σ ŝB over the sensors in use. With κ added it is the Q+S that leaves the
// evidence along the scale stationary where it is: members that forget at different
// paces have sums of their own that contradict each other.
func (c *Calibrator) pulls(stats []float64) (total float64) {
	known := c.sample.Calibration()
	known.Posteriors(c.means, c.variances, stats)
	for mu, flag := range c.state.Flag {
		if flag == Healthy {
			total += known.Pull(c.sample.Of(stats, mu), c.means[mu])
		}
	}
	return total
}

// newWeights are those of the members, with room for vectors.
func newWeights() []float64 { return make([]float64, vector.Padded(len(walks)))[:len(walks)] }

// logs are the logarithms of the parts.
func (d *Drift) logs(to []float64) {
	for l, part := range d.Parts {
		to[l] = math.Log(part)
	}
}

// weigh fills the members' weights ([newWeights]) for a sensor.
func (d *Drift) weigh(weights, logParts []float64, mu int) {
	top, sum := math.Inf(-1), 0.0
	for l, part := range logParts {
		weights[l] = part + d.Scores[l][mu]
		top = max(top, weights[l])
	}
	for l := range weights {
		weights[l] -= top
	}
	padded := weights[:vector.Padded(len(weights))]
	clear(padded[len(weights):])
	vector.Exp(padded)
	for _, w := range weights {
		sum += w
	}
	for l := range weights {
		weights[l] /= sum
	}
}

// follow scores the members on the sample and lets them learn from it: added is
// what it adds to statistics (M×Width).
func (c *Calibrator) follow(added []float64, by move, quadratic, volume float64) {
	b, d, scale := c.bank, c.state.Drift, by.scale
	for mu := range b.used {
		b.used[mu] = c.uses(mu) && !c.changed(mu)
	}
	for l := range walks {
		for mu := range d.Scores[l] {
			if c.changed(mu) { // and begins anew
				d.Scores[l][mu] = 0
				clear(c.sample.Of(b.ahead[l], mu))
			}
		}
		total := c.score(l, by)
		if l > 0 && c.state.Samples >= alarmFrom {
			d.Sums[l] = max(0, d.Sums[l]+total-b.still)
		} else if l == 0 {
			b.still = total
		}
		c.carry(b.ahead[l], 1, by)
		copy(d.Stats[l], b.ahead[l])
		channel.Merge(c.sample.Calibration(), d.Stats[l], added)
	}
	d.Quadratic = scale*scale*d.Quadratic + quadratic
	d.Volume += volume
	if !c.addsUp() {
		d.Quadratic = d.Volume + c.pulls(d.Stats[0])
	}
	d.logs(b.logParts)
	d.describe(b.weights, b.logParts, b.parts)
	c.watchDrift()
}

// score adds to a member's scores how likely it was to predict the readings, and
// returns the sum. Residuals are taken in units of their own spread: else noise that is
// not what the model says would be taken for drift.
func (c *Calibrator) score(l int, by move) (total float64) {
	b, e, scores := c.bank, c.sample, c.state.Drift.Scores[l]
	noise, columns := channel.NoiseOf(e.Model().Channel), float64(c.columns)
	// Of several numbers x is the root mean square of their residuals, and variances are those of one.
	residual := func(mu int) (x, v, d float64) {
		d = e.U[mu*c.columns] + noise
		if b.turned != nil {
			copy(c.one, e.Of(b.ahead[l], mu))
			c.carry(c.one, 1, by)
			chi, wider := c.residualOf(mu, by.factor()*b.turned[l][mu], b.variance[l][mu], c.one)
			return chi * math.Sqrt(wider*d), wider * d, d
		}
		y := c.y[mu]
		if offsets := c.offsets(); offsets != nil {
			copy(c.one, e.Of(b.ahead[l], mu))
			offsets.Carry(c.one, 1, by.scale)
			z, doubt := offsets.Corrected(c.one).At(y)
			return z - e.Omega[mu], d + doubt, d
		}
		return by.scale*b.mean[l][mu]*y - e.Omega[mu], d + b.variance[l][mu]*y*y, d
	}
	spread, count := 0.0, 0.0
	for mu, used := range b.used {
		if used {
			x, v, d := residual(mu)
			b.square[mu], b.wider[mu] = x*x/v, v/d
			spread += b.square[mu]
			count++
		}
	}
	spread = max(spread/max(1, count), 1e-3)
	for mu, used := range b.used {
		b.logs[mu] = 1
		if used {
			b.logs[mu] = b.mean[l][mu] * (b.mean[l][mu] / (b.wider[mu] * spread))
		}
	}
	vector.Log(b.logs)
	for mu, used := range b.used {
		if used {
			p := 0.5 * columns * (b.logs[mu] - b.square[mu]/spread)
			total += c.weight * p
			scores[mu] = (1-1.0/scoreMemory)*scores[mu] + c.weight*max(p, leastScore)
		}
	}
	return total
}

// describe finds which part of the sensors each member describes.
func (d *Drift) describe(weights, logParts, next []float64) {
	clear(next)
	sensors := float64(len(d.Scores[0]))
	for mu := range d.Scores[0] {
		d.weigh(weights, logParts, mu)
		for l, w := range weights {
			next[l] += w / sensors
		}
	}
	for l, part := range next {
		d.Parts[l] = max(leastPart, part)
	}
}

// watchDrift raises the alarm, and ends it.
func (c *Calibrator) watchDrift() {
	d := c.state.Drift
	if d.Since > 0 && d.Parts[0] >= stillPart {
		d.Since = 0
	}
	if slices.Max(d.Sums) >= driftAlarm {
		clear(d.Sums)
		if d.Since == 0 {
			d.Since = c.state.Samples
		}
	}
}

// mix makes the state what the members say together, after sensors were examined.
func (c *Calibrator) mix() {
	s, d := &c.state, c.state.Drift
	for mu, flag := range s.Flag {
		if flag == Healthy && c.bank.before[mu] == Healthy {
			continue
		}
		if c.bank.before[mu] == Healthy {
			d.Quadratic = max(0, d.Quadratic-c.share(c.sample.Of(d.Stats[0], mu)))
		}
		for l := range walks {
			d.Scores[l][mu] = 0
			own := c.sample.Of(d.Stats[l], mu)
			clear(own)
			if flag == Healthy {
				copy(own, c.statsOf(mu))
			}
		}
		if flag == Healthy {
			d.Quadratic += c.share(c.statsOf(mu))
		}
	}
	past := c.pool(d.Stats, s.Stats)
	s.Quadratic, s.Volume = past.Quadratic, past.Volume
}
