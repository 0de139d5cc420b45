package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

var smallOffsets = teacher.Teacher{
	N: 150, M: 120, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
	Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4,
}

// TestOffsetsAsTheyAre: offsets that are not normal, and none, with nothing given: the error is that of the readings
// without them, and error bars hold.
func TestOffsetsAsTheyAre(t *testing.T) {
	tests.Long(t)
	te := smallOffsets
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		name   string
		offset func() float64
		broken int // sensors that may be called broken
	}{
		{"none", func() float64 { return 0 }, 0},
		{"all equal", func() float64 { return 1 }, 0},
		{"of two kinds", func() float64 { return math.Copysign(0.3, rng.Float64()-0.5) }, 0},
		{"far apart", func() float64 { return math.Exp(3 * rng.NormFloat64()) }, 3},
	} {
		with := *in
		with.Y, with.Truth.O = mat.DenseCopyOf(in.Y), make([]float64, te.M)
		for mu := range with.Truth.O {
			with.Truth.O[mu] = c.offset()
			for k := range te.P {
				with.Y.Set(mu, k, in.Y.At(mu, k)+with.Truth.O[mu])
			}
		}
		res := solveNothingGiven(t, &with, calamp.Learn{Noise: true, Range: true, Offset: true})
		score := calamp.Score(res.X, res.S, with.Truth)
		covered := 0.0
		for mu, o := range with.Truth.O {
			if math.Abs(res.Offset[mu]-o) < 1.96*math.Sqrt(res.OffsetVar[mu]) {
				covered += 1 / float64(te.M)
			}
		}
		if res.Status != calamp.Converged || score.XMSEScaled > 1.2e-4 || covered < 0.9 || len(res.BrokenSensors) > c.broken {
			t.Errorf("%s: %v, error %.2g, %.3g of the offsets covered, %d sensors called broken", c.name, res.Status, score.XMSEScaled, covered, len(res.BrokenSensors))
		}
	}
}

// TestOffsetsBesideOtherTrouble: broken sensors are found, a given range is tested, missing readings do no harm, W is a
// transform, or the model is given.
func TestOffsetsBesideOtherTrouble(t *testing.T) {
	tests.Long(t)
	te := smallOffsets
	te.Offset = 0.3
	in, err := te.Draw(2)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	given := channel.Offset{Prior: channel.OffsetPrior{Gain: channel.Uniform(0.5, 1.5), SD: 0.3}, NoiseVar: 1e-4}
	for name, c := range map[string]struct {
		change func(y *mat.Dense)
		matrix string
		broken []int
	}{
		"given a range too wide": {},
		"missing readings": {change: func(y *mat.Dense) {
			for range 60 {
				y.Set(rng.IntN(te.M), rng.IntN(te.P), math.NaN())
			}
		}},
		"broken sensors": {change: func(y *mat.Dense) {
			for _, mu := range []int{5, 50} {
				for k := range te.P {
					y.Set(mu, k, 0.5*rng.NormFloat64())
				}
			}
		}, broken: []int{5, 50}},
		"vector AMP": {matrix: "dct"},
	} {
		p, truth := te, in.Truth
		w, y := in.W, mat.DenseCopyOf(in.Y)
		if c.matrix != "" {
			p.Matrix = teacher.Ensemble{Kind: c.matrix}
			other, err := p.Draw(2)
			if err != nil {
				t.Fatal(err)
			}
			w, y, truth = other.W, other.Y, other.Truth
		}
		if c.change != nil {
			c.change(y)
		}
		res, err := calamp.Solve(context.Background(), &calamp.Problem{
			W: w, Y: y, Prior: te.Signal, Channel: channel.Faulty{Working: given},
		}, &calamp.Options{Settings: solver.Settings{Threads: 1}})
		if err != nil {
			t.Fatal(err)
		}
		score := calamp.Score(res.X, res.S, truth)
		var broken []int
		for _, b := range res.BrokenSensors {
			broken = append(broken, b.Sensor)
		}
		if res.Status != calamp.Converged || score.XMSEScaled > 1.5e-4 || len(broken) != len(c.broken) || !warned(res, calamp.RangeNotFilled) {
			t.Errorf("%s: %v, error %.2g, broken %v, want %v, warnings %v", name, res.Status, score.XMSEScaled, broken, c.broken, res.Warnings)
		}
	}
}

// TestOffsetsOfFewSignals: what does not work is refused or named.
func TestOffsetsOfFewSignals(t *testing.T) {
	tests.Long(t)
	te := smallOffsets
	te.Offset = 0.3
	solve := func(p int, sd, density float64) (*calamp.Result, error) {
		te.P, te.Signal.Density = p, density
		in, err := te.Draw(1)
		if err != nil {
			t.Fatal(err)
		}
		return calamp.Solve(context.Background(), &calamp.Problem{
			W: in.W, Y: in.Y, Prior: te.Signal,
			Channel: channel.Offset{Prior: channel.OffsetPrior{Gain: te.Gain, SD: sd}, NoiseVar: te.NoiseVar},
		}, &calamp.Options{Settings: solver.Settings{Threads: 1, MaxIter: 60}})
	}
	if res, err := solve(4, 0.3, 0.2); err != nil || warned(res, calamp.OffsetsFewSignals) || !warned(res, calamp.OffsetsCommonEntries) {
		t.Errorf("4 signals: %v", err)
	}
	if res, err := solve(12, 0.3, 0.2); err != nil || warned(res, calamp.OffsetsFewSignals) || warned(res, calamp.OffsetsCommonEntries) {
		t.Errorf("12 signals: %v", err)
	}
	if _, err := solve(2, 0.3, 0.2); err == nil || !strings.Contains(err.Error(), "expected 3 signals or more") {
		t.Errorf("2 signals: %v", err)
	}
	if _, err := solve(12, math.Inf(1), 1); err == nil || !strings.Contains(err.Error(), "not sparse") {
		t.Errorf("flat offsets of dense signals: %v", err)
	}
	if res, err := solve(12, math.Inf(1), 0.2); err != nil || res.Status == calamp.Diverged {
		t.Errorf("flat offsets: %v", err)
	}
}

