package calamp_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// snapshots is a problem of complex signals that share a support.
type snapshots struct {
	n, m, p  int
	sources  float64 // expected, or with exactly set their number
	noise    float64
	steering bool // half-wavelength uniform array on a grid of sines of angles; else independent entries
	exactly  bool
	circle   bool // of antennas, three wavelengths across, on a grid of directions, whose sources are half of a full turn in sources apart at least
	gain     channel.ComplexPrior
	common   float64
	between  float64 // by how many directions the sources lie beside those of the grid
}

// wave is an entry of W, or of what lies between its columns.
func (c snapshots) wave(mu int, direction float64) complex128 {
	if c.circle {
		return cmplx.Rect(1/math.Sqrt(float64(c.n)), 3*math.Pi*math.Cos(2*math.Pi*(float64(mu)/float64(c.m)-direction/float64(c.n))))
	}
	return cmplx.Rect(1/math.Sqrt(float64(c.n)), math.Pi*float64(mu)*(2*(direction+0.5)/float64(c.n)-1))
}

func (c snapshots) draw(t testing.TB, seed uint64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 21))
	normal := func(v float64) complex128 {
		return complex(math.Sqrt(v/2)*rng.NormFloat64(), math.Sqrt(v/2)*rng.NormFloat64())
	}
	w := make([]complex128, c.m*c.n)
	for mu := range c.m {
		for i := range c.n {
			w[mu*c.n+i] = normal(1 / float64(c.n))
			if c.steering || c.circle {
				w[mu*c.n+i] = c.wave(mu, float64(i))
			}
		}
	}
	x := mat.NewDense(c.n, 2*c.p, nil)
	on := make([]bool, c.n)
	if c.circle {
		each := c.n / int(c.sources)
		for first := range int(c.sources) {
			on[first*each+rng.IntN(each/2)] = true
		}
	} else if c.exactly {
		for _, i := range rng.Perm(c.n)[:int(c.sources)] {
			on[i] = true
		}
	} else {
		for i := range on {
			on[i] = rng.Float64() < c.sources/float64(c.n)
		}
	}
	for i, there := range on {
		amplitude := normal(c.common)
		for k := range c.p {
			if v := normal(1-c.common) + amplitude; there {
				x.Set(i, 2*k, real(v))
				x.Set(i, 2*k+1, imag(v))
			}
		}
	}
	truth := calamp.Truth{X: x}
	y := mat.NewDense(c.m, 2*c.p, nil)
	for mu := range c.m {
		r := c.gain.Lo + (c.gain.Hi-c.gain.Lo)*rng.Float64()
		phase := 2 * math.Pi * rng.Float64()
		switch {
		case c.gain.Known():
			phase = 0
		case !c.gain.Free():
			phase = rng.NormFloat64() / math.Sqrt(c.gain.Concentration)
		}
		truth.S, truth.Phase = append(truth.S, r), append(truth.Phase, phase)
		for k := range c.p {
			z := normal(c.noise)
			for i := range c.n {
				if on[i] {
					of := w[mu*c.n+i]
					if c.between != 0 {
						of = c.wave(mu, float64(i)+c.between)
					}
					z += of * complex(x.At(i, 2*k), x.At(i, 2*k+1))
				}
			}
			z /= cmplx.Rect(r, phase)
			y.Set(mu, 2*k, real(z))
			y.Set(mu, 2*k+1, imag(z))
		}
	}
	op, err := operator.NewComplex(c.m, c.n, w)
	if err != nil {
		t.Fatal(err)
	}
	return &calamp.Problem{
		W: op, Y: y, Prior: prior.ComplexGaussBernoulli{Density: c.sources / float64(c.n), SignalVar: 1},
		Channel: channel.ComplexGain{Prior: c.gain, NoiseVar: c.noise},
	}, truth
}

// wrongSupport is how many entries are wrongly there, or not.
func wrongSupport(r *calamp.Result, truth calamp.Truth) (wrong int) {
	for i, pi := range r.Support {
		if (pi > 0.5) != (truth.X.At(i, 0) != 0) {
			wrong++
		}
	}
	return wrong
}

