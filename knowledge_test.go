package calamp_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// A factory's calibration of every sensor: too few signals to find the gains without it. It holds the scale, and a
// sensor that has changed since goes its own way.
func TestKnowledgeOfSensors(t *testing.T) {
	te := teacher.Teacher{N: 200, M: 160, P: 3, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.LogNormalAbout(1, 0.4), NoiseVar: 1e-4}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4, 5))
	known := &channel.Knowledge{Mean: make([]float64, te.M), SD: make([]float64, te.M)}
	for mu, s := range in.Truth.S {
		known.SD[mu] = 0.02 * s
		known.Mean[mu] = s + known.SD[mu]*rng.NormFloat64()
	}
	known.Mean[7] = math.NaN()           // unknown
	known.Mean[9] *= 2.5                 // has changed
	known.SD[11] = 1e-3 * in.Truth.S[11] // known well
	known.Mean[11] = in.Truth.S[11]

	p := te.Problem(in)
	blind := solve(t, p, nil)
	p.Channel = channel.Faulty{Working: channel.Gain{Prior: channel.About(known), NoiseVar: te.NoiseVar}}
	res := solve(t, p, nil)
	score, before := calamp.Score(res.X, res.S, in.Truth), calamp.Score(blind.X, blind.S, in.Truth)
	if res.Status != calamp.Converged || score.XMSE > 0.9*before.XMSE {
		t.Errorf("%v: errors %g and %g, blind %g and %g", res.Status, score.XMSE, score.SMSE, before.XMSE, before.SMSE)
	}
	if len(res.BrokenSensors) > 0 {
		t.Errorf("called broken: %v", res.BrokenSensors)
	}
	if off := math.Abs(math.Log(score.Scale)); off > 4*res.ScaleSD || res.ScaleSD > 0.005 {
		t.Errorf("scale off by %g, stated %g", off, res.ScaleSD)
	}
	for _, mu := range []int{7, 9} {
		if d := math.Abs(res.S[mu]/in.Truth.S[mu] - 1); d > 0.1 {
			t.Errorf("sensor %d is %g, truth %g", mu, res.S[mu], in.Truth.S[mu])
		}
	}
	if w := find(res, calamp.KnowledgeMismatch); w == nil || !slices.Contains(w.Sensors, 9) {
		t.Errorf("no word of the sensor that has changed: %v", res.Warnings)
	}
	lo, hi := res.SIntervalRaw(0.95)
	covered := 0
	for mu, s := range in.Truth.S {
		if lo[mu] <= s && s <= hi[mu] {
			covered++
		}
	}
	if part := float64(covered) / float64(te.M); part < 0.88 {
		t.Errorf("intervals cover %.3f", part)
	}
	// What all means have in common no reading takes away.
	known.ScaleSD = 0.03
	if loose := solve(t, p, nil); math.Abs(loose.ScaleSD-math.Hypot(res.ScaleSD, 0.03)) > 1e-6 {
		t.Errorf("scale ±%g, want ±%g with the error that all have in common", loose.ScaleSD, math.Hypot(res.ScaleSD, 0.03))
	}
	known.Mean = known.Mean[1:]
	if _, err := calamp.Solve(t.Context(), p, nil); err == nil {
		t.Error("what is known of too few sensors was accepted")
	}
}

// What was known is wrong: a factory that was five times as sure as it should have been. The result says so.
func TestKnowledgeThatIsWrong(t *testing.T) {
	te := teacher.Teacher{N: 200, M: 160, P: 6, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.LogNormalAbout(1, 0.3), NoiseVar: 1e-5}
	in, err := te.Draw(2)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		error, given float64
		warned       bool
	}{{0.02, 0.02, false}, {0.05, 0.01, true}} {
		known := teacher.Known(in.Truth.S, c.error, 7)
		for mu := range known.SD {
			known.SD[mu] *= c.given / c.error
		}
		p := te.Problem(in)
		p.Channel = channel.Faulty{Working: channel.Gain{Prior: channel.About(known), NoiseVar: te.NoiseVar}}
		res := solve(t, p, nil)
		score := calamp.Score(res.X, res.S, in.Truth)
		if w := find(res, calamp.KnowledgeMismatch); (w != nil) != c.warned && res.Status == calamp.Converged {
			t.Errorf("%d: warnings %v", i, res.Warnings)
		}
		t.Logf("%d: %v, errors %.3g and %.3g, %d broken, warnings %v", i, res.Status, score.XMSEScaled, score.SMSEScaled, len(res.BrokenSensors), res.Warnings)
	}
}
