package calamp_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// bareNetwork does iterations of signals that come out of a network, undamped and without the scale step: the error of x after each.
func bareNetwork(t *testing.T, d *deepProblem, iterations int) (out []float64) {
	t.Helper()
	m, _ := d.Y.Dims()
	n, p := d.truth.X.Dims()
	s, _, _, err := amp.NewSolver(amp.Problem{W: d.W, P: p, Y: d.Y.RawMatrix().Data, Model: amp.Model{Prior: d.Prior, Channel: d.Channel}},
		solver.Settings{Threads: 1, NoMeanRemoval: true, NoScaleStep: true, Algorithm: solver.AMP})
	if err != nil {
		t.Fatal(err)
	}
	for range iterations {
		if err := s.Iteration.Step(0); err != nil {
			t.Fatal(err)
		}
		out = append(out, scaledErrors(mat.NewDense(p, n, s.State.X), d.truth.X.T(), s.State.S[:m], d.truth.S).x)
	}
	return out
}

// TestLongNetworkEvolution compares AMP with state evolution: signals out of one layer of independent weights, gains known and not.
func TestLongNetworkEvolution(t *testing.T) {
	longOnly(t)
	n, iterations := entryCount(4000), 10
	table := tables.New(t, "", "activation", "ρ", "N/N₂", "P", "gains", "α", "MSE of x after 3, predicted", "AMP", "in s.e.", "after 10, predicted", "AMP", "in s.e.", "largest of ten, in s.e.")
	beyond, all := 0, 0
	for _, f := range []prior.Activation{prior.ReLU, prior.IdentityActivation, prior.HardTanh} {
		for _, rho := range []float64{1, 0.3} {
			for _, wider := range []int{2, 5} {
				for _, p := range []int{1, 5} {
					for _, blind := range []bool{false, true} {
						alpha, noise := 1.2/float64(wider), 1e-4 // above what latents need, also where gains are not known
						if p == 1 && blind {
							alpha *= 2
						}
						lo, hi := 0.7, 1.3
						signal := prior.GaussBernoulli{Density: rho, SignalVar: 1}
						model := evolution.Model{
							Signal: signal, NoiseVar: noise, Alpha: alpha, P: p, Gain: evolution.Known(1),
							Network: []evolution.Layer{{Inputs: 1 / float64(wider), WeightVar: 1, Activation: f}},
						}
						gains := "known"
						if blind {
							model.Gain, gains = channel.Uniform(lo, hi), "blind"
						}
						predicted, err := evolution.Offline(context.Background(), model, &evolution.Options{Tol: 1e-6, Iterations: iterations})
						if err != nil {
							t.Fatal(err)
						}
						runs := make([][]float64, seedCount(10))
						inParallel(len(runs), func(i int) {
							d := newDeepProblem(t, uint64(i+1), alpha, rho, p, f, lo, hi, noise, n/wider, n)
							if !blind {
								d.tellGains(noise)
							}
							runs[i] = bareNetwork(t, d, iterations)
						})
						var cells [10]float64
						var means [10]evolution.Number
						worst := 0.0
						for at := range iterations {
							step := predicted.Steps[at].MSEX
							means[at] = logMean(runs, func(r []float64) float64 { return r[at] })
							cells[at] = distance(means[at], step.Value, step.Err)
							if all++; math.Abs(cells[at]) > 3 {
								beyond++
							}
							worst = max(worst, math.Abs(cells[at]))
						}
						table.Row("| %v | %g | %d | %d | %s | %.3g | %.3g | %.3g | %+.1f | %.3g | %.3g | %+.1f | %.1f |", f, rho, wider, p, gains, alpha,
							predicted.Steps[2].MSEX.Value, means[2].Value, cells[2], predicted.Steps[9].MSEX.Value, means[9].Value, cells[9], worst)
						if worst > 3 {
							t.Logf("%v ρ = %g, N/N₂ = %d, P = %d, %s: %s", f, rho, wider, p, gains, fmt.Sprintf("%.1f", cells))
						}
					}
				}
			}
		}
	}
	// Of ten seeds a difference is three of its standard errors in 1.5 % of cases by chance.
	if t.Logf("%d of %d beyond three standard errors", beyond, all); float64(beyond) > 0.015*float64(all) {
		t.Errorf("%d of %d beyond three standard errors", beyond, all)
	}
}
