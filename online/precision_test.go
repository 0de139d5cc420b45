package online_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// A stream of samples that each begin in single precision teaches what one in
// double precision does; rounded for good it teaches nearly that.
func TestPrecisionDoesNotShowInAStream(t *testing.T) {
	te := teacher.Teacher{
		N: 1000, M: 600, P: 6,
		Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-8,
	}
	s := newStream(t, te, 4)
	double := s.learn(t, solver.DoublePrecision)
	for precision, most := range map[solver.Precision]float64{solver.AutoPrecision: 1e-5, solver.SinglePrecision: 0.01} {
		post := s.learn(t, precision)
		worst := 0.0
		for mu, want := range double.S {
			worst = max(worst, math.Abs(post.S[mu]-want)/math.Sqrt(double.SVar[mu]))
		}
		if t.Logf("%v: s at most %.2g posterior standard deviations off", precision, worst); !(worst <= most) {
			t.Errorf("%v: s differs by %.2g posterior standard deviations", precision, worst)
		}
	}
}

func (s stream) learn(t *testing.T, precision solver.Precision) *online.Posterior {
	t.Helper()
	c := s.calibrator(t, &online.Options{Settings: solver.Settings{Precision: precision, Tol: 1e-10}})
	for k := range s.P {
		if est := absorb(t, c, s.sample(k)); !est.Committed {
			t.Fatalf("sample %d: %s", k, est.Reason())
		}
	}
	return c.Posterior()
}
