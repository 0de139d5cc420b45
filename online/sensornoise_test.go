package online_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
)

// Noisy sensors are found to be noisy, and not broken; a sensor that breaks is found all the same.
func TestNoiseOfEverySensorIsLearned(t *testing.T) {
	tests.Long(t)
	w := noisy(t, 160, 200, 2, 1)
	c := w.calibrator(t, online.Options{LearnSensorNoise: true})
	for range 30 {
		if e := absorb(t, c, w.draw()); len(e.Flagged) > 0 {
			t.Fatalf("sensors %v are called broken", e.Flagged)
		}
	}
	p, off, spread := c.Posterior(), 0.0, 0.0
	for mu, v := range p.NoiseVar {
		off += math.Pow(math.Log(v/w.each[mu]), 2)
		spread += math.Pow(math.Log(w.noise/w.each[mu]), 2)
	}
	if _, covered := w.calibration(c); off > 0.5*spread || covered < 0.88 {
		t.Errorf("noise is learned to a factor exp ±%.2g of exp ±%.2g, %.0f %% of s within intervals", math.Sqrt(off/160), math.Sqrt(spread/160), 100*covered)
	}
	for range 10 {
		y := w.draw()
		y[7] = 0.4 * w.rng.NormFloat64()
		if e := absorb(t, c, y); len(e.Flagged) == 1 && e.Flagged[0] == 7 {
			return
		}
	}
	t.Error("a broken sensor is not found")
}
