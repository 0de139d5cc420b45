//go:build unix

package calamp_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/solver"
)

// processorTime is that of the process, in seconds.
func processorTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}

// BenchmarkIndependentSignals is how much longer independent signals take where it is asked whether they belong together: the ratio of the shortest processor times of whole runs, in turns.
func BenchmarkIndependentSignals(b *testing.B) {
	for _, size := range []struct{ n, m, p int }{{200, 160, 2}, {500, 350, 10}, {1000, 800, 10}, {1000, 800, 50}} {
		c := jointCase{n: size.n, p: size.p, alpha: float64(size.m) / float64(size.n), density: 0.1, noise: 1e-5}
		for _, c.given = range []bool{true, false} {
			b.Run(fmt.Sprintf("N=%d/M=%d/P=%d/given=%v", size.n, size.m, size.p, c.given), func(b *testing.B) {
				var least [2]float64
				for b.Loop() {
					for j, which := range []solver.Joint{solver.AutoJoint, solver.JointOff} {
						c.joint = which
						problem, opt, _ := c.problem(b, 1)
						start := processorTime(b)
						if _, err := calamp.Solve(b.Context(), problem, opt); err != nil {
							b.Fatal(err)
						}
						if took := processorTime(b) - start; least[j] == 0 || took < least[j] {
							least[j] = took
						}
					}
				}
				b.ReportMetric(least[0]/least[1], "auto/off")
			})
		}
	}
}
