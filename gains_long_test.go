package calamp_test

import (
	"context"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Gains as instruments have them, and nothing given of the model: errors of the signals beside those with the
// gains known and the rest learned as well, healthy sensors that were lost, and how often intervals of s hold
// the truth. The scale is a convention then, and the truth is brought to it.
func TestLongGainDistributions(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "gains", "Δ", "error of x", "times that with known gains", "largest", "uniform, normal, log-normal", "lost", "coverage of s", "least", "not converged", "iterations")
	for _, kind := range gainkind.Instruments {
		for _, delta := range []float64{1e-4, 1e-6} {
			runs, known := make([]outcome, count), make([]outcome, count)
			covered := make([]float64, count)
			inParallel(count, func(i int) {
				te := teacher.Teacher{N: 500, M: 400, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: delta}
				in, err := te.Draw(uint64(i))
				if err != nil {
					t.Error(err)
					return
				}
				kind.Spread(in, uint64(i))
				p := te.Problem(in)
				learn := nothingKnown(p)
				solve := func(c channel.Channel, learn calamp.Learn) outcome {
					p.Channel = c
					res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Threads: 1}, Learn: learn})
					if err != nil {
						t.Error(err)
						return outcome{}
					}
					return outcome{res, calamp.Score(res.X, res.S, in.Truth), in.Truth}
				}
				noise := channel.NoiseOf(p.Channel)
				runs[i] = solve(channel.Faulty{Working: p.Channel}, learn)
				known[i] = solve(channel.AWGN{NoiseVar: noise, S: in.Truth.S}, calamp.Learn{Noise: true})
				lo, hi := runs[i].SInterval(0.95)
				for mu, s := range in.Truth.S {
					if at := s / runs[i].Scale; lo[mu] <= at && at <= hi[mu] {
						covered[i] += 1 / float64(len(in.Truth.S))
					}
				}
			})
			if t.Failed() {
				return
			}
			var ratios []float64
			lost, least, mean := 0, 1.0, 0.0
			var found [3]int
			for i, o := range runs {
				ratios = append(ratios, o.XMSEScaled/known[i].XMSEScaled)
				lost += len(o.BrokenSensors)
				least, mean = min(least, covered[i]), mean+covered[i]/float64(count)
				found[channel.CalibrationOf(o.Channel).(channel.GainPrior).Family()]++
			}
			most := slices.Max(ratios)
			table.Row("| %s | %.0e | %.2g | %.2f | %.2f | %d, %d, %d | %d | %.3f | %.3f | %d | %.0f |", kind.Name, delta, medianOf(runs, scaled),
				medianOf(ratios, func(r float64) float64 { return r }), most, found[0], found[1], found[2], lost, mean, least,
				count-countOf(runs, converged), medianOf(runs, iterations))
			if most > 1.3 || lost > 0 || mean < 0.9 || mean > 0.99 || countOf(runs, converged) < count {
				t.Errorf("%s, Δ = %g: errors up to %.2f times, %d sensors lost, coverage %.3f", kind.Name, delta, most, lost, mean)
			}
		}
	}
}
