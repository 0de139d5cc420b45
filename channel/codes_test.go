package channel

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// converters are channels of codes, coarse and fine, with several distributions of s.
func converters() []Codes {
	lognormal := LogNormalAbout(1, 0.2)
	lognormal.Tail = 1e-3
	return []Codes{
		{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3, Step: 0.5},
		{Prior: TruncatedNormal(1, 0.1, 0.5, 1.5), NoiseVar: 1e-3, Step: 0.01},
		{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-2, Step: 0.25, Saturation: 1},
		{Prior: lognormal, NoiseVar: 1e-3, Step: 0.25},
		{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-2, Threshold: 0.7},
		{Prior: TruncatedNormal(1, 0.1, 0.5, 1.5), NoiseVar: 1e-2, Threshold: -0.3},
		{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-2, Thresholds: slices.Repeat([]float64{0.7, -0.3, 0, 1.2, -2}, 20)},
	}
}

// read makes what a converter reads of values.
func (c Codes) read(y []float64) []float64 {
	codes := make([]float64, len(y))
	for k, v := range y {
		codes[k] = c.CodeAt(k, v)
	}
	return codes
}

// outputOf is the block of one sensor.
func outputOf(c Channel, y, omega, v []float64) *Block {
	b := NewBlock(c, 1, len(y))
	b.Y, b.Omega, b.V = y, omega, v
	c.Output(b)
	return b
}

// quotients are the first and second difference quotient of log Z_out of one sensor by ω_k.
func quotients(c Channel, y, omega, v []float64, k int) (first, second float64) {
	const h = 1e-3
	at := func(shift float64) float64 {
		moved := append([]float64(nil), omega...)
		moved[k] += shift
		return outputOf(c, y, moved, v).LogZ[0]
	}
	return (at(h) - at(-h)) / (2 * h), (at(h) - 2*at(0) + at(-h)) / (h * h)
}

// g and ∂g are the first and second derivative of log Z_out of codes.
func TestCodesAreDerivativesOfTheEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, omega, v := drawSensor(t)
		c := rapid.SampledFrom(converters()).Draw(t, "channel")
		y = c.read(y)
		b := outputOf(c, y, omega, v)
		for k := range y {
			first, second := quotients(c, y, omega, v, k)
			if math.Abs(first-b.G[k]) > 1e-3*(1+math.Abs(first)) {
				t.Fatalf("%v: g[%d] = %g, difference quotient %g", c.Name(), k, b.G[k], first)
			}
			if math.Abs(second-b.DG[k]) > 3e-3*(1+math.Abs(second)) && c.Prior.Tail == 0 {
				t.Fatalf("%v: ∂g[%d] = %g, difference quotient %g", c.Name(), k, b.DG[k], second)
			}
		}
	})
}

// The moments of s are those of a sum over a fine grid of p(s) ∏ (Φ(β)-Φ(α)).
func TestCodesMomentsOfS(t *testing.T) {
	phi := func(t float64) float64 { return 0.5 * math.Erfc(-t/math.Sqrt2) }
	rapid.Check(t, func(t *rapid.T) {
		y, omega, v := drawSensor(t)
		c := rapid.SampledFrom(converters()).Draw(t, "channel")
		if c.Step == 0.01 {
			return // differences of Φ have no digits
		}
		y = c.read(y)
		b := NewBlock(c, 1, len(y))
		b.Y, b.Omega, b.V = y, omega, v
		c.Output(b)
		prior := c.Prior.density(make([]float64, gainWidth))
		var total, first, second float64
		lo, hi := c.Prior.Lo, min(c.Prior.Hi, 5)
		const nodes = 20000
		for i := range nodes {
			s := lo + (hi-lo)*(float64(i)+0.5)/nodes
			w := prior.at(s)
			for k := range y {
				from, to := c.cell(k, y[k])
				d := math.Sqrt(v[k] + c.NoiseVar)
				w *= phi((s*to-omega[k])/d) - phi((s*from-omega[k])/d)
			}
			total, first, second = total+w, first+w*s, second+w*s*s
		}
		mean := first / total
		if total*(hi-lo)/nodes < 1e-9 || c.Prior.Tail > 0 && second/total-mean*mean > 0.1 {
			return // the sum has no digits, or does not reach far enough
		}
		sd := math.Sqrt(second/total - mean*mean)
		if math.Abs(mean-b.S[0]) > 2e-3*sd || math.Abs(math.Sqrt(b.SVar[0])/sd-1) > 5e-3 {
			t.Fatalf("%s: s = %g ± %g, by a sum %g ± %g", c.Name(), b.S[0], math.Sqrt(b.SVar[0]), mean, sd)
		}
		if want := math.Log(total * (hi - lo) / nodes); !c.OneBit() && math.Abs(b.LogZ[0]+float64(len(y))*math.Log(c.Step)-want) > 1e-4 {
			t.Fatalf("%s: log Z = %g, by a sum %g", c.Name(), b.LogZ[0], want)
		}
	})
}

