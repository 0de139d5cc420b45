package evolution_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/replica"
)

// The information of a field on the signals has half of their error as its derivative, whatever the layers are: what state evolution iterates is the gradient of
// what it stands for.
func TestNetworkInformationHasTheErrorAsSlope(t *testing.T) {
	tests.Long(t)
	layer := func(inputs float64, f prior.Activation) evolution.Layer {
		return evolution.Layer{Inputs: inputs, WeightVar: 1.2, BiasVar: 0.1, Activation: f}
	}
	for _, layers := range [][]evolution.Layer{
		{layer(0.3, prior.IdentityActivation)},
		{layer(0.3, prior.ReLU)},
		{layer(2, prior.HardTanh)},
		{layer(0.5, prior.Sigmoid)},
		{layer(2, prior.SignActivation)},
		{layer(0.5, prior.ReLU), layer(0.4, prior.ReLU)},
	} {
		m := evolution.Model{Signal: prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: evolution.Known(1), NoiseVar: 1e-3, Alpha: 0.5, P: 1, Network: layers}
		for _, a := range []float64{0.3, 3, 30, 300} {
			const step = 0.05
			up, down := m.Entry(1/(a*(1+step)), nil), m.Entry(1/(a*(1-step)), nil)
			slope := (up.Information.Value - down.Information.Value) / (2 * step * a)
			want, part := 0.5*m.Entry(1/a, nil).MMSE.Value, 0.015
			if layers[0].Activation.Varying(1) == 0 {
				part = 0.07
			}
			if !(math.Abs(slope-want) < part*want+1e-5) {
				t.Errorf("%v, Â = %g: slope %.5g, half of the error %.5g", layers, a, slope, want)
			}
		}
	}
}

// Gaussian latents of a linear layer have the information ½ log det (1 + FFᵀ/Σ) of Gaussian signals.
func TestNetworkInformationOfGaussians(t *testing.T) {
	const n, n2, sigma = 600, 180, 0.02
	rng := rand.New(rand.NewPCG(1, 2))
	f := mat.NewDense(n2, n, nil)
	for i := range n2 {
		for j := range n {
			f.Set(i, j, rng.NormFloat64()/math.Sqrt(n2))
		}
	}
	total := mat.NewSymDense(n2, nil)
	total.SymOuterK(1/sigma, f)
	for i := range n2 {
		total.SetSym(i, i, total.At(i, i)+1)
	}
	var factor mat.Cholesky
	if !factor.Factorize(total) {
		t.Fatal("not positive")
	}
	want := 0.5 * factor.LogDet() / n
	m := evolution.Model{
		Signal: prior.Gaussian(0, 1), Gain: evolution.Known(1), NoiseVar: 1e-3, Alpha: 0.5, P: 1,
		Network: []evolution.Layer{{Inputs: 0.3, WeightVar: 1, Activation: prior.IdentityActivation}},
	}
	if got := m.Entry(sigma, nil).Information; !(math.Abs(got.Value-want) < 3*got.Err+2e-3) {
		t.Errorf("%v, expected %.5g", got, want)
	}
}

// The potential of blind calibration is stationary where state evolution has a fixed point, and its slope elsewhere is (P/2)(V-V')∂Â/∂V.
func TestNetworkPotential(t *testing.T) {
	m := evolution.Model{
		Signal: prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-3, Alpha: 0.5, P: 2,
		Network: []evolution.Layer{{Inputs: 0.4, WeightVar: 1, Activation: prior.ReLU}},
	}
	p, err := replica.New(m, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	at := func(v float64) replica.Value {
		value, err := p.At(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	for _, v := range []float64{3e-3, 2e-2, 6e-2} {
		const step = 0.05
		here, up, down := at(v), at(v*(1+step)), at(v*(1-step))
		got := up.Phi.Value - down.Phi.Value
		want := 0.5 * 2 * (v - here.Next.Value) * (up.AHat.Value - down.AHat.Value)
		if !(math.Abs(got-want) < 0.02*math.Abs(want)+2e-4) {
			t.Errorf("V = %g: φ changes by %.5g, expected %.5g", v, got, want)
		}
	}
}
