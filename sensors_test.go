package calamp_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// shared is a problem whose sensors have each rows of W, here and there among them.
func sharedProblem(t testing.TB, n, p, each int, alpha, noise float64, seed uint64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	sensors := int(alpha*float64(n)) / each
	m := sensors * each
	signal, gain := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.8, 1.2)
	te := teacher.Teacher{N: n, M: m, P: p, Signal: signal, Gain: gain, NoiseVar: noise}
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int, m)
	for row := range ids {
		ids[row] = row % sensors
	}
	rand.New(rand.NewPCG(seed, 38)).Shuffle(m, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	s := in.Truth.S[:sensors]
	for row, g := range ids {
		for k := range p {
			in.Y.Set(row, k, in.Y.At(row, k)*in.Truth.S[row]/s[g])
		}
	}
	truth := calamp.Truth{X: in.Truth.X, S: append([]float64(nil), s...)}
	// Truth.S of rows is used above while it is overwritten nowhere.
	return &calamp.Problem{W: in.W, Y: in.Y, Prior: signal, Channel: channel.Gain{Prior: gain, NoiseVar: noise}, Sensors: ids}, truth
}

func TestSharedSensors(t *testing.T) {
	for _, c := range []struct {
		p, each   int
		algorithm solver.Algorithm
	}{{10, 1, 0}, {5, 2, 0}, {2, 5, 0}, {1, 10, 0}, {5, 2, solver.VAMP}, {1, 10, solver.VAMP}} {
		p, truth := sharedProblem(t, 400, c.p, c.each, 0.6, 1e-6, 1)
		res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Algorithm: c.algorithm}})
		if err != nil {
			t.Fatal(err)
		}
		score := res.Score(truth)
		t.Logf("P = %d, L = %d, %v: %v after %d, x %.3g, s %.3g; %v", c.p, c.each, c.algorithm, res.Status, res.Iterations, score.XMSEScaled, score.SMSEScaled, res.Warnings)
	}
}
