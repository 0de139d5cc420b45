package channel

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// Gain is the channel of blind calibration: the reading of sensor µ is divided
// by an unknown s_µ > 0 with a known prior (paper, section "Gain calibration
// setting and update functions"). With D_k = V_k + Δ, all that the readings say
// of s is in
//
//	τ = Σₖ y_k²/D_k,   B = Σₖ y_k ω_k/D_k,   n = number of readings,
//
// its posterior is q(s) ∝ p(s) s^n exp(-τs²/2 + Bs), and with that posterior's
// mean ŝ and variance Cˢ
//
//	g_k = (ŝ y_k - ω_k)/D_k,   ∂g_k = Cˢ y_k²/D_k² - 1/D_k.
type Gain struct {
	Prior    GainPrior
	NoiseVar float64 // Δ ≥ 0

	// Saturation is where sensors clip, in units of the readings: one of size
	// Saturation or more says only that z/s is at least as large, with its sign
	// (see clipped.go). 0 where they do not.
	Saturation float64
}

// WithNoise is the channel with noise of variance v in addition.
func (c Gain) WithNoise(v float64) Channel {
	c.NoiseVar += v
	return c
}

// GainPrior is the distribution of a calibration variable, on [Lo, Hi].
type GainPrior struct {
	Lo, Hi float64 // 0 < Lo < Hi

	// A Gaussian factor exp(-Precision·(s-Center)²/2) on the range: the
	// truncated normal. Precision 0 is the uniform prior.
	Center, Precision float64
}

// Uniform is the calibration prior of the paper, flat on [lo, hi].
func Uniform(lo, hi float64) GainPrior { return GainPrior{Lo: lo, Hi: hi} }

// TruncatedNormal is N(center, sd²) restricted to [lo, hi].
func TruncatedNormal(center, sd, lo, hi float64) GainPrior {
	return GainPrior{Lo: lo, Hi: hi, Center: center, Precision: 1 / (sd * sd)}
}

// Scaled returns the distribution of c·s.
func (p GainPrior) Scaled(c float64) GainPrior {
	return GainPrior{Lo: c * p.Lo, Hi: c * p.Hi, Center: c * p.Center, Precision: p.Precision / (c * c)}
}

// Validate reports a parameter that describes no distribution.
func (p GainPrior) Validate() error {
	switch {
	case !(p.Lo > 0) || math.IsInf(p.Lo, 1):
		return fmt.Errorf("the range of s must start above 0, found [%g, %g]", p.Lo, p.Hi)
	case !(p.Hi > p.Lo) || math.IsInf(p.Hi, 1):
		return fmt.Errorf("the range of s must be [a, b] with a < b, found [%g, %g]", p.Lo, p.Hi)
	case !(p.Precision >= 0) || math.IsInf(p.Precision, 1) || math.IsNaN(p.Center) || math.IsInf(p.Center, 0):
		return fmt.Errorf("the calibration prior needs a finite center and a positive standard deviation, found center %g and precision %g", p.Center, p.Precision)
	}
	return nil
}

// Moments returns the prior's own mean and variance.
func (p GainPrior) Moments() (mean, variance float64) {
	_, mean, variance = p.posterior(0, 0, 0)
	return mean, variance
}

// Posterior returns the mean and variance of s given a sensor's statistics (see
// [Gain]).
func (p GainPrior) Posterior(n, tau, b float64) (mean, variance float64) {
	_, mean, variance = p.posterior(n, tau, b)
	return mean, variance
}

// Posteriors is Posterior for many sensors, four at a time.
func (p GainPrior) Posteriors(mean, variance, n, tau, b []float64) {
	const block = 64
	var logNorm [block]float64
	for from := 0; from < len(tau); from += block {
		to := min(from+block, len(tau))
		p.posteriors(logNorm[:to-from], mean[from:to], variance[from:to], n[from:to], tau[from:to], b[from:to])
	}
}

// posterior returns log ∫ p(s) s^n e^{-τs²/2+Bs} ds, and the mean and variance
// of that density; the prior only shifts τ and B, and adds its normaliser.
func (p GainPrior) posterior(n, tau, b float64) (logNorm, mean, variance float64) {
	return quadrature.GainMoments(n, tau+p.Precision, b+p.Precision*p.Center, p.Lo, p.Hi)
}

// posteriors is posterior for a block of sensors.
func (p GainPrior) posteriors(logNorm, mean, variance, n, tau, b []float64) {
	quadrature.GainMomentsBatch(logNorm, mean, variance, n, tau, b, p.Precision, p.Precision*p.Center, p.Lo, p.Hi)
}

// logMass is log ∫ of the unnormalised prior density over its range.
func (p GainPrior) logMass() float64 {
	if p.Precision == 0 {
		return math.Log(p.Hi - p.Lo)
	}
	logNorm, _, _ := p.posterior(0, 0, 0)
	return logNorm
}

