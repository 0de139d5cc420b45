package calamp_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// converted are the readings that a converter makes of y.
func converted(y *mat.Dense, c channel.Codes) *mat.Dense {
	codes := mat.DenseCopyOf(y)
	_, p := y.Dims()
	codes.Apply(func(mu, k int, v float64) float64 { return c.CodeAt(mu*p+k, v) }, y)
	return codes
}

// inside is which part of entries, at the true scale, and of gains as they are lies within intervals of 95 %.
func inside(res *calamp.Result, truth calamp.Truth) (x, s float64) {
	ranks, _ := res.Ranks(truth, rand.New(rand.NewPCG(1, 2)))
	for _, u := range ranks {
		if u > 0.025 && u < 0.975 {
			x++
		}
	}
	lo, hi := res.SIntervalRaw(0.95)
	for mu, s0 := range truth.S {
		if lo[mu] < s0 && s0 < hi[mu] {
			s++
		}
	}
	return x / float64(len(ranks)), s / float64(len(lo))
}

// Codes of four bits are solved as what they are: with a smaller error than as readings with noise, and with error bars that hold; signs about
// a threshold are, too.
func TestCodes(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 100, M: 90, P: 6, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}
	in, err := te.Draw(3)
	if err != nil {
		t.Fatal(err)
	}
	c := channel.Codes{Prior: te.Gain, NoiseVar: te.NoiseVar, Step: 0.25}
	solve := func(c channel.Channel, learn bool) (*calamp.Result, float64) {
		t.Helper()
		res, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: converted(in.Y, channel.Codes{Step: 0.25}), Prior: te.Signal, Channel: c}, &calamp.Options{Learn: calamp.Learn{Noise: learn}})
		if err != nil || res.Status != calamp.Converged {
			t.Fatalf("%T: %v, %v", c, err, res)
		}
		return res, calamp.Score(res.X, res.S, in.Truth).XMSE
	}
	res, codes := solve(c, false)
	_, faulty := solve(channel.Faulty{Working: c}, true)
	_, noisy := solve(channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar}, true)
	if codes > noisy || faulty > 1.2*noisy {
		t.Errorf("x is wrong by %.3g as codes, with noise that is learned by %.3g, as readings with noise by %.3g", codes, faulty, noisy)
	}
	if x, s := inside(res, in.Truth); x < 0.9 || s < 0.88 {
		t.Errorf("intervals of 95 %% hold %.0f %% of x and %.0f %% of s", 100*x, 100*s)
	}
	if res, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: in.Y, Prior: te.Signal, Channel: c}, nil); err == nil {
		t.Errorf("readings that are no codes: %v", res.Status)
	}
}

// Thresholds of every reading are those of its sensor and signal, whatever blocks of sensors are looked at: error bars hold, and in another order of the same thresholds nothing does.
func TestThresholdsOfEveryReading(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 60, M: 200, P: 5, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 4}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-3}
	in, err := te.Draw(2)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(38, 1))
	c := channel.Codes{Prior: te.Gain, NoiseVar: te.NoiseVar, Thresholds: make([]float64, te.M*te.P)}
	for j := range c.Thresholds {
		c.Thresholds[j] = 1.6*rng.Float64() - 0.8
	}
	y := mat.DenseCopyOf(in.Y)
	y.Apply(func(mu, k int, v float64) float64 { return c.CodeAt(mu*te.P+k, v) }, in.Y)
	res, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: y, Prior: te.Signal, Channel: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, s := inside(res, in.Truth)
	right := calamp.Score(res.X, res.S, in.Truth).XMSE
	if res.Status != calamp.Converged || x < 0.92 || s < 0.9 || right > 0.03 {
		t.Errorf("%v, %.3f of x and %.3f of s inside, error %.3g", res.Status, x, s, right)
	}
	slices.Reverse(c.Thresholds)
	res, err = calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: y, Prior: te.Signal, Channel: c}, &calamp.Options{Settings: solver.Settings{MaxIter: 60}})
	if err != nil {
		t.Fatal(err)
	}
	if wrong := calamp.Score(res.X, res.S, in.Truth).XMSE; wrong < 3*right {
		t.Errorf("error %.3g with thresholds reversed, %.3g as they were", wrong, right)
	}
	c.Thresholds = c.Thresholds[1:]
	if _, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: y, Prior: te.Signal, Channel: c}, nil); err == nil {
		t.Error("thresholds of another number are taken")
	}
}
