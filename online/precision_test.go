package online_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// A stream of samples that each begin in single precision teaches what one in
// double precision does; rounded for good it teaches nearly that.
func TestPrecisionDoesNotShowInAStream(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{
		N: 1000, M: 600, P: 6,
		Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-8,
	}
	s := newStream(t, te, 4)
	double := s.learn(t, solver.DoublePrecision, 1e-10)
	for _, c := range []struct {
		precision solver.Precision
		tol, most float64
	}{
		{solver.AutoPrecision, 1e-10, 1e-5},
		{solver.SinglePrecision, 1e-10, 0.01},
		{solver.AutoPrecision, 0, 0.01}, // whose sweeps are over rounded entries throughout: these drown in the noise
	} {
		precision, most := c.precision, c.most
		post := s.learn(t, precision, c.tol)
		worst := 0.0
		for mu, want := range double.S {
			worst = max(worst, math.Abs(post.S[mu]-want)/math.Sqrt(double.SVar[mu]))
		}
		if t.Logf("%v, tolerance %g: s at most %.2g posterior standard deviations off", precision, c.tol, worst); !(worst <= most) {
			t.Errorf("%v: s differs by %.2g posterior standard deviations", precision, worst)
		}
	}
}

func (s stream) learn(t *testing.T, precision solver.Precision, tol float64) *online.Posterior {
	t.Helper()
	c := s.calibrator(t, &online.Options{Settings: solver.Settings{Precision: precision, Tol: tol}})
	for k := range s.P {
		if est := absorb(t, c, s.sample(k)); !est.Committed {
			t.Fatalf("sample %d: %s", k, est.Reason())
		}
	}
	return c.Posterior()
}
