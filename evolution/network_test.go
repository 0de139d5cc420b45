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

// The spec's values, of a Monte Carlo: ReLU, P = 5, N/N₂ = 5, gains in [0.7, 1.3], Δ = 1e-6, as mean square errors relative to E x².
func TestNetworkFixedPoints(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		f            prior.Activation
		alpha, rho   float64
		known, blind float64
	}{
		{prior.ReLU, 0.5, 1, 0, 1.99e-6},
		{prior.ReLU, 0.2, 0.3, 3.0e-6, 4.2e-6},
		{prior.IdentityActivation, 0.2, 0.3, 1.5e-6, 2.1e-6},
	} {
		for _, blind := range []bool{false, true} {
			want := c.known
			m := evolution.Model{
				Signal: prior.GaussBernoulli{Density: c.rho, SignalVar: 1}, NoiseVar: 1e-6, Alpha: c.alpha, P: 5, Gain: evolution.Known(1),
				Network: []evolution.Layer{{Inputs: 0.2, WeightVar: 1, Activation: c.f}},
			}
			if blind {
				want, m.Gain = c.blind, channel.Uniform(0.7, 1.3)
			}
			if want == 0 {
				continue
			}
			out, err := evolution.Offline(context.Background(), m, &evolution.Options{Tol: 1e-5, Iterations: 80})
			if err != nil {
				t.Fatal(err)
			}
			last := out.Steps[len(out.Steps)-1].MSEX
			got := last.Value / m.SecondMoment()
			t.Logf("%v α=%g ρ=%g blind %v: %.3g (spec %.3g) ± %.1g", c.f, c.alpha, c.rho, blind, got, want, last.Err/m.SecondMoment())
			if math.Abs(got/want-1) > 0.07 {
				t.Errorf("%v α=%g ρ=%g blind %v: %.3g, expected %.3g", c.f, c.alpha, c.rho, blind, got, want)
			}
		}
	}
}

// The fixed point is where the iterations end.
func TestNetworkFixedPointIsTheEnd(t *testing.T) {
	tests.Long(t)
	m := evolution.Model{
		Signal: prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, NoiseVar: 1e-4, Alpha: 0.4, P: 3, Gain: channel.Uniform(0.8, 1.2),
		Network: []evolution.Layer{{Inputs: 0.4, WeightVar: 2, BiasVar: 0.1, Activation: prior.HardTanh}},
	}
	opt := &evolution.Options{Tol: 1e-4, Iterations: 40}
	out, err := evolution.Offline(context.Background(), m, opt)
	if err != nil {
		t.Fatal(err)
	}
	end, err := evolution.FixedPoint(context.Background(), m, opt)
	if err != nil {
		t.Fatal(err)
	}
	if last := out.Steps[len(out.Steps)-1].MSEX.Value; !end.Converged || math.Abs(end.MSEX.Value/last-1) > 1e-2 {
		t.Errorf("fixed point %v, iterations end at %.4g", end.MSEX, last)
	}
}

// Gaussian latents of a linear layer with known gains and no noise are equations: as many readings as latents are enough.
func TestNetworkThreshold(t *testing.T) {
	g := prior.GaussBernoulli{Density: 1, SignalVar: 2}
	layers := []evolution.Layer{{Inputs: 0.3, WeightVar: 1.5, Activation: prior.IdentityActivation}}
	got, err := evolution.AlphaCal(context.Background(), g, evolution.Known(1), 0, 1, &evolution.ThresholdOptions{Tol: 1e-3, Network: layers})
	if err != nil {
		t.Fatal(err)
	}
	if t.Log(got); math.Abs(got.Value-0.3) > got.Err+1e-3 {
		t.Errorf("α = %v, expected 0.3", got)
	}
	if _, err := evolution.AlphaCal(context.Background(), g, evolution.Known(1), 0, 1, &evolution.ThresholdOptions{Target: 0.999, OffsetSD: 1, Network: layers}); err == nil {
		t.Error("offsets are taken, which state evolution of networks is not for")
	}
}

// Numbers of a signal that vary are counted at the narrowest place.
func TestNetworkDimension(t *testing.T) {
	layer := func(inputs float64, f prior.Activation) evolution.Layer {
		return evolution.Layer{Inputs: inputs, WeightVar: 1, Activation: f}
	}
	for _, c := range []struct {
		density, want float64
		layers        []evolution.Layer
	}{
		{0.3, 0.06, []evolution.Layer{layer(0.2, prior.ReLU)}},
		{0.3, 0.15, []evolution.Layer{layer(2, prior.IdentityActivation), layer(0.25, prior.ReLU)}},
		{1, 0.05, []evolution.Layer{layer(4, prior.ReLU), layer(0.1, prior.ReLU)}}, // half of a tenth are not zero
		{1, math.NaN(), []evolution.Layer{layer(0.1, prior.SignActivation)}},
	} {
		got := evolution.Dimension(prior.GaussBernoulli{Density: c.density, SignalVar: 1}, c.layers)
		if math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %g, expected %g", c.layers, got, c.want)
		}
	}
}
