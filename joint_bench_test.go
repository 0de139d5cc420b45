package calamp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// BenchmarkJointIteration is an iteration of signals that belong together, beside one of independent signals of the same sizes.
func BenchmarkJointIteration(b *testing.B) {
	for _, size := range []struct{ n, m, p int }{{1000, 1000, 10}, {1000, 1000, 50}, {200, 32, 500}} {
		in, err := teacher.Teacher{N: size.n, M: size.m, P: size.p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-6}.Draw(1)
		if err != nil {
			b.Fatal(err)
		}
		p := &calamp.Problem{W: in.W, Y: in.Y, Prior: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: 1e-6}}
		for _, on := range []solver.Joint{solver.JointOff, solver.JointOn} {
			b.Run(fmt.Sprintf("N=%d/M=%d/P=%d/joint=%v", size.n, size.m, size.p, on), func(b *testing.B) {
				// The end of a run is left out, by two runs of different lengths.
				const short, long = 30, 90
				var took [2]time.Duration
				for b.Loop() {
					for j, iterations := range []int{short, long} {
						opt := calamp.Options{Settings: solver.Settings{MaxIter: iterations, Tol: -1}, Joint: on}
						start := time.Now()
						if _, err := calamp.Solve(b.Context(), p, &opt); err != nil {
							b.Fatal(err)
						}
						took[j] += time.Since(start)
					}
				}
				b.ReportMetric(float64((took[1]-took[0]).Microseconds())/float64(b.N*(long-short)), "µs/iteration")
			})
		}
	}
}
