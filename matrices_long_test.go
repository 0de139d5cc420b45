package calamp_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// stressMatrices are those that real instruments have, and that AMP is not derived for.
var stressMatrices = []string{
	"iid", "mean:0.1", "mean:0.5", "mean:1", "binary", "sign", "hadamard", "dct",
	"correlated:0.3", "correlated:0.7", "condition:10", "condition:100",
	"sparse:0.05", "duplicated:0.2", "uneven:0.5", "zero-columns:0.05",
}

var matrix = flag.String("matrix", "", "only this matrix of the stress table")

func TestLongStressMatrices(t *testing.T) {
	longOnly(t)
	matrices := stressMatrices
	if *matrix != "" {
		matrices = []string{"iid", *matrix}
	}
	for _, noise := range []float64{1e-4, 1e-8} {
		for _, alpha := range []float64{0.6, 0.8} {
			var reference float64
			for _, name := range matrices {
				te := teacher.Teacher{N: 500, M: int(500 * alpha), P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: noise}
				if err := te.Matrix.UnmarshalText([]byte(name)); err != nil {
					t.Fatal(err)
				}
				runs := study(t, te, noise, seedCount(10), calamp.Options{})
				good := countOf(runs, func(o outcome) bool { return o.Status == calamp.Converged })
				if name == "iid" {
					reference = medianOf(runs, scaled)
				}
				fmt.Printf("| %.0e | %.1f | %s | %d | %.0f | %.2g | %.2g |", noise, alpha, name, good, medianOf(runs, iterations), medianOf(runs, scaled), medianOf(runs, scaled)/reference)
				for _, o := range runs {
					fmt.Printf(" %c%.1g", o.Status.String()[0], scaled(o)/reference)
				}
				fmt.Println()
			}
		}
	}
}
