package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// The references come with the equations, to three digits.
func TestComplexOffline(t *testing.T) {
	for name, c := range map[string]struct {
		gain channel.ComplexPrior
		x, s float64
	}{
		"phase known":          {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)}, 6.16e-7, 1.45e-6},
		"phase only":           {channel.ComplexPrior{Lo: 1, Hi: 1}, 6.16e-7, 1.34e-6},
		"phase only, κ = 5":    {channel.ComplexPrior{Lo: 1, Hi: 1, Concentration: 5}, 6.16e-7, 1.34e-6},
		"both, uniform":        {channel.ComplexPrior{Lo: 0.5, Hi: 1.5}, 8.00e-7, 3.24e-6},
		"both, von Mises κ=20": {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}, 8.00e-7, 3.24e-6},
	} {
		m := ComplexModel{Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-6, Alpha: 0.6, P: 4}
		tr, err := ComplexOffline(context.Background(), m, &ComplexOptions{Iterations: 40, Points: 1024})
		if err != nil {
			t.Fatal(err)
		}
		last := tr.Steps[len(tr.Steps)-1]
		t.Logf("%s: x %v, s %v, steps %d", name, last.MSEX, last.MSES, len(tr.Steps))
		if math.Abs(last.MSEX.Value/c.x-1) > 0.01 || math.Abs(last.MSES.Value/c.s-1) > 0.05 {
			t.Errorf("%s: x %v, s %v; want %g, %g", name, last.MSEX, last.MSES, c.x, c.s)
		}
	}
}

// TestComplexWithoutSignal: where readings say nothing the error stays what it is, and does not become no number.
func TestComplexWithoutSignal(t *testing.T) {
	for k := range 40 { // the rounding of some is upwards
		power := math.Pow(10, -60-0.7*float64(k))
		m := ComplexModel{Signal: prior.ComplexGaussBernoulli{Density: 0.1, SignalVar: power}, Gain: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 30}, NoiseVar: 1, Alpha: 0.64, P: 15}
		tr, err := ComplexOffline(context.Background(), m, &ComplexOptions{Iterations: 4, Points: 64})
		if err != nil {
			t.Fatal(err)
		}
		m.P = 3
		samples, err := ComplexOnline(context.Background(), m, &ComplexOnlineOptions{Iterations: 4, Points: 64})
		if err != nil {
			t.Fatal(err)
		}
		steps := tr.Steps
		for _, sample := range samples {
			steps = append(steps, sample.Steps...)
		}
		for _, s := range steps {
			if !(math.Abs(s.MSEX.Value/(0.1*power)-1) < 1e-3 && s.MSEX.Err >= 0 && s.MHat.Value >= 0 && s.MSES.Value > 0) {
				t.Fatalf("signals of %g: %+v", power, s)
			}
		}
	}
}

// TestComplexVector: with independent entries vector AMP ends where AMP does, whatever is known of phases, and amplitudes whose phases are known are those of
// real signals of twice the number and half the variances.
func TestComplexVector(t *testing.T) {
	tests.Long(t)
	for name, gain := range map[string]channel.ComplexPrior{
		"phase known": {Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)},
		"free":        {Lo: 0.5, Hi: 1.5},
	} {
		m := ComplexModel{Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: gain, NoiseVar: 1e-6, Alpha: 0.6, P: 4}
		e, err := newComplexEvolution(m, &ComplexOptions{Points: 1024})
		if err != nil {
			t.Fatal(err)
		}
		vector := Spectrum{}.between(e.ends())
		amp := e.iteration(Spectrum{})
		var a, b Step
		for range 60 {
			a, b = amp(), vector.next()
		}
		if math.Abs(b.MSEX.Value/a.MSEX.Value-1) > 1e-6 || math.Abs(b.MSES.Value/a.MSES.Value-1) > 1e-6 {
			t.Errorf("%s: vector AMP ends at x %v, s %v, AMP at %v, %v", name, b.MSEX, b.MSES, a.MSEX, a.MSES)
		}
	}
	density := prior.ComplexGaussBernoulli{Density: 1, SignalVar: 2} // whose parts are independent of each other
	complexModel := ComplexModel{Signal: density, Gain: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: math.Inf(1)}, NoiseVar: 2e-3, Alpha: 1.5, P: 2}
	var s Spectrum
	if err := s.UnmarshalText([]byte("condition:10")); err != nil {
		t.Fatal(err)
	}
	got, err := ComplexOffline(context.Background(), complexModel, &ComplexOptions{Iterations: 60, Spectrum: s})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Vector(context.Background(), Model{Signal: prior.Gaussian(0, 1), Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-3, Alpha: 1.5, P: 4}, s, &Options{Iterations: 60})
	if err != nil {
		t.Fatal(err)
	}
	a, b := got.Steps[59], want.Steps[59]
	// 4096 points are good to a percent.
	if math.Abs(a.MSEX.Value/(2*b.MSEX.Value)-1) > 0.03 || math.Abs(a.MSES.Value/b.MSES.Value-1) > 0.03 {
		t.Errorf("complex signals x %v, s %v; real ones of which there are twice as many %v, %v", a.MSEX, a.MSES, b.MSEX, b.MSES)
	}
}

// Behind orthogonal rows free phases do not grow from nothing, and signals that are half known become known.
func TestOverlapAtTheStart(t *testing.T) {
	m := ComplexModel{Signal: prior.ComplexGaussBernoulli{Density: 0.06, SignalVar: 12}, Gain: channel.ComplexPrior{Lo: 0.94, Hi: 1.06}, NoiseVar: 0.07, Alpha: 0.5, P: 24}
	power := m.Signal.Density * m.Signal.SignalVar
	var spectrum Spectrum
	if err := spectrum.UnmarshalText([]byte("orthogonal")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		overlap    float64
		recovers   bool
		iterations int
	}{{0, false, 20}, {0.5, true, 20}} {
		tr, err := ComplexOffline(context.Background(), m, &ComplexOptions{Iterations: c.iterations, Points: 128, Spectrum: spectrum, Overlap: c.overlap})
		if err != nil {
			t.Fatal(err)
		}
		left := tr.Steps[len(tr.Steps)-1].MSEX.Value / power
		if recovers := left < 0.1; recovers != c.recovers {
			t.Errorf("from an overlap of %g a part %g of the power is unknown", c.overlap, left)
		}
	}
	if _, err := ComplexOffline(context.Background(), m, &ComplexOptions{Overlap: 1}); err == nil {
		t.Error("an overlap of 1 was taken")
	}
}
