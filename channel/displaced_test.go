package channel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// displacedBlock is a sensor with P readings and J parameters, whose rows are taken at θ = at.
func displacedBlock(rng *rand.Rand, p, j int) (b *Block, by *Displacements) {
	spread := make([]float64, j)
	for i := range spread {
		spread[i] = 0.1 * (1 + rng.Float64())
	}
	by = NewDisplacements(1, p, spread)
	b = NewBlock(Gain{}, 1, p)
	s := 0.8 + 0.4*rng.Float64()
	theta := make([]float64, j)
	for i := range theta {
		theta[i], by.At[i] = spread[i]*rng.NormFloat64(), spread[i]*rng.NormFloat64()
	}
	for k := range p {
		z := rng.NormFloat64()
		b.Omega[k], b.V[k] = z, 0.001+0.01*rng.Float64()
		for i := range theta {
			along := rng.NormFloat64()
			by.along(0, i, p)[k] = along
			b.Omega[k] += by.At[i] * along
			z += theta[i] * along
		}
		b.Y[k] = (z + 0.1*rng.NormFloat64()) / s
	}
	return b, by
}

// TestDisplacedIsTheIntegral compares the evidence, and both posteriors, with a sum over a table of s and θ.
func TestDisplacedIsTheIntegral(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 1))
	for range 5 {
		b, by := displacedBlock(rng, 4, 1)
		c := Displaced{Gain: Gain{Prior: TruncatedNormal(1, 0.2, 0.5, 1.5), NoiseVar: 0.005}, By: by}
		c.Output(b)
		const steps = 400
		width := 8 * by.Spread[0]
		var mass, s1, s2, t1, t2, prior float64
		for i := range steps {
			s := 0.5 + (float64(i)+0.5)/steps
			weight := math.Exp(-0.5 * (s - 1) * (s - 1) / (0.2 * 0.2))
			prior += weight / steps
			for l := range steps {
				theta := width * (2*(float64(l)+0.5)/steps - 1)
				log := -0.5*theta*theta/(by.Spread[0]*by.Spread[0]) - math.Log(by.Spread[0]) - 0.5*math.Log(2*math.Pi)
				for k, y := range b.Y {
					doubt := b.V[k] + c.NoiseVar
					r := s*y - c.origin(b, 0, k) - theta*by.Along[k]
					log += math.Log(s) - 0.5*r*r/doubt - 0.5*math.Log(2*math.Pi*doubt)
				}
				p := weight * math.Exp(log) * (2 * width / steps) / steps
				mass, s1, s2, t1, t2 = mass+p, s1+p*s, s2+p*s*s, t1+p*theta, t2+p*theta*theta
			}
		}
		s1, s2, t1, t2 = s1/mass, s2/mass, t1/mass, t2/mass
		for name, pair := range map[string][2]float64{
			"log Z": {b.LogZ[0], math.Log(mass / prior)},
			"s":     {b.S[0], s1}, "variance of s": {b.SVar[0], s2 - s1*s1},
			"theta": {by.Mean[0], t1}, "variance of theta": {by.Cov[0], t2 - t1*t1},
		} {
			if math.Abs(pair[0]-pair[1]) > 2e-4*math.Abs(pair[1])+1e-6 {
				t.Errorf("%s is %.8g, the table says %.8g", name, pair[0], pair[1])
			}
		}
	}
}

func TestDisplacedOutputsAreDerivativesOfTheEvidence(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 2))
	for range 20 {
		b, by := displacedBlock(rng, 5, 2)
		b.Y[3] = math.NaN()
		c := Displaced{Gain: Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 0.01}, By: by}
		c.Output(b)
		g, dg := append([]float64(nil), b.G...), append([]float64(nil), b.DG...)
		for k := range b.P {
			const h = 1e-3
			at := func(shift float64) float64 {
				b.Omega[k] += shift
				c.Output(b)
				b.Omega[k] -= shift
				return b.LogZ[0]
			}
			high, middle, low := at(h), at(0), at(-h)
			if first := (high - low) / (2 * h); math.Abs(first-g[k]) > 1e-3*(1+math.Abs(first)) {
				t.Errorf("g[%d] = %g, difference quotient %g", k, g[k], first)
			}
			if second := (high - 2*middle + low) / (h * h); math.Abs(second-dg[k]) > 1e-2*(1+math.Abs(second)) {
				t.Errorf("∂g[%d] = %g, difference quotient %g", k, dg[k], second)
			}
		}
	}
}

