package calamp_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
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

// tableOf multiplies w with all unit vectors.
func tableOf(t *testing.T, w operator.Operator) *operator.Dense {
	t.Helper()
	m, n := w.Dims()
	unit := make([]float64, n*n)
	for i := range n {
		unit[i*n+i] = 1
	}
	entries := make([]float64, m*n)
	if err := operator.Mul(entries, w, unit); err != nil {
		t.Fatal(err)
	}
	d, err := operator.NewDense(m, n, entries)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ensemble(t *testing.T, kind string, m, n int) operator.Operator {
	t.Helper()
	var e teacher.Ensemble
	if err := e.UnmarshalText([]byte(kind)); err != nil {
		t.Fatal(err)
	}
	w, err := e.Structured(m, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func cosineBasis(t *testing.T, n int) operator.Operator {
	t.Helper()
	rows := operator.Rows{N: n}
	for i := range n {
		rows.Rows = append(rows.Rows, i)
	}
	d, err := operator.NewDCT(rows)
	if err != nil {
		t.Fatal(err)
	}
	return operator.Transpose(d)
}

// Matrices that are no tables are solved with blind, with nothing known of the model, and
// the answer is that of their tables. The posterior variances of x are compared with the
// errors; over six seeds the ratio was 0.86 to 1.38.
func TestSolveWithoutATable(t *testing.T) {
	tests.Long(t)
	random := func(n int) []float64 {
		rng, kernel := rand.New(rand.NewPCG(3, 1)), make([]float64, n)
		for i := range kernel {
			kernel[i] = rng.NormFloat64() / math.Sqrt(float64(n))
		}
		return kernel
	}
	compose := func(phi, psi operator.Operator) operator.Operator {
		w, err := operator.Compose(phi, psi)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	functions := func(w operator.Operator) operator.Operator {
		m, n := w.Dims()
		sweep, err := w.NewSweep(1, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		half := sweep.(operator.Halves)
		f, err := operator.NewFunction(operator.Function{
			M: m, N: n,
			Mul:      func(z, x []float64) error { return half.Forward(z, nil, x, nil) },
			MulTrans: func(r, g []float64) error { return half.Backward(r, nil, g, nil) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	places := rand.New(rand.NewPCG(4, 1)).Perm(600)[:400]
	convolution, err := operator.NewConvolution(random(600), places)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]operator.Operator{
		"hadamard":               ensemble(t, "hadamard", 360, 512),
		"dct":                    ensemble(t, "dct", 400, 600),
		"sparse":                 ensemble(t, "sparse:0.1", 400, 600),
		"kronecker":              operator.NewKronecker(ensemble(t, "hadamard", 14, 16), ensemble(t, "dct", 30, 36)),
		"masks times cosines":    compose(ensemble(t, "hadamard", 360, 512), cosineBasis(t, 512)),
		"sparse times cosines":   compose(ensemble(t, "sparse:0.1", 400, 600), cosineBasis(t, 600)),
		"functions":              functions(ensemble(t, "dct", 400, 600)),
		"subsampled convolution": convolution,
	} {
		t.Run(name, func(t *testing.T) {
			te := teacher.Teacher{P: 4, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, Gain: channel.Uniform(0.7, 1.4), NoiseVar: 1e-6}
			y, truth, err := te.Readings(w, 2)
			if err != nil {
				t.Fatal(err)
			}
			settings := solver.Settings{NoMeanRemoval: true}
			if !operator.HasSquares(w) {
				settings.Variance = solver.Scalar
			}
			solve := func(w operator.Operator) *calamp.Result {
				start, gain, err := calamp.Guess(w, y, prior.GaussBernoulli{Density: math.NaN(), SignalVar: math.NaN()},
					channel.Gain{Prior: channel.Uniform(0.7, 1.4), NoiseVar: math.NaN()})
				if err != nil {
					t.Fatal(err)
				}
				res, err := calamp.Solve(context.Background(), &calamp.Problem{
					W: w, Y: y, Channel: gain,
					Prior: start.Learning(prior.Density | prior.SignalVar),
				}, &calamp.Options{Settings: settings, Learn: calamp.Learn{Noise: true}})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			res := solve(w)
			score := calamp.Score(res.X, res.S, truth)
			left := mat.Sum(res.XVar) / float64(res.X.RawMatrix().Rows*te.P)
			if res.Status != calamp.Converged || score.XMSEScaled > 2e-6 || score.SMSEScaled > 3e-5 {
				t.Errorf("%v after %d iterations: x off by %g, s by %g; %s", res.Status, res.Iterations, score.XMSEScaled, score.SMSEScaled, res.Reason)
			}
			if ratio := left / score.XMSEScaled; ratio < 1/1.5 || ratio > 1.5 {
				t.Errorf("variances of x are %.2g times the errors", ratio)
			}
			for _, warning := range res.Warnings {
				switch warning.Code {
				case calamp.MatrixMean, calamp.MatrixSpectrum:
					t.Errorf("%s: %s", warning.Code, warning.Message)
				}
			}
			if name == "hadamard" || name == "dct" || name == "functions" || name == "kronecker" {
				return // one of every kind of variance is enough
			}
			table := solve(tableOf(t, w))
			var off mat.Dense
			off.Sub(res.X, table.X)
			_, n := w.Dims()
			if rms := mat.Norm(&off, 2) / math.Sqrt(float64(n*te.P)); rms > 1e-2*math.Sqrt(score.XMSE) {
				t.Errorf("%g from the answer with the table, whose error is %g", rms, math.Sqrt(score.XMSE))
			}
		})
	}
}

// What an operator cannot do is refused with words, and the same is said of its spectrum
// where a run fails.
func TestWhatOperatorsCannot(t *testing.T) {
	w, err := operator.Compose(ensemble(t, "sparse:0.2", 100, 150), cosineBasis(t, 150))
	if err != nil {
		t.Fatal(err)
	}
	te := teacher.Teacher{P: 3, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6}
	y, _, err := te.Readings(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	problem := &calamp.Problem{W: w, Y: y, Prior: te.Signal, Channel: channel.Gain{Prior: te.Gain, NoiseVar: 1e-6}}
	if _, err := calamp.Solve(context.Background(), problem, nil); !errors.Is(err, operator.ErrNoSquares) || !strings.Contains(err.Error(), "product of a sparse 100×150") {
		t.Errorf("exact variances without squared entries: %v", err)
	}
	// A sparse mask of ones has a mean, which cannot be removed: the run says so.
	c := operator.CSR{M: 200, N: 300, Start: []int64{0}}
	rng := rand.New(rand.NewPCG(9, 1))
	for range c.M {
		for i := range c.N {
			if rng.Float64() < 0.2 {
				c.Columns, c.Values = append(c.Columns, int32(i)), append(c.Values, 1/math.Sqrt(60))
			}
		}
		c.Start = append(c.Start, int64(len(c.Columns)))
	}
	masks, err := operator.NewSparse(c)
	if err != nil {
		t.Fatal(err)
	}
	if problem.Y, _, err = te.Readings(masks, 1); err != nil {
		t.Fatal(err)
	}
	problem.W = masks
	res, err := calamp.Solve(context.Background(), problem, &calamp.Options{Settings: solver.Settings{Algorithm: solver.AMP}})
	if err != nil {
		t.Fatal(err)
	}
	warned := false
	for _, warning := range res.Warnings {
		warned = warned || warning.Code == calamp.MatrixMean
	}
	if !warned {
		t.Errorf("%v, %s: no word of the mean; %v", res.Status, res.Reason, res.Warnings)
	}
	if res.Plan.Has("mean removal") {
		t.Error("the plan says that means were removed")
	}
}