// TestOffsetsOfFewSignalsCovered: what an offset does to all signals equally is in the error bars, also where readings are missing and sensors
// broken; where it is not followed, a warning says so.
func TestOffsetsOfFewSignalsCovered(t *testing.T) {
	tests.Long(t)
	te := smallOffsets
	te.P, te.Offset, te.Signal.Density = 5, 0.3, 0.15
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for range 30 {
		in.Y.Set(rng.IntN(te.M), rng.IntN(te.P), math.NaN())
	}
	broken := map[int]bool{5: true, 50: true}
	for mu := range broken {
		for k := range te.P {
			in.Y.Set(mu, k, 2*rng.NormFloat64())
		}
	}
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: te.OffsetChannel()}
	res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	score, inside := calamp.Score(res.X, res.S, in.Truth), 0.0
	for mu, o := range in.Truth.O {
		if !broken[mu] && math.Abs(res.Offset[mu]-o) < 1.96*math.Sqrt(res.OffsetVar[mu]) {
			inside += 1 / float64(te.M-len(broken))
		}
	}
	stated := mat.Sum(res.XVar) / float64(te.N*te.P)
	if res.Status != calamp.Converged || inside < 0.88 || score.XMSEScaled > 2*stated || len(res.BrokenSensors) != 2 || warned(res, calamp.OffsetsFewSignals) {
		t.Errorf("%v, %.3g of the offsets covered, error %.2g, stated %.2g, %d sensors broken", res.Status, inside, score.XMSEScaled, stated, len(res.BrokenSensors))
	}
	res, err = calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Threads: 1, NoScaleStep: true, MaxIter: 10}})
	if err != nil || !warned(res, calamp.OffsetsFewSignals) {
		t.Errorf("the bare recursion has no covariances, and nothing says so: %v", err)
	}
}

// TestOffsetsOfFewSignalsIllConditioned: vector AMP follows what an offset does to all signals, and where it cannot it says that the result is none.
func TestOffsetsOfFewSignalsIllConditioned(t *testing.T) {
	tests.Long(t)
	te := smallOffsets
	te.P, te.Offset, te.Signal.Density, te.Matrix = 6, 0.1, 0.15, teacher.Ensemble{Kind: "condition", Value: 100}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	solve := func() *calamp.Result {
		p := te.Problem(in)
		p.Channel = te.OffsetChannel()
		res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Threads: 1, MaxIter: 400}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := solve()
	inside := 0.0
	for mu, o := range in.Truth.O {
		if math.Abs(res.Offset[mu]-o) < 1.96*math.Sqrt(res.OffsetVar[mu]) {
			inside += 1 / float64(te.M)
		}
	}
	stated, wrong := mat.Sum(res.XVar)/float64(te.N*te.P), calamp.Score(res.X, res.S, in.Truth).XMSEScaled
	if res.Status != calamp.Converged || !res.Plan.Has("covariances") || res.Plan.Algorithm != solver.VAMP || inside < 0.85 || wrong > 2*stated {
		t.Errorf("%v, %.3g of the offsets covered, error %.2g, stated %.2g", res.Status, inside, wrong, stated)
	}
	for mu := range te.M / 8 { // too many sensors to leave out
		in.Y.Set(mu, mu%te.P, math.NaN())
	}
	if res := solve(); res.Status == calamp.Converged || !warned(res, calamp.OffsetsFewSignals) {
		t.Errorf("with missing readings: %v, warnings %v", res.Status, res.Warnings)
	}
}

// TestOffsetsAsPredicted: errors are those that state evolution says.
func TestOffsetsAsPredicted(t *testing.T) {
	tests.Long(t)
	te := smallOffsets
	te.Offset, te.Signal.Density = 0.1, 0.1 // so sparse that entries which nearly all signals have do not matter
	want := offsetPrediction(t, te)
	runs := make([]offsetErrors, 6)
	inParallel(len(runs), func(i int) { runs[i] = offsetErrorsOf(t, te, uint64(i)) })
	for name, c := range map[string]struct {
		got  evolution.Number
		want evolution.Number
	}{
		"x": {plainMean(runs, func(r offsetErrors) float64 { return r.x }), want.MSEX},
		"s": {plainMean(runs, func(r offsetErrors) float64 { return r.s }), want.MSES},
		"o": {plainMean(runs, func(r offsetErrors) float64 { return r.o }), want.MSEO},
	} {
		if d := distance(c.got, c.want.Value, c.want.Err); math.Abs(d) > 3 || c.got.Err > 0.2*c.got.Value {
			t.Errorf("%s: %v, state evolution %v, %.1f standard errors", name, c.got, c.want, d)
		}
	}
}
