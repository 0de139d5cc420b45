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
	"github.com/calamp/calamp/teacher"
)

// TestToldContradicted: a number that was told and is not that of the readings is named, with what they say; a true one is not.
func TestToldContradicted(t *testing.T) {
	tests.Long(t)
	truth := prior.GaussBernoulli{Density: 0.15, SignalVar: 1}
	p, _, err := teacher.Teacher{N: 150, M: 150, P: 8, Signal: truth, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}.Pose(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		signal prior.GaussBernoulli
		noise  float64
		want   string // empty for no warning
	}{
		{truth, 1e-4, ""},
		{prior.GaussBernoulli{Density: 0.1, SignalVar: 1.3}, 1.5e-4, ""},
		{prior.GaussBernoulli{Density: 0.6, SignalVar: 1}, 1e-4, "the density as 0.6, where they say about 0.1"},
		{prior.GaussBernoulli{Density: 0.15, SignalVar: 20}, 1e-4, "the variance of non-zero entries as 20, where they say about "},
		{truth, 1e-2, "the noise variance as 0.01, where they say about "},
		{truth, 1e-5, "the noise variance as 1e-05, where they say about "},
		{prior.GaussBernoulli{Density: 0.15, SignalMean: 3, SignalVar: 1}, 1e-4, "the mean of non-zero entries as 3, where they say about "},
	} {
		q := *p
		q.Prior, q.Channel = c.signal, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: c.noise}
		res, err := calamp.Solve(context.Background(), &q, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := find(res, calamp.ToldContradicted)
		if (w != nil) != (c.want != "") || w != nil && !strings.Contains(w.Message, c.want) {
			t.Errorf("%+v, noise %g: %v %v", c.signal, c.noise, res.Status, w)
		}
	}
}

// TestOneNumberHoldsTheScale: a variance or a mean of signals, or of noise, where all else is learned, is what the result has, and says
// nothing else.
func TestOneNumberHoldsTheScale(t *testing.T) {
	const all = prior.Density | prior.SignalMean | prior.SignalVar
	p, _, err := teacher.Teacher{N: 150, M: 150, P: 8, Signal: prior.GaussBernoulli{Density: 0.15, SignalMean: 1, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}.Pose(3)
	if err != nil {
		t.Fatal(err)
	}
	p.Prior = prior.LearnedGaussBernoulli{GaussBernoulli: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Learn: all}
	solve := func(scale calamp.Scale) *calamp.Result {
		opt := &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}, Scale: scale}
		res, err := calamp.Solve(context.Background(), p, opt)
		if err != nil || res.Status != calamp.Converged {
			t.Fatal(res, err)
		}
		return res
	}
	free := solve(calamp.Scale{})
	for _, scale := range []calamp.Scale{{SignalVar: 1e12}, {SignalMean: 1e-3}, {NoiseVar: 1}} {
		res := solve(scale)
		g, noise := res.Prior.(prior.LearnedGaussBernoulli), channel.NoiseOf(res.Channel)
		for _, v := range [][2]float64{{scale.SignalVar, g.SignalVar}, {scale.SignalMean, g.SignalMean}, {scale.NoiseVar, noise}} {
			if v[0] != 0 && math.Abs(v[1]/v[0]-1) > 1e-12 {
				t.Errorf("%+v: found %g", scale, v[1])
			}
		}
		factor := res.S[0] / free.S[0]
		for mu, s := range res.S {
			if math.Abs(s/free.S[mu]/factor-1) > 1e-12 {
				t.Errorf("%+v: s of sensor %d is %g times that with a free scale, of sensor 0 %g", scale, mu, s/free.S[mu], factor)
			}
		}
		if !(res.ScaleSD > 0 && res.ScaleSD < 0.2) || find(res, calamp.ScaleFromGains) != nil {
			t.Errorf("%+v: scale known to %g", scale, res.ScaleSD)
		}
	}
	if _, err := calamp.Solve(context.Background(), p, &calamp.Options{Scale: calamp.Scale{SignalVar: 1, NoiseVar: 1}}); err == nil {
		t.Error("two numbers hold the scale")
	}
}
