package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

func offsetModel(sd float64) Model {
	return Model{
		Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4,
		Alpha: 0.8, P: 6, OffsetSD: sd,
	}
}

// TestOffsetsThatAreNone: next to no offsets are none, and then the averages over points are those by quadrature.
func TestOffsetsThatAreNone(t *testing.T) {
	opt := &Options{Iterations: 4}
	with, err := Offline(context.Background(), offsetModel(1e-7), opt)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Offline(context.Background(), offsetModel(0), opt)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range with.Steps {
		b := without.Steps[i]
		for name, pair := range map[string][2]Number{"x": {a.MSEX, b.MSEX}, "m̂": {a.MHat, b.MHat}, "s": {a.MSES, b.MSES}} {
			if got, want := pair[0], pair[1]; math.Abs(got.Value-want.Value) > 4*got.Err+0.005*want.Value {
				t.Errorf("iteration %d: %s %v, want %v", i+1, name, got, want)
			}
		}
	}
}

// TestOffsetsOnline: the first samples are an offline problem, and later ones teach more.
func TestOffsetsOnline(t *testing.T) {
	tests.Long(t)
	m := offsetModel(0.2)
	at, err := Offline(context.Background(), m, &Options{Iterations: 10})
	if err != nil {
		t.Fatal(err)
	}
	m.P = 8
	samples, err := Online(context.Background(), m, &OnlineOptions{WarmUp: 6, Iterations: 10, Exactly: true})
	if err != nil || len(samples) != 3 {
		t.Fatal(len(samples), err)
	}
	want, first, last := at.Steps[9], samples[0].Last(), samples[2].Last()
	if first != want {
		t.Errorf("the batch %+v, offline %+v", first, want)
	}
	if last.MSES.Value > 0.95*first.MSES.Value || last.MSEO.Value > 0.9*first.MSEO.Value || first.MSEO.Value > 0.02*m.OffsetSD*m.OffsetSD {
		t.Errorf("s %v after %v, o %v after %v", last.MSES, first.MSES, last.MSEO, first.MSEO)
	}
}

// TestOffsetsThreshold: offsets take more sensors, and more than are counted.
func TestOffsetsThreshold(t *testing.T) {
	tests.Long(t)
	m := offsetModel(0)
	alpha := func(sd float64) float64 {
		a, err := AlphaCal(context.Background(), m.Signal, m.Gain, 0, 10, &ThresholdOptions{OffsetSD: sd, Tol: 1e-2, Target: 1e-4})
		if err != nil {
			t.Fatal(err)
		}
		return a.Value
	}
	without, with := alpha(0), alpha(1)
	if !(with > without && with > 0.25 && with < 0.6) {
		t.Errorf("thresholds %.3g, with offsets %.3g", without, with)
	}
}

func TestOffsetsRefused(t *testing.T) {
	m := offsetModel(math.Inf(1))
	if _, err := Offline(context.Background(), m, nil); err == nil {
		t.Error("offsets without a bound")
	}
	m = offsetModel(0.1)
	if _, err := m.Sensor(t.Context(), 0.01, nil); err == nil {
		t.Error("averages of the free energy with offsets")
	}
	if _, err := Vector(context.Background(), m, Spectrum{}, nil); err == nil {
		t.Error("vector AMP with offsets")
	}
}