// Complex signals that share a support are found to, and solved together, whatever is known of phases; readings may be missing and a sensor broken.
func TestComplexJointRows(t *testing.T) {
	tests.Long(t)
	const broken = 9
	for name, c := range map[string]struct {
		snapshots
		imperfect bool
	}{
		"known phases": {snapshots: snapshots{gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3, Concentration: math.Inf(1)}}},
		"free phases":  {snapshots: snapshots{gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3}}},
		"correlated":   {snapshots: snapshots{gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3, Concentration: 20}, common: 0.8}},
		"imperfect":    {snapshots: snapshots{gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3, Concentration: 20}}, imperfect: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.n, c.m, c.p, c.sources, c.noise = 200, 80, 6, 40, 1e-5
			problem, truth := c.draw(t, 1)
			if c.imperfect {
				for mu := 0; mu < c.m; mu += 4 {
					problem.Y.Set(mu, mu%(2*c.p), math.NaN()) // one part is enough
				}
				for k := range 2 * c.p {
					problem.Y.Set(broken, k, math.Sin(float64(3*k)))
				}
				problem.Channel = channel.Faulty{Working: problem.Channel}
			}
			res, err := calamp.Solve(t.Context(), problem, nil)
			if err != nil {
				t.Fatal(err)
			}
			m := calamp.ScoreComplex(res.X, res.ComplexS(), truth)
			inside := intervalsHold(res, truth, m)
			t.Logf("%v after %d: mean square error %.3g, stated %.3g, s %.3f, phases %.3f, %v", res.Status, res.Iterations, m.XMSEScaled, meanTotal(res), inside[0], inside[1], res.Warnings)
			if res.Status != calamp.Converged || res.Support == nil || wrongSupport(res, truth) > 0 {
				t.Fatalf("%v: %s, the support is wrong in %d places", res.Status, res.Reason, wrongSupport(res, truth))
			}
			if inside[0] < 0.88 || inside[1] < 0.88 {
				t.Errorf("intervals of 95 %% hold %.3g of the amplitudes and %.3g of the phases", inside[0], inside[1])
			}
			if c.imperfect {
				if len(res.BrokenSensors) != 1 || res.BrokenSensors[0].Sensor != broken {
					t.Errorf("broken sensors %v, expected %d", res.BrokenSensors, broken)
				}
				return
			}
			if ratio := m.XMSEScaled / meanTotal(res); !(ratio > 0.5 && ratio < 2) || len(res.Warnings) > 0 {
				t.Errorf("mean square error %.3g, stated %.3g, warnings %v", m.XMSEScaled, meanTotal(res), res.Warnings)
			}
			if found := res.LargestCorrelation(); math.Abs(found-c.common) > 0.15 {
				t.Errorf("correlation %.3g, expected %.3g", found, c.common)
			}
			if rows, columns := res.SignalCov.Dims(); rows != c.p || columns != 2*c.p || math.Abs(res.SignalCov.At(1, 2)-1) > 0.5 || res.SignalCov.At(1, 3) != 0 || res.SignalCov.At(0, 3) != -res.SignalCov.At(1, 1) {
				t.Errorf("the covariance across signals is no Hermitian %d×%d: %v", c.p, c.p, mat.Formatted(res.SignalCov))
			}
		})
	}
}

// Behind a complex W of condition 30 signals that share a support are found to, and recovered by vector AMP, whatever is known of phases.
func TestComplexJointRowsBehindConditionThirty(t *testing.T) {
	for name, concentration := range map[string]float64{"known phases": math.Inf(1), "free phases": 0} {
		t.Run(name, func(t *testing.T) {
			c := snapshots{n: 200, m: 100, p: 6, sources: 40, noise: 1e-5, common: 0.8, gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3, Concentration: concentration}}
			_, drawn := c.draw(t, 1)
			problem, truth, err := teacher.Complex{
				N: c.n, M: c.m, P: c.p, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: c.noise,
				X: drawn.X, Matrix: teacher.Ensemble{Kind: "condition", Value: 30},
			}.Pose(1)
			if err != nil {
				t.Fatal(err)
			}
			res := solve(t, problem, nil)
			m := calamp.ScoreComplex(res.X, res.ComplexS(), truth)
			inside := intervalsHold(res, truth, m)
			t.Logf("%v by %v after %d: mean square error %.3g, stated %.3g, s %.3f, phases %.3f", res.Status, res.Plan.Algorithm, res.Iterations, m.XMSEScaled, meanTotal(res), inside[0], inside[1])
			if res.Status != calamp.Converged || res.Support == nil || res.Plan.Algorithm != solver.VAMP || wrongSupport(res, truth) > 0 {
				t.Fatalf("%v: %s", res.Status, res.Reason)
			}
			if ratio := m.XMSEScaled / meanTotal(res); inside[0] < 0.88 || concentration == 0 && inside[1] < 0.88 || !(ratio > 0.5 && ratio < 2) {
				t.Errorf("mean square error %.3g, stated %.3g, intervals hold %.3g and %.3g", m.XMSEScaled, meanTotal(res), inside[0], inside[1])
			}
		})
	}
}

