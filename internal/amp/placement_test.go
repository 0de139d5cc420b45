package amp

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
)

// The density along the scale is placed where it is, also when it is a ramp that ends in a
// cliff, as without noise, with walls of any steepness.
func TestScaleMoments(t *testing.T) {
	const width = 1e-3
	for _, c := range []struct {
		name     string
		slope    func(t float64) float64 // dΦ/dt
		mean, sd float64
		within   float64 // of sd
	}{
		{"normal", func(t float64) float64 { return -(t - 0.3*width) / (width * width) }, 0.3 * width, width, 1e-4},
		{"wide normal", func(t float64) float64 { return -t / (0.1 * 0.1) }, 0, 0.1, 1e-4},
		{"skew", func(t float64) float64 { // Φ = 4 log u - 4u, with u = 1 + t/width: a gamma distribution of shape 5
			return (4/max(1+t/width, 1e-9) - 4) / width
		}, 0.25 * width, width * math.Sqrt(5) / 4, 1e-2},
		{"ramp and cliff", cliff(1/width, 1e12), -width, width, 0.05},
		{"higher cliff", cliff(1/width, 1e18), -width, width, 0.05},
		{"falling ramp", func(t float64) float64 { return -cliff(1/width, 1e15)(-t) }, width, width, 0.05},
	} {
		e := &scaleEvidence{tangent: func(s float64) (first, second float64) { return c.slope(math.Log(s)) / s, -1 / (width * width) }}
		p := e.placement()
		mean, sd := p.Mean, p.SD
		if t.Logf("%s: %g ± %g", c.name, mean, sd); math.Abs(mean-c.mean) > c.within*c.sd || math.Abs(sd-c.sd) > c.within*c.sd {
			t.Errorf("%s: %g ± %g, expected %g ± %g", c.name, mean, sd, c.mean, c.sd)
		}
	}
}

// cliff is the slope of a ramp up to 0, and of a wall beyond.
func cliff(ramp, wall float64) func(t float64) float64 {
	return func(t float64) float64 { return ramp - wall*max(0, t) }
}

// Variances that are damped, and so twice what they will be, do not count twice.
func TestActiveWhileVariancesLag(t *testing.T) {
	s := &State{}
	s.N, s.P, s.SumC = 2, 2, []float64{3, 5}
	s.C, s.Sigma = []float64{2, 4, 2, 3}, []float64{1, 2, 2, 3}
	if got := s.active(); math.Abs(got-(2+2)*0.5-(1+1)) > 1e-15 {
		t.Errorf("active entries: %g, expected 4", got)
	}
}

// Between two factors the evidence of sensors far from the ends of their range is interpolated.
func TestEvidenceBetween(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	gain := channel.Gain{Prior: channel.Uniform(0.9, 1.1)}
	for _, tau := range []float64{1e5, 1e7, 1e12} {
		const sensors, readings = 500, 20
		e := &scaleEvidence{channel: gain, sensors: &channel.Block{}, volume: sensors}
		for range sensors {
			s := 0.9 + 0.2*rng.Float64()
			b := tau * (s + rng.NormFloat64()/math.Sqrt(tau))
			e.sensors.Broken = append(e.sensors.Broken, float64(rng.IntN(8)/7))
			e.sensors.Stats = append(e.sensors.Stats, tau, b, readings)
			e.quadratic += b * b / tau
		}
		const lo, hi = -8e-3, 9e-3
		there := e.between(lo, hi)
		if there == e {
			t.Fatal("no sensor is far from the ends")
		}
		for i := range 41 {
			at := lo + (hi-lo)*float64(i)/40
			got, want := there.slopeLog(at), e.slopeLog(at)
			// Beside rounding of sums, a part in 10⁸ of what a sensor says by the number of its readings.
			if math.Abs(got-want) > 4*e.rounding()+1e-8*sensors*readings {
				t.Errorf("τ = %g, log c = %g: slope %g, expected %g", tau, at, got, want)
			}
		}
	}
}
