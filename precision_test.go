package calamp_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// sharp is a problem so large that it is worth rounding W, solved to the last
// digits: gains are known, and there is next to no noise.
func sharp(t *testing.T, noise float64) (*calamp.Problem, calamp.Truth) {
	te := teacher.Teacher{
		N: 1000, M: 600, P: 1,
		Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1},
		Gain:   channel.Uniform(0.9, 1.1),
	}
	p, truth := draw(t, te, 5)
	p.Channel = channel.AWGN{NoiseVar: noise, S: truth.S}
	return p, truth
}

// What begins in single precision ends where double precision does.
func TestPrecisionDoesNotShowInTheResult(t *testing.T) {
	for _, noise := range []float64{1e-24, 1e-6} {
		p, truth := sharp(t, noise)
		auto, double := solve(t, p, nil), solve(t, p, &calamp.Options{Settings: solver.Settings{Precision: solver.DoublePrecision}})
		if auto.Storage != "f32+f64" || double.Storage != "f64" {
			t.Errorf("stored as %s and %s", auto.Storage, double.Storage)
		}
		if auto.Arithmetic != "f32+f64" || double.Arithmetic != "f64" {
			t.Errorf("multiplied as %s and %s", auto.Arithmetic, double.Arithmetic)
		}
		t.Logf("noise %g: %d iterations, error %.2g; in double precision %d, %.2g", noise, auto.Iterations,
			calamp.Score(auto.X, auto.S, truth).XMSE, double.Iterations, calamp.Score(double.X, double.S, truth).XMSE)
		if auto.Status != calamp.Converged || auto.Iterations > double.Iterations+6 {
			t.Errorf("%s; in double precision %s", auto.Reason, double.Reason)
		}
		var d mat.Dense
		d.Sub(auto.X, double.X)
		sd, norm := math.Sqrt(mat.Sum(double.XVar)), mat.Norm(double.X, 2)
		if off := mat.Norm(&d, 2); off > 1e-4*sd+1e-9*norm {
			t.Errorf("%g posterior standard deviations apart, %g relative", off/sd, off/norm)
		}
	}
}

// Where W is rounded for good, what that takes away is noise, and reported.
func TestRoundingIsNoise(t *testing.T) {
	p, truth := sharp(t, 1e-24)
	res := solve(t, p, &calamp.Options{Settings: solver.Settings{Precision: solver.SinglePrecision}})
	m := calamp.Score(res.X, res.S, truth)
	t.Logf("%s; error %.2g", res.Reason, m.XMSE)
	if res.Storage != "f32" || res.Status != calamp.Converged || m.XMSE > 1e-15 {
		t.Errorf("%s: %s, error %g", res.Storage, res.Reason, m.XMSE)
	}
	if len(res.Warnings) != 1 || res.Warnings[0].Code != calamp.RoundedMatrix {
		t.Errorf("warnings %v", res.Warnings)
	}
}

// The published recursion, and any run of a given length, is in double precision.
func TestGivenIterationsAreInDoublePrecision(t *testing.T) {
	p, _ := sharp(t, 1e-6)
	res := solve(t, p, calamp.Published(5))
	if res.Storage != "f64" || res.Arithmetic != "f64" {
		t.Errorf("stored as %s, multiplied as %s", res.Storage, res.Arithmetic)
	}
}
