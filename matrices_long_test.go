package calamp_test

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

var matrix = flag.String("matrix", "", "only this matrix of the stress table, beside iid")

// stressMatrices are those that real instruments have, and for which AMP is not
// derived. The first is the one it is derived for.
var stressMatrices = []string{
	"iid", "mean:0.1", "mean:0.5", "mean:1", "binary", "sign", "hadamard", "dct",
	"correlated:0.3", "correlated:0.7", "condition:10", "condition:100",
	"sparse:0.05", "duplicated:0.2", "uneven:0.5", "zero-columns:0.05",
}

// Converged with an error within twice that of the same run given the gains, or a
// status that says that it is not. What an ill-conditioned W hides, no algorithm can find.
func TestLongStressMatrices(t *testing.T) {
	longOnly(t)
	names := stressMatrices
	if *matrix != "" {
		names = []string{"iid", *matrix}
	}
	heads := []string{"matrix"}
	cells := make([]string, len(names)) // rows of the table, to be
	for _, noise := range []float64{1e-4, 1e-8} {
		for _, alpha := range []float64{0.6, 0.8} {
			heads = append(heads, fmt.Sprintf("Δ = %.0e, α = %g", noise, alpha))
			var reference float64
			for i, name := range names {
				te := teacher.Teacher{N: 500, M: int(500 * alpha), P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: noise}
				if err := te.Matrix.UnmarshalText([]byte(name)); err != nil {
					t.Fatal(err)
				}
				runs := study(t, te, noise, seedCount(10), calamp.Options{})
				known := studyWith(t, te, func(truth calamp.Truth) channel.Channel {
					return channel.AWGN{NoiseVar: noise, S: truth.S}
				}, seedCount(10), calamp.Options{})
				if name == "iid" {
					reference = medianOf(runs, measuredError)
				}
				converged := func(o outcome) bool { return o.Status == calamp.Converged }
				good := 0
				for i, o := range runs {
					if converged(o) && measuredError(o) <= 2*measuredError(known[i]) {
						good++
					}
				}
				wrong := countOf(runs, converged) - good
				worst, reason := 0.0, ""
				for _, o := range runs {
					if worst = max(worst, measuredError(o)/reference); !converged(o) {
						reason = o.Reason
					}
				}
				fmt.Printf("| %s | %.0e | %.1f | %d | %d | %.0f | %.2g | %.2f | %.2f | %.2f | %.2f | %s |\n", name, noise, alpha, good, wrong, medianOf(runs, iterations),
					medianOf(runs, measuredError), medianOf(runs, measuredError)/reference, worst, medianOf(runs, statedError), medianOf(runs, misfit), reason)
				cells[i] += fmt.Sprintf(" %d/%d, %.3g (%.3g), %.0f, %.2g |", good, len(runs), medianOf(runs, measuredError)/reference, worst, medianOf(runs, iterations), medianOf(runs, statedError))
				if wrong > 0 {
					t.Errorf("%s, Δ = %g, α = %g: %d of %d runs claim to have converged, with an error more than twice that of known gains, up to %.2g times that of independent entries", name, noise, alpha, wrong, len(runs), worst)
				}
			}
		}
	}
	table := tables.New(t, "", heads...)
	for i, name := range names {
		table.Row("| %s |%s", name, cells[i])
	}
}

// measuredError is the scaled error over the entries that W measures at all.
func measuredError(o outcome) float64 {
	total, count := overMeasured(o, func(i, k int) float64 {
		d := o.Scale*o.X.At(i, k) - o.truth.X.At(i, k)
		return d * d
	})
	return total / count
}

// statedError is the mean posterior variance relative to it.
func statedError(o outcome) float64 {
	total, count := overMeasured(o, o.XVar.At)
	return total / count / measuredError(o)
}

func overMeasured(o outcome, value func(i, k int) float64) (total, count float64) {
	n, p := o.X.Dims()
	for i := range n {
		if o.XVar.At(i, 0) == o.XVar.At(i, 1) {
			continue // the prior's, for all signals
		}
		for k := range p {
			total += value(i, k)
			count++
		}
	}
	return total, count
}

// misfit is the mean square of the standardised residuals.
func misfit(o outcome) float64 {
	norm := mat.Norm(o.Residual, 2)
	m, p := o.Residual.Dims()
	return norm * norm / float64(m*p)
}

func TestLongStressIsFinite(t *testing.T) {
	longOnly(t)
	for _, name := range stressMatrices {
		te := teacher.Teacher{N: 100, M: 70, P: 3, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.5, 1.5)}
		if err := te.Matrix.UnmarshalText([]byte(name)); err != nil {
			t.Fatal(err)
		}
		for _, noise := range []float64{0, 1e-14, 1e-4, 1} {
			for _, o := range study(t, te, noise, seedCount(10), calamp.Options{Settings: solver.Settings{MaxIter: 200}}) {
				for _, v := range append(append(o.X.RawMatrix().Data, o.XVar.RawMatrix().Data...), append(o.S, o.SVar...)...) {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Fatalf("%s, Δ = %g: %g in the result, status %v", name, noise, v, o.Status)
					}
				}
			}
		}
	}
}
