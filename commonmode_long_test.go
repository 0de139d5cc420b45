package calamp_test

import (
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// disturbed solves a problem of which signal 3 was disturbed in all sensors, knowing the range of s alone, and returns the
// signals that are named.
func disturbed(t testing.TB, te teacher.Teacher, seed uint64, disturb func(y float64) float64) []int {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	for mu := range te.M {
		in.Y.Set(mu, 3, disturb(in.Y.At(mu, 3)))
	}
	nan := math.NaN()
	signal, gain, err := calamp.Guess(in.W, in.Y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: te.Gain, NoiseVar: nan})
	if err != nil {
		t.Fatal(err)
	}
	problem, opt := te.Problem(in), &calamp.Options{Outliers: calamp.Outliers{Look: true}, Learn: calamp.Learn{Noise: true}}
	problem.Prior = signal.Learning(prior.Density | prior.SignalMean | prior.SignalVar)
	problem.Channel = channel.Faulty{Working: gain}
	for _, w := range solve(t, problem, opt).Warnings {
		if w.Code == calamp.CommonMode {
			return w.Signals
		}
	}
	return nil
}

func healthy(y float64) float64 { return y }

// A constant that all sensors add is named, and a factor; healthy signals are not.
func TestDisturbedSamplesAreNamed(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 200, M: 160, P: 8, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}
	for name, disturb := range map[string]func(float64) float64{
		"constant": func(y float64) float64 { return y + 0.02 },
		"factor":   func(y float64) float64 { return 3 * y },
		"none":     healthy,
	} {
		named := disturbed(t, te, 1, disturb)
		if name == "none" && named != nil || name != "none" && !slices.Equal(named, []int{3}) {
			t.Errorf("%s: signals %v are said to be disturbed", name, named)
		}
	}
}

// Constants from the noise's size on are named, factors where they are beyond what signals differ by; no healthy signal of 1000 is.
func TestLongCommonMode(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "signal 3 is read", "runs", "named", "other signals named, of")
	count := seedCount(10)
	for _, c := range []struct {
		name    string
		disturb func(y float64) float64
		runs    int
		least   float64
	}{
		{"as it is", healthy, 10 * count, 0},
		{"+ 0.005 (half the noise)", func(y float64) float64 { return y + 0.005 }, count, 0},
		{"+ 0.01 (the noise)", func(y float64) float64 { return y + 0.01 }, count, 1},
		{"+ 0.03", func(y float64) float64 { return y + 0.03 }, count, 1},
		{"+ 0.1", func(y float64) float64 { return y + 0.1 }, count, 0.9},
		{"+ 1", func(y float64) float64 { return y + 1 }, count, 0.9},
		{"- 100", func(y float64) float64 { return y - 100 }, count, 0.9},
		{"× 1.5", func(y float64) float64 { return 1.5 * y }, count, 0},
		{"× 3", func(y float64) float64 { return 3 * y }, count, 0.6},
		{"× 1/3", func(y float64) float64 { return y / 3 }, count, 0.9},
	} {
		named, others, all := 0, 0, 0
		for seed := range c.runs {
			te := teacher.Teacher{N: 300, M: 240, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}
			signals := disturbed(t, te, uint64(seed), c.disturb)
			if slices.Contains(signals, 3) {
				named++
			}
			others += len(slices.DeleteFunc(slices.Clone(signals), func(k int) bool { return k == 3 }))
			all += te.P - 1
		}
		table.Row("| %s | %d | %d | %d, %d |", c.name, c.runs, named, others, all)
		if c.least == 0 && c.name == "as it is" && named > 0 || float64(named) < c.least*float64(c.runs) || others > 0 {
			t.Errorf("%s: signal 3 is named in %d runs of %d, others in %d", c.name, named, c.runs, others)
		}
	}
}
