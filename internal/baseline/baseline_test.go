package baseline

import (
	"context"
	"errors"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

func draw(t *testing.T, density float64, seed uint64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	te := teacher.Teacher{
		N: 100, M: 80, P: 5,
		Signal: prior.GaussBernoulli{Density: density, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-12,
	}
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	return te.Problem(in), in.Truth
}

// Each method reaches what it can: with gains ignored an error of the size of their
// spread is left, with gains known that of the noise. For signals that are sparse enough
// the convex program recovers them, and alternation nearly so.
func TestBaselines(t *testing.T) {
	ctx := context.Background()
	p, truth := draw(t, 0.1, 1)
	solve := func(p *calamp.Problem, err error) (*calamp.Result, error) {
		if err != nil {
			return nil, err
		}
		return calamp.Solve(ctx, p, nil)
	}
	methods := []struct {
		name string
		run  func() (*calamp.Result, error)
		most float64
	}{
		{"ignoring", func() (*calamp.Result, error) { return solve(Ignoring(p)) }, 1e-2},
		{"knowing", func() (*calamp.Result, error) { return solve(Knowing(p, truth.S)) }, 1e-11},
		{"alternating", func() (*calamp.Result, error) { return Alternating(ctx, p, nil) }, 1e-3},
		{"l1", func() (*calamp.Result, error) { return L1(ctx, p) }, 1e-9},
	}
	for _, m := range methods {
		res, err := m.run()
		if errors.Is(err, errNoLPSolver) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		score := calamp.Score(res.X, res.S, truth)
		misfit, err := Misfit(p, res.X, res.S)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-12s %v, %d iterations, %v: x %.2g, s %.2g, misfit %.2g", m.name, res.Status, res.Iterations, res.Wall, score.XMSEScaled, score.SMSEScaled, misfit)
		if !(score.XMSEScaled <= m.most) {
			t.Errorf("%s: error %g, expected at most %g", m.name, score.XMSEScaled, m.most)
		}
	}
}
