package evidence

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func BenchmarkStep(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	m, n, p := 229, 400, 4
	w, y := mat.NewDense(m, n, nil), mat.NewDense(m, p, nil)
	w.Apply(func(_, _ int, _ float64) float64 { return float64(rng.IntN(2)) }, w)
	y.Apply(func(_, _ int, _ float64) float64 { return 1 + rng.Float64() }, y)
	f := New(w, y, false)
	step := 1
	for b.Loop() {
		if _, err := f.Step(step); err != nil {
			b.Fatal(err)
		}
		step++
	}
}
