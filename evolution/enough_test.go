package evolution_test

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// At the threshold the error is twice that of known gains, where it falls continuously; just below a jump it is far more. With
// little noise the threshold is that of exact recovery.
func TestAlphaEnough(t *testing.T) {
	tests.Long(t)
	ctx := context.Background()
	g, gain := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.5, 1.5)
	opt := &evolution.ThresholdOptions{Tol: 2e-3}
	ratio := func(alpha, noise float64, p int) float64 {
		blind, err := evolution.FixedPoint(ctx, evolution.Model{Signal: g, Gain: gain, NoiseVar: noise, Alpha: alpha, P: p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		known, err := evolution.FixedPoint(ctx, evolution.Calibrated(g, noise, alpha), &evolution.Options{Informed: true})
		if err != nil {
			t.Fatal(err)
		}
		return blind.MSEX.Value / known.MSEX.Value
	}
	cal, err := evolution.AlphaCal(ctx, g, gain, 0, 8, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, noise := range []float64{1e-3, 1e-6} {
		a, err := evolution.AlphaEnough(ctx, g, gain, noise, 8, 2, opt)
		if err != nil {
			t.Fatal(err)
		}
		above, below := ratio(a.Value, noise, 8), ratio(a.Value*0.99, noise, 8)
		t.Logf("noise %g: α = %.4g ± %.2g, errors %.3g and %.3g times those of known gains", noise, a.Value, a.Err, above, below)
		if !(above <= 2) || !(below > 2) {
			t.Errorf("noise %g: α = %.4g: %.3g, below %.3g", noise, a.Value, above, below)
		}
		if noise < 1e-5 && math.Abs(a.Value/cal.Value-1) > 0.1 {
			t.Errorf("α = %.4g, without noise %.4g", a.Value, cal.Value)
		}
	}
	if a, err := evolution.AlphaEnough(ctx, g, gain, 1e-6, 1, 2, opt); err != nil || !math.IsInf(a.Value, 1) {
		t.Errorf("one signal: %v, %v", a, err)
	}
	if a, err := evolution.AlphaEnough(ctx, g, channel.Uniform(0.999, 1.001), 0.1, 8, 2, opt); err != nil || a.Value > 0 {
		t.Errorf("gains that hardly differ: %v, %v", a, err)
	}
}
