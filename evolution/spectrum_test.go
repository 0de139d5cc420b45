package evolution

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
)

// TestVectorEvolutionOfIndependentEntries: VAMP and AMP have the same fixed points there, though
// they come from different recursions.
func TestVectorEvolutionOfIndependentEntries(t *testing.T) {
	tests.Long(t)
	for _, c := range []Model{
		{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.95, 1.05), 1e-4, 0.8, 4, nil, 0, nil, nil, nil},
		{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.5, 1.5), 1e-8, 0.6, 4, nil, 0, nil, nil, nil},
		{prior.GaussBernoulli{Density: 0.3, SignalVar: 2}, channel.Uniform(0.7, 1.2), 1e-2, 1.3, 2, nil, 0, nil, nil, nil},
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
	tests.Long(t)
	for _, c := range []struct {
		model Model
		x, s  float64
	}{
		{Model{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.95, 1.05), 1e-4, 0.8, 4, nil, 0, nil, nil, nil}, 1.771e-4, 2.07e-4},
		{Model{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.5, 1.5), 1e-8, 0.6, 4, nil, 0, nil, nil, nil}, 2.95e-8, 4.9e-8},
		{Model{prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.5, 1.5), 1e-8, 0.45, 4, nil, 0, nil, nil, nil}, 4.2e-2, 0},
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

// TestOnlineVectorEvolution: with independent singular values streams end where those of cal-AMP do, and the
// first sample is offline with one signal.
func TestOnlineVectorEvolution(t *testing.T) {
	tests.Long(t)
	m := paperModel(0.2, 0.6, 1e-6, 2)
	opt := OnlineOptions{Members: 16, Replicates: 2, Tol: 1e-7}
	amp, err := Online(t.Context(), m, &opt)
	if err != nil {
		t.Fatal(err)
	}
	// Quantiles of independent singular values, given as values so that it is vector AMP that is followed.
	lambda, weight := Spectrum{}.eigenvalues(m.Alpha)
	opt.Spectrum = Spectrum{kind: "values"}
	share, below := floats.Sum(weight), 0.0
	for i, l := range lambda {
		for below += weight[i] / share; float64(len(opt.Spectrum.values))+0.5 < 4000*below; {
			opt.Spectrum.values = append(opt.Spectrum.values, math.Sqrt(l))
		}
	}
	vamp, err := Online(t.Context(), m, &opt)
	if err != nil {
		t.Fatal(err)
	}
	for k := range amp {
		a, v := amp[k].Last(), vamp[k].Last()
		if math.Abs(math.Log(v.MSEX.Value/a.MSEX.Value)) > 1e-3 || math.Abs(math.Log(v.MSES.Value/a.MSES.Value)) > 1e-3 || !vamp[k].Converged {
			t.Errorf("sample %d: %v and %v with vector AMP, %v and %v with AMP", k+1, v.MSEX, v.MSES, a.MSEX, a.MSES)
		}
	}
	if err := opt.Spectrum.UnmarshalText([]byte("condition:10")); err != nil {
		t.Fatal(err)
	}
	m.P = 1
	on, err := Online(t.Context(), m, &opt)
	if err != nil {
		t.Fatal(err)
	}
	off, err := VectorFixedPoint(t.Context(), m, opt.Spectrum, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := math.Abs(math.Log(on[0].Last().MSEX.Value / off.MSEX.Value)); d > 1e-5 {
		t.Errorf("first sample %v, offline %v", on[0].Last().MSEX, off.MSEX)
	}
}

// TestVectorAlphaCal: independent singular values have the threshold of cal-AMP; with known gains, without
// noise, all spectra have one.
func TestVectorAlphaCal(t *testing.T) {
	tests.Long(t)
	g := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}
	cs, tol := recovery.AlphaCS(g), 2e-3
	for _, c := range []struct {
		spectrum string
		gain     channel.GainPrior
		want     float64
	}{
		{"iid", channel.Uniform(0.95, 1.05), 0.358}, {"orthogonal", Known(1), cs}, {"condition:10", Known(1), cs},
	} {
		var s Spectrum
		if err := s.UnmarshalText([]byte(c.spectrum)); err != nil {
			t.Fatal(err)
		}
		got, err := VectorAlphaCal(t.Context(), g, c.gain, 0, 3, s, &ThresholdOptions{Tol: tol})
		if err != nil || math.Abs(got.Value-c.want) > tol {
			t.Errorf("%s: %v, want %g (%v)", c.spectrum, got, c.want, err)
		}
	}
}

// TestVectorTakesTurns: with square orthogonal W every second iteration leaves the error on x as it is.
func TestVectorTakesTurns(t *testing.T) {
	m := paperModel(0.2, 1, 1e-8, 3)
	square, err := VectorFixedPoint(t.Context(), m, Spectrum{kind: orthogonal}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Alpha = 0.999
	nearly, err := VectorFixedPoint(t.Context(), m, Spectrum{kind: orthogonal}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := math.Abs(math.Log(square.MSEX.Value / nearly.MSEX.Value)); !square.Converged || d > 0.01 {
		t.Errorf("α = 1: %v after %d evaluations, α = 0.999: %v", square.MSEX, square.Evaluations, nearly.MSEX)
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
