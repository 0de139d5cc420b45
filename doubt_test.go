package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// nothingGiven solves an instance as the command does when nothing is said of the model.
func nothingGiven(t *testing.T, in *teacher.Instance) *calamp.Result {
	t.Helper()
	nan := math.NaN()
	g, c, err := calamp.Guess(in.W, in.Y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan})
	if err != nil {
		t.Fatal(err)
	}
	return solve(t, &calamp.Problem{
		W: in.W, Y: in.Y,
		Prior:   g.Learning(allParameters),
		Channel: channel.Faulty{Working: c},
	}, &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}})
}

// Near the threshold a noise that is learned can take the place of signals that were not
// recovered, in a run that converges. Noise of the same size with more sensors is noise.
func TestFailureIsNotTakenForNoise(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		density, half, noise float64
		m, p                 int
		seed                 uint64
		failure              bool
	}{
		{0.2, 0.5, 0, 133, 2, 63, true},
		{0.3, 0.2, 0, 163, 3, 1016, true},
		{0.2, 0.1, 1e-2, 240, 3, 1, false},
		{0.2, 0.5, 1e-2, 240, 10, 2, false},
	} {
		te := teacher.Teacher{N: 300, M: c.m, P: c.p, Signal: prior.GaussBernoulli{Density: c.density, SignalVar: 1}, Gain: channel.Uniform(1-c.half, 1+c.half), NoiseVar: c.noise}
		in, err := te.Draw(c.seed)
		if err != nil {
			t.Fatal(err)
		}
		res := nothingGiven(t, in)
		score := calamp.Score(res.X, res.S, in.Truth)
		w := find(res, calamp.UnrecoveredOrNoise)
		if res.Status != calamp.Converged || score.XOneMinusNCC < 0.01 {
			t.Fatalf("%+v: %v, 1-ncc %.2g: no case in point", c, res.Status, score.XOneMinusNCC)
		}
		if (w != nil) != c.failure {
			t.Errorf("%+v: 1-ncc %.2g, warnings %+v", c, score.XOneMinusNCC, res.Warnings)
		}
	}
}

// Compressible signals are found with a mixture that is learned, where zero or one Gaussian would say errors too small; signals that are zero or
// Gaussian keep that.
func TestCompressibleSignals(t *testing.T) {
	tests.Long(t)
	const n, p = 300, 6
	te := teacher.Teacher{N: n, M: 240, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6}
	for _, decay := range []float64{0, 1, 1.5} {
		te.X = nil
		if decay > 0 {
			te.X = powerLaw(n, p, decay)
		}
		in, err := te.Draw(1)
		if err != nil {
			t.Fatal(err)
		}
		res := nothingGiven(t, in)
		score := calamp.Score(res.X, res.S, in.Truth)
		if res.Status != calamp.Converged {
			t.Fatal(res.Reason)
		}
		if _, mixture := res.Prior.(prior.Mixture); mixture != (decay > 0) || find(res, calamp.SignalsUnlikePrior) != nil {
			t.Errorf("decay %g: prior %v, warnings %+v", decay, res.Prior, res.Warnings)
		}
		// What is common to all signals has its error bar in ScaleSD.
		ratio := score.XMSEScaled / (score.Scale * score.Scale) / (mat.Sum(res.XVar) / float64(n*p))
		if ratio > 1.5 || ratio < 0.6 {
			t.Errorf("decay %g: the errors are %.2g times the variances stated", decay, ratio)
		}
	}
}

// powerLaw draws signals whose entries, in order of size, fall as a power of their rank.
func powerLaw(n, p int, decay float64) *mat.Dense {
	rng := rand.New(rand.NewPCG(1, 7))
	x := mat.NewDense(n, p, nil)
	for k := range p {
		for i, rank := range rng.Perm(n) {
			x.Set(i, k, math.Pow(float64(rank+1), -decay)*float64(1-2*rng.IntN(2)))
		}
	}
	x.Scale(math.Sqrt(0.2*float64(n*p))/mat.Norm(x, 2), x)
	return x
}

