package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// vignetting is log s over places from -1 to 1, of 30 %.
func vignetting(u float64) float64 { return 0.3 * u * u }

// smoothly is one signal of 500 entries behind 300 sensors on a line, with log s of that shape and scatter.
func smoothly(t testing.TB, seed uint64, shape func(u float64) float64, scatter float64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	const n, m = 500, 300
	signal := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}
	in, err := teacher.Teacher{N: n, M: m, P: 1, Signal: signal, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 38))
	truth := calamp.Truth{X: in.Truth.X, S: make([]float64, m)}
	positions := make([]float64, m)
	for mu := range m {
		positions[mu] = 2*float64(mu)/(m-1) - 1
		truth.S[mu] = math.Exp(shape(positions[mu]) + scatter*rng.NormFloat64())
		in.Y.Set(mu, 0, in.Y.At(mu, 0)*in.Truth.S[mu]/truth.S[mu])
	}
	places, err := channel.At(positions, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &calamp.Problem{W: in.W, Y: in.Y, Prior: signal, Channel: channel.Gain{Prior: places.Together(channel.Uniform(0.6, 1.4)), NoiseVar: 1e-6}}, truth
}

// togetherSolved is a run with scores: the relative error of s at the best scale, and the parts of x and s inside their 95 % intervals.
func togetherSolved(t testing.TB, p *calamp.Problem, truth calamp.Truth, seed uint64) (res *calamp.Result, s, inX, inS float64) {
	t.Helper()
	res, err := calamp.Solve(context.Background(), p, &calamp.Options{Learn: calamp.Learn{Range: true}, Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	ranksX, ranksS := res.Ranks(truth, rand.New(rand.NewPCG(seed, 0)))
	inside := func(ranks []float64) (part float64) {
		for _, u := range ranks {
			if math.Abs(u-0.5) <= 0.475 {
				part += 1 / float64(len(ranks))
			}
		}
		return part
	}
	return res, math.Sqrt(res.Score(truth).SMSEScaled), inside(ranksX), inside(ranksS)
}

// TestGainsTogether: one signal is enough where gains are smooth, and the scatter is found.
func TestGainsTogether(t *testing.T) {
	p, truth := smoothly(t, 6, vignetting, 0.01)
	res, s, _, _ := togetherSolved(t, p, truth, 6)
	found, ok := channel.SmoothOf(channel.CalibrationOf(res.Channel))
	if res.Status != calamp.Converged || !ok || !(s < 0.01) || math.Abs(math.Log(found.Scatter/0.01)) > 0.2 {
		t.Errorf("%v, relative error of s %.3g, %+v", res.Status, s, found)
	}
	if find(res, calamp.SingleSignal) != nil || find(res, calamp.GainsNotSmooth) != nil {
		t.Errorf("warnings: %v", res.Warnings)
	}
}

// TestShortWavesOfGains: gains that go up and down five times over the sensors are found smooth. Learning begins with a long kernel, and takes
// such waves for scatter at first; from there it did not come back.
func TestShortWavesOfGains(t *testing.T) {
	tests.Long(t)
	const seed = 2
	p, truth := smoothly(t, seed, func(u float64) float64 { return 0.1 * math.Sin(8*u) }, 0.01)
	res, s, _, _ := togetherSolved(t, p, truth, seed)
	if res.Status != calamp.Converged || !(s < 0.01) {
		t.Errorf("%v, relative error of s %.3g", res.Status, s)
	}
}

// TestGainsTogetherByColumns: the same where the shape is known but for its size.
func TestGainsTogetherByColumns(t *testing.T) {
	p, truth := smoothly(t, 6, vignetting, 0)
	shape := make([]float64, len(truth.S))
	for mu, s := range truth.S {
		shape[mu] = math.Log(s)
	}
	places, err := channel.Combined(shape, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Channel = channel.Gain{Prior: places.Together(channel.Uniform(0.6, 1.4)), NoiseVar: 1e-6}
	if res, s, _, _ := togetherSolved(t, p, truth, 6); res.Status != calamp.Converged || !(s < 1e-3) {
		t.Errorf("%v, relative error of s %.3g", res.Status, s)
	}
}

func TestGainsTogetherRefused(t *testing.T) {
	for _, c := range []struct {
		positions []float64
		d         int
		want      string
	}{
		{[]float64{1, 2, 3}, 2, "no rows of 2"},
		{[]float64{0, math.NaN()}, 1, "sensor 1 is NaN"},
		{[]float64{1, 1}, 1, "same position"},
	} {
		if _, err := channel.At(c.positions, c.d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("positions %v: %v, expected %q", c.positions, err, c.want)
		}
	}
	if _, err := channel.Combined([]float64{0, 0}, 1); err == nil {
		t.Error("columns of zero are taken")
	}
	p, _ := smoothly(t, 1, vignetting, 0)
	if _, err := calamp.Solve(context.Background(), p, nil); err == nil || !strings.Contains(err.Error(), "this run learns none") {
		t.Errorf("without learning: %v", err)
	}
	few, err := channel.At(slices.Repeat([]float64{0, 1}, 10), 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Channel = channel.Gain{Prior: few.Together(channel.Uniform(0.6, 1.4)), NoiseVar: 1e-6}
	if _, err := calamp.Solve(context.Background(), p, &calamp.Options{Learn: calamp.Learn{Range: true}}); err == nil || !strings.Contains(err.Error(), "20 sensors, expected 300") {
		t.Errorf("another number of positions: %v", err)
	}
}

// TestLongGainsTogether: vignetting with scatter and without, and a step, which is warned of.
func TestLongGainsTogether(t *testing.T) {
	longOnly(t)
	seeds := seedCount(3)
	step := func(u float64) float64 {
		if u > -0.26 {
			return 0.3
		}
		return 0
	}
	for _, c := range []struct {
		name    string
		shape   func(float64) float64
		scatter float64
		steps   bool
	}{{"vignetting", vignetting, 0.01, false}, {"no scatter", vignetting, 0, false}, {"step", step, 0.01, true}} {
		var x, s, size float64
		warned, converged := 0, 0
		for seed := uint64(1); seed <= uint64(seeds); seed++ {
			p, truth := smoothly(t, seed, c.shape, c.scatter)
			res, off, inX, inS := togetherSolved(t, p, truth, seed)
			part := 1 / float64(seeds)
			x, s, size = x+inX*part, s+inS*part, size+off*part
			if find(res, calamp.GainsNotSmooth) != nil {
				warned++
			}
			if res.Status == calamp.Converged {
				converged++
			}
		}
		t.Logf("%s: %d converged, error of s %.3g, inside x %.3f s %.3f, %d warned", c.name, converged, size, x, s, warned)
		if most := map[bool]int{true: seeds}[c.steps]; converged < seeds || warned != most || !(x > 0.93) || !(s > 0.93) {
			t.Errorf("%s: expected all to converge with intervals that hold, and steps alone to be warned of", c.name)
		}
	}
}

// TestStepWhereFaultsAreLookedFor: with one reading a sensor, those beside a step are as well taken for broken, and the step is warned of all the same. What is
// smooth is known of the broken ones, too.
func TestStepWhereFaultsAreLookedFor(t *testing.T) {
	tests.Long(t)
	p, truth := smoothly(t, 3, func(u float64) float64 {
		if u > -0.26 {
			return 0.3
		}
		return 0
	}, 0.01)
	p.Channel = channel.Faulty{Working: p.Channel.(channel.Gain)}
	res, _, _, _ := togetherSolved(t, p, truth, 3)
	if find(res, calamp.GainsNotSmooth) == nil {
		t.Errorf("%v, broken %v: %v", res.Status, res.BrokenSensors, res.Warnings)
	}
	smooth, sd := res.SmoothPart()
	for mu, s := range smooth {
		if !(math.Abs(math.Log(s/res.S[mu])) < 0.3) || !(sd[mu] > 0) {
			t.Errorf("sensor %d: s %g, smooth %g ± %g", mu, res.S[mu], s, sd[mu])
		}
	}
}
