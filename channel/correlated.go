package channel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/parallel"
)

// Correlated is implemented by channels that can be given the full covariance
// of a sensor's z over the signals (paper, Algorithm 1).
type Correlated interface {
	Channel

	// Correlates reports whether this one can be, and why not.
	Correlates() error

	// OutputCorrelated fills the outputs of s; called from several goroutines.
	OutputCorrelated(s *Sensor)
}

// Correlates reports whether c can be given full covariances, and why not.
func Correlates(c Channel) error {
	correlated, ok := c.(Correlated)
	if !ok {
		return fmt.Errorf("full covariances need a channel with correlated outputs, and %T has none", c)
	}
	return correlated.Correlates()
}

// Sensor is one sensor with P×P covariances, row-major.
type Sensor struct {
	Index int // row of W

	Y, Omega []float64 // P; NaN in Y is a missing reading
	V        []float64 // P×P, covariance of z before the reading

	// Inverse writes (V+Δ)⁻¹ for a noise Δ where that takes less than a factorisation, and returns log det (V+Δ); nil elsewhere.
	Inverse func(dst []float64, noise float64) (logDet float64)

	G  []float64 // P, out
	DG []float64 // P×P, out, negative semidefinite where Z_out is log-concave; nil where it is not asked for, and with it D⁻¹

	Past          []float64 // width, statistics of earlier samples; nil for none
	Stats         []float64 // width, out, as in [Block]: those of the past included
	S, SVar, LogZ float64   // out, as in [Block]
	Phase         float64   // out, as in [Block]
	Quadratic     float64   // out, ωᵀD⁻¹ω
	Broken        float64   // out, as in [Block]

	// Without is LogZ without each of the readings that are present (P, out, of real ones); nil where it is not asked for.
	Without []float64
}

// NewSensor allocates a sensor with p signals for c.
func NewSensor(c Channel, p int) *Sensor {
	of := func(count int) []float64 { return make([]float64, count) }
	return &Sensor{Y: of(p), Omega: of(p), V: of(p * p), G: of(p), DG: of(p * p), Stats: of(widthOf(c))}
}

// inner holds D⁻¹y and D⁻¹ω for the readings that are present, D = V + Δ.
type inner struct {
	present          []int
	stats, moments   []float64 // of the sensor without each of its readings
	factor, inverse  []float64 // of D, and D⁻¹
	whole            []float64 // that of all readings (see [Sensor.Inverse])
	y, omega, dy, dw []float64
	logDet           float64 // of 2πD
}

var inners parallel.Pool[inner]

// invert factorises D over the readings of s that are present; gain multiplies
// the readings. ok is false when there is none, or D is not positive definite
// in double precision.
func (in *inner) invert(s *Sensor, noise, gain float64) (ok bool) {
	p := len(s.Y)
	in.present, in.y, in.omega = in.present[:0], in.y[:0], in.omega[:0]
	for k, y := range s.Y {
		if !math.IsNaN(y) {
			in.present = append(in.present, k)
			in.y = append(in.y, gain*y)
			in.omega = append(in.omega, s.Omega[k])
		}
	}
	n := len(in.present)
	if in.logDet = 0; n == 0 {
		return false
	}
	if s.Inverse != nil && n > p/2 {
		return in.reduce(s, noise)
	}
	in.factor = in.factor[:0]
	for i, k := range in.present {
		for _, l := range in.present {
			in.factor = append(in.factor, s.V[min(k, l)*p+max(k, l)])
		}
		in.factor[i*n+i] += noise
	}
	if !cholesky.Factor(in.factor, n) {
		in.present, in.y, in.omega = in.present[:0], in.y[:0], in.omega[:0]
		return false
	}
	// The condition of D is of order one (P variances of one sensor), so a
	// plain inverse loses nothing.
	in.dy, in.dw = append(in.dy[:0], in.y...), append(in.dw[:0], in.omega...)
	cholesky.Solve(in.factor, in.dy)
	cholesky.Solve(in.factor, in.dw)
	if s.DG != nil || s.Without != nil {
		in.inverse = append(in.inverse[:0], in.factor...)
		cholesky.Inverse(in.inverse, in.factor, n)
	}
	in.logDet = cholesky.LogDet(in.factor, n) + float64(n)*math.Log(2*math.Pi)
	return true
}

