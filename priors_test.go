package calamp_test

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Signals of any prior are recovered with the error that state evolution, by
// Monte Carlo, predicts for that prior.
func TestPriorsReachStateEvolution(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 700, M: 560, P: 4, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}
	for _, p := range []prior.Sampler{
		prior.NonNegative{Density: 0.3, SignalMean: 0.5, SignalVar: 1},
		prior.Laplace{Density: 0.2, SignalVar: 1},
		prior.Mixture{Components: []prior.Component{{Weight: 0.1, Mean: 1, Var: 0.1}, {Weight: 0.15, Mean: -1, Var: 0.5}}},
	} {
		belief := evolution.Belief{Gain: te.Gain, NoiseVar: te.NoiseVar}
		steps, err := evolution.MonteCarlo(context.Background(), evolution.Sampled{
			Truth: belief.TruthWith(p), Prior: p, Channel: belief.Channel(),
			Alpha: float64(te.M) / float64(te.N), P: te.P, Matched: true,
		}, &evolution.MonteCarloOptions{Samples: 8000, Iterations: 20})
		if err != nil {
			t.Fatal(err)
		}
		want := steps[len(steps)-1].MSEX.Value
		te.Entries = p
		const seeds = 2
		got := 0.0
		for seed := range uint64(seeds) {
			in, err := te.Draw(seed)
			if err != nil {
				t.Fatal(err)
			}
			res, err := calamp.Solve(context.Background(), te.Problem(in), &calamp.Options{Settings: solver.Settings{Threads: 1}})
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != calamp.Converged {
				t.Errorf("%T, seed %d: %s", p, seed, res.Reason)
			}
			got += calamp.Score(res.X, res.S, in.Truth).XMSEScaled / seeds
		}
		t.Logf("%T: MSE %.3g, state evolution %.3g", p, got, want)
		if math.Abs(math.Log(got/want)) > 0.25 {
			t.Errorf("%T: MSE %.3g, state evolution says %.3g", p, got, want)
		}
	}
}

// A mixture learned from a start that is wrong in everything does as well as the true one.
func TestMixtureIsLearned(t *testing.T) {
	truth := prior.Mixture{Components: []prior.Component{{Weight: 0.15, Mean: 2, Var: 0.1}, {Weight: 0.15, Mean: -1, Var: 0.1}}}
	te := teacher.Teacher{N: 400, M: 320, P: 4, Entries: truth, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	start := prior.Mixture{Components: []prior.Component{{Weight: 0.05, Mean: 1, Var: 1}, {Weight: 0.05, Mean: -0.5, Var: 1}}, Learn: true}
	var mse [2]float64
	for i, p := range []prior.Prior{truth, start} {
		problem := te.Problem(in)
		problem.Prior = p
		res, err := calamp.Solve(context.Background(), problem, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.Status != calamp.Converged {
			t.Errorf("%T: %s", p, res.Reason)
		}
		mse[i] = calamp.Score(res.X, res.S, in.Truth).XMSEScaled
	}
	if mse[1] > 1.2*mse[0] {
		t.Errorf("MSE %.3g with a learned mixture, %.3g with the true one", mse[1], mse[0])
	}
}