// Where half of the rows are there in some signals only independent signals are the better model, whatever their evidence.
func TestPartlySharedSupportsAreSolvedApart(t *testing.T) {
	for _, shared := range []float64{0.7, 1} {
		c := jointCase{n: 400, p: 10, alpha: 0.6, density: 0.2, shared: shared, noise: 1e-6, given: true}
		res, _ := c.solve(t, 1)
		if res.Status != calamp.Converged || (res.Support != nil) != (shared == 1) {
			t.Errorf("%g of the rows shared: %v, together: %v", shared, res.Status, res.Support != nil)
		}
	}
}

// solveUntold solves a problem of which nothing is given, and says what parts of the intervals of amplitudes and phases hold.
func (c snapshots) solveUntold(t testing.TB, seed uint64) (res *calamp.Result, m calamp.Metrics, inside [2]float64) {
	t.Helper()
	problem, truth := c.draw(t, seed)
	problem.Prior = prior.ComplexGaussBernoulli{Density: 0.1, SignalVar: 1, Learn: prior.Density | prior.SignalVar}
	problem.Channel = channel.Faulty{Working: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 1}, NoiseVar: 0.01}}
	res = solve(t, problem, &calamp.Options{Retry: true, Learn: calamp.Learn{Noise: true, Range: true, Phases: true, PhasesOrFree: true}, Outliers: calamp.Outliers{Look: true}})
	m = calamp.ScoreComplex(res.X, res.ComplexS(), truth)
	return res, m, intervalsHold(res, truth, m)
}

// Sixteen antennas of which no phase is known, four sources in all snapshots, nothing given: that they are in all of them leads to the gains.
func TestArrayWithFreePhases(t *testing.T) {
	tests.Long(t)
	c := snapshots{n: 90, m: 16, p: 50, sources: 4, exactly: true, noise: 1e-4, gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3}}
	phases, amplitudes := 0.0, 0.0
	for seed := range uint64(2) {
		res, m, inside := c.solveUntold(t, seed)
		t.Logf("%v: error %.2g, %.2f of the amplitudes and %.2f of the phases inside", res.Status, m.XMSEScaled, inside[0], inside[1])
		if amplitudes, phases = amplitudes+inside[0]/2, phases+inside[1]/2; res.Status != calamp.Converged || m.XMSEScaled > 1e-4 {
			t.Errorf("seed %d: %v, mean square error %.2g", seed, res.Status, m.XMSEScaled)
		}
	}
	if phases < 0.85 || amplitudes < 0.85 {
		t.Errorf("%.2f of the amplitudes and %.2f of the phases inside their intervals of 95 %%", amplitudes, phases)
	}
}

// Twenty-four antennas on a circle, of which no phase is known, and four sources between the directions of W: where they lie is found, and error bars hold. Without that gains were off by 1 to 8 %, with 38 to 77 % inside.
func TestArrayBetweenDirections(t *testing.T) {
	tests.Long(t)
	c := snapshots{n: 72, m: 24, p: 60, sources: 4, exactly: true, circle: true, between: 0.4, noise: 1e-3, gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3}}
	phases, amplitudes := 0.0, 0.0
	for seed := range uint64(1) {
		res, _, inside := c.solveUntold(t, seed)
		t.Logf("%v: %.2f of the amplitudes and %.2f of the phases inside", res.Status, inside[0], inside[1])
		if amplitudes, phases = amplitudes+inside[0], phases+inside[1]; res.Status != calamp.Converged || res.ColumnShift == nil {
			t.Errorf("seed %d: %v", seed, res.Status)
		}
	}
	if phases < 0.9 || amplitudes < 0.9 {
		t.Errorf("%.2f of the amplitudes and %.2f of the phases inside their intervals of 95 %%", amplitudes, phases)
	}
}
