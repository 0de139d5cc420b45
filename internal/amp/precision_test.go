package amp

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Most sweeps over a large W are over bytes, and the run ends where one in double precision does, in as many iterations; with a
// column of which bytes keep nothing none is.
func TestSweepsOverBytes(t *testing.T) {
	const m, n = 500, 600
	for _, uneven := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 3))
		w, x, y := make([]float64, m*n), make([]float64, n), make([]float64, m)
		for i := range w {
			w[i] = rng.NormFloat64() / math.Sqrt(n)
			if uneven && i%n == 0 {
				w[i] *= 1e-5
			}
		}
		gauss := prior.GaussBernoulli{Density: 0.15, SignalVar: 1}
		for i := range x {
			x[i] = gauss.Sample(rng)
		}
		gain := channel.Gain{Prior: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
		for mu := range y {
			for i, v := range x {
				y[mu] += w[mu*n+i] * v
			}
			y[mu] = (y[mu] + 1e-3*rng.NormFloat64()) / (0.95 + 0.1*rng.Float64())
		}
		op, err := operator.NewDense(m, n, w)
		if err != nil {
			t.Fatal(err)
		}
		run := func(precision solver.Precision) *Solver {
			s := newSolver(t, Problem{W: op, P: 1, Y: y, Model: Model{gauss, gain}}, solver.Settings{Threads: 1, Precision: precision})
			if outcome, err := s.Run(context.Background(), 500); outcome != Converged {
				t.Fatalf("uneven %v: %v, %v", uneven, outcome, err)
			}
			return s
		}
		auto, double := run(solver.AutoPrecision), run(solver.DoublePrecision)
		off, variance := 0.0, 0.0
		for i, v := range auto.State.X {
			off += (v - double.State.X[i]) * (v - double.State.X[i])
			variance += double.State.C[i]
		}
		off = math.Sqrt(off / variance)
		part, _ := PartOf[*precision](auto)
		t.Logf("uneven %v: %d of %d sweeps over bytes, in double precision %d; %.2g standard deviations apart", uneven, part.viaBytes, auto.Iterations, double.Iterations, off)
		if uneven && part.viaBytes > 0 || !uneven && 2*part.viaBytes < auto.Iterations {
			t.Errorf("uneven %v: %d of %d sweeps over bytes", uneven, part.viaBytes, auto.Iterations)
		}
		if off > 1e-4 || auto.Iterations > double.Iterations+5 {
			t.Errorf("uneven %v: %.2g standard deviations apart after %d iterations, in double precision %d", uneven, off, auto.Iterations, double.Iterations)
		}
	}
}
