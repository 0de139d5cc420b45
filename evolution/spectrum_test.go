package evolution

import (
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// TestVectorEvolutionOfIndependentEntries: VAMP and AMP have the same fixed points there, though
// they come from different recursions.
func TestVectorEvolutionOfIndependentEntries(t *testing.T) {
	for _, c := range []Model{
		{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.95, 1.05), 1e-4, 0.8, 4},
		{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.5, 1.5), 1e-8, 0.6, 4},
		{prior.GaussBernoulli{Density: 0.3, SignalVar: 2}, channel.Uniform(0.7, 1.2), 1e-2, 1.3, 2},
		Calibrated(prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, 1e-4, 0.5),
	} {
		amp, err := FixedPoint(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		vamp, err := VectorFixedPoint(t.Context(), c, Spectrum{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, pair := range map[string][2]Number{"x": {amp.MSEX, vamp.MSEX}, "s": {amp.MSES, vamp.MSES}} {
			if d := math.Abs(math.Log(pair[1].Value / pair[0].Value)); pair[0].Value > 0 && d > 1e-6 || !vamp.Converged {
				t.Errorf("%+v: mse of %s is %v with vector AMP (converged: %v), %v with AMP", c, name, pair[1], vamp.Converged, pair[0])
			}
		}
	}
}

// TestVectorEvolutionReference: numbers of an independent program (numpy, the three-dimensional
// quadrature of the paper's channel) at condition number 100.
func TestVectorEvolutionReference(t *testing.T) {
	for _, c := range []struct {
		model Model
		x, s  float64
	}{
		{Model{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.95, 1.05), 1e-4, 0.8, 4}, 1.771e-4, 2.07e-4},
		{Model{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.5, 1.5), 1e-8, 0.6, 4}, 2.95e-8, 4.9e-8},
		{Model{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.5, 1.5), 1e-8, 0.45, 4}, 4.2e-2, 0},
	} {
		var s Spectrum
		if err := s.UnmarshalText([]byte("condition:100")); err != nil {
			t.Fatal(err)
		}
		p, err := VectorFixedPoint(t.Context(), c.model, s, &Options{Tol: 1e-6})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("α = %g: x %v, s %v, %d evaluations", c.model.Alpha, p.MSEX, p.MSES, p.Evaluations)
		if math.Abs(p.MSEX.Value/c.x-1) > 0.02 || c.s > 0 && math.Abs(p.MSES.Value/c.s-1) > 0.02 {
			t.Errorf("α = %g: x %v, s %v, want %g and %g", c.model.Alpha, p.MSEX, p.MSES, c.x, c.s)
		}
	}
}

func TestSpectrumText(t *testing.T) {
	for _, text := range []string{"iid", "orthogonal", "condition:100"} {
		var s Spectrum
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%q became %q, error %v", text, s, err)
		}
	}
	for _, text := range []string{"", "condition", "condition:0.5", "condition:x", "iid:1", "gauss"} {
		if err := new(Spectrum).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	for _, values := range [][]float64{nil, {0, 0}, {1, -1}, {math.NaN()}} {
		if _, err := SpectrumOf(values); err == nil {
			t.Errorf("%v is a spectrum", values)
		}
	}
}
