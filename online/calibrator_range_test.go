package online_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Gains that do not fill the told range leave the common scale open by what is left of
// it; a stream that was told the truth, or insists, keeps the uniform distribution.
func TestStreamWithARangeThatMerelyContainsTheGains(t *testing.T) {
	te := teacher.Teacher{N: 200, M: 160, P: 12, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		told    channel.GainPrior
		insist  solver.SPrior
		learned bool
	}{
		{channel.Uniform(0.9, 1.1), solver.AutoS, true},
		{channel.Uniform(0.9, 1.1), solver.UniformS, false},
		{channel.Uniform(0.95, 1.05), solver.AutoS, false},
	} {
		s, err := online.NewCalibrator(in.W, te.Signal, channel.Gain{Prior: c.told, NoiseVar: te.NoiseVar}, &online.Options{Settings: solver.Settings{SPrior: c.insist}})
		if err != nil {
			t.Fatal(err)
		}
		var sd float64
		for k := range te.P {
			y := make([]float64, te.M)
			for mu := range y {
				y[mu] = in.Y.At(mu, k)
			}
			e, err := s.Absorb(t.Context(), y)
			if err != nil {
				t.Fatal(err)
			}
			sd = e.ScaleSD()
		}
		p := s.Posterior()
		if (p.Range != nil) != c.learned {
			t.Errorf("told [%g, %g], %v: %v", c.told.Lo, c.told.Hi, c.insist, p.Range)
			continue
		}
		var with, own float64
		for mu, s0 := range in.Truth.S {
			with += p.S[mu] * s0
			own += p.S[mu] * p.S[mu]
		}
		off := math.Log(with / own)
		if c.learned && (math.Abs(off) > 3*p.ScaleSD || p.ScaleSD < 0.01 || p.ScaleSD > 0.05 || sd != p.ScaleSD) {
			t.Errorf("off by %.2g, stated %.2g and %.2g", off, p.ScaleSD, sd)
		}
		if lo, hi := p.Calibration.Interval(0.95); lo[0] > p.S[0] || hi[0] < p.S[0] {
			t.Errorf("sensor 0 is %g, and lies in [%g, %g]", p.S[0], lo[0], hi[0])
		}
	}
}
