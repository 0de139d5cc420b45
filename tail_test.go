package calamp_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// A detector's gains within a range that merely contains them, three pixels of which are outliers: they lie in
// the given range, and are found.
func TestGainsLikeNoOther(t *testing.T) {
	te := teacher.Teacher{N: 200, M: 180, P: 6, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.NormalAbout(1, 0.01), NoiseVar: 1e-5}
	in, err := te.Draw(3)
	if err != nil {
		t.Fatal(err)
	}
	for mu, s := range map[int]float64{5: 0.6, 50: 1.7, 100: 2.5} {
		for k := range te.P {
			in.Y.Set(mu, k, in.Y.At(mu, k)*in.Truth.S[mu]/s)
		}
		in.Truth.S[mu] = s
	}
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: channel.Gain{Prior: channel.Uniform(0.3, 3), NoiseVar: te.NoiseVar}}
	res := solve(t, p, nil)
	score := calamp.Score(res.X, res.S, in.Truth)
	if res.Status != calamp.Converged || len(res.BrokenSensors) > 0 || find(res, calamp.RangeNotFilled) == nil {
		t.Errorf("%v, broken %v, warnings %v", res.Status, res.BrokenSensors, res.Warnings)
	}
	for mu, s := range res.S {
		if d := math.Abs(score.Scale*s/in.Truth.S[mu] - 1); d > 0.03 {
			t.Errorf("sensor %d is %g, truth %g", mu, score.Scale*s, in.Truth.S[mu])
		}
	}
}