// TestDisplacedPullsAreDerivativesOfTheEvidence: by ω_j the evidence changes by θ̂g and Pull, and along the scale of all of them by what
// ScaleQuadratic leaves of the derivative of the channel.
func TestDisplacedPullsAreDerivativesOfTheEvidence(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 4))
	for range 20 {
		b, by := displacedBlock(rng, 5, 2)
		b.Y[3] = math.NaN()
		c := Displaced{Gain: Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 0.01}, By: by}
		c.Output(b)
		first, _ := c.ScaleDerivatives(1, b)
		slope, scale := first-c.ScaleQuadratic(0, b), 0.0
		for k := range b.P {
			for j := range by.Spread {
				c.Output(b)
				scale += b.G[k] * b.Omega[k] / float64(len(by.Spread))
				origin, pull := c.origin(b, 0, k), by.of(by.Pull, 0, j, b.P)[k]
				scale += pull * by.along(0, j, b.P)[k]
				want := by.Mean[j]*b.G[k] + pull
				const h = 1e-3
				at := func(shift float64) float64 {
					by.along(0, j, b.P)[k] += shift
					old := b.Omega[k]
					b.Omega[k] += origin - c.origin(b, 0, k)
					c.Output(b)
					by.along(0, j, b.P)[k] -= shift
					b.Omega[k] = old
					return b.LogZ[0]
				}
				if got := (at(h) - at(-h)) / (2 * h); math.Abs(got-want) > 1e-3*(1+math.Abs(want)) {
					t.Errorf("derivative by ω_%d of signal %d is %g, difference quotient %g", j, k, want, got)
				}
			}
		}
		if math.Abs(slope-scale) > 1e-9*(1+math.Abs(first)) {
			t.Errorf("along the scale %g, as sums of g and pulls %g", slope, scale)
		}
	}
}

// TestDisplacedAlongTheRowItselfIsGain: where the derivative is the row, y = (1+θ)(z+…)/s, and what is known of s/(1+θ) is what a gain of the
// same spread has.
func TestDisplacedAlongTheRowItselfIsGain(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 3))
	const p, spread = 10, 0.02
	b, by := displacedBlock(rng, p, 1)
	by.Spread[0], by.At[0] = spread, 0
	for k := range p {
		z := rng.NormFloat64()
		b.Omega[k], b.V[k] = z+1e-3*rng.NormFloat64(), 1e-6
		by.Along[k], b.Y[k] = b.Omega[k], (1+0.015)*z
	}
	Displaced{Gain: Gain{Prior: Uniform(1-1e-9, 1+1e-9), NoiseVar: 1e-6}, By: by}.Output(b)
	own := NewBlock(Gain{}, 1, p)
	own.Y, own.Omega, own.V = b.Y, b.Omega, b.V
	Gain{Prior: TruncatedNormal(1, spread, 0.8, 1.2), NoiseVar: 1e-6}.Output(own)
	if s := 1 / (1 + by.Mean[0]); math.Abs(s-own.S[0]) > 0.01*math.Sqrt(own.SVar[0]) {
		t.Errorf("s/(1+theta) = %.8g, the gain is %.8g ± %.2g", s, own.S[0], math.Sqrt(own.SVar[0]))
	}
	if ratio := by.Cov[0] / own.SVar[0]; math.Abs(ratio-1) > 0.08 { // (1+θ)⁴
		t.Errorf("the variance is %.3g of that of the gain", ratio)
	}
	for k := range p {
		// g is by ω alone, and by z = (1+θ)ω a part of θ less.
		if math.Abs(b.G[k]*1.015-own.G[k]) > 0.05/math.Sqrt(own.V[k]) {
			t.Errorf("g[%d] = %g, of the gain %g", k, b.G[k], own.G[k])
		}
	}
}

// TestDisplacedCarriesWhatItRead: readings one after the other, with statistics carried, say the same of s and θ as all of them together.
func TestDisplacedCarriesWhatItRead(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 5))
	for range 10 {
		const p = 4
		all, by := displacedBlock(rng, p, 2)
		c := Displaced{Gain: Gain{Prior: TruncatedNormal(1, 0.2, 0.5, 1.5), NoiseVar: 0.005}, By: by}
		c.Output(all)
		own := NewDisplacements(1, 1, by.Spread)
		own.Carried, own.At = true, by.At
		one := Displaced{Gain: c.Gain, By: own}
		known := one.Calibration().(DisplacedPrior)
		b := NewBlock(one, 1, 1)
		for k := range p {
			b.Y[0], b.Omega[0], b.V[0] = all.Y[k], all.Omega[k], all.V[k]
			for j := range by.Spread {
				own.Along[j] = by.along(0, j, p)[k]
			}
			one.Output(b)
			copy(b.Past, b.Stats)
		}
		theta, cov, withS := make([]float64, 2), make([]float64, 4), make([]float64, 2)
		known.Parameters(theta, cov, withS, b.S, b.SVar, b.Stats)
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-8*(1+math.Abs(want)) {
				t.Errorf("%s: one by one %.10g, together %.10g", what, got, want)
			}
		}
		near("s", b.S[0], all.S[0])
		near("its variance", b.SVar[0], all.SVar[0])
		near("g", b.G[0], all.G[p-1])
		near("its derivative", b.DG[0], all.DG[p-1])
		for j := range 2 {
			near("theta", own.Mean[j], by.Mean[j])
			near("theta of the statistics", theta[j], by.Mean[j])
			near("pull", own.Pull[j], by.of(by.Pull, 0, j, p)[p-1])
			for l := range 2 {
				near("covariance", own.Cov[2*j+l], by.Cov[2*j+l])
				near("covariance of the statistics", cov[2*j+l], by.Cov[2*j+l])
			}
		}
		near("readings", known.Readings(b.Stats), p)
		known.ScaleStats(b.Stats, 2)
		known.Scaled(2).Posteriors(b.S, b.SVar, b.Stats)
		near("twice s", b.S[0], 2*all.S[0])
	}
}
