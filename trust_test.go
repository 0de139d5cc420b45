package calamp_test

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// drawn is a problem whose gains are uniform on 1 ± half, as the default command sees it
// when it is given the range 1 ± given.
func drawn(t *testing.T, te teacher.Teacher, seed uint64, given float64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	te.Signal = prior.GaussBernoulli{Density: 0.2, SignalVar: 1}
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: channel.Gain{Prior: channel.Uniform(1-given, 1+given), NoiseVar: te.NoiseVar}}
	return p, in.Truth
}

// The README's example with a range twice as wide as the gains': 4.6 % off with a stated
// 0.5 % where that is taken for their distribution.
func TestRangeThatMerelyContainsTheGains(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 1000, M: 600, P: 10, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	p, truth := drawn(t, te, 1, 0.1)
	r := trustOf(t, p, truth)
	if !r.learned || !r.settled || math.Abs(r.z) > 3 || r.covered < 0.9 {
		t.Errorf("scale off by %.2g with a stated %.2g, %.3f of the sensors in their interval, warned %v", r.t, r.sd, r.covered, r.learned)
	}
	insisted := solve(t, p, &calamp.Options{Settings: solver.Settings{SPrior: solver.UniformS}})
	if off := math.Log(calamp.Score(insisted.X, insisted.S, truth).Scale); warned(insisted, calamp.RangeNotFilled) || !(math.Abs(off) > 5*insisted.ScaleSD) {
		t.Errorf("who insists on the uniform distribution gets what it says: off by %g, stated %g", off, insisted.ScaleSD)
	}
	normal := solve(t, p, &calamp.Options{Settings: solver.Settings{SPrior: solver.NormalS}})
	if mean, sd, ok := channel.NormalOf(channel.CalibrationOf(normal.Channel)); !ok || math.Abs(mean-1) > 0.05 || math.Abs(sd-0.029) > 0.003 {
		t.Errorf("learned N(%g, %g²) of gains that are uniform on [0.95, 1.05]", mean, sd)
	}
	if lo, hi := channel.CalibrationOf(normal.Channel).Range(); lo != 0.9 || hi != 1.1 || channel.NoiseOf(normal.Channel) != te.NoiseVar {
		t.Errorf("what was given is changed: range [%g, %g], noise %g", lo, hi, channel.NoiseOf(normal.Channel))
	}
}

// Sensors at the ends of a range that is true were taken for broken, 9 of 400 here, while
// the common scale was off.
func TestHealthySensorsAtTheEnds(t *testing.T) {
	te := teacher.Teacher{N: 500, M: 400, P: 10, Gain: channel.Uniform(0.5, 1.5), NoiseVar: 1e-8}
	p, truth := drawn(t, te, 1, 0.5)
	r := trustOf(t, p, truth)
	if r.wrong > 0 || r.learned || !r.settled || math.Abs(r.z) > 4 || r.mse > 3e-8 {
		t.Errorf("%d healthy sensors called broken, scale off by %.1f of its stated error, MSE %g", r.wrong, r.z, r.mse)
	}
}

// Without noise every comparison is one of rounding errors: a third of the sensors was
// called broken, the scale stated to 1e-38.
func TestAlmostNoNoise(t *testing.T) {
	for _, delta := range []float64{0, 1e-24, 1e-18, 1e-14, 1e-12} {
		te := teacher.Teacher{N: 60, M: 90, P: 4, Gain: channel.Uniform(0.95, 1.05), NoiseVar: delta}
		p, truth := drawn(t, te, 1, 0.05)
		if r := trustOf(t, p, truth); r.wrong > 0 || r.warned || !r.settled || math.Abs(r.z) > 4 || r.mse > 1e-18+5*delta {
			t.Errorf("Δ = %g: %d sensors called broken, warned %v, scale off by %.2g with a stated %.2g, MSE %g", delta, r.wrong, r.warned, r.t, r.sd, r.mse)
		}
	}
}

