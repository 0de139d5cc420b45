package channel

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// Codes is the channel of converters: a reading is the code of an interval [a, b) that (z+ε)/s lies in, and no more is known of it
// (Zymnis, Boyd and Candès, "Compressed sensing with quantized measurements", 2010). Given s its likelihood is
//
//	P(sa < z+ε < sb) = Φ(β) - Φ(α),   α = (sa - ω)/√D,   β = (sb - ω)/√D,   D = V+Δ,
//
// which is log-concave in s and ω. With the mean m and the variance v of N(0, 1) between α and β
//
//	g = m/√D,   ∂g = (v-1)/D,   ∂_s log P = (1 - v - m(m + ω/√D))/s,
//
// and over the posterior of s, p(s) ∏ P, an integral,
//
//	g = E[g(s)],   ∂g = E[∂g(s)] + Var g(s).
//
// Statistics of a sensor are those of a [Gain] that says the same of s to second order (see integrated.go), exact in the limit of fine codes.
type Codes struct {
	Prior    GainPrior
	NoiseVar float64 // Δ ≥ 0

	// Step is the width of a code in units of the readings, which lie in the middle: y stands for [y - Step/2, y + Step/2). 0 for one bit:
	// then a positive reading says that (z+ε)/s is above Threshold, and any other that it is not.
	Step       float64
	Threshold  float64   // only for one bit
	Thresholds []float64 // of every reading, sensor by sensor (M×P), in its place; nil where all have one

	// Saturation is the size of the last code on either side: it stands for all that is beyond. 0 where codes do not end.
	Saturation float64
}

// Coded is a channel whose readings are not z plus noise, divided by s, but one of few values: codes, signs, counts.
type Coded interface {
	Calibrating

	// Check reports a reading, of sensors of p signals each, that such a sensor does not give.
	Check(y []float64, p int) error
}

// CodedOf is the channel of sensors in order of c; ok is false where readings are no codes.
func CodedOf(c Channel) (coded Coded, ok bool) {
	coded, ok = InOrder(c).(Coded)
	return coded, ok
}

// CodesOf are the sensors in order of c as converters; ok is false where they are none.
func CodesOf(c Channel) (codes Codes, ok bool) {
	codes, ok = InOrder(c).(Codes)
	return codes, ok
}

// Noise implements [Noisy].
func (c Codes) Noise() float64 { return c.NoiseVar }

// WithNoise implements [Noisy].
func (c Codes) WithNoise(v float64) Channel {
	c.NoiseVar = v
	return c
}

// LeastLearned is the noise below which readings do not determine how much there is: a thousandth of the variance of an error that is anywhere in
// a cell, Step²/12, times s².
func (c Codes) LeastLearned() float64 {
	width := c.Step * Middle(c.Prior)
	return width * width / 12 * unseenNoise
}

// unseenNoise is the part of a cell's own variance below which noise is not seen beside it.
const unseenNoise = 1e-3

// Calibration implements [Calibrating].
func (c Codes) Calibration() Calibration { return c.Prior }

// WithCalibration implements [Calibrating]; the calibration must be a [GainPrior].
func (c Codes) WithCalibration(to Calibration) Channel {
	c.Prior = to.(GainPrior)
	return c
}

// Name implements [Named].
func (c Codes) Name() string {
	switch {
	case c.Thresholds != nil:
		return "sign threshold=each"
	case c.OneBit():
		return fmt.Sprintf("sign threshold=%g", c.Threshold)
	}
	return fmt.Sprintf("codes step=%g saturation=%g", c.Step, c.Saturation)
}

// OneBit reports whether readings are signs.
func (c Codes) OneBit() bool { return c.Step == 0 }

// Validate reports a parameter that describes no channel.
func (c Codes) Validate() error {
	switch {
	case !(c.Step >= 0) || math.IsInf(c.Step, 1):
		return fmt.Errorf("the step between codes must be positive and finite, found %g", c.Step)
	case math.IsNaN(c.Threshold) || math.IsInf(c.Threshold, 0):
		return fmt.Errorf("the threshold of one-bit readings must be finite, found %g", c.Threshold)
	case !(c.Saturation >= 0) || math.IsInf(c.Saturation, 1):
		return fmt.Errorf("the size of the last code must be positive and finite, found %g", c.Saturation)
	case c.OneBit() && c.Saturation > 0:
		return errors.New("one-bit readings have no last code: leave saturation out")
	case !c.OneBit() && (c.Threshold != 0 || c.Thresholds != nil):
		return errors.New("a threshold is for one-bit readings, and these have a step")
	}
	if err := c.Prior.Validate(); err != nil {
		return err
	}
	return validNoise(c.NoiseVar)
}