// What is said to keep a run from converging is what was done to it.
func TestCauseOfNotConverging(t *testing.T) {
	tests.Long(t)
	te := small()
	clip := func(limit float64) func(y float64) float64 {
		return func(y float64) float64 { return min(max(y, -limit), limit) }
	}
	for _, c := range []struct {
		name  string
		spoil func(y float64) float64
		opt   calamp.Options
		want  string
	}{
		{"few iterations", func(y float64) float64 { return y }, calamp.Options{Settings: solver.Settings{MaxIter: 4}}, "only 4 iterations"},
		{"on its way", func(y float64) float64 { return y }, calamp.Options{Settings: solver.Settings{MaxIter: 100, Damping: solver.FixedDamping(0.5)}}, "still converging"},
		{"overflow", func(y float64) float64 { return 1e200 * y }, calamp.Options{}, "cannot hold their squares"},
		{"clipping", clip(0.15), calamp.Options{}, "sensors clip there (--saturation 0.15)"},
	} {
		p, _ := draw(t, te, 1)
		p.Y.Apply(func(_, _ int, y float64) float64 { return c.spoil(y) }, p.Y)
		res, err := calamp.Solve(context.Background(), p, &c.opt)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if res.Status == calamp.Converged || !strings.Contains(res.Reason, c.want) {
			t.Errorf("%s: %v: %s", c.name, res.Status, res.Reason)
		}
	}
}

// Single readings that are wrong are left out, and named; their sensors keep all others. A sensor
// that is broken altogether is.
func TestOutlyingReadingsAreLeftOut(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 200, M: 160, P: 6, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6}
	in, err := te.Draw(3)
	if err != nil {
		t.Fatal(err)
	}
	wrong := [][2]int{{4, 2}, {17, 0}, {17, 5}, {60, 1}, {99, 3}}
	missing := mat.DenseCopyOf(in.Y)
	for i, at := range wrong {
		in.Y.Set(at[0], at[1], in.Y.At(at[0], at[1])+[]float64{3, -0.03, 0.5, 1e9, 0.03}[i])
		missing.Set(at[0], at[1], math.NaN())
	}
	for k := range te.P {
		in.Y.Set(120, k, 0.3*float64(k)-0.7)
		missing.Set(120, k, math.NaN())
	}
	for _, covariance := range []solver.Covariance{solver.Diagonal, solver.Full} {
		p := te.Problem(in)
		p.Channel = channel.Faulty{Working: p.Channel}
		res := solve(t, p, &calamp.Options{Settings: solver.Settings{Covariance: covariance}, Outliers: calamp.Outliers{Look: true}})
		if len(res.BrokenSensors) != 1 || res.BrokenSensors[0].Sensor != 120 || res.Status != calamp.Converged {
			t.Errorf("broken: %v; %s", res.BrokenSensors, res.Reason)
		}
		if got := res.OutlyingReadings(); !slices.Equal(got, wrong) {
			t.Errorf("outlying %v, want %v", got, wrong)
		}
		if w := find(res, calamp.OutlyingReadings); w == nil || !slices.Equal(w.Sensors, []int{4, 17, 60, 99}) || !strings.Contains(w.Message, "5 of 960 readings") {
			t.Errorf("%+v", w)
		}
		p.Y = missing
		without := solve(t, p, &calamp.Options{Settings: solver.Settings{Covariance: covariance}})
		a, b := calamp.Score(res.X, res.S, in.Truth), calamp.Score(without.X, without.S, in.Truth)
		if !(a.XMSEScaled < 1.01*b.XMSEScaled) {
			t.Errorf("error %.3g, with these missing %.3g", a.XMSEScaled, b.XMSEScaled)
		}
	}
}

// Where no reading is wrong, looking for such changes nothing.
func TestNoOutliersChangeNothing(t *testing.T) {
	te := teacher.Teacher{N: 200, M: 160, P: 6, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}
	in, err := te.Draw(4)
	if err != nil {
		t.Fatal(err)
	}
	a := solve(t, te.Problem(in), nil)
	b := solve(t, te.Problem(in), &calamp.Options{Outliers: calamp.Outliers{Look: true}})
	if !mat.Equal(a.X, b.X) || !slices.Equal(a.S, b.S) || a.Iterations != b.Iterations {
		t.Error("looking for outliers has moved the answer")
	}
	if most := slices.Max(b.Outlier.RawMatrix().Data); most > 0.5 || !(most > 0) {
		t.Errorf("the most unlikely reading is an outlier with probability %g", most)
	}
}

// A range that was rejected before the run converged is not tested again afterwards: the scale step
// would then stay off for good, and the run never end.
func TestRejectedRangeIsNotTestedAgain(t *testing.T) {
	tests.Long(t)
	const seed = 8
	te := teacher.Teacher{N: 400, M: 300, P: 2, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	kind := gainkind.All[slices.IndexFunc(gainkind.All, func(k gainkind.Kind) bool { return k.Name == "log-normal, sd 0.2" })]
	kind.Spread(in, seed)
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: channel.Gain{Prior: kind.Stated(2, seed), NoiseVar: te.NoiseVar}}
	res := solve(t, p, nil)
	if res.Status != calamp.Converged || find(res, calamp.RangeNotFilled) == nil {
		t.Errorf("%v after %d iterations: %s; warnings %v", res.Status, res.Iterations, res.Reason, res.Warnings)
	}
}
