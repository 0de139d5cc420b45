package evolution

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

func readingModel(r *Readings) Model {
	return Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-3, Alpha: 0.8, P: 6, Readings: r}
}

// TestReadingsThatAreNone: fine codes, many photons, and noise at readings of sensors that hardly differ are noise before the division, and averages over points those by quadrature.
func TestReadingsThatAreNone(t *testing.T) {
	tests.Long(t)
	narrow := readingModel(nil)
	narrow.Gain = channel.Uniform(0.99999, 1.00001)
	photons := func(unit, mean float64) *Readings {
		return &Readings{Sensors: channel.Gain{Own: channel.Detector{Photon: unit}}, Mean: mean}
	}
	counts := func(model Model, r *Readings) Model {
		model.NoiseVar, model.Readings = 0, r
		return model
	}
	for name, c := range map[string]struct{ with, without Model }{
		"codes":    {readingModel(&Readings{Sensors: channel.Codes{Step: 1e-3}}), readingModel(nil)},
		"detector": {counts(narrow, &Readings{Sensors: channel.Gain{Own: channel.Detector{Read: 1e-3}}}), narrow},
		"photons":  {counts(narrow, photons(1e-5, 100)), narrow},
		"counts":   {counts(narrow, &Readings{Sensors: channel.Counts{Unit: 1e-5}, Mean: 100}), narrow},
	} {
		opt := &Options{Iterations: 3}
		with, err := Offline(context.Background(), c.with, opt)
		if err != nil {
			t.Fatal(err)
		}
		without, err := Offline(context.Background(), c.without, opt)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range with.Steps {
			b := without.Steps[i]
			if got, want := a.MSEX, b.MSEX; math.Abs(got.Value-want.Value) > 0.02*want.Value {
				t.Errorf("%s, iteration %d: x %v, want %v", name, i+1, got, want)
			}
			if got, want := a.MSES, b.MSES; c.with.Readings.Mean == 0 && math.Abs(got.Value-want.Value) > 0.04*want.Value { // a mean tells s at once
				t.Errorf("%s, iteration %d: s %v, want %v", name, i+1, got, want)
			}
		}
	}
}

// TestPhotonsAndCounts: at thirty counts the noise of photons is their likelihood, and a fixed point is where iterations end.
func TestPhotonsAndCounts(t *testing.T) {
	tests.Long(t)
	m := Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalMean: 1, SignalVar: 0.25}, Gain: channel.Uniform(0.8, 1.2), Alpha: 0.8, P: 2}
	var ends []float64
	for _, sensors := range []channel.Calibrating{channel.Gain{Own: channel.Detector{Photon: 0.1}}, channel.Counts{Unit: 0.1}} {
		m.Readings = &Readings{Sensors: sensors, Mean: 3}
		steps, err := Offline(context.Background(), m, &Options{Iterations: 12})
		if err != nil {
			t.Fatal(err)
		}
		at, err := FixedPoint(context.Background(), m, nil)
		if err != nil || !at.Converged {
			t.Fatalf("%v, %v", at, err)
		}
		if last := steps.Steps[11].MSEX.Value; math.Abs(last/at.MSEX.Value-1) > 0.02 {
			t.Errorf("%T: x %v at the fixed point, %g after twelve iterations", sensors, at.MSEX, last)
		}
		ends = append(ends, at.MSEX.Value)
	}
	if math.Abs(ends[0]/ends[1]-1) > 0.05 {
		t.Errorf("x %g with the noise of photons, %g with their likelihood", ends[0], ends[1])
	}
}

// TestReadingsTakeMoreSensors: coarse codes take more sensors than fine ones, and these as many as readings.
func TestReadingsTakeMoreSensors(t *testing.T) {
	tests.Long(t)
	alpha := func(r *Readings) float64 {
		m := readingModel(r)
		a, err := AlphaCal(context.Background(), m.Signal, m.Gain, 1e-6, 4, &ThresholdOptions{Target: 1e-3, Tol: 2e-3, Readings: r})
		if err != nil {
			t.Fatal(err)
		}
		return a.Value
	}
	plain, fine, coarse := alpha(nil), alpha(&Readings{Sensors: channel.Codes{Step: 1e-3}}), alpha(&Readings{Sensors: channel.Codes{Step: 0.1}})
	if math.Abs(fine/plain-1) > 0.02 || coarse < 1.02*plain {
		t.Errorf("α is %g without, %g with fine codes, %g with coarse ones", plain, fine, coarse)
	}
}

// TestPoissonQuantile: counts have their mean and variance, few and many.
func TestPoissonQuantile(t *testing.T) {
	for _, mean := range []float64{0.3, 3, 40, 290, 310, 900, 5000} {
		const points = 20000
		var counts moments
		for i := range points {
			counts.add(poissonQuantile((float64(i)+0.5)/points, mean))
		}
		if variance := counts.square / points; math.Abs(counts.mean-mean) > 0.02*math.Sqrt(mean) || math.Abs(variance/mean-1) > 0.02 {
			t.Errorf("counts of %g have the mean %g and the variance %g", mean, counts.mean, variance)
		}
	}
}

func TestReadingsRefused(t *testing.T) {
	for want, change := range map[string]func(m *Model){
		"photons are positive": func(m *Model) {
			m.Readings = &Readings{Sensors: channel.Gain{Own: channel.Detector{Photon: 1}}, Mean: 1}
		},
		"gains that are not known":    func(m *Model) { m.Gain = Known(1) },
		"no prediction for readings":  func(m *Model) { m.Readings = &Readings{Sensors: channel.Gain{}} },
		"there are none":              func(m *Model) { m.Readings = &Readings{Sensors: channel.Codes{Thresholds: []float64{}}} },
		"without offsets":             func(m *Model) { m.OffsetSD = 1 },
		"no noise but their own":      func(m *Model) { m.Readings = &Readings{Sensors: channel.Counts{Unit: 1}, Mean: 10} },
		"the mean of z must be finit": func(m *Model) { m.Readings = &Readings{Sensors: channel.Codes{Step: 1}, Mean: math.NaN()} },
	} {
		m := readingModel(&Readings{Sensors: channel.Codes{Step: 0.1}})
		change(&m)
		if _, err := Offline(context.Background(), m, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestSignsEndAtAJump: the map of signs leaps where one of its points changes sign. Iteration alone went in a circle of three steps about that, and did not end.
func TestSignsEndAtAJump(t *testing.T) {
	tests.Long(t)
	m := Model{
		Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 4}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-3, Alpha: 4, P: 10,
		Readings: &Readings{Sensors: channel.Codes{Threshold: 0.6}},
	}
	if p, err := FixedPoint(context.Background(), m, &Options{Iterations: 60}); err != nil || !p.Converged {
		t.Errorf("after %d evaluations: %v, %v", p.Evaluations, p.MSEX, err)
	}
}

// TestThresholdsOfReadings: signs about thresholds of readings that are all the same are those about one.
func TestThresholdsOfReadings(t *testing.T) {
	var ends []float64
	for _, codes := range []channel.Codes{{Threshold: 0.5}, {Thresholds: []float64{0.5, 0.5}}, {Thresholds: []float64{-1, 2}}} {
		steps, err := Offline(context.Background(), readingModel(&Readings{Sensors: codes}), &Options{Iterations: 3})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, steps.Steps[2].MSEX.Value)
	}
	if math.Abs(ends[1]/ends[0]-1) > 0.02 || math.Abs(ends[2]/ends[0]-1) < 0.02 {
		t.Errorf("errors of x %.4g, expected the first two to be the same, and the third another", ends)
	}
}
