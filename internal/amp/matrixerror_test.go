package amp

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/operator"
)

// Rows of independent entries differ by chance, and have errors of one size; rows that differ by a factor keep it, whatever W is.
func TestRowSizesAreNotChance(t *testing.T) {
	const m, n, p = 200, 300, 4
	for _, scaled := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(40, 1))
		factor := func(mu int) float64 {
			if scaled {
				return 1 + float64(mu)/m
			}
			return 1
		}
		entries := func() []float64 {
			w := make([]float64, m*n)
			for j := range w {
				w[j] = factor(j/n) * rng.NormFloat64()
			}
			return w
		}
		table := func() operator.Operator {
			w, err := operator.NewDense(m, n, entries())
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		numbers, re, im := make([]complex128, m*n), entries(), entries()
		for j := range numbers {
			numbers[j] = complex(re[j], im[j]) * complex(math.Sqrt(0.5), 0)
		}
		parts, err := operator.NewComplex(m, n, numbers)
		if err != nil {
			t.Fatal(err)
		}
		each, err := operator.NewEach([]operator.Operator{table(), table()}, []int{0, 1, 1, 0})
		if err != nil {
			t.Fatal(err)
		}
		for name, w := range map[string]operator.Operator{"table": table(), "complex": parts, "each": each} {
			sizes, err := rowSizes(w, p, 2)
			if err != nil {
				t.Fatal(err)
			}
			ratios := make([]float64, m)
			for mu, v := range sizes {
				ratios[mu] = v / (factor(mu) * factor(mu))
			}
			mean, sd := stat.MeanStdDev(ratios, nil)
			most := 0.03 // by chance alone 0.08, 0.06 and 0.06
			if scaled {
				most = 0.1
			}
			if math.Abs(mean-1) > 0.02 || sd > most {
				t.Errorf("%s, scaled %v: mean squares of rows over the true ones are %.3f ± %.3f", name, scaled, mean, sd)
			}
		}
	}
}