// Validate reports a parameter that describes no channel.
func (c Gain) Validate() error {
	if err := c.Prior.Validate(); err != nil {
		return err
	}
	if !(c.Saturation >= 0) || math.IsInf(c.Saturation, 1) {
		return fmt.Errorf("the reading at which sensors saturate must be positive and finite, found %g", c.Saturation)
	}
	return validNoise(c.NoiseVar)
}

// Output implements [Channel].
func (c Gain) Output(b *Block) {
	if c.Saturation > 0 {
		c.outputClipped(b)
		return
	}
	c.output(b)
}

// output is Output without clipped readings.
func (c Gain) output(b *Block) {
	for row := range b.Rows() {
		c.statistics(b, row)
	}
	c.Prior.posteriors(b.LogZ, b.S, b.SVar, b.Count, b.Tau, b.B)
	logMass := c.Prior.logMass()
	for row := range b.Rows() {
		b.LogZ[row] += c.derivatives(b, row) - logMass
	}
}

// statistics sums τ, B and n of one sensor, on top of what its past holds.
func (c Gain) statistics(b *Block, row int) {
	var n, tau, shift float64
	if b.PastTau != nil {
		n, tau, shift = b.PastCount[row], b.PastTau[row], b.PastB[row]
	}
	for k := row * b.P; k < (row+1)*b.P; k++ {
		y := b.Y[k]
		if math.IsNaN(y) {
			continue
		}
		scaled := y * (1 / (b.V[k] + c.NoiseVar))
		n++
		tau += y * scaled
		shift += b.Omega[k] * scaled
	}
	b.Count[row], b.Tau[row], b.B[row] = n, tau, shift
}

// derivatives fills g and ∂g of one sensor from its posterior, and returns the
// part of log Z_out outside the integral over s.
func (c Gain) derivatives(b *Block, row int) (logGauss float64) {
	quadratic, logD := 0.0, logProduct{value: 1}
	s, sVar := b.S[row], b.SVar[row]
	for k := row * b.P; k < (row+1)*b.P; k++ {
		y := b.Y[k]
		if math.IsNaN(y) {
			b.G[k], b.DG[k] = 0, 0
			continue
		}
		d, omega := b.V[k]+c.NoiseVar, b.Omega[k]
		inverse := 1 / d
		scaled := y * inverse
		b.G[k] = (s*y - omega) * inverse
		b.DG[k] = min(0, (sVar*y*scaled-1)*inverse)
		quadratic += omega * (omega * inverse)
		logD.multiply(2 * math.Pi * d)
	}
	return -0.5 * (quadratic + logD.log())
}

// logProduct is the logarithm of a product of many positive factors, taken as
// seldom as the range of float64 allows.
type logProduct struct{ value, sum float64 }

func (l *logProduct) multiply(factor float64) {
	if !(factor > 1e-100 && factor < 1e100) {
		l.sum += math.Log(factor)
		return
	}
	l.value *= factor
	if !(l.value > 1e-200 && l.value < 1e200) {
		l.sum += math.Log(l.value)
		l.value = 1
	}
}

func (l *logProduct) log() float64 { return l.sum + math.Log(l.value) }

// ScaleDerivatives returns the first and second derivative in c of
//
//	Σ_µ (1-π_µ) log ∫ p(s) s^n e^{-τ_µ s²/2 + c B_µ s} ds,
//
// the sensors' part of the evidence when all estimates of the signals are
// multiplied by c: the posterior means give the first, the variances the second.
// broken holds π, the probability that a sensor is broken; nil where none is.
func (c Gain) ScaleDerivatives(scale float64, broken, count, tau, b []float64) (first, second float64) {
	const batch = 64
	var scaled, logNorm, s, sVar [batch]float64
	for from := 0; from < len(tau); from += batch {
		to := min(from+batch, len(tau))
		for i, b := range b[from:to] {
			scaled[i] = scale * b
		}
		c.Prior.posteriors(logNorm[:to-from], s[:], sVar[:], count[from:to], tau[from:to], scaled[:])
		for i, b := range b[from:to] {
			working := 1.0
			if broken != nil {
				working -= broken[from+i]
			}
			if working == 0 {
				continue // its numbers may be beyond double precision
			}
			first += working * (b * s[i])
			second += working * (b * (b * sVar[i]))
		}
	}
	return first, second
}

// Excess says by how many of its own standard deviations the posterior of s,
// were it not cut to the range, would peak outside: negative below Lo, positive
// above Hi, 0 inside. Arguments are the sensor's statistics (see [Gain]).
func (p GainPrior) Excess(n, tau, b float64) float64 {
	tau, b = tau+p.Precision, b+p.Precision*p.Center
	if tau == 0 {
		return 0
	}
	mode := quadrature.GainMode(n, tau, b)
	return (mode - min(max(mode, p.Lo), p.Hi)) * math.Sqrt(tau)
}
