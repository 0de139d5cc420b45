package calamp_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// frames makes the signals of an instance correlated: all have the support of the first,
// and each of its entries varies by the part level of its size; level 0 makes them the
// same, and above 1 leaves them independent. The readings follow.
func frames(te teacher.Teacher, in *teacher.Instance, level float64, rng *rand.Rand) {
	if level > 1 {
		return
	}
	x := in.Truth.X
	for i := range te.N {
		common := x.At(i, 0)
		for k := range te.P {
			if common != 0 {
				x.Set(i, k, (common+level*rng.NormFloat64())/math.Sqrt(1+level*level))
				continue
			}
			x.Set(i, k, 0)
		}
	}
	row := make([]float64, te.N)
	for mu := range te.M {
		if err := in.W.RowInto(row, mu); err != nil {
			panic(err)
		}
		for k := range te.P {
			z := math.Sqrt(te.NoiseVar) * rng.NormFloat64()
			for i, w := range row {
				z += w * x.At(i, k)
			}
			in.Y.Set(mu, k, z/in.Truth.S[mu])
		}
	}
}

// coverage95 is the part of the sensors whose 95 % interval holds the truth at the
// best common scale.
func coverage95(r *calamp.Result, truth calamp.Truth) float64 {
	var dot, square float64
	for mu, s := range r.S {
		dot += s * truth.S[mu]
		square += s * s
	}
	scale := dot / square
	lo, hi := r.SInterval(0.95)
	in := 0
	for mu, s := range truth.S {
		if s /= scale; lo[mu] <= s && s <= hi[mu] {
			in++
		}
	}
	return float64(in) / float64(len(truth.S))
}

// correlated solves signals that are correlated to a degree, the range of s given and the rest
// learned.
func correlated(t *testing.T, te teacher.Teacher, level float64, seed uint64) (*calamp.Result, *teacher.Instance) {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	frames(te, in, level, rand.New(rand.NewPCG(seed, 7)))
	signal := te.Signal.Learning(prior.Density | prior.SignalVar)
	problem := &calamp.Problem{W: in.W, Y: in.Y, Prior: signal, Channel: channel.Gain{Prior: te.Gain, NoiseVar: 1e-3}}
	res, err := calamp.Solve(t.Context(), problem, &calamp.Options{Learn: calamp.Learn{Noise: true}, Joint: solver.JointOff})
	if err != nil {
		t.Fatal(err)
	}
	return res, in
}

// Intervals of s hold for correlated signals, a warning is given, and where the
// signals are independent nothing is done.
func TestCorrelatedSignalsHaveTrueIntervals(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{
		N: 250, M: 200, P: 8, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1},
		Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-5,
	}
	for _, level := range []float64{2, 0.3, 0.05} {
		res, in := correlated(t, te, level, 3)
		covered := coverage95(res, in.Truth)
		given := slices.ContainsFunc(res.Warnings, func(w calamp.Warning) bool { return w.Code == calamp.SignalsAlike })
		t.Logf("level %g: %.0f %% covered, %v", level, 100*covered, res.Warnings)
		if covered < 0.88 {
			t.Errorf("level %g: %.0f %% within 95 %% intervals", level, 100*covered)
		}
		if given != (level < 1) {
			t.Errorf("level %g: warnings %v", level, res.Warnings)
		}
	}
}

// TestLongTrustCorrelated measures the intervals of s, and the squared errors of x in
// stated variances, of signals that are correlated to a degree.
func TestLongTrustCorrelated(t *testing.T) {
	longOnly(t)
	count := seedCount(4)
	table := tables.New(t, "", "differing by", "P", "95 % intervals of s cover", "at worst", "error²/variance of x", "not converged")
	for _, level := range []float64{2, 0.5, 0.3, 0.2, 0.1, 0.05, 0} {
		for _, p := range []int{8, 16, 40} {
			te := teacher.Teacher{
				N: 400, M: 320, P: p, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1},
				Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-5,
			}
			covered, square, worst, failed := 0.0, 0.0, 1.0, 0
			for seed := range count {
				res, in := correlated(t, te, level, uint64(seed))
				c := coverage95(res, in.Truth)
				covered += c / float64(count)
				square += ratioOfErrors(res, in.Truth) / float64(count)
				worst = min(worst, c)
				if res.Status != calamp.Converged {
					failed++
				}
			}
			name := fmt.Sprintf("%g %%", 100*level)
			if level > 1 {
				name = "independent"
			}
			table.Row("| %s | %d | %.0f %% | %.0f %% | %.2g | %d |", name, p, 100*covered, 100*worst, square, failed)
			if covered < 0.88 || worst < 0.75 {
				t.Errorf("%s, P = %d: 95 %% intervals cover %.0f %%, at worst %.0f %%", name, p, 100*covered, 100*worst)
			}
		}
	}
}