// thresholdOf is the threshold of reading j.
func (c *Codes) thresholdOf(j int) float64 {
	if c.Thresholds != nil {
		return c.Thresholds[j]
	}
	return c.Threshold
}

// cell is the interval that reading j stands for.
func (c *Codes) cell(j int, y float64) (a, b float64) {
	half := 0.5 * c.Step
	switch {
	case c.OneBit() && y > 0:
		return c.thresholdOf(j), math.Inf(1)
	case c.OneBit():
		return math.Inf(-1), c.thresholdOf(j)
	case Clipped(y, c.Saturation) && y > 0:
		return c.Saturation - half, math.Inf(1)
	case Clipped(y, c.Saturation):
		return math.Inf(-1), half - c.Saturation
	}
	return y - half, y + half
}

// CodeOf is the code that a converter makes of a reading; one that is missing stays so.
func (c Codes) CodeOf(y float64) float64 { return c.CodeAt(0, y) }

// CodeAt is the code that a converter makes of reading j, in the order of Thresholds.
func (c Codes) CodeAt(j int, y float64) float64 {
	switch {
	case math.IsNaN(y):
		return y
	case c.OneBit() && y > c.thresholdOf(j):
		return 1
	case c.OneBit():
		return -1
	}
	y = c.Step * math.Round(y/c.Step)
	if c.Saturation > 0 {
		y = min(max(y, -c.Saturation), c.Saturation)
	}
	return y
}

// offGrid is how far from the middle of a code a reading may be, in steps: files in single precision have seven digits of a code.
const offGrid = 1e-3

// Check implements [Coded].
func (c Codes) Check(y []float64, p int) error {
	if c.Thresholds != nil && len(c.Thresholds) != len(y) {
		return fmt.Errorf("there are %d thresholds for %d readings: expected one for each", len(c.Thresholds), len(y))
	}
	for j, v := range c.Thresholds {
		if !math.IsNaN(y[j]) && (math.IsNaN(v) || math.IsInf(v, 0)) {
			return fmt.Errorf("the threshold of sensor %d, signal %d is %g, expected a finite number", j/p, j%p, v)
		}
	}
	first, any := 0.0, false
	for j, v := range y {
		switch {
		case math.IsNaN(v) || Clipped(v, c.Saturation):
		case c.OneBit():
			if v != 1 && v != -1 && v != 0 {
				return fmt.Errorf("Y: sensor %d, signal %d has a reading of %g, expected 1 above the threshold and -1 (or 0) below", j/p, j%p, v)
			}
		case !any:
			first, any = v, true
		default:
			codes := (v - first) / c.Step
			if off := math.Abs(codes - math.Round(codes)); off > offGrid+1e-7*math.Abs(v/c.Step) {
				return fmt.Errorf("Y: sensor %d, signal %d has a reading of %g, which is %.3g steps of %g from that of the first reading, %g: expected a whole number of steps. Readings that are no codes are for a run without the step",
					j/p, j%p, v, codes, c.Step, first)
			}
		}
	}
	return nil
}

// Output implements [Channel].
func (c Codes) Output(b *Block) { newIntegral(&c).fill(b) }

// ScaleQuadratic implements [Calibrating]: all is in ScaleDerivatives.
func (c Codes) ScaleQuadratic(sum float64, _ *Block) float64 { return sum }

// ScaleDerivatives implements [Calibrating].
func (c Codes) ScaleDerivatives(scale float64, b *Block) (first, second float64) {
	return newIntegral(&c).scaleDerivatives(scale, b)
}

// ScaleTangent implements [SlowScale]: every sensor is an integral.
func (c Codes) ScaleTangent(at float64, b *Block) func(scale float64) (first, second float64) {
	return tangent(c, at, b)
}

// gains implements [integrand].
func (c *Codes) gains() *GainPrior { return &c.Prior }

// variance implements [integrand].
func (c *Codes) variance(v float64) float64 { return v + c.NoiseVar }

// logUnit implements [integrand].
func (c *Codes) logUnit() float64 {
	if c.OneBit() {
		return 0
	}
	return math.Log(c.Step)
}

// at implements [integrand].
func (c *Codes) at(j int, y, s, omega, root float64) (logP, mean, variance, slope float64) {
	from, to := c.cell(j, y)
	logP, mean, variance = quadrature.NormalCell((s*from-omega)/root, (s*to-omega)/root)
	return logP, mean, variance, (1 - variance - mean*(mean+omega/root)) / s
}
