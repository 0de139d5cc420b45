package amp

import (
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

func TestNetworkFollowsGoldenTrace(t *testing.T) {
	tr := openTrace(t, "layers")
	model := tr.vector("model") // ρ, a, b, Δ, and the start of x̂ and C
	w, y, f := tr.matrix("W"), tr.matrix("Y"), tr.matrix("F")
	m, n := w.Dims()
	_, n2 := f.Dims()
	_, p := y.Dims()
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	network, err := prior.NewNetwork([]prior.Layer{{Rows: n, Cols: n2, Weights: f.RawMatrix().Data, Activation: prior.ReLU}}, prior.GaussBernoulli{Density: model[0], SignalVar: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	start := &Start{X: make([]float64, n*p), C: make([]float64, n*p)}
	for j := range start.X {
		start.X[j], start.C[j] = model[4], model[5]
	}
	s := newSolver(t, Problem{
		W: op, P: p, Y: y.RawMatrix().Data, Start: start,
		Model: Model{network, channel.Gain{Prior: channel.Uniform(model[1], model[2]), NoiseVar: model[3]}},
	}, solver.Settings{NoMeanRemoval: true})
	done := 0
	for _, c := range []struct {
		iterations int
		suffix     string
	}{{1, "1"}, {2, "2"}, {3, "3"}, {5, "5"}, {8, "8"}} {
		for ; done < c.iterations; done++ {
			step(t, s, 0)
		}
		h, hVar := s.Latent()
		worst := max(relativeSignals(tr.matrix("x_"+c.suffix), s.State.X), relativeSignals(tr.matrix("x_var_"+c.suffix), s.State.C),
			relativeSignals(tr.matrix("h_"+c.suffix), h), relativeSignals(tr.matrix("h_var_"+c.suffix), hVar),
			relative(tr.vector("s_"+c.suffix), s.State.S), relative(tr.vector("s_var_"+c.suffix), s.State.SVar))
		t.Logf("%d iterations: largest relative difference %.2g", c.iterations, worst)
		if worst > 1e-8 {
			t.Errorf("%d iterations: relative difference %.2g, want at most 1e-8", c.iterations, worst)
		}
	}
}
