package channel

import (
	"errors"
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

	// Own is noise behind the gain; the zero value for none.
	Own Detector
}

// Noise implements [Noisy].
func (c Gain) Noise() float64 { return c.NoiseVar }

// WithNoise implements [Noisy].
func (c Gain) WithNoise(v float64) Channel {
	c.NoiseVar = v
	return c
}

// Calibration implements [Calibrating].
func (c Gain) Calibration() Calibration { return c.Prior }

// WithCalibration implements [Calibrating]; the calibration must be a [GainPrior].
func (c Gain) WithCalibration(to Calibration) Channel {
	c.Prior = to.(GainPrior)
	return c
}

// Name implements [Named]: a gain, where it clips, and its own noise.
func (c Gain) Name() string {
	name := "gain"
	if c.Saturation > 0 {
		name += fmt.Sprintf(" saturation=%g", c.Saturation)
	}
	if c.Own.Read > 0 {
		name += fmt.Sprintf(" read=%g", c.Own.Read)
	}
	if c.Own.Photon > 0 {
		name += fmt.Sprintf(" photon=%g", c.Own.Photon)
	}
	return name
}

// Limit implements [Clipping].
func (c Gain) Limit() float64 { return c.Saturation }

// Validate reports a parameter that describes no channel.
func (c Gain) Validate() error {
	if err := c.Prior.Validate(); err != nil {
		return err
	}
	if !(c.Saturation >= 0) || math.IsInf(c.Saturation, 1) {
		return fmt.Errorf("the reading at which sensors saturate must be positive and finite, found %g", c.Saturation)
	}
	if c.Saturation > 0 && !c.Prior.normal() {
		return errors.New("clipped readings need a uniform or normal distribution of s")
	}
	if err := c.Own.validate(); err != nil {
		return err
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
func (c *Gain) output(b *Block) {
	c.statistics(b)
	if b.Unscored {
		c.Prior.posteriors(nil, b.S, b.SVar, b.Stats, 1)
		c.derivatives(b)
		for row := range b.LogZ {
			b.LogZ[row] = math.NaN()
		}
		return
	}
	c.Prior.posteriors(b.LogZ, b.S, b.SVar, b.Stats, 1)
	c.derivatives(b)
	logMass := c.Prior.logMass()
	var products [batch]float64
	for from := 0; from < b.Rows(); from += batch {
		rows := min(batch, b.Rows()-from)
		for i := range rows {
			row := from + i
			s, past := b.S[row], c.Prior.of(b.Past, row)
			logGauss, product := c.logDensity(b, row)
			b.LogZ[row] += logGauss + s*(past[field]-0.5*past[precision]*s) + c.Prior.logWeight(s) - logMass
			products[i] = product
		}
		subtractHalfLogs(b.LogZ[from:from+rows], &products)
	}
}

// statistics sums τ, B and n of every sensor, on top of what its past holds.
func (c *Gain) statistics(b *Block) {
	width, at := c.Prior.Width(), 0
	values, variances, omegas := b.Y, b.V[:len(b.Y)], b.Omega[:len(b.Y)]
	for row := range b.Rows() {
		stats := b.Stats[row*width : (row+1)*width]
		copy(stats, b.Past[row*width:(row+1)*width])
		tau, shift, n := stats[precision], stats[field], stats[readings]
		for end := at + b.P; at < end; at++ {
			y := values[at]
			if y != y {
				continue // missing
			}
			scaled := y * (1 / (variances[at] + c.NoiseVar))
			n++
			tau += y * scaled
			shift += omegas[at] * scaled
		}
		stats[precision], stats[field], stats[readings] = tau, shift, n
	}
}

// derivatives fills g and ∂g of every sensor from its posterior.
func (c *Gain) derivatives(b *Block) {
	at := 0
	values, variances, omegas := b.Y, b.V[:len(b.Y)], b.Omega[:len(b.Y)]
	g, dg := b.G[:len(b.Y)], b.DG[:len(b.Y)]
	for row, s := range b.S {
		sVar := b.SVar[row]
		for end := at + b.P; at < end; at++ {
			y := values[at]
			if y != y {
				g[at], dg[at] = 0, 0
				continue
			}
			inverse := 1 / (variances[at] + c.NoiseVar)
			g[at] = (s*y - omegas[at]) * inverse
			dg[at] = min(0, (sVar*y*(y*inverse)-1)*inverse)
		}
	}
}

// logDensity is the logarithm of the density of one sensor's readings at ŝ, but for that of a factor product^{-½}: the residuals are
// squared as they are, since y² and ω² in units of D leave no digits of them at small noise.
func (c *Gain) logDensity(b *Block, row int) (logGauss, product float64) {
	square, logD := 0.0, logProduct{value: 1}
	for k := row * b.P; k < (row+1)*b.P; k++ {
		if y := b.Y[k]; !math.IsNaN(y) {
			square += (b.S[row]*y - b.Omega[k]) * b.G[k]
			logD.multiply(2 * math.Pi * (b.V[k] + c.NoiseVar))
		}
	}
	return -0.5 * (square + logD.sum), logD.value
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

// ScaleQuadratic implements [Calibrating]: Q = Σ (1-π)ω²/D. Sensors with clipped
// readings have theirs in ScaleDerivatives.
func (c Gain) ScaleQuadratic(sum float64, b *Block) float64 {
	if c.Saturation > 0 {
		return c.clippedQuadratic(sum, b)
	}
	return Quadratic(sum, b, c.NoiseVar)
}

// AtEdges implements [Edged].
func (c Gain) AtEdges(lo, hi float64, b *Block) (near, inside *Block) {
	p := c.Prior
	if c.Saturation > 0 || p.Fills() != nil {
		return nil, nil
	}
	near, inside = &Block{}, &Block{}
	for mu, broken := range b.Broken {
		stats := p.of(b.Stats, mu)
		n, tau, field := stats[readings], stats[precision], stats[field]
		least, most := quadrature.GainMode(n, tau, lo*field), quadrature.GainMode(n, tau, hi*field)
		reach, to := quadrature.EdgeReach/math.Sqrt(tau), near
		if least-p.Lo > reach && p.Hi-most > reach {
			to = inside
		}
		to.Broken, to.Stats = append(to.Broken, broken), append(to.Stats, stats[:]...)
	}
	return near, inside
}

// ScaleDerivatives implements [Calibrating], by [GainPrior.ScaleDerivatives].
func (c Gain) ScaleDerivatives(scale float64, b *Block) (first, second float64) {
	if c.Saturation > 0 {
		return c.clippedScale(scale, b)
	}
	return c.Prior.ScaleDerivatives(scale, b.Broken, b.Stats)
}
