package calamp_test

import (
	"context"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Broken sensors among 470, by kind and number: at least 95 % must be found, at
// most 1 % of the others, and the error of x must stay within twice that of the
// same instance with none.
func TestLongFaults(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "fault", "sensors", "found", "others", "largest error of x, relative", "converged", "iterations (mean)")
	te := teacher.Teacher{N: 784, M: 470, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-8}
	all := append(slices.Clone(faults), fault{"random, 1e9 times as large", randomFault(1e9)})
	kinds := map[string][]fault{"these in turn": all}
	var order []string
	for _, f := range all {
		kinds[f.name] = []fault{f}
		order = append(order, f.name)
	}
	seeds := uint64(seedCount(10))
	clean := make([]calamp.Metrics, seeds)
	for _, kind := range append(order, "these in turn") {
		for _, count := range []int{1, 5, 50} {
			var right, wrong, converged int
			var iterations, worst float64
			for seed := range seeds {
				solve := func(spoil bool) (res *calamp.Result, score calamp.Metrics, broken map[int]bool) {
					in, err := te.Draw(seed)
					if err != nil {
						t.Fatal(err)
					}
					if spoil {
						broken = breakSensors(in.Y, in.Truth.S, count, seed, kinds[kind]...)
					}
					p := te.Problem(in)
					p.Channel = channel.Faulty{Working: p.Channel}
					res, err = calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Threads: 1}})
					if err != nil {
						t.Fatal(err)
					}
					return res, calamp.Score(res.X, res.S, in.Truth), broken
				}
				if clean[seed].XMSE == 0 {
					_, clean[seed], _ = solve(false)
				}
				res, score, broken := solve(true)
				r, w := found(res, broken)
				right, wrong = right+r, wrong+w
				if res.Status == calamp.Converged {
					converged++
				}
				iterations += float64(res.Iterations) / float64(seeds)
				worst = max(worst, score.XMSEScaled/clean[seed].XMSEScaled)
			}
			total := count * int(seeds)
			table.Row("| %s | %d | %d/%d | %d | %.2f | %d/%d | %.0f |", kind, count, right, total, wrong, worst, converged, seeds, iterations)
			if 20*right < 19*total || 100*wrong > (te.M-count)*int(seeds) || worst > 2 {
				t.Errorf("%s, %d broken: %d of %d found, %d others, error of x up to %.2f times that without", kind, count, right, total, wrong, worst)
			}
		}
	}
}