// At small noise the density along the scale is a ramp that ends where the largest gain
// touches the range. Its peak is off to one side, its mean is not.
func TestScaleIsReportedAtItsMean(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 200, M: 160, P: 4, Gain: channel.Uniform(0.5, 1.5), NoiseVar: 1e-8}
	const count = 16
	var atMean, atPeak, meanSD, peakSD float64
	for seed := range uint64(count) {
		p, truth := drawn(t, te, seed, 0.5)
		for _, opt := range []solver.Settings{{}, {ScaleAtPeak: true}} {
			res := solve(t, p, &calamp.Options{Settings: opt})
			z := math.Log(calamp.Score(res.X, res.S, truth).Scale) / res.ScaleSD
			if opt.ScaleAtPeak {
				atPeak += z / count
				peakSD += res.ScaleSD / count
			} else {
				atMean += z / count
				meanSD += res.ScaleSD / count
			}
		}
	}
	t.Logf("mean of z %.2f at the mean, %.2f at the peak; stated %.2g and %.2g", atMean, atPeak, meanSD, peakSD)
	if math.Abs(atMean) > 0.5 || math.Abs(atMean) > math.Abs(atPeak) || meanSD > peakSD {
		t.Errorf("mean of z %.2f at the mean, %.2f at the peak; stated %.2g and %.2g", atMean, atPeak, meanSD, peakSD)
	}
}

// A range that is learned holds nothing: what is left are the signals. Taken as given, its own ends
// would fix the scale to 5e-4 where it was off by 3 %.
func TestStatedScaleOfALearnedRange(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 300, M: 240, P: 4, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	var all trusts
	for seed := range uint64(10) {
		p, truth := drawn(t, te, seed, 0.05)
		res := solve(t, p, &calamp.Options{Learn: calamp.Learn{Range: true}})
		all = append(all, trust{z: math.Log(calamp.Score(res.X, res.S, truth).Scale) / res.ScaleSD, sd: res.ScaleSD})
	}
	if z := all.rms(func(r trust) float64 { return r.z }); z > 2 || z < 0.3 {
		t.Errorf("z rms %.2f, stated %.2g", z, all[0].sd)
	}
}

// A column of W that is an index, left in a file: nearly every sensor seems broken.
func TestNothingRecovered(t *testing.T) {
	te := teacher.Teacher{N: 80, M: 60, P: 4, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	p, _ := drawn(t, te, 1, 0.05)
	entries := make([]float64, 0, te.M*te.N)
	row := make([]float64, te.N)
	for mu := range te.M {
		if err := p.W.(operator.Matrix).RowInto(row, mu); err != nil {
			t.Fatal(err)
		}
		row[0] = float64(mu)
		entries = append(entries, row...)
	}
	w, err := operator.NewDense(te.M, te.N, entries)
	if err != nil {
		t.Fatal(err)
	}
	p.W = w
	res := solve(t, p, nil)
	if res.Status == calamp.Converged {
		t.Errorf("%v: %s; %d of %d sensors are called broken", res.Status, res.Reason, len(res.BrokenSensors), te.M)
	}
	var status calamp.Status
	if err := status.UnmarshalText([]byte(calamp.NothingRecovered.String())); err != nil || status != calamp.NothingRecovered {
		t.Errorf("the status reads as %v: %v", status, err)
	}
}

// Of a sensor that reads 10⁹ times as much as the others, nearly nothing of one signal:
// the signals seemed to have common proportions, and all sensors ended up broken.
func TestWildSensorDoesNotCorrelateSignals(t *testing.T) {
	te := teacher.Teacher{N: 300, M: 200, P: 4, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	p, truth := drawn(t, te, 1, 0.05)
	p.Y.SetRow(17, []float64{1e9, 1e-3, -2e9, 3e9})
	res := solve(t, p, nil)
	if len(res.BrokenSensors) != 1 || res.BrokenSensors[0].Sensor != 17 || res.Plan.Has("joint moves") {
		t.Errorf("%d broken sensors; %v", len(res.BrokenSensors), res.Plan)
	}
	if mse := calamp.Score(res.X, res.S, truth).XMSEScaled; res.Status != calamp.Converged || mse > 2e-6 {
		t.Errorf("%v with MSE %g", res.Status, mse)
	}
}

// Bare recursions are exactly as specified.
func TestRangeIsNotTestedInBareRuns(t *testing.T) {
	te := teacher.Teacher{N: 100, M: 80, P: 3, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	p, _ := drawn(t, te, 1, 0.4)
	p.Channel = channel.InOrder(p.Channel)
	res := solve(t, p, calamp.Published(120))
	if res.Plan.Has("range test") || warned(res, calamp.RangeNotFilled) {
		t.Error("a bare run tests the range")
	}
	if s, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{SPrior: solver.NormalS, NoScaleStep: true}}); err == nil {
		t.Errorf("learning within a bare run is possible: %v", s.Reason)
	}
}
