package calamp_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// small is an ensemble that solves in a fraction of a second.
func small() teacher.Teacher {
	return teacher.Teacher{
		N: 200, M: 150, P: 4,
		Signal:   prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain:     channel.Uniform(0.9, 1.1),
		NoiseVar: 1e-6,
	}
}

func draw(t testing.TB, te teacher.Teacher, seed uint64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	return te.Problem(in), in.Truth
}

func solve(t testing.TB, p *calamp.Problem, opt *calamp.Options) *calamp.Result {
	t.Helper()
	res, err := calamp.Solve(context.Background(), p, opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestSolveRecoversSignalsAndGains(t *testing.T) {
	p, truth := draw(t, small(), 1)
	res := solve(t, p, nil)
	m := calamp.Score(res.X, res.S, truth)
	t.Logf("%s; %+v; scale sd %.2g", res.Reason, m, res.ScaleSD)
	if res.Status != calamp.Converged || len(res.Warnings) > 0 {
		t.Errorf("%v: %s; warnings %v", res.Status, res.Reason, res.Warnings)
	}
	if m.XMSEScaled > 1e-6 || m.SOneMinusCNCC > 1e-3 {
		t.Errorf("errors too large: %+v", m)
	}
	if math.Abs(math.Log(m.Scale)) > 5*res.ScaleSD {
		t.Errorf("scale off by %g, its standard deviation is %g", m.Scale-1, res.ScaleSD)
	}
}

func TestFullCovarianceAgreesWithDiagonalOnOneSignal(t *testing.T) {
	te := small()
	te.P = 1
	p, _ := draw(t, te, 3)
	opt := calamp.Options{Settings: solver.Settings{MaxIter: 20, Tol: -1, Damping: solver.FixedDamping(0.2)}}
	diagonal := solve(t, p, &opt)
	opt.Covariance = solver.Full
	full := solve(t, p, &opt)
	for i := range te.N {
		if d := math.Abs(diagonal.X.At(i, 0) - full.X.At(i, 0)); d > 1e-9 {
			t.Fatalf("entry %d: diagonal %g, full %g", i, diagonal.X.At(i, 0), full.X.At(i, 0))
		}
	}
	// The evidence of a damped step is that of two different posteriors.
	opt = calamp.Options{Settings: solver.Settings{MaxIter: 20, Tol: -1, Damping: solver.FixedDamping(0)}}
	a := solve(t, p, &opt).LogEvidence
	opt.Covariance = solver.Full
	b := solve(t, p, &opt).LogEvidence
	if math.Abs(a-b) > 1e-9*math.Abs(a) {
		t.Errorf("log-evidence: diagonal %g, full %g", a, b)
	}
}

func TestFullCovarianceSolves(t *testing.T) {
	te := small()
	te.P = 3
	p, truth := draw(t, te, 4)
	diagonal := solve(t, p, nil)
	full := solve(t, p, &calamp.Options{Settings: solver.Settings{Covariance: solver.Full}})
	a, b := calamp.Score(diagonal.X, diagonal.S, truth), calamp.Score(full.X, full.S, truth)
	t.Logf("diagonal %s %+v %g\nfull %s %+v %g", diagonal.Reason, a, diagonal.LogEvidence, full.Reason, b, full.LogEvidence)
	if full.Status != calamp.Converged || b.XMSEScaled > 2*a.XMSEScaled {
		t.Errorf("full: %s, error %g; diagonal %g", full.Reason, b.XMSEScaled, a.XMSEScaled)
	}
}

// What is observed along the way is what a run that ends there returns.
func TestObserve(t *testing.T) {
	p, _ := draw(t, small(), 2)
	const at = 7
	var x, s []float64
	solve(t, p, &calamp.Options{Settings: solver.Settings{MaxIter: 12, Tol: -1}, Observe: func(it calamp.Iteration, xNow, sNow []float64) {
		if it.Index == at {
			x, s = slices.Clone(xNow), slices.Clone(sNow)
		}
	}})
	res := solve(t, p, &calamp.Options{Settings: solver.Settings{MaxIter: at, Tol: -1}})
	n, signals := res.X.Dims()
	for k := range signals {
		for i := range n {
			if x[k*n+i] != res.X.At(i, k) {
				t.Fatalf("entry %d of signal %d is observed as %g, and is %g", i, k, x[k*n+i], res.X.At(i, k))
			}
		}
	}
	if !slices.Equal(s, res.S) {
		t.Error("s is another one")
	}
}
