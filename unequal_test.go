package calamp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
)

// TestUnequalNoiseBehindBlur has scenes behind a blur, with sensors of which the noise differs by a factor of two either way. It is found without being asked for, and there is nothing left to warn of; it may be asked for, or given.
func TestUnequalNoiseBehindBlur(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	const m, p = 80, 10
	r := rand.New(rand.NewPCG(1, 34))
	w, x, y, s := tests.BehindBlur(r, m, p, func(r *rand.Rand, _ float64) float64 { return 0.7 + 0.6*r.Float64() })
	size := 0.02 * mat.Norm(y, 2) / math.Sqrt(m*p)
	noise := make([]float64, m)
	for mu := range m {
		sd := size * math.Exp(0.7*r.NormFloat64())
		noise[mu] = sd*sd*s[mu]*s[mu] + 1e-4
		for k := range p {
			y.Set(mu, k, y.At(mu, k)+sd*r.NormFloat64())
		}
	}
	table, err := operator.NewDense(m, m, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	errorOf := func(name string, change func(*calamp.Problem, *calamp.Options)) float64 {
		problem, opt := unknown(t, table, y)
		opt.Retry = true
		change(problem, opt)
		res, err := calamp.Solve(t.Context(), problem, opt)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		score := res.Score(calamp.Truth{X: x, S: s})
		t.Logf("%s: %v, mean square error of x %.3g, of s %.3g", name, res.Status, score.XMSEScaled, score.SMSEScaled)
		if w := find(res, calamp.NoiseUnequal); res.Status != calamp.Converged || w != nil || len(res.NoiseVar) != m {
			t.Errorf("%s: %v, %d noise variances, %v", name, res.Status, len(res.NoiseVar), w)
		}
		return score.SMSEScaled
	}
	own := errorOf("by itself", func(*calamp.Problem, *calamp.Options) {})
	asked := errorOf("asked for", func(_ *calamp.Problem, opt *calamp.Options) { opt.Learn.SensorNoise = true })
	given := errorOf("given", func(problem *calamp.Problem, opt *calamp.Options) { problem.NoiseVar, opt.Learn.Noise = noise, false })
	if asked > 1.5*own || given > 1.5*own || own > 2*given {
		t.Errorf("mean square error of s %.3g, %.3g where it is asked for, %.3g where it is given", own, asked, given)
	}
}
