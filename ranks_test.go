package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// The posteriors that a result hands out are those that its means and variances
// come from, and the truth lies in them as it should.
func TestRanksAndIntervals(t *testing.T) {
	te := teacher.Teacher{
		N: 300, M: 240, P: 4,
		Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4,
	}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	res, err := calamp.Solve(context.Background(), te.Problem(in), nil)
	if err != nil || res.Status != calamp.Converged {
		t.Fatal(res, err)
	}
	c := res.Calibration
	means, variances := make([]float64, len(res.S)), make([]float64, len(res.S))
	c.Prior.Posteriors(means, variances, c.Stats)
	lo, hi := res.SInterval(0.95)
	rawLo, rawHi := res.SIntervalRaw(0.95)
	for mu, s := range res.S {
		if math.Abs(means[mu]-s) > 1e-3*math.Sqrt(res.SVar[mu]) {
			t.Fatalf("sensor %d: s = %g, its posterior says %g", mu, s, means[mu])
		}
		if !(rawLo[mu] < lo[mu] && lo[mu] < s && s < hi[mu] && hi[mu] < rawHi[mu]) {
			t.Fatalf("sensor %d: %g is not within [%g, %g] within [%g, %g]", mu, s, lo[mu], hi[mu], rawLo[mu], rawHi[mu])
		}
	}
	x, s := res.Ranks(in.Truth, rand.New(rand.NewPCG(1, 2)))
	for name, ranks := range map[string][]float64{"x": x, "s": s} {
		// Mean 1/2 and variance 1/12 to four standard errors.
		n, mean, square := float64(len(ranks)), 0.0, 0.0
		for _, u := range ranks {
			mean += (u - 0.5) / n
			square += (u - 0.5) * (u - 0.5) / n
		}
		if math.Abs(mean) > 4/math.Sqrt(12*n) || math.Abs(square-1.0/12) > 4*math.Sqrt(1/(180*n)) {
			t.Errorf("ranks of %s are off the middle by %g, and have variance %g", name, mean, square)
		}
	}
}

// The result of a stream states its scale as one number: intervals of s as it is have it, as those of Solve do.
func TestIntervalsHaveTheStatedScale(t *testing.T) {
	r := &calamp.Result{S: []float64{1}, ScaleSD: 0.02, Calibration: &channel.Posteriors{Prior: channel.Uniform(0.5, 1.5), Stats: channel.GainStats(1e8, 1e8, 10)}}
	lo, hi, relLo, relHi := r.SIntervals(0.95)
	if math.Abs((hi[0]-lo[0])/(2*1.96*0.02)-1) > 0.01 || relHi[0]-relLo[0] > 1e-3 {
		t.Errorf("s lies in [%g, %g], at a fixed scale in [%g, %g]", lo[0], hi[0], relLo[0], relHi[0])
	}
}
