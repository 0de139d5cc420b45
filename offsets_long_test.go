package calamp_test

import (
	"context"
	"math"
	"testing"

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

// solveNothingTold learns all of the model, as calamp solve does when nothing is told.
func solveNothingTold(t testing.TB, in *teacher.Instance, learn calamp.Learn) *calamp.Result {
	t.Helper()
	return solveLearning(t, in, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan}, learn)
}

// solveLearning is the same with the channel as it is told; what is NaN is guessed first.
func solveLearning(t testing.TB, in *teacher.Instance, gain channel.Gain, learn calamp.Learn) *calamp.Result {
	t.Helper()
	g, gain, err := calamp.Guess(in.W, in.Y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, gain)
	if err != nil {
		t.Fatal(err)
	}
	res, err := calamp.Solve(context.Background(), &calamp.Problem{
		W: in.W, Y: in.Y, Prior: prior.LearnedGaussBernoulli{GaussBernoulli: g, Learn: allParameters},
		Channel: channel.Faulty{Working: gain},
	}, &calamp.Options{Learn: learn, Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}
