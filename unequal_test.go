package calamp_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
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

// TestNoisesContradicted: noise variances of sensors that are a hundred times too large, or those of other sensors, are named, and do no harm. Where nothing else has a scale the former make that ten times as large, and nothing can say so. Nothing is said of
// the true ones.
func TestNoisesContradicted(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	const m, p = 48, 10
	r := rand.New(rand.NewPCG(2, 34))
	w, x, y, s := tests.BehindBlur(r, m, p, func(r *rand.Rand, _ float64) float64 { return 0.7 + 0.6*r.Float64() })
	noise := make([]float64, m)
	for mu := range m {
		sd := 0.02 * math.Exp(r.NormFloat64())
		noise[mu] = 1e-4 + sd*sd
		for k := range p {
			y.Set(mu, k, y.At(mu, k)+sd*r.NormFloat64()/s[mu])
		}
	}
	hundred := slices.Clone(noise)
	floats.Scale(100, hundred)
	others := slices.Clone(noise)
	slices.Reverse(others)
	table, err := operator.NewDense(m, m, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	within := channel.Uniform(0.6, 1.6)
	for _, c := range []struct {
		name   string
		noise  []float64          // nil where their mean alone is given
		bounds *channel.GainPrior // nil where nothing is given of s
		scale  float64            // of s, about; 0 for any
		want   string             // empty for no warning
	}{
		{"true, and a range of s", noise, &within, 1, ""},
		{"100 times", hundred, nil, 10, ""},
		{"100 times, and a range of s", hundred, &within, 1, "times them"},
		{"of others", others, nil, 0, "beside one another"},
		{"their mean", nil, nil, 1, ""},
	} {
		problem, opt := unknown(t, table, y)
		problem.NoiseVar, opt.Learn.Noise, opt.Retry = c.noise, c.noise == nil, true
		if c.noise == nil {
			opt.Scale.NoiseVar = stat.Mean(noise, nil)
		}
		if c.bounds != nil {
			gain := channel.InOrder(problem.Channel).(channel.Gain)
			gain.Prior = *c.bounds
			problem.Channel, opt.Learn.Range = channel.WithInOrder(problem.Channel, gain), false
		}
		res, err := calamp.Solve(t.Context(), problem, opt)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		score, warning := res.Score(calamp.Truth{X: x, S: s}), find(res, calamp.ToldContradicted)
		scale := stat.Mean(res.S, nil) / stat.Mean(s, nil)
		t.Logf("%s: %v, s %.3g times the true one (± %.2g), mean square error of s %.3g; %v", c.name, res.Status, scale, res.ScaleSD, score.SMSEScaled, warning)
		if res.Status != calamp.Converged || score.SMSEScaled > 5e-3 || c.scale != 0 && math.Abs(math.Log(scale/c.scale)) > max(0.3, 3*res.ScaleSD) {
			t.Errorf("%s: %v, s %.3g times the true one, mean square error of s %.3g", c.name, res.Status, scale, score.SMSEScaled)
		}
		if (warning != nil) != (c.want != "") || warning != nil && !strings.Contains(warning.Message, c.want) {
			t.Errorf("%s: %v", c.name, warning)
		}
	}
}
