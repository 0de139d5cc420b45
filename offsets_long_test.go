package calamp_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

var nan = math.NaN()

// offsetTeacher has readings with a standard deviation of 0.45; those of offsets are relative to that.
func offsetTeacher(relative float64, p int) teacher.Teacher {
	return teacher.Teacher{
		N: 300, M: 240, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4, Offset: 0.45 * relative,
	}
}

// TestLongOffsetsNamed: where nobody modelled offsets, a warning names them, and only there.
func TestLongOffsetsNamed(t *testing.T) {
	if !*long {
		t.Skip("long: -long runs it")
	}
	table := tables.New(t, "", "offsets, relative to the readings", "P", "runs", "named")
	for _, c := range []struct {
		relative float64
		p, runs  int
		named    bool
	}{{0.1, 10, 20, true}, {0.1, 20, 20, true}, {0.5, 10, 20, true}, {0.5, 20, 20, true}, {0, 4, 100, false}, {0, 10, 100, false}} {
		te, count := offsetTeacher(c.relative, c.p), 0
		for seed := range c.runs {
			in, err := te.Draw(uint64(seed + 1))
			if err != nil {
				t.Fatal(err)
			}
			if res := solveNothingTold(t, in, calamp.Learn{Noise: true, Range: true}); warned(res, calamp.Offsets) {
				count++
			}
		}
		table.Row("| %g | %d | %d | %d |", c.relative, c.p, c.runs, count)
		if want := map[bool]int{true: c.runs}[c.named]; count != want {
			t.Errorf("offsets of %g, P = %d: named in %d of %d runs, want %d", c.relative, c.p, count, c.runs, want)
		}
	}
}

// offsetRun is a run with offsets against one of the same readings without them, and the truth.
type offsetRun struct {
	status     calamp.Status
	ratio      float64 // of the errors of x
	nmse       float64
	o, s, x    float64 // part of the intervals of 95 % that hold the truth
	broken     int
	iterations int
	warned     bool
}

// offsetRunOf learns everything.
func offsetRunOf(t testing.TB, te teacher.Teacher, seed uint64) (r offsetRun) {
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	res := solveNothingTold(t, in, calamp.Learn{Noise: true, Range: true, Offset: true})
	without := *in
	without.Y = mat.DenseCopyOf(in.Y)
	without.Y.Apply(func(mu, _ int, y float64) float64 { return y - in.Truth.O[mu] }, without.Y)
	told := solveNothingTold(t, &without, calamp.Learn{Noise: true, Range: true})
	score := calamp.Score(res.X, res.S, in.Truth)
	r.status, r.broken, r.iterations = res.Status, len(res.BrokenSensors), res.Iterations
	r.nmse = score.XMSEScaled / 0.2
	r.ratio = score.XMSEScaled / calamp.Score(told.X, told.S, in.Truth).XMSEScaled
	r.warned = warned(res, calamp.OffsetsFewSignals)
	for mu, o := range in.Truth.O {
		if math.Abs(res.Offset[mu]-o) < 1.96*math.Sqrt(res.OffsetVar[mu]) {
			r.o += 1 / float64(te.M)
		}
	}
	_, _, lo, hi := res.SIntervals(0.95)
	for mu, s := range in.Truth.S {
		if s /= score.Scale; lo[mu] <= s && s <= hi[mu] {
			r.s += 1 / float64(te.M)
		}
	}
	for i := range te.N {
		for k := range te.P {
			if math.Abs(score.Scale*res.X.At(i, k)-in.Truth.X.At(i, k)) < 1.96*score.Scale*math.Sqrt(res.XVar.At(i, k)) {
				r.x += 1 / float64(te.N*te.P)
			}
		}
	}
	return r
}

// TestLongOffsets: gains and offsets are found, nothing told.
func TestLongOffsets(t *testing.T) {
	if !*long {
		t.Skip("long: -long runs it")
	}
	table := tables.New(t, "", "offsets, relative to the readings", "P", "converged", "nmse (median)", "relative to offsets told (median)", "largest", "offsets within their intervals", "s", "x", "called broken", "iterations")
	runs := 10
	if *seeds > 0 {
		runs = *seeds
	}
	for _, p := range []int{10, 20} {
		for _, relative := range []float64{0.1, 0.5} {
			var all []offsetRun
			for seed := range runs {
				all = append(all, offsetRunOf(t, offsetTeacher(relative, p), uint64(seed+1)))
			}
			converged, broken := 0, 0
			var ratios, nmse, iterations []float64
			var o, s, x float64
			for _, r := range all {
				if r.status == calamp.Converged {
					converged++
				}
				broken += r.broken
				ratios, nmse, iterations = append(ratios, r.ratio), append(nmse, r.nmse), append(iterations, float64(r.iterations))
				o += r.o / float64(runs)
				s += r.s / float64(runs)
				x += r.x / float64(runs)
			}
			slices.Sort(ratios)
			slices.Sort(nmse)
			slices.Sort(iterations)
			table.Row("| %g | %d | %d/%d | %.2g | %.3g | %.3g | %.1f %% | %.1f %% | %.1f %% | %d | %.0f |", relative, p, converged, runs,
				nmse[runs/2], ratios[runs/2], ratios[runs-1], 100*o, 100*s, 100*x, broken, iterations[runs/2])
			if ratios[runs/2] > 1.5 || o < 0.9 || o > 0.98 || converged < runs || broken > 0 {
				t.Errorf("offsets of %g, P = %d: error %.3g times that with offsets told, %.1f %% covered, %d converged, %d called broken", relative, p, ratios[runs/2], 100*o, converged, broken)
			}
		}
	}
}

// solveNothingTold learns all of the model, as calamp solve does when nothing is told.
func solveNothingTold(t testing.TB, in *teacher.Instance, learn calamp.Learn) *calamp.Result {
	t.Helper()
	y, gain := in.Y, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan}
	if learn.Offset {
		y = calamp.WithoutOffsets(y)
	}
	g, gain, err := calamp.Guess(in.W, y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, gain)
	if err != nil {
		t.Fatal(err)
	}
	var working channel.Channel = gain
	if learn.Offset {
		working = channel.Offset{Prior: channel.OffsetPrior{Gain: gain.Prior, SD: calamp.GuessOffset(in.Y)}, NoiseVar: gain.NoiseVar}
	}
	res, err := calamp.Solve(context.Background(), &calamp.Problem{
		W: in.W, Y: in.Y, Prior: prior.LearnedGaussBernoulli{GaussBernoulli: g, Learn: allParameters},
		Channel: channel.Faulty{Working: working},
	}, &calamp.Options{Learn: learn, Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}
