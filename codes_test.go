package calamp_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// converted are the readings that a converter makes of y.
func converted(y *mat.Dense, c channel.Codes) *mat.Dense {
	codes := mat.DenseCopyOf(y)
	codes.Apply(func(_, _ int, v float64) float64 { return c.CodeOf(v) }, y)
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
