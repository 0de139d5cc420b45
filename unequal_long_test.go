package calamp_test

import (
	"context"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// unequalNamed is in how many of so many runs noise is called unequal, of sensors whose variances
// are spread over so many decades. What is given is one variance, that of the middle.
func unequalNamed(t *testing.T, decades float64, p int, learned bool, runs int) (named int) {
	t.Helper()
	te := teacher.Teacher{
		N: 400, M: 320, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-4,
	}
	found := make([]bool, runs)
	inParallel(runs, func(i int) {
		te := te
		if decades > 0 {
			te.Noise = te.SpreadNoise(decades, uint64(i+1))
		}
		in, err := te.Draw(uint64(i + 1))
		if err != nil {
			t.Error(err)
			return
		}
		problem := te.Problem(in)
		problem.NoiseVar, problem.Channel = nil, channel.Faulty{Working: channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar}}
		res, err := calamp.Solve(context.Background(), problem, &calamp.Options{Learn: calamp.Learn{Noise: learned}, Settings: solver.Settings{Threads: 1}})
		if err != nil {
			t.Error(err)
			return
		}
		found[i] = warned(res, calamp.NoiseUnequal)
	})
	for _, f := range found {
		if f {
			named++
		}
	}
	return named
}

func TestUnequalNamed(t *testing.T) {
	if n := unequalNamed(t, 2, 10, true, 1); n != 1 {
		t.Error("noise over two decades was not named")
	}
	if n := unequalNamed(t, 0, 10, true, 1); n != 0 {
		t.Error("equal noise was called unequal")
	}
}

// TestLongUnequalNamed: noise that was taken to be the same for all sensors is named where it is not, in 95 % of the runs with ten
// signals or more, and only there.
func TestLongUnequalNamed(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "noise over", "P", "noise", "runs", "named")
	for _, learned := range []bool{false, true} {
		for _, c := range []struct {
			decades float64
			p, runs int
		}{{0, 4, 100}, {0, 10, 100}, {0, 50, 20}, {1, 10, 20}, {2, 4, 20}, {2, 10, 20}, {2, 50, 20}} {
			named := unequalNamed(t, c.decades, c.p, learned, c.runs)
			what := map[bool]string{false: "given, one for all", true: "learned"}[learned]
			table.Row("| %g decades | %d | %s | %d | %d |", c.decades, c.p, what, c.runs, named)
			if c.decades == 0 && named > 0 || c.decades == 2 && c.p >= 10 && 20*named < 19*c.runs {
				t.Errorf("%g decades, P = %d, noise %s: named in %d of %d", c.decades, c.p, what, named, c.runs)
			}
		}
	}
}
