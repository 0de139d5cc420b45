package channel

import "math"

// WithoutEach writes log Z_out of a sensor without each of its readings (P), after Output of a block of this one sensor. It is NaN where it has to be asked by itself: a missing reading has none, one
// that is most of Σ y²/D leaves no digits of the others, and where readings may be clipped there are no sums. Sums over readings are those of all but one of them: P integrals over s, where P calls of
// Output take P² readings.
func (c Gain) WithoutEach(b *Block, without []float64) {
	if c.Saturation > 0 {
		for k := range without {
			without[k] = math.NaN()
		}
		return
	}
	const most = 0.5 // of Σ y²/D: one bit is lost
	width, s := len(b.Stats), b.S[0]
	stats, means, spreads := make([]float64, b.P*width), make([]float64, b.P), make([]float64, b.P)
	past, all := c.Prior.of(b.Past, 0), c.Prior.of(b.Stats, 0)
	var squares, slope, curvature, logs float64 // Σ r²/D, Σ ry/D, Σ y²/D of residuals r = ŝy - ω, Σ log 2πD
	for k, y := range b.Y {
		own := stats[k*width : (k+1)*width]
		copy(own, b.Stats)
		if math.IsNaN(y) {
			continue
		}
		d := b.V[k] + c.NoiseVar
		r := s*y - b.Omega[k]
		squares, slope, curvature, logs = squares+r*r/d, slope+r*y/d, curvature+y*y/d, logs+math.Log(2*math.Pi*d)
		of := c.Prior.of(own, 0)
		of[readings]--
		of[precision] -= y * y / d
		of[field] -= y * b.Omega[k] / d
	}
	c.Prior.posteriors(without, means, spreads, stats, 1)
	logMass := c.Prior.logMass()
	for k, y := range b.Y {
		d := b.V[k] + c.NoiseVar
		if math.IsNaN(y) || y*y/d > most*all[precision] {
			without[k] = math.NaN()
			continue
		}
		mean := means[k]
		r, step := s*y-b.Omega[k], mean-s
		square := squares - r*r/d + step*(2*(slope-r*y/d)+step*(curvature-y*y/d))
		without[k] += mean*(past[field]-0.5*past[precision]*mean) + c.Prior.logWeight(mean) - logMass - 0.5*(square+logs-math.Log(2*math.Pi*d))
	}
}
