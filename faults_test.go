package calamp_test

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// fault is a way in which a sensor breaks: what becomes of its readings.
type fault struct {
	name  string
	spoil func(rng *rand.Rand, row []float64, s float64)
}

var faults = []fault{
	{"gain 0.5", gainFault(0.5)},
	{"gain 0.9", gainFault(0.9)},
	{"stuck", func(rng *rand.Rand, row []float64, _ float64) {
		level := 0.5 * rng.NormFloat64()
		for k := range row {
			row[k] = level
		}
	}},
	{"random", randomFault(0.5)},
}

// randomFault gives readings of their own, of the given standard deviation.
func randomFault(sd float64) func(*rand.Rand, []float64, float64) {
	return func(rng *rand.Rand, row []float64, _ float64) {
		for k := range row {
			row[k] = sd * rng.NormFloat64()
		}
	}
}

// gainFault gives the sensor another gain, 1/s.
func gainFault(gain float64) func(*rand.Rand, []float64, float64) {
	return func(_ *rand.Rand, row []float64, s float64) {
		for k := range row {
			row[k] *= s * gain
		}
	}
}

// breakSensors spoils some sensors of an instance, by the faults in turn, and
// returns which.
func breakSensors(y *mat.Dense, s []float64, count int, seed uint64, faults ...fault) map[int]bool {
	rng := rand.New(rand.NewPCG(seed, 7))
	broken := map[int]bool{}
	for i, mu := range rng.Perm(len(s))[:count] {
		broken[mu] = true
		faults[i%len(faults)].spoil(rng, y.RawRowView(mu), s[mu])
	}
	return broken
}

// found counts the broken sensors that a result says are broken, and the
// working ones that it says are.
func found(res *calamp.Result, broken map[int]bool) (right, wrong int) {
	for _, b := range res.BrokenSensors {
		if broken[b.Sensor] {
			right++
		} else {
			wrong++
		}
	}
	return right, wrong
}

func TestBrokenSensorsAreFound(t *testing.T) {
	te := teacher.Teacher{N: 150, M: 120, P: 3, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	wild := fault{"wild", randomFault(1e150)}
	broken := breakSensors(in.Y, in.Truth.S, 10, 1, append(faults, wild)...)
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: p.Channel}
	for _, covariance := range []solver.Covariance{solver.Diagonal, solver.Full} {
		res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Covariance: covariance}})
		if err != nil {
			t.Fatal(err)
		}
		if right, wrong := found(res, broken); right != len(broken) || wrong > 0 {
			t.Errorf("%d of %d broken sensors found, and %d others", right, len(broken), wrong)
		}
		score := calamp.Score(res.X, res.S, in.Truth)
		if res.Status != calamp.Converged || score.XMSEScaled > 2e-6 {
			t.Errorf("%v with scaled MSE %g: %s", res.Status, score.XMSEScaled, res.Reason)
		}
		faults := map[channel.Fault]int{}
		for _, b := range res.BrokenSensors {
			faults[b.Fault]++
			if b.Fault == channel.OutOfRange && math.Abs(b.S-2) > 0.1 && math.Abs(b.S-1.11) > 0.05 {
				t.Errorf("%v: the faults have gains 0.5 and 0.9", b)
			}
		}
		if want := (map[channel.Fault]int{channel.OutOfRange: 4, channel.Stuck: 2, channel.Inconsistent: 4}); !maps.Equal(faults, want) {
			t.Errorf("faults %v, want %v", faults, want)
		}
		if w := res.Warnings; len(w) != 1 || w[0].Code != calamp.SensorBroken || len(w[0].Sensors) != len(broken) {
			t.Errorf("warnings %+v, want one of the broken sensors", w)
		}
		for mu := range broken {
			if math.Abs(res.S[mu]-1) > 1e-12 {
				t.Errorf("s of broken sensor %d is %g, nothing is known of it but its prior", mu, res.S[mu])
			}
		}
	}
}

// With a third of all sensors broken the rest still does, but the model is doubted.
func TestManyBrokenSensors(t *testing.T) {
	te := teacher.Teacher{N: 150, M: 150, P: 4, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	broken := breakSensors(in.Y, in.Truth.S, 50, 1, faults...)
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: p.Channel}
	res, err := calamp.Solve(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if right, wrong := found(res, broken); right < 48 || wrong > 1 {
		t.Errorf("%d of %d broken sensors found, and %d others", right, len(broken), wrong)
	}
	if score := calamp.Score(res.X, res.S, in.Truth); score.XMSEScaled > 1e-6 {
		t.Errorf("%v with scaled MSE %g: %s", res.Status, score.XMSEScaled, res.Reason)
	}
	if w := res.Warnings; len(w) == 0 || w[0].Code != calamp.ManyBroken {
		t.Errorf("warnings %+v, want %s", w, calamp.ManyBroken)
	}
}

// Where no sensor is broken the mixture changes nothing.
func TestFaultyChannelOfWorkingSensors(t *testing.T) {
	te := teacher.Teacher{N: 200, M: 140, P: 3, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}
	in, err := te.Draw(2)
	if err != nil {
		t.Fatal(err)
	}
	p := te.Problem(in)
	var x [2]*mat.Dense
	for i, c := range []channel.Channel{p.Channel, channel.Faulty{Working: p.Channel}} {
		p.Channel = c
		res, err := calamp.Solve(context.Background(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		x[i] = res.X
	}
	var d mat.Dense
	d.Sub(x[0], x[1])
	if e := mat.Norm(&d, 2) / mat.Norm(x[0], 2); e > 1e-6 {
		t.Errorf("solutions differ by %g", e)
	}
}

// A clipped reading says how large it would be at least: enough to recover
// what it spoils when it is taken as it is.
func TestClippedReadings(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 150, M: 120, P: 4, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6}
	in, err := te.Draw(3)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 0.6
	solve := func(saturation float64) calamp.Metrics {
		p := te.Problem(in)
		p.Channel = channel.Faulty{Working: channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar, Saturation: saturation}}
		res, err := calamp.Solve(context.Background(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.BrokenSensors) > 0 && saturation > 0 {
			t.Errorf("%v said to be broken", res.BrokenSensors)
		}
		return calamp.Score(res.X, res.S, in.Truth)
	}
	clean := solve(0)
	in.Y.Apply(func(_, _ int, y float64) float64 { return min(max(y, -limit), limit) }, in.Y)
	believed, clipped := solve(0), solve(limit)
	if clipped.XMSEScaled > 3*clean.XMSEScaled || believed.XMSEScaled < 100*clean.XMSEScaled {
		t.Errorf("scaled MSE %.2g without clipping, %.2g with, %.2g when clipped readings are believed", clean.XMSEScaled, clipped.XMSEScaled, believed.XMSEScaled)
	}
}
