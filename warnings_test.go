package calamp_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

func find(res *calamp.Result, code calamp.WarningCode) *calamp.Warning {
	for i := range res.Warnings {
		if res.Warnings[i].Code == code {
			return &res.Warnings[i]
		}
	}
	return nil
}

// changed is the problem with W replaced by f of its entries.
func changed(t *testing.T, te teacher.Teacher, p *calamp.Problem, f func(mu, i int, w float64) float64) *calamp.Problem {
	t.Helper()
	w := make([]float64, te.M*te.N)
	dense := p.W.(*operator.Dense)
	for mu := range te.M {
		for i := range te.N {
			w[mu*te.N+i] = f(mu, i, dense.At(mu, i))
		}
	}
	d, err := operator.NewDense(te.M, te.N, w)
	if err != nil {
		t.Fatal(err)
	}
	return &calamp.Problem{W: d, Y: p.Y, Prior: p.Prior, Channel: p.Channel}
}

func TestWarnings(t *testing.T) {
	tests.Long(t)
	t.Run("too few measurements", func(t *testing.T) {
		te := small()
		te.M = 40 // α = 0.2, α_min = 0.267, α_CS = 0.353
		p, _ := draw(t, te, 1)
		res := solve(t, p, nil)
		w := find(res, calamp.TooFewMeasurements)
		if w == nil || !strings.Contains(w.Message, "0.2667") || !strings.Contains(w.Message, "0.35") {
			t.Errorf("%+v", w)
		}
		if find(res, calamp.UnexplainedVariance) == nil {
			t.Error("unrecovered signals were not reported")
		}
	})
	t.Run("one signal not sparse", func(t *testing.T) { // what is left of it is not the noise of some sensors
		te := small()
		te.P = 8
		p, truth := draw(t, te, 1)
		rng := rand.New(rand.NewPCG(1, 2))
		x := make([]float64, te.N)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		for mu := range te.M {
			z := 0.0
			for i, v := range x {
				z += p.W.(*operator.Dense).At(mu, i) * v
			}
			p.Y.Set(mu, 3, z/truth.S[mu])
		}
		res := solve(t, p, nil)
		if w := find(res, calamp.UnexplainedVariance); w == nil || !slices.Equal(w.Signals, []int{3}) {
			t.Errorf("not recovered: %+v, expected signal 3", w)
		}
		if w := find(res, calamp.NoiseUnequal); w != nil {
			t.Errorf("%+v", w)
		}
	})
	t.Run("single signal", func(t *testing.T) {
		te := small()
		te.P = 1
		p, _ := draw(t, te, 1)
		if find(solve(t, p, nil), calamp.SingleSignal) == nil {
			t.Error("no warning")
		}
	})
	t.Run("clipped readings", func(t *testing.T) {
		te := small()
		p, _ := draw(t, te, 1)
		if w := find(solve(t, p, nil), calamp.ClippedReadings); w != nil {
			t.Errorf("without any: %+v", w)
		}
		limit := 1.5 * math.Sqrt(te.Signal.Density)
		p.Y = mat.DenseCopyOf(p.Y)
		p.Y.Apply(func(_, _ int, y float64) float64 { return min(max(y, -limit), limit) }, p.Y)
		if w := find(solve(t, p, nil), calamp.ClippedReadings); w == nil || !strings.Contains(w.Message, "--saturation 0.67") {
			t.Errorf("%+v", w)
		}
	})
	t.Run("nothing learned", func(t *testing.T) {
		te := small()
		te.NoiseVar = 10
		p, _ := draw(t, te, 1)
		if find(solve(t, p, nil), calamp.NothingLearned) == nil {
			t.Error("no warning")
		}
	})
	t.Run("nothing to learn", func(t *testing.T) {
		te := small()
		te.Gain = channel.Uniform(0.999999, 1.000001) // closer together than anybody can see beside the noise
		te.NoiseVar = 1e-4
		p, _ := draw(t, te, 1)
		if w := find(solve(t, p, nil), calamp.NothingLearned); w != nil {
			t.Errorf("%+v", w)
		}
	})
	t.Run("matrix mean", func(t *testing.T) {
		te := small()
		p, _ := draw(t, te, 1)
		p = changed(t, te, p, func(_, _ int, w float64) float64 { return w + 0.5/math.Sqrt(float64(te.N)) })
		w := find(solve(t, p, &calamp.Options{Settings: solver.Settings{MaxIter: 5, NoMeanRemoval: true, Algorithm: solver.AMP}}), calamp.MatrixMean)
		if w == nil || !strings.Contains(w.Message, "row and column") {
			t.Errorf("%+v", w)
		}
	})
	t.Run("zero column and silent sensors", func(t *testing.T) {
		te := small()
		p, _ := draw(t, te, 1)
		p = changed(t, te, p, func(_, i int, w float64) float64 {
			if i == 17 {
				return 0
			}
			return w
		})
		for k := range te.P {
			p.Y.Set(3, k, 0)
			p.Y.Set(5, k, math.NaN())
		}
		vector := solve(t, p, &calamp.Options{Settings: solver.Settings{Algorithm: solver.VAMP}})
		if w := find(vector, calamp.UnmeasuredEntry); w == nil || !strings.Contains(w.Message, "column 17") {
			t.Errorf("vector AMP: %+v", w)
		}
		res := solve(t, p, nil)
		if w := find(res, calamp.UnmeasuredEntry); w == nil || !strings.Contains(w.Message, "column 17") {
			t.Errorf("%+v", w)
		}
		if w := find(res, calamp.SilentSensor); w == nil || !slices.Equal(w.Sensors, []int{3, 5}) {
			t.Errorf("%+v", w)
		}
		mean, variance := te.Gain.Moments()
		for _, mu := range []int{3, 5} {
			if res.S[mu] != mean || res.SVar[mu] != variance {
				t.Errorf("sensor %d: s = %g ± %g, want the prior's", mu, res.S[mu], math.Sqrt(res.SVar[mu]))
			}
		}
		for k := range te.P {
			if res.X.At(17, k) != 0 || math.Abs(res.XVar.At(17, k)-te.Signal.Variance()) > 1e-12 {
				t.Errorf("unmeasured entry of signal %d: %g, variance %g", k, res.X.At(17, k), res.XVar.At(17, k))
			}
		}
	})
	t.Run("sensor out of range", func(t *testing.T) {
		te := small()
		te.NoiseVar = 1e-3
		p, _ := draw(t, te, 1)
		for k := range te.P {
			p.Y.Set(9, k, 2*p.Y.At(9, k))
		}
		if w := find(solve(t, p, nil), calamp.SensorAtEdge); w == nil || !slices.Contains(w.Sensors, 9) {
			t.Errorf("%+v", w)
		}
	})
	t.Run("not converged", func(t *testing.T) {
		p, _ := draw(t, small(), 1)
		res := solve(t, p, &calamp.Options{Settings: solver.Settings{MaxIter: 4}})
		w := find(res, calamp.SignalNotConverged)
		if res.Status != calamp.NotConverged || w == nil || len(w.Signals) != 4 {
			t.Errorf("%v %+v", res.Status, w)
		}
	})
}