// behindMasks solves positive signals behind masks of 0 and 1, of which only the range of s is given: independent, but all sensors
// read them in nearly the same proportions.
func behindMasks(t *testing.T, n, p int, seed uint64) (*calamp.Result, *teacher.Instance) {
	t.Helper()
	te := teacher.Teacher{
		N: n, M: n * 4 / 5, P: p, Entries: prior.NonNegative{Density: 0.15, SignalVar: 1},
		Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-5,
	}
	if err := te.Matrix.UnmarshalText([]byte("binary")); err != nil {
		t.Fatal(err)
	}
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	signal := prior.GaussBernoulli{Density: 0.2, SignalMean: 0.5, SignalVar: 1, Learn: prior.Density | prior.SignalMean | prior.SignalVar}
	problem := &calamp.Problem{W: in.W, Y: in.Y, Prior: signal, Channel: channel.Gain{Prior: te.Gain, NoiseVar: 1e-3}}
	res, err := calamp.Solve(t.Context(), problem, &calamp.Options{Learn: calamp.Learn{Noise: true}, Joint: solver.JointOff})
	if err != nil {
		t.Fatal(err)
	}
	return res, in
}

// With few signals an entry that most of them have can be off in all of them by what gains make up for: it is found, or
// error bars admit it.
func TestPositiveSignalsBehindMasks(t *testing.T) {
	tests.Long(t)
	const seeds = 8
	covered, worst := 0.0, 0.0
	for seed := range uint64(seeds) {
		res, in := behindMasks(t, 200, 3, seed)
		c, ratio := coverage95(res, in.Truth), ratioOfErrors(res, in.Truth)
		t.Logf("seed %d: %v, %.0f %% covered, error²/variance %.2g", seed, res.Status, 100*c, ratio)
		covered += c / seeds
		worst = max(worst, ratio)
	}
	if covered < 0.88 || worst > 2.5 {
		t.Errorf("%.0f %% within 95 %% intervals, error²/variance up to %.2g", 100*covered, worst)
	}
}

// TestLongBehindMasks measures the same for more signals.
func TestLongBehindMasks(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "P", "converged", "95 % intervals of s cover", "at worst", "error²/variance of x", "largest", "scale z²")
	for _, p := range []int{2, 3, 4, 6, 10, 20} {
		covered, square, scale, worst, largest, converged := 0.0, 0.0, 0.0, 1.0, 0.0, 0
		for seed := range count {
			res, in := behindMasks(t, 300, p, uint64(seed))
			c, ratio := coverage95(res, in.Truth), ratioOfErrors(res, in.Truth)
			z := math.Log(calamp.Score(res.X, res.S, in.Truth).Scale) / res.ScaleSD
			n := float64(count)
			covered, square, scale = covered+c/n, square+ratio/n, scale+z*z/n
			worst, largest = min(worst, c), max(largest, ratio)
			if res.Status == calamp.Converged {
				converged++
			}
		}
		table.Row("| %d | %d of %d | %.0f %% | %.0f %% | %.2g | %.2g | %.2g |", p, converged, count, 100*covered, 100*worst, square, largest, scale)
		if covered < 0.88 || p > 2 && worst < 0.75 { // with two signals some entries are in both, and each is judged as if the others were known
			t.Errorf("P = %d: 95 %% intervals cover %.0f %%, at worst %.0f %%", p, 100*covered, 100*worst)
		}
	}
}

// ratioOfErrors is the mean squared error of x at the best scale, in stated variances.
func ratioOfErrors(r *calamp.Result, truth calamp.Truth) float64 {
	m := calamp.Score(r.X, r.S, truth)
	total := 0.0
	for _, v := range mat.DenseCopyOf(r.XVar).RawMatrix().Data {
		total += v
	}
	n, p := r.XVar.Dims()
	return m.XMSEScaled / (total / float64(n*p))
}
