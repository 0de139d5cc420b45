package evolution

import (
	"math"
	"testing"

	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
)

// latentsThrough is the error of latents of variance 1 whose outputs through a layer are read without noise: state evolution's fixed point from no information.
func latentsThrough(density, inputs float64, f prior.Activation) float64 {
	const exact = 1e-8 // variance of the outputs' noise
	s, last := newNetworkState(Model{Signal: prior.GaussBernoulli{Density: density, SignalVar: 1}, Network: []Layer{{Inputs: inputs, WeightVar: 1, Activation: f}}}), 0.0
	for range 1000 {
		if s.step(exact, 1e-8); math.Abs(s.v[0]-last) < 1e-5*s.v[0] {
			break
		}
		last = s.v[0]
	}
	return s.v[0]
}

// State evolution as tramp prints it (examples/glm/data/relu_mse_curves.csv at 2194796, A. Baker and others, MIT licence): sparse numbers out of a ReLU of α outputs each.
func TestNetworkIsThatOfTramp(t *testing.T) {
	for _, c := range []struct{ density, alpha, error float64 }{
		{0.4, 0.2, 0.332177},
		{0.4, 0.4, 0.256047},
		{0.4, 0.6, 0.176311},
		{0.4, 0.8, 0.0988121},
		{0.4, 0.9, 0.061892},
		{0.6, 0.2, 0.502949},
		{0.6, 0.4, 0.406755},
		{0.6, 0.6, 0.312819},
		{0.6, 0.8, 0.223882},
		{0.6, 1, 0.142581},
	} {
		if got := latentsThrough(c.density, 1/c.alpha, prior.ReLU); !(math.Abs(got/c.error-1) < 0.007) {
			t.Errorf("density %g, α = %g: %.6g, tramp has %.6g", c.density, c.alpha, got, c.error)
		}
	}
}

// Thresholds as tramp prints them, to 0.001 (relu_critical_lines.csv and cs_critical_lines.csv).
func TestThresholdsAreThoseOfTramp(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct{ density, relu, linear float64 }{
		{0.1, 0.33546, 0.207528}, {0.2, 0.59132, 0.355965}, {0.4, 1.02393, 0.589363}, {0.6, 1.39307, 0.771979}, {0.8, 1.71924, 0.911627},
	} {
		if (c.density == 0.1 || c.density == 0.6) && !*long {
			continue
		}
		if below, above := latentsThrough(c.density, 1/(c.relu*0.99), prior.ReLU), latentsThrough(c.density, 1/(c.relu*1.01), prior.ReLU); !(below > 1e-3) || !(above < 1e-5) {
			t.Errorf("ReLU, density %g: error %.2g a percent below tramp's threshold, %.2g above", c.density, below, above)
		}
		if got := recovery.AlphaCS(prior.GaussBernoulli{Density: c.density, SignalVar: 1}); !(math.Abs(got-c.linear) < 1.1e-3) {
			t.Errorf("linear, density %g: %.5g, tramp has %.5g", c.density, got, c.linear)
		}
	}
}