func TestBadProblemsNameTheInput(t *testing.T) {
	te := small()
	for _, c := range []struct {
		name, want string
		change     func(p *calamp.Problem, o *calamp.Options)
	}{
		{"transposed Y", "Y looks transposed", func(p *calamp.Problem, _ *calamp.Options) { p.Y = mat.DenseCopyOf(p.Y.T()) }},
		{"infinite reading", "sensor 2, signal 1", func(p *calamp.Problem, _ *calamp.Options) { p.Y.Set(2, 1, math.Inf(1)) }},
		{"empty signal", "signal 3", func(p *calamp.Problem, _ *calamp.Options) {
			for mu := range te.M {
				p.Y.Set(mu, 3, math.NaN())
			}
		}},
		{"range", "[1.2, 1.1]", func(p *calamp.Problem, _ *calamp.Options) {
			p.Channel = channel.Gain{Prior: channel.Uniform(1.2, 1.1)}
		}},
		{"damping", "damping", func(_ *calamp.Problem, o *calamp.Options) { o.Damping = solver.FixedDamping(1) }},
		{"variants", "full covariances", func(_ *calamp.Problem, o *calamp.Options) { o.Covariance, o.Variance = solver.Full, solver.Scalar }},
	} {
		p, _ := draw(t, te, 1)
		o := &calamp.Options{}
		c.change(p, o)
		if _, err := calamp.Solve(context.Background(), p, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", c.name, err, c.want)
		}
	}
}

