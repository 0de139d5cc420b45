package calamp_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

var allParameters = prior.Density | prior.SignalMean | prior.SignalVar

func learnTeacher(noise float64) teacher.Teacher {
	return teacher.Teacher{N: 300, M: 200, P: 6, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: noise}
}

// learned solves with what is learned, and without.
func learned(t *testing.T, te teacher.Teacher, seed uint64, p prior.Prior, c channel.Channel, learn calamp.Learn) (given, found outcome) {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	problem := te.Problem(in)
	solve := func(opt *calamp.Options) outcome {
		res, err := calamp.Solve(context.Background(), problem, opt)
		if err != nil {
			t.Fatal(err)
		}
		return outcome{res, calamp.Score(res.X, res.S, in.Truth), in.Truth}
	}
	given = solve(nil)
	problem.Prior, problem.Channel = p, c
	return given, solve(&calamp.Options{Learn: learn})
}

func within(t *testing.T, name string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got/want-1) > tolerance {
		t.Errorf("%s is %g, want %g within %g %%", name, got, want, 100*tolerance)
	}
}

func TestLearnsFromWrongStarts(t *testing.T) {
	tests.Long(t)
	for i, c := range []struct{ density, variance, noise, truth float64 }{
		{4, 10, 10, 1e-6}, {0.25, 0.1, 0.1, 1e-4}, {4, 0.1, 1000, 1e-6}, {0.1, 10, 1, 1e-3},
	} {
		te := learnTeacher(c.truth)
		start := te.Signal
		start.Density *= c.density
		start.SignalVar *= c.variance
		given, found := learned(t, te, uint64(i), start.Learning(allParameters),
			channel.Gain{Prior: te.Gain, NoiseVar: c.noise * c.truth}, calamp.Learn{Noise: true})
		g := found.Prior.(prior.GaussBernoulli).GaussBernoulliPrior()
		within(t, "density", g.Density, 0.2, 0.2)
		within(t, "variance", g.SignalVar, 1, 0.25)
		within(t, "noise", found.Channel.(channel.Gain).NoiseVar, c.truth, 0.25)
		if found.Status != calamp.Converged || found.XMSEScaled > 1.5*given.XMSEScaled {
			t.Errorf("%+v: %s, scaled MSE %.3g, with the true model %.3g", c, found.Reason, found.XMSEScaled, given.XMSEScaled)
		}
	}
}

func TestLearnsEverything(t *testing.T) {
	tests.Long(t)
	nan := math.NaN()
	for _, noise := range []float64{0, 1e-6, 1e-3} {
		te := learnTeacher(noise)
		in, err := te.Draw(5)
		if err != nil {
			t.Fatal(err)
		}
		p := te.Problem(in)
		g, c, err := calamp.Guess(p.W, p.Y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan})
		if err != nil {
			t.Fatal(err)
		}
		given, found := learned(t, te, 5, g.Learning(allParameters), c, calamp.Learn{Noise: true, Range: true})
		if found.Status != calamp.Converged || found.XMSEScaled > 1.5*given.XMSEScaled && found.XMSEScaled > 1e-18 {
			t.Errorf("Δ = %g: %s, scaled MSE %.3g, with the true model %.3g", noise, found.Reason, found.XMSEScaled, given.XMSEScaled)
		}
		r := found.Channel.(channel.Gain).Prior
		within(t, "middle of the range", r.Lo+r.Hi, 2, 1e-12)
		// At the largest noise a sensor's own error is a third of that.
		within(t, "half-width", (r.Hi-r.Lo)/2, 0.1, 0.25)
	}
}

// What is learned of the signals is compared with the readings of a typical sensor: where the norms of rows are spread by a factor of e
// these have a seventh of the mean power.
func TestLearnsBehindUnevenRows(t *testing.T) {
	te := teacher.Teacher{N: 400, M: 320, P: 4, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-8}
	if err := te.Matrix.UnmarshalText([]byte("uneven:1")); err != nil {
		t.Fatal(err)
	}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	res := solveNothingGiven(t, in, calamp.Learn{Noise: true, Range: true})
	learned := res.Prior.(prior.GaussBernoulli)
	if m := calamp.Score(res.X, res.S, in.Truth); res.Status != calamp.Converged || m.XMSEScaled > 1e-7 || learned.Density == 0.2 {
		t.Errorf("%v, squared error %.2g, learned %v", res.Status, m.XMSEScaled, learned)
	}
}