// Fine codes are readings: what a [Gain] says of them, with the variance of an error that is anywhere in the cell.
func TestFineCodesAreReadings(t *testing.T) {
	y := []float64{0.62, -1.3, 0.01, 0.4, math.NaN(), 2.1}
	omega := []float64{0.6, -1.1, 0, 0.5, 3, 2}
	v := []float64{0.1, 0.2, 0.1, 0.3, 0.1, 0.05}
	for _, prior := range []GainPrior{Uniform(0.5, 1.5), TruncatedNormal(1, 0.1, 0.5, 1.5), LogNormalAbout(1, 0.1)} {
		of := func(c Channel) *Block {
			b := NewBlock(c, 1, len(y))
			b.Y, b.Omega, b.V = y, omega, v
			c.Output(b)
			return b
		}
		want := of(Gain{Prior: prior, NoiseVar: 1e-3})
		got := of(Codes{Prior: prior, NoiseVar: 1e-3, Step: 1e-5})
		close := func(what string, got, want float64) {
			t.Helper()
			if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("%s: %s = %g, of readings %g", prior.Name(), what, got, want)
			}
		}
		close("s", got.S[0], want.S[0])
		close("Cˢ", got.SVar[0], want.SVar[0])
		close("log Z", got.LogZ[0], want.LogZ[0])
		close("τ", got.Stats[precision], want.Stats[precision])
		close("B", got.Stats[field], want.Stats[field])
		for k := range y {
			close("g", got.G[k], want.G[k])
			close("∂g", got.DG[k], want.DG[k])
		}
	}
}

// Statistics say of s what the codes do: the mean and variance of a [Gain] with these are those of the integral.
func TestStatisticsOfCodes(t *testing.T) {
	y := []float64{0.5, -1, 0, 0.5, 1, 2, -1.5, 0.5}
	omega := []float64{0.6, -1.1, 0.1, 0.5, 0.8, 2, -1.3, 0.6}
	v := []float64{0.01, 0.02, 0.01, 0.03, 0.02, 0.05, 0.01, 0.02}
	for _, c := range []Codes{
		{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3, Step: 0.5},
		{Prior: TruncatedNormal(1, 0.1, 0.5, 1.5), NoiseVar: 1e-3, Step: 0.5},
		{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3, Threshold: 0.7},
	} {
		b := NewBlock(c, 1, len(y))
		b.Y, b.Omega, b.V = c.read(y), omega, v
		c.Output(b)
		mean, variance := make([]float64, 1), make([]float64, 1)
		c.Prior.Posteriors(mean, variance, b.Stats)
		if sd := math.Sqrt(b.SVar[0]); math.Abs(mean[0]-b.S[0]) > 0.05*sd || math.Abs(math.Sqrt(variance[0])/sd-1) > 0.05 {
			t.Errorf("%s: s = %.4f ± %.4f, by statistics %.4f ± %.4f (%v)", c.Name(), b.S[0], sd, mean[0], math.Sqrt(variance[0]), b.Stats)
		}
	}
}

// Derivatives along the common scale are those of log Z.
func TestScaleDerivativesOfCodes(t *testing.T) {
	y, omega, v := []float64{0.5, -1, 0, 0.5}, []float64{0.6, -1.1, 0.1, 0.5}, []float64{0.1, 0.2, 0.1, 0.3}
	for _, c := range converters() {
		of := func(scale float64) *Block {
			b := NewBlock(c, 1, len(y))
			b.Y, b.V = c.read(y), v
			for k, w := range omega {
				b.Omega[k] = scale * w
			}
			c.Output(b)
			return b
		}
		b := NewBlock(c, 1, len(y))
		b.Y, b.Omega, b.V = c.read(y), omega, v
		c.Output(b)
		const h = 1e-3
		first, second := c.ScaleDerivatives(1, b)
		want := (of(1 + h).LogZ[0] - of(1 - h).LogZ[0]) / (2 * h)
		curve := (of(1 + h).LogZ[0] - 2*of(1).LogZ[0] + of(1 - h).LogZ[0]) / (h * h)
		if math.Abs(first-want) > 1e-4*(1+math.Abs(want)) || math.Abs(second-curve) > 1e-2*(1+math.Abs(curve)) {
			t.Errorf("%s: Φ' = %g, Φ'' = %g, difference quotients %g and %g", c.Name(), first, second, want, curve)
		}
	}
}

// Readings that no converter gives are named.
func TestCodesCheck(t *testing.T) {
	step := Codes{Step: 0.1}
	if err := step.Check([]float64{0.05, 0.15, math.NaN(), -0.35, 0.05 + 1e-6}, 5); err != nil {
		t.Error(err)
	}
	if err := step.Check([]float64{0.1, 0.2, 0.25}, 3); err == nil {
		t.Error("half a step is taken for a code")
	}
	if err := (Codes{Thresholds: []float64{1, 2}}).Check([]float64{1, -1, 1}, 3); err == nil {
		t.Error("two thresholds are taken for three readings")
	}
	if err := (Codes{Threshold: 1}).Check([]float64{1, -1, 0, 0.5}, 2); err == nil {
		t.Error("0.5 is taken for a sign")
	}
}
