package baseline

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

var long = tables.Long

// Without noise, cal-AMP recovers at least as many instances as the convex program.
func TestLongAgainstL1(t *testing.T) {
	if !*long {
		t.Skip("a long measurement: -long")
	}
	table := tables.New(t, "", "ρ", "P", "α", "cal-AMP", "ℓ1", "time of ℓ1 over cal-AMP, median")
	const seeds, recovered = 10, 1e-6
	for _, density := range []float64{0.1, 0.2, 0.3} {
		for _, p := range []int{5, 10} {
			for _, m := range []int{50, 60, 70, 80, 90} {
				te := teacher.Teacher{N: 100, M: m, P: p, Signal: prior.GaussBernoulli{Density: density, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1)}
				ours, theirs := 0, 0
				var ratio []float64
				for seed := range uint64(seeds) {
					in, err := te.Draw(seed + 1)
					if err != nil {
						t.Fatal(err)
					}
					problem := &calamp.Problem{W: in.W, Y: in.Y, Prior: te.Signal, Channel: channel.Gain{Prior: te.Gain, NoiseVar: 1e-14}}
					blind, err := calamp.Solve(context.Background(), problem, &calamp.Options{Settings: solver.Settings{Threads: 1}})
					if err != nil {
						t.Fatal(err)
					}
					convex, err := L1(context.Background(), problem)
					if err != nil {
						t.Fatal(err)
					}
					if calamp.Score(blind.X, blind.S, in.Truth).XOneMinusNCC <= recovered {
						ours++
					}
					if calamp.Score(convex.X, convex.S, in.Truth).XOneMinusNCC <= recovered {
						theirs++
					}
					ratio = append(ratio, convex.Wall.Seconds()/blind.Wall.Seconds())
				}
				slices.Sort(ratio)
				table.Row("| %g | %d | %.1f | %d | %d | %.1f |", density, p, float64(m)/100, ours, theirs, ratio[seeds/2])
				if ours < theirs {
					t.Errorf("ρ = %g, P = %d, M = %d: %d recovered, ℓ1 %d", density, p, m, ours, theirs)
				}
			}
		}
	}
}