func TestCancelledRunReturnsWhatThereIs(t *testing.T) {
	p, _ := draw(t, small(), 1)
	ctx, cancel := context.WithCancel(context.Background())
	res, err := calamp.Solve(ctx, p, &calamp.Options{Progress: func(it calamp.Iteration) {
		if it.Index == 7 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || res == nil || res.Status != calamp.Cancelled || res.Iterations != 7 {
		t.Errorf("error %v, result %+v", err, res)
	}
}

// A model that contradicts the readings by 1e60 must end with finite numbers. Readings beyond are refused where none are left out.
func TestHugeReadingsGiveNoNaN(t *testing.T) {
	p, _ := draw(t, small(), 1)
	for _, outliers := range []calamp.Outliers{{}, {Look: true}} { // the second is not possible with two signals
		p := &calamp.Problem{W: p.W, Y: mat.DenseCopyOf(p.Y.Slice(0, p.Y.RawMatrix().Rows, 0, 2)), Prior: p.Prior, Channel: p.Channel}
		p.Y.Set(4, 1, -1e61)
		const want = "Y: sensor 4, signal 1 has a reading of -1e+61, expected at most 1e+60 where single readings are not left out"
		if _, err := calamp.Solve(t.Context(), p, &calamp.Options{Outliers: outliers}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v", outliers, err)
		}
	}
	p.Y.Set(4, 2, 9e59)
	res := solve(t, p, nil)
	for _, v := range res.X.RawMatrix().Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("x holds %g; status %v", v, res.Status)
		}
	}
	if res.Status == calamp.Converged && len(res.Warnings) == 0 {
		t.Error("nothing was said")
	}
}

func TestScalarVarianceAgrees(t *testing.T) {
	te := small()
	te.N, te.M = 400, 300
	p, truth := draw(t, te, 2)
	exact, scalar := solve(t, p, nil), solve(t, p, &calamp.Options{Settings: solver.Settings{Variance: solver.Scalar}})
	a, b := calamp.Score(exact.X, exact.S, truth), calamp.Score(scalar.X, scalar.S, truth)
	if scalar.Status != calamp.Converged || b.XMSEScaled > 1.5*a.XMSEScaled {
		t.Errorf("scalar variances: %s, error %g; exact %g", scalar.Reason, b.XMSEScaled, a.XMSEScaled)
	}
}

// Inputs at the ends of double precision: every number that comes back is
// finite, whatever the status.
func TestExtremeProblemsGiveFiniteResults(t *testing.T) {
	for _, c := range []struct {
		name     string
		y, noise float64
		variance float64
	}{
		{"huge readings", 1e300, 1e-6, 1},
		{"large readings", 1e100, 1e-6, 1},
		{"tiny readings", 1e-300, 1e-6, 1},
		{"huge noise", 1, 1e300, 1},
		{"no noise", 1, 0, 1},
		{"huge signals", 1, 1e-6, 1e300},
		{"tiny signals", 1, 1e-6, 1e-300},
	} {
		t.Run(c.name, func(t *testing.T) {
			te := small()
			te.N, te.M = 60, 50
			p, _ := draw(t, te, 1)
			p.Y.Scale(c.y, p.Y)
			te.Signal.SignalVar = c.variance
			p.Prior, p.Channel = te.Signal, channel.Gain{Prior: te.Gain, NoiseVar: c.noise}
			res := solve(t, p, nil)
			t.Log(res.Reason)
			for name, values := range map[string][]float64{
				"x": res.X.RawMatrix().Data, "x_var": res.XVar.RawMatrix().Data,
				"s": res.S, "s_var": res.SVar, "gain": res.Gain, "change": res.Change,
				"residual": res.Residual.RawMatrix().Data,
				"scalars":  {res.ScaleSD, res.LogEvidence},
			} {
				for _, v := range values {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Errorf("%s holds %g", name, v)
						break
					}
				}
			}
			for mu, s := range res.S {
				if s < te.Gain.Lo || s > te.Gain.Hi {
					t.Errorf("s[%d] = %g", mu, s)
					break
				}
			}
			for _, w := range res.Warnings {
				if strings.Contains(w.Message, "NaN") {
					t.Error(w.Message)
				}
			}
		})
	}
}
