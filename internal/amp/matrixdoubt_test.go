package amp

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// TestSizeOfErrorsOfMatrix: how far entries of W are wrong is found to some percent, since what signals follow of the errors is counted.
func TestSizeOfErrorsOfMatrix(t *testing.T) {
	const m, n, p, rho, seeds = 240, 300, 20, 0.2, 4
	for _, eta := range []float64{0.003, 0.03} {
		squares := 0.0
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 7))
			entries, x, y := make([]float64, m*n), make([]float64, n*p), make([]float64, m*p)
			for i := range x {
				if r.Float64() < rho {
					x[i] = r.NormFloat64()
				}
			}
			for mu := range m {
				s := 0.8 + 0.4*r.Float64()
				for i := range n {
					v := r.NormFloat64() / math.Sqrt(n)
					entries[mu*n+i] = v + eta*r.NormFloat64()/math.Sqrt(n)
					for k := range p {
						y[mu*p+k] += v * x[i*p+k] / s
					}
				}
				for k := range p {
					y[mu*p+k] += 1e-4 * r.NormFloat64() / s
				}
			}
			w, err := operator.NewDense(m, n, entries)
			if err != nil {
				t.Fatal(err)
			}
			e := newSolver(t, Problem{W: w, P: p, Y: y, LearnNoise: true, Model: Model{
				Prior: prior.GaussBernoulli{Density: rho, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-3},
			}}, solver.Settings{})
			if outcome, err := e.Run(t.Context(), 500); outcome != Converged || err != nil {
				t.Fatalf("η = %g: %v, %v", eta, outcome, err)
			}
			e.Report()
			size := e.MatrixDoubtOf().Size
			squares += size * size / (eta * eta) / seeds
		}
		t.Logf("η = %g: η̂/η is %.3f", eta, math.Sqrt(squares))
		if off := math.Sqrt(squares); math.Abs(off-1) > 0.08 { // 1.15 where signals are taken to follow nothing
			t.Errorf("η = %g comes out %.3f times as large", eta, off)
		}
	}
}
