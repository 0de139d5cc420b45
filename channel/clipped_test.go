package channel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A limit that no reading reaches changes nothing, and one that is reached
// brings the posterior of s to where a sum over a fine grid has it.
func TestClippedPosteriorAgainstGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, omega, v := drawSensor(t)
		plain, far := block(y, omega, v), block(y, omega, v)
		gain := Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3}
		gain.Output(plain)
		gain.Saturation = 1e3
		gain.Output(far)
		if plain.S[0] != far.S[0] || plain.G[0] != far.G[0] || plain.LogZ[0] != far.LogZ[0] {
			t.Fatal("a limit that no reading reaches changed the sensor")
		}
		gain.Saturation = 0.7
		clipped := block(y, omega, v)
		gain.Output(clipped)
		logZ, mean, variance := gridPosterior(gain, y, omega, v)
		if math.Abs(clipped.LogZ[0]-logZ) > 1e-6*(1+math.Abs(logZ)) || math.Abs(clipped.S[0]-mean) > 1e-6 || math.Abs(clipped.SVar[0]-variance) > 1e-6 {
			t.Fatalf("log Z %g, s %g, variance %g; on a grid %g, %g, %g", clipped.LogZ[0], clipped.S[0], clipped.SVar[0], logZ, mean, variance)
		}
	})
}

func gridPosterior(c Gain, y, omega, v []float64) (logZ, mean, variance float64) {
	const cells = 20000
	step := (c.Prior.Hi - c.Prior.Lo) / cells
	logs := make([]float64, cells)
	top := math.Inf(-1)
	for i := range logs {
		s := c.Prior.Lo + (float64(i)+0.5)*step
		for k, reading := range y {
			d := v[k] + c.NoiseVar
			if math.Abs(reading) >= c.Saturation {
				logs[i] += math.Log(0.5 * math.Erfc(-(math.Copysign(1, reading)*omega[k]-s*c.Saturation)/math.Sqrt(2*d)))
				continue
			}
			e := s*reading - omega[k]
			logs[i] += math.Log(s) - 0.5*(e*e/d+math.Log(2*math.Pi*d))
		}
		top = max(top, logs[i])
	}
	var mass, first, second float64
	for i, l := range logs {
		s, w := c.Prior.Lo+(float64(i)+0.5)*step, math.Exp(l-top)
		mass += w
		first += w * s
		second += w * s * s
	}
	mean = first / mass
	return top + math.Log(mass/cells), mean, second/mass - mean*mean
}

func TestClippedScaleDerivatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, omega, v := drawSensor(t)
		c := Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3, Saturation: 0.5}
		evidence := func(scale float64) *Block {
			scaled := make([]float64, len(omega))
			for k, w := range omega {
				scaled[k] = scale * w
			}
			b := block(y, scaled, v)
			c.Output(b)
			return b
		}
		b := evidence(1)
		first, second := c.sensorScale(1, b, 0)
		const h = 1e-4
		up, down := evidence(1 + h).LogZ[0], evidence(1 - h).LogZ[0]
		if want := (up - down) / (2 * h); math.Abs(first-want) > 1e-4*(1+math.Abs(want)) {
			t.Fatalf("first derivative %g, difference quotient %g", first, want)
		}
		if want := (up - 2*b.LogZ[0] + down) / (h * h); math.Abs(second-want) > 1e-3*(1+math.Abs(want)) {
			t.Fatalf("second derivative %g, difference quotient %g", second, want)
		}
	})
}
