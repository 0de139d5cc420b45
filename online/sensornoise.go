package online

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/amp"
)

// sensorNoise is what a stream has taught of the noise of every sensor, where that is learned one by one: weighted
// sums of its squared residuals, less what is not noise in them. With the residual r of a reading given all but itself, of
// variance V + Δ + Cˢy²,
//
//	e = r² - V - Cˢy²,   w = (Δ̄/(V + Δ̄ + Cˢy²))²,   Δ_µ = (Σ w e + ν₀ Δ̄) / (Σ w + ν₀),
//
// where w is the information of e on a typical Δ̄. That e may be negative, and Δ̄ is the harmonic mean of all Δ_µ, so both
// are bounded by the median, and nothing that is summed depends on the Δ_µ: else a sensor that happens to be quiet
// would draw all others after it, sample by sample.
type sensorNoise struct {
	Sum, Weight []float64 // M
}

const (
	// unequalFrom is after how many samples sensors are learned one by one: until then residuals say what signals and
	// gains are wrong by. They are used when most have as much as enoughWeight readings.
	unequalFrom  = 3
	enoughWeight = 1

	// sensorShrinkage is ν₀, how many readings the other sensors count for, as offline.
	sensorShrinkage = 4

	// leastSensorNoise is the least noise of a sensor, in those of the others: what is less is hidden by V.
	leastSensorNoise = 0.1
)

func (n *sensorNoise) clone() *sensorNoise {
	if n == nil {
		return nil
	}
	return &sensorNoise{slices.Clone(n.Sum), slices.Clone(n.Weight)}
}

func (n *sensorNoise) validate(m int) error {
	if n == nil {
		return nil
	}
	if len(n.Sum) != m || len(n.Weight) != m || !amp.AllFinite(n.Sum) || !amp.AllFinite(n.Weight) || slices.Min(n.Weight) < 0 {
		return fmt.Errorf("state: what was learned of the noise of %d sensors", len(n.Sum))
	}
	return nil
}

// variances sets each sensor's Δ (M), given the typical one.
func (n *sensorNoise) variances(to []float64, typical float64) {
	for mu, weight := range n.Weight {
		to[mu] = max((n.Sum[mu]+sensorShrinkage*typical)/(weight+sensorShrinkage), leastSensorNoise*typical)
	}
}

// typical is Δ̄; 0 where there is too little data.
func (n *sensorNoise) typical() float64 {
	var each, weights []float64
	for mu, weight := range n.Weight {
		if weight > 0 {
			each, weights = append(each, n.Sum[mu]/weight), append(weights, weight)
		}
	}
	if 2*len(each) <= len(n.Weight) {
		return 0
	}
	weight := median(weights)
	// The median of χ² with as many degrees of freedom (E. B. Wilson, M. M. Hilferty, 1931).
	middle := median(each) / math.Pow(1-2/(9*weight), 3)
	if weight < enoughWeight || !(middle > 0) {
		return 0
	}
	variances, total := make([]float64, len(n.Weight)), 0.0
	n.variances(variances, middle)
	for _, v := range variances {
		total += 1 / v
	}
	return float64(len(variances)) / total
}

// learnsEach reports whether the noise of every sensor is learned.
func (c *solvers) learnsEach() bool { return c.opt.LearnSensorNoise && c.learner != nil }

// each is what was learned of every sensor so far; nil where one noise is taken for all.
func (m *Model) each() *sensorNoise {
	if m == nil {
		return nil
	}
	return m.Sensors
}

// startSensorNoise makes the noise of every sensor what the model says, which is learned between samples and not in them.
func (c *Calibrator) startSensorNoise(m *Model) {
	if !c.learnsEach() {
		return
	}
	c.learner.Noise = !m.unequal()
	for mu := range c.variances {
		c.variances[mu] = m.NoiseVar
	}
	if m.unequal() {
		m.Sensors.variances(c.variances, m.NoiseVar)
	}
	c.sample.SetNoise(c.variances)
}

// unequal reports whether enough is known of the noise of every sensor.
func (m *Model) unequal() bool { return m.each() != nil && m.Sensors.typical() > 0 }

// learnSensorNoise adds the committed sample to what was learned of every sensor, and makes the model's noise Δ̄.
func (c *Calibrator) learnSensorNoise(m *Model) {
	was := c.state.Model.each()
	if !c.learnsEach() || was == nil && c.state.Samples < unequalFrom {
		return
	}
	if was == nil {
		was = &sensorNoise{make([]float64, c.m), make([]float64, c.m)}
	}
	m.Sensors = was.clone()
	n, keep, scale := m.Sensors, c.retention, c.solver.SweepScale*c.solver.SweepScale
	outlying := c.outlying()
	for mu := range n.Sum {
		n.Sum[mu] *= keep * scale
		n.Weight[mu] *= keep
		if !c.candidate(mu) {
			continue
		}
		trust := c.weight
		if outlying != nil {
			trust *= 1 - outlying[mu]
		}
		c.innovations(mu, func(r, rest float64) {
			share := m.NoiseVar / (rest + m.NoiseVar)
			n.Sum[mu] += trust * share * share * (r*r - rest)
			n.Weight[mu] += trust * share * share
		})
	}
	if typical := n.typical(); typical > 0 {
		m.NoiseVar = typical
	}
}

// innovations calls f with the residual of each reading of a sensor given all but itself, and its variance without the sensor's noise. Those of several rows have the error of s in common, which
// changes the variance of a sum of their squares, and not its mean.
func (c *Calibrator) innovations(mu int, f func(r, rest float64)) {
	e := c.sample
	if c.columns == 1 {
		r, d := c.innovation(mu)
		f(r, d-e.Noise(mu))
		return
	}
	past := func(y float64) (z, variance float64) { return real(c.pastMean[mu]) * y, c.pastSVar[mu] * y * y }
	if offsets := c.offsets(); offsets != nil {
		past = offsets.Corrected(e.Of(c.stats, mu)).At
	}
	for j := mu * c.rows; j < (mu+1)*c.rows; j++ {
		if y := c.y[j]; !math.IsNaN(y) {
			z, variance := past(y)
			f(z-e.Omega[j], e.U[j]+c.noise+variance-e.Noise(j))
		}
	}
}

// heavyTailed is χ as it would be of a normal distribution, where the noise of the sensor is known from as many readings
// as ν - ν₀: the n residuals of a sensor, of which χ² is the mean of squares, are then Student's,
//
//	χ² → (ν+n) log(1 + nχ²/ν)/n.
func (c *Calibrator) heavyTailed(chi float64, mu int) float64 {
	nu := float64(sensorShrinkage)
	if n := c.state.Model.each(); n != nil {
		nu += n.Weight[mu]
	}
	count := 0.0
	for _, y := range c.row(c.y, mu) {
		count += float64(1 - bit(math.IsNaN(y)))
	}
	return math.Copysign(math.Sqrt((nu+count)*math.Log1p(count*chi*chi/nu)/count), chi)
}

// takeTogether takes what samples that were solved together say of the noise of every sensor.
func (m *Model) takeTogether(b *amp.State) {
	n := &sensorNoise{b.SensorNoise(), make([]float64, b.M)}
	for mu := range n.Sum {
		for _, y := range b.Y[mu*b.Each : (mu+1)*b.Each] {
			n.Weight[mu] += float64(1 - bit(math.IsNaN(y)))
		}
		n.Sum[mu] *= n.Weight[mu]
	}
	m.Sensors = n
}
