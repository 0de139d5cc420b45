package channel

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// Counts is the channel of counters: a reading is Unit times a number n of photons, of which z/(s Unit) are expected,
//
//	P(n | z, s) = λⁿ e^-λ / n!,   λ = z/(s Unit) ≥ 0,
//
// the Poisson likelihood at any number, none among them, in place of noise whose variance follows the expected reading. There is no other
// noise. Given s the integral over z ~ N(ω, V) is that of a gain's posterior: the exponential shifts ω to ω' = ω - V/(s Unit), and
//
//	P(n | s) ∝ s^-n exp(-ω/(s Unit) + V/(2 s² Unit²)) ∫ zⁿ N(z; ω', V) dz  over z > 0,   ∂_s log P = -n/s + E[z]/(s² Unit).
//
// For the rest see integrated.go.
type Counts struct {
	Prior GainPrior
	Unit  float64 // what one photon adds to a reading, > 0
}

// CountsOf are the sensors in order of c as counters; ok is false where they are none.
func CountsOf(c Channel) (counts Counts, ok bool) {
	counts, ok = InOrder(c).(Counts)
	return counts, ok
}

// Calibration implements [Calibrating].
func (c Counts) Calibration() Calibration { return c.Prior }

// WithCalibration implements [Calibrating]; the calibration must be a [GainPrior].
func (c Counts) WithCalibration(to Calibration) Channel {
	c.Prior = to.(GainPrior)
	return c
}

// Name implements [Named].
func (c Counts) Name() string { return fmt.Sprintf("counts unit=%g", c.Unit) }

// Validate reports a parameter that describes no channel.
func (c Counts) Validate() error {
	if !(c.Unit > 0) || math.IsInf(c.Unit, 1) {
		return fmt.Errorf("what a photon adds to a reading must be positive and finite, found %g", c.Unit)
	}
	return c.Prior.Validate()
}

// Check implements [Coded].
func (c Counts) Check(y []float64, p int) error {
	for j, v := range y {
		count := v / c.Unit
		if off := math.Abs(count - math.Round(count)); count < 0 || off > offGrid+1e-7*math.Abs(count) {
			return fmt.Errorf("Y: sensor %d, signal %d has a reading of %g, which is %.5g photons of %g: expected a whole number, 0 or more. Readings that are no counts are for a run without", j/p, j%p, v, count, c.Unit)
		}
	}
	return nil
}

// Output implements [Channel].
func (c Counts) Output(b *Block) { newIntegral(&c).fill(b) }

// ScaleQuadratic implements [Calibrating]: all is in ScaleDerivatives.
func (c Counts) ScaleQuadratic(sum float64, _ *Block) float64 { return sum }

// ScaleDerivatives implements [Calibrating].
func (c Counts) ScaleDerivatives(scale float64, b *Block) (first, second float64) {
	return newIntegral(&c).scaleDerivatives(scale, b)
}

// ScaleTangent implements [SlowScale]: every sensor is an integral.
func (c Counts) ScaleTangent(at float64, b *Block) func(scale float64) (first, second float64) {
	return tangent(c, at, b)
}

// gains implements [integrand].
func (c *Counts) gains() *GainPrior { return &c.Prior }

// variance implements [integrand].
func (c *Counts) variance(v float64) float64 { return v }

// logUnit implements [integrand]: a count has the width of a unit.
func (c *Counts) logUnit() float64 { return math.Log(c.Unit) }

// at implements [integrand].
func (c *Counts) at(_ int, y, s, omega, root float64) (logP, mean, variance, slope float64) {
	n, size, v := math.Round(y/c.Unit), s*c.Unit, root*root
	shift := v / size
	fact, _ := math.Lgamma(n + 1)
	logP = -n*math.Log(size) - fact - omega/size + 0.5*shift/size
	if n == 0 {
		logMass, z, zz := quadrature.TruncatedNormal((omega - shift) / root)
		logP += logMass
		mean, variance = z-omega/root, zz
	} else {
		logMass, off, zz, ok := fewPowerMoments(n, root, omega-shift)
		if !ok {
			logMass, off, zz = powerMoments(n, v, omega-shift)
		}
		logP += logMass
		mean, variance = (off-shift)/root, zz/v
	}
	return logP, mean, variance, (-n + (omega+root*mean)/size) / s
}

const (
	// countStep is the step in log z, in its standard deviations, with which the trapezoidal rule has eight digits: its error is that of the
	// Fourier transform at 2π/step, and largest for n = 1, whose left tail is the longest.
	countStep = 0.4

	// countLeast is what of the largest weight the last is.
	countLeast = 1e-12
)

const (
	// fewCounts is up to which number recursion takes less time than the trapezoidal rule.
	fewCounts = 40

	// mostGrowth is how many times rounding may grow along it.
	mostGrowth = 1e4
)

// fewPowerMoments is powerMoments by a recursion of r_k = E[u^k]/E[u^(k-1)] of u = z/√v: r_k+1 = t/√v + k/r_k, from the mean r_1 of a truncated normal. Rounding grows with k where t is below zero;
// where it grows too much ok is false.
func fewPowerMoments(n, root, t float64) (logMass, off, variance float64, ok bool) {
	if n > fewCounts {
		return 0, 0, 0, false
	}
	tau := t / root
	logMass, r, _ := quadrature.TruncatedNormal(tau)
	product, growth, last := 1.0, 1.0, r
	for k := 1.0; k <= n; k++ {
		if growth *= k / (r * r); !(growth < mostGrowth) {
			return 0, 0, 0, false
		}
		product *= r * root
		last, r = r, tau+k/r
	}
	return logMass + math.Log(product), n / last * root, root * root * (n + 1 - n*r/last), true
}

// powerMoments are the logarithm of ∫ zⁿ N(z; t, v) dz over z > 0, the mean of z - t, and the variance of z, for n ≥ 1: by the trapezoidal
// rule in log z, where the integrand zⁿ⁺¹ N is smooth and has no end.
func powerMoments(n, v, t float64) (logMass, off, variance float64) {
	mode := quadrature.GainMode(n+1, 1/v, t/v)
	fromT := (n + 1) * v / mode // mode - t, without a subtraction
	factor := math.Exp(countStep / math.Sqrt(n+1+mode*mode/v))
	total, first, second := 1.0, 0.0, 0.0
	for _, by := range [...]float64{factor, 1 / factor} {
		z, log, step := mode, 0.0, math.Log(by)
		for {
			z *= by
			log += (n + 1) * step
			d := z - mode
			w := math.Exp(log - d*(fromT+0.5*d)/v)
			total, first, second = total+w, first+w*d, second+w*(d*d)
			if w < countLeast*total {
				break
			}
		}
	}
	first /= total
	logMass = math.Log(total*math.Log(factor)) + (n+1)*math.Log(mode) - 0.5*(fromT*fromT/v+math.Log(2*math.Pi*v))
	return logMass, fromT + first, second/total - first*first
}
