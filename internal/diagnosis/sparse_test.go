package diagnosis

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

// spreadProblem is a problem of signals of n entries of density rho, in a basis; nil for the given one.
func spreadProblem(t *testing.T, m, n, p int, rho float64, basis operator.Operator, seed uint64) (operator.Matrix, *mat.Dense) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	values, x, y := make([]float64, m*n), make([]float64, n*p), mat.NewDense(m, p, nil)
	for i := range values {
		values[i] = rng.NormFloat64() / math.Sqrt(float64(n))
	}
	for i := range x {
		if rng.Float64() < rho {
			x[i] = rng.NormFloat64()
		}
	}
	w, err := operator.NewDense(m, n, values)
	if err != nil {
		t.Fatal(err)
	}
	var whole operator.Operator = w
	if basis != nil {
		if whole, err = operator.Compose(w, basis); err != nil {
			t.Fatal(err)
		}
	}
	for mu := range m {
		row, gain := make([]float64, n), 0.7+0.6*rng.Float64()
		if err := whole.(operator.Matrix).RowInto(row, mu); err != nil {
			t.Fatal(err)
		}
		for k := range p {
			for i, v := range row {
				y.Set(mu, k, y.At(mu, k)+gain*v*x[i*p+k])
			}
		}
	}
	y.Set(0, 0, math.NaN())
	return w, y
}

// TestConcentration: the density of Gaussian entries is found without recovering any of them, in their own basis alone.
func TestConcentration(t *testing.T) {
	const m, n, p = 180, 300, 10
	cosines, err := operator.Cosines(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, rho := range []float64{0.1, 0.3, 1} {
		for _, in := range []operator.Operator{nil, cosines} {
			w, y := spreadProblem(t, m, n, p, rho, in, 1)
			r, err := Gaussian(w, y, 1)
			if err != nil {
				t.Fatal(err)
			}
			own, err := r.Concentration(nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			other, err := r.Concentration(cosines, 1)
			if err != nil {
				t.Fatal(err)
			}
			if in != nil {
				own, other = other, own
			}
			t.Logf("density %g, in cosines %v: 1/ρ %.2f ± %.2f, in the other basis %.2f", rho, in != nil, own.Inverse, own.SD, other.Inverse)
			// Unknown gains are noise to it: 1/ρ - 1 comes out a quarter too small.
			if off := own.Inverse - 1 - 0.75*(1/rho-1); math.Abs(off) > 3*own.SD+0.15*(1/rho-1) || math.Abs(other.Inverse-1) > 4*other.SD {
				t.Errorf("1/ρ = %.3g ± %.2g where it is %.3g, and %.3g in the other basis", own.Inverse, own.SD, 1/rho, other.Inverse)
			}
		}
	}
}

func TestConcentrationNeedsReadings(t *testing.T) {
	w, y := spreadProblem(t, 10, 20, 3, 1, nil, 1)
	for mu := range 6 {
		y.Set(mu, 1, math.NaN())
	}
	if _, err := Gaussian(w, y, 1); err == nil {
		t.Error("6 of 10 sensors miss readings, and nothing was said")
	}
}
