package calamp_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// TestComplexVectorAMP: complex problems whose W is no matrix of independent entries, whatever is known of phases.
func TestComplexVectorAMP(t *testing.T) {
	for name, c := range map[string]struct {
		gain      channel.ComplexPrior
		condition float64
	}{
		"condition 100, von Mises":   {channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20}, 100},
		"condition 30, free":         {channel.ComplexPrior{Lo: 0.8, Hi: 1.2}, 30},
		"orthogonal rows, von Mises": {channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			te := teacher.Complex{
				N: 120, M: 90, P: 6, Signal: prior.ComplexGaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-5,
				Matrix: teacher.Ensemble{Kind: "condition", Value: c.condition},
			}
			in := drawComplex(t, te, 2)
			res := solve(t, te.Problem(in), nil)
			m := calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth)
			t.Logf("%v after %d iterations: x %.3g, stated %.3g; s %.3g; scale %+.2g ± %.2g", res.Status, res.Iterations, m.XMSEScaled, meanTotal(res), m.SMSEScaled, math.Log(m.Scale), res.ScaleSD)
			if res.Plan.Algorithm != solver.VAMP || res.Status != calamp.Converged {
				t.Fatalf("%v, %v: %s", res.Plan.Algorithm, res.Status, res.Reason)
			}
			if ratio := m.XMSEScaled / meanTotal(res); !(ratio > 0.5 && ratio < 2) {
				t.Errorf("mean square error %.3g, stated %.3g", m.XMSEScaled, meanTotal(res))
			}
		})
	}
}
