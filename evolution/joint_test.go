package evolution

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
)

func jointModel(p int, correlation, alpha, noise float64) JointModel {
	return JointModel{
		Model: Model{
			Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: noise, Alpha: alpha, P: p,
		}, Correlation: correlation,
	}
}

// TestJointEntry: averages over a row are those of rows that are drawn.
func TestJointEntry(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 36))
	for _, c := range []struct {
		p                        int
		correlation, first, rest float64
	}{{2, 0, 1, 1}, {3, 0.9, 1, 30}, {10, 0.5, 0.5, 1}, {5, 0, 100, 100}} {
		e, err := newJointEvolution(jointModel(c.p, c.correlation, 1, 0), 1e-8, 64, nil)
		if err != nil {
			t.Fatal(err)
		}
		precision := []float64{c.first, c.rest}[:len(e.kinds)]
		got := e.entry(precision)
		var sums [2]moments
		for range 40000 {
			there := rng.Float64() < e.Signal.Density
			odds := math.Log(0.2 / 0.8)
			var mu2, s [2]float64
			for k, d := range e.kinds {
				a, r := precision[k], d.variance
				s[k] = r / (1 + r*a)
				for range int(d.count) {
					x := 0.0
					if there {
						x = math.Sqrt(r) * rng.NormFloat64()
					}
					h := a*x + math.Sqrt(a)*rng.NormFloat64()
					odds += 0.5*s[k]*h*h - 0.5*math.Log1p(r*a)
					mu2[k] += s[k] * h * s[k] * h / d.count
				}
			}
			pi := 1 / (1 + math.Exp(-odds))
			for k := range e.kinds {
				sums[k].add(pi*s[k] + pi*(1-pi)*mu2[k])
			}
		}
		for k := range e.kinds {
			if n := sums[k].number(); math.Abs(n.Value-got[k].Value) > 4*n.Err {
				t.Errorf("%+v, kind %d: %v, drawn %v", c, k, got[k], n)
			}
		}
	}
}

// TestJointPointsAreQuadrature: with no correlation to speak of the averages over points are those of the quadrature.
func TestJointPointsAreQuadrature(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		p     int
		alpha float64
	}{{2, 0.54}, {10, 0.3}} {
		steps := func(correlation float64) []Step {
			tr, err := JointOffline(context.Background(), jointModel(c.p, correlation, c.alpha, 1e-4), &Options{Iterations: 10, Tol: 1e-6})
			if err != nil {
				t.Fatal(err)
			}
			return tr.Steps
		}
		want, got := steps(0), steps(1e-9)
		for i, w := range want {
			for name, n := range map[string][2]Number{"x": {got[i].MSEX, w.MSEX}, "m̂": {got[i].MHat, w.MHat}, "s": {got[i].MSES, w.MSES}} {
				if math.Abs(n[0].Value/n[1].Value-1) > 0.01 {
					t.Errorf("%+v, iteration %d, %s: %v, want %v", c, i+1, name, n[0], n[1])
				}
			}
		}
	}
}

// TestJointThresholds: state evolution reaches the target above the threshold, and not below; known gains take less, and with many signals the counting bound.
func TestJointThresholds(t *testing.T) {
	tests.Long(t)
	const points = 512
	for _, c := range []struct {
		p           int
		correlation float64
	}{{2, 0}, {10, 0.9}} {
		m := jointModel(c.p, c.correlation, 1, 1e-8)
		alpha, err := JointAlphaCal(context.Background(), m, &ThresholdOptions{Tol: 4e-3, Points: points})
		if err != nil {
			t.Fatal(err)
		}
		known, err := JointAlphaCS(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v: α_cal %v, α_CS %v, counting %g, independent %g", c, alpha, known, recovery.AlphaMin(0.2, c.p), recovery.AlphaCS(m.Signal))
		for _, side := range []float64{-0.01, 0.01} {
			m.Alpha = alpha.Value + side
			e, err := newJointEvolution(m, 1e-6, points, nil)
			if err != nil {
				t.Fatal(err)
			}
			at, err := e.fixedPoint(context.Background(), e.start(false), 1e-3, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if (at.MSEX.Value < 1e-5) != (side > 0) || !at.Converged {
				t.Errorf("%+v: α %+g from the threshold %v: error %v after %d iterations", c, side, alpha, at.MSEX, at.Evaluations)
			}
		}
		if !(known.Value >= 0.2 && known.Value < recovery.AlphaCS(m.Signal)) {
			t.Errorf("%+v: α_CS %v", c, known)
		}
	}
}

// TestJointAlphaEnough: at the threshold the error is twice that of known gains, and just below it is more.
func TestJointAlphaEnough(t *testing.T) {
	tests.Long(t)
	const noise = 1e-3
	for _, correlation := range []float64{0, 0.9} {
		if correlation == 0 && !*long {
			continue
		}
		m := jointModel(10, correlation, 1, noise)
		opt := &ThresholdOptions{Tol: 0.01, Points: 512}
		alpha, err := JointAlphaEnough(context.Background(), m, 2, opt)
		if err != nil {
			t.Fatal(err)
		}
		ratio := func(a float64) float64 {
			m := m
			m.Alpha = a
			blind, err := newJointEvolution(m, jointTol, opt.Points, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.Gain = Known(1)
			known, err := newJointEvolution(m, jointTol, opt.Points, nil)
			if err != nil {
				t.Fatal(err)
			}
			at, _ := blind.fixedPoint(context.Background(), blind.start(false), 1e-3, 1000)
			least, _ := known.fixedPoint(context.Background(), known.start(true), 1e-3, 1000)
			return at.MSEX.Value / least.MSEX.Value
		}
		above, below := ratio(alpha.Value), ratio(0.98*alpha.Value)
		t.Logf("correlation %g: α %v, errors %.3g times those of known gains, %.3g below", correlation, alpha, above, below)
		if !(above <= 2.01) || !(below > 2) {
			t.Errorf("correlation %g: α %v: %.3g, below %.3g", correlation, alpha, above, below)
		}
	}
}

// TestJointRefuses: what is no model is an error that says what was expected.
func TestJointRefuses(t *testing.T) {
	for want, change := range map[string]func(*JointModel){
		"P of 2 or more":  func(m *JointModel) { m.P = 1 },
		"in [0, 1)":       func(m *JointModel) { m.Correlation = 1 },
		"mean 0":          func(m *JointModel) { m.Signal.SignalMean = 0.1 },
		"without offsets": func(m *JointModel) { m.OffsetSD = 0.1 },
		"rate α":          func(m *JointModel) { m.Alpha = math.NaN() },
	} {
		m := jointModel(4, 0.5, 0.5, 1e-3)
		change(&m)
		if _, err := JointOffline(context.Background(), m, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error with %q, found %v", want, err)
		}
	}
}
