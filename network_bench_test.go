package calamp_test

import (
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// BenchmarkNetworkIteration is an iteration at N = 1000, M = 500, P = 5, out of 200 latents, beside the separable one of the same sizes.
func BenchmarkNetworkIteration(b *testing.B) {
	const iterations = 50
	for _, f := range []prior.Activation{prior.IdentityActivation, prior.ReLU, prior.Leaky(0.1), prior.HardTanh, prior.SignActivation, prior.Sigmoid} {
		d := newDeepProblem(b, 1, 0.5, 0.3, 5, f, 0.7, 1.3, 1e-4, 200, 1000)
		separable := d.Problem
		separable.Prior = prior.GaussBernoulli{Density: 0.3, SignalVar: 1}
		for name, problem := range map[string]*calamp.Problem{f.String(): &d.Problem, f.String() + "-separable": &separable} {
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					if _, err := calamp.Solve(b.Context(), problem, &calamp.Options{Settings: solver.Settings{MaxIter: iterations, Tol: -1, Precision: solver.DoublePrecision}}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*iterations), "µs/iteration")
			})
		}
	}
}