// When the signals' variance is known, a range that is learned follows it.
func TestRangeFollowsTheSignals(t *testing.T) {
	te := learnTeacher(1e-6)
	te.Gain = channel.Uniform(2.7, 3.3)
	in, err := te.Draw(2)
	if err != nil {
		t.Fatal(err)
	}
	_, c, err := calamp.Guess(in.W, in.Y, te.Signal, channel.Gain{Prior: channel.GainPrior{Lo: math.NaN()}, NoiseVar: te.NoiseVar})
	if err != nil {
		t.Fatal(err)
	}
	for _, start := range []channel.GainPrior{c.Prior, channel.Uniform(1, 2)} {
		_, found := learned(t, te, 2, te.Signal, channel.Gain{Prior: start, NoiseVar: te.NoiseVar}, calamp.Learn{Range: true})
		r := found.Channel.(channel.Gain).Prior
		within(t, "low end", r.Lo, 2.7, 0.1)
		within(t, "high end", r.Hi, 3.3, 0.1)
		within(t, "scale", found.Scale, 1, 0.1)
		if found.Status != calamp.Converged {
			t.Error(found.Reason)
		}
	}
}

// anyVariance is a Gaussian prior of a user's own, whose variance is learned.
type anyVariance struct{ prior.GaussBernoulli }

func (a anyVariance) LearnsScale() bool { return true }

func (a anyVariance) Learns() bool                   { return true }
func (a anyVariance) Balanced(float64) prior.Learner { return a }

func (a anyVariance) Refit(lambda, sigma []float64, step float64) (prior.Learner, float64) {
	total := 0.0
	mean, variance := make([]float64, len(lambda)), make([]float64, len(lambda))
	a.Posterior(mean, variance, lambda, sigma)
	for i, m := range mean {
		total += m*m + variance[i]
	}
	next := prior.Gaussian(0, a.SignalVar+step*(total/float64(len(mean))-a.SignalVar))
	return anyVariance{next}, math.Abs(math.Log(next.SignalVar/a.SignalVar)) * math.Sqrt(float64(len(mean))/2)
}

func TestLearnsAPriorOfOnesOwn(t *testing.T) {
	tests.Long(t)
	te := learnTeacher(1e-5)
	te.M = 500
	te.Signal = prior.Gaussian(0, 4)
	_, found := learned(t, te, 1, anyVariance{prior.Gaussian(0, 1)}, channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar}, calamp.Learn{})
	within(t, "variance", found.Prior.(anyVariance).SignalVar, 4, 0.15)
	if found.Status != calamp.Converged || found.XOneMinusNCC > 1e-4 {
		t.Errorf("%s, 1-ncc %.2g", found.Reason, found.XOneMinusNCC)
	}
}

func TestCannotLearn(t *testing.T) {
	te := learnTeacher(1e-6)
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		channel channel.Channel
		opt     calamp.Options
	}{
		"full covariances: learning the model needs diagonal ones": {te.Problem(in).Channel, calamp.Options{Settings: solver.Settings{Covariance: solver.Full}, Learn: calamp.Learn{Noise: true}}},
		"has no range of s":      {channel.AWGN{NoiseVar: 1e-6}, calamp.Options{Learn: calamp.Learn{Range: true}}},
		"it is no channel.Noisy": {struct{ channel.Channel }{channel.AWGN{}}, calamp.Options{Learn: calamp.Learn{Noise: true}}},
	} {
		p := te.Problem(in)
		p.Channel = c.channel
		if _, err := calamp.Solve(context.Background(), p, &c.opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestPositiveBehindMasks: entries that cannot be negative add up behind masks of 0 and 1, and a start that does not count on that expects readings several times as large as they are:
// then all sensors were called broken in the first iterations.
func TestPositiveBehindMasks(t *testing.T) {
	signal := prior.GaussBernoulli{Density: 0.15, SignalMean: 200, SignalVar: 160000}
	te := teacher.Teacher{N: 100, M: 100, P: 8, Signal: signal, Entries: prior.NonNegative(signal), Gain: channel.Uniform(0.8, 1.25), NoiseVar: 40}
	if err := te.Matrix.UnmarshalText([]byte("binary")); err != nil {
		t.Fatal(err)
	}
	p, truth, err := te.Pose(1)
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	start, gain, err := calamp.Guess(p.W, p.Y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan})
	if err != nil {
		t.Fatal(err)
	}
	p.Prior, p.Channel = prior.NonNegative(start).Learning(allParameters), channel.Faulty{Working: gain}
	res := solve(t, p, &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}})
	if score := res.Score(truth); res.Status != calamp.Converged || !(score.XOneMinusNCC < 1e-3) || len(res.BrokenSensors) > 0 {
		t.Errorf("%v, 1-ncc of x %.3g, %d broken", res.Status, score.XOneMinusNCC, len(res.BrokenSensors))
	}
}