// reduce is invert by the inverse A of all readings: what is left of it where some are missing (m) is that of the others (p),
//
//	(D_pp)⁻¹ = A_pp - A_pm (A_mm)⁻¹ A_mp,   det D_pp = det D det A_mm.
func (in *inner) reduce(s *Sensor, noise float64) (ok bool) {
	p, n := len(s.Y), len(in.present)
	in.whole = slices.Grow(in.whole[:0], p*p)[:p*p]
	in.logDet = s.Inverse(in.whole, noise) + float64(n)*math.Log(2*math.Pi)
	in.inverse = in.inverse[:0]
	for _, k := range in.present {
		for _, l := range in.present {
			in.inverse = append(in.inverse, in.whole[k*p+l])
		}
	}
	if missing := absent(s); len(missing) > 0 {
		in.factor = in.factor[:0]
		for _, k := range missing {
			for _, l := range missing {
				in.factor = append(in.factor, in.whole[k*p+l])
			}
		}
		if !cholesky.Factor(in.factor, len(missing)) {
			in.present, in.y, in.omega = in.present[:0], in.y[:0], in.omega[:0]
			return false
		}
		in.logDet += cholesky.LogDet(in.factor, len(missing))
		column := make([]float64, len(missing))
		for j, l := range in.present {
			for i, k := range missing {
				column[i] = in.whole[k*p+l]
			}
			cholesky.Solve(in.factor, column)
			for i, k := range in.present {
				for a, m := range missing {
					in.inverse[i*n+j] -= in.whole[k*p+m] * column[a]
				}
			}
		}
	}
	in.dy, in.dw = in.dy[:0], in.dw[:0]
	for i := range n {
		row := in.inverse[i*n : (i+1)*n]
		in.dy, in.dw = append(in.dy, cholesky.Dot(row, in.y)), append(in.dw, cholesky.Dot(row, in.omega))
	}
	return true
}

// absent are the readings of s that are missing.
func absent(s *Sensor) (missing []int) {
	for k, y := range s.Y {
		if math.IsNaN(y) {
			missing = append(missing, k)
		}
	}
	return missing
}

// Correlates implements [Correlated].
func (c Gain) Correlates() error {
	if c.Saturation > 0 {
		return errors.New("clipped readings need diagonal covariances")
	}
	if c.Prior.Each != nil {
		return errors.New("sensors that are known by themselves need diagonal covariances")
	}
	return nil
}

// OutputCorrelated implements [Correlated]: with D = V + Δ,
//
//	τ = yᵀD⁻¹y,   B = yᵀD⁻¹ω,   g = D⁻¹(ŝy - ω),   ∂g = Cˢ D⁻¹yyᵀD⁻¹ - D⁻¹.
func (c Gain) OutputCorrelated(s *Sensor) {
	in := inners.Get()
	defer inners.Put(in)
	clear(s.G)
	clear(s.DG)
	s.Quadratic = 0
	s.inherit()
	stats := c.Prior.of(s.Stats, 0)
	past := *stats
	ok := in.invert(s, c.NoiseVar, 1)
	if ok {
		stats[precision] += cholesky.Dot(in.y, in.dy)
		stats[field] += cholesky.Dot(in.y, in.dw)
		stats[readings] += float64(len(in.present))
		s.Quadratic = cholesky.Dot(in.omega, in.dw)
	}
	var logMass, mean, variance [1]float64
	c.Prior.posteriors(logMass[:], mean[:], variance[:], s.Stats, 1)
	s.S, s.SVar = mean[0], variance[0]
	if ok {
		in.derivatives(s, s.S, s.SVar)
	}
	s.LogZ = c.logZ(logMass[0], s.S, in.square(s.S)+in.logDet, &past)
	if s.Without != nil {
		c.without(s, in, &past)
	}
}

// logZ is log Z_out of a sensor whose posterior has that mean and mass about it; rest is (ŝy-ω)ᵀD⁻¹(ŝy-ω) + log det 2πD.
func (c *Gain) logZ(logMass, mean, rest float64, past *[gainWidth]float64) float64 {
	return logMass + mean*(past[field]-0.5*past[precision]*mean) + c.Prior.logWeight(mean) - c.Prior.logMass() - 0.5*rest
}

// without sets [Sensor.Without]. Where d is column i of D⁻¹, the inverse without row and column i is what the others have of D⁻¹ - ddᵀ/d_i, and its determinant is d_i det D.
func (c *Gain) without(s *Sensor, in *inner, past *[gainWidth]float64) {
	n := len(in.present)
	in.stats = in.stats[:0]
	for i := range n {
		in.stats = append(in.stats, s.Stats...)
		stats, d := c.Prior.of(in.stats, i), in.inverse[i*n+i]
		stats[precision] -= in.dy[i] * in.dy[i] / d
		stats[field] -= in.dy[i] * in.dw[i] / d
		stats[readings]--
	}
	in.moments = slices.Grow(in.moments[:0], 3*n)[:3*n]
	masses, means, variances := in.moments[:n], in.moments[n:2*n], in.moments[2*n:]
	c.Prior.posteriors(masses, means, variances, in.stats, 1)
	for i, k := range in.present {
		g, d := means[i]*in.dy[i]-in.dw[i], in.inverse[i*n+i]
		s.Without[k] = c.logZ(masses[i], means[i], in.square(means[i])-g*g/d+in.logDet+math.Log(d/(2*math.Pi)), past)
	}
}

// inherit begins the statistics with those of the past.
func (s *Sensor) inherit() {
	clear(s.Stats)
	copy(s.Stats, s.Past)
}

// square is (sy-ω)ᵀ D⁻¹ (sy-ω).
func (in *inner) square(gain float64) (sum float64) {
	for i, y := range in.y {
		sum += (gain*y - in.omega[i]) * (gain*in.dy[i] - in.dw[i])
	}
	return sum
}

// derivatives fills g and ∂g from the posterior of s.
func (in *inner) derivatives(s *Sensor, mean, variance float64) {
	p, n := len(s.Y), len(in.present)
	for i, k := range in.present {
		s.G[k] = mean*in.dy[i] - in.dw[i]
		if s.DG == nil {
			continue
		}
		for j, l := range in.present {
			s.DG[k*p+l] = variance*in.dy[i]*in.dy[j] - in.inverse[i*n+j]
		}
	}
}

// Correlates implements [Correlated].
func (c AWGN) Correlates() error { return nil }

// OutputCorrelated implements [Correlated] with known gains.
func (c AWGN) OutputCorrelated(s *Sensor) {
	in := inners.Get()
	defer inners.Put(in)
	clear(s.G)
	clear(s.DG)
	s.S, s.SVar = 1, 0
	if c.S != nil {
		s.S = c.S[s.Index]
	}
	s.LogZ = 0
	if !in.invert(s, c.NoiseVar, s.S) {
		return
	}
	count, rest := float64(len(in.present)), in.square(1)+in.logDet
	s.LogZ = count*math.Log(s.S) - 0.5*rest
	in.derivatives(s, 1, 0)
	if s.Without == nil {
		return
	}
	for i, k := range in.present {
		g, d := in.dy[i]-in.dw[i], in.inverse[i*len(in.present)+i]
		s.Without[k] = (count-1)*math.Log(s.S) - 0.5*(rest-g*g/d+math.Log(d/(2*math.Pi)))
	}
}
