package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
)

// TestMatrixScoresAreSlopes: slopes are those of differences of the evidence, with the same prior, and the information is what the slopes fall by.
func TestMatrixScoresAreSlopes(t *testing.T) {
	const m, n, p, h = 30, 24, 5, 1e-4
	rng := rand.New(rand.NewPCG(40, 1))
	normal := func(rows, columns int) *mat.Dense {
		a := mat.NewDense(rows, columns, nil)
		for i := range a.RawMatrix().Data {
			a.RawMatrix().Data[i] = rng.NormFloat64()
		}
		return a
	}
	w, along, x, y := normal(m, n), []*mat.Dense{normal(m, n), normal(m, n)}, normal(n, p), mat.NewDense(m, p, nil)
	y.Mul(w, x)
	for mu := range m {
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+0.3*rng.NormFloat64())*(1+0.2*rng.NormFloat64()))
		}
	}
	y.Set(3, 1, math.NaN())
	at := func(theta ...float64) *Fit {
		moved := mat.DenseCopyOf(w)
		for j, v := range theta {
			var d mat.Dense
			d.Scale(v, along[j])
			moved.Add(moved, &d)
		}
		fit := New(moved, y, false)
		fit.Spread, fit.Noise, fit.exact = 0.2, 0.09, true
		for i := range fit.Families[0].Gamma {
			fit.Families[0].Gamma[i] = 1 + 0.1*float64(i%3)
		}
		if err := fit.Solve(); err != nil {
			t.Fatal(err)
		}
		return fit
	}
	scores := func(fit *Fit) ([]float64, *mat.SymDense) {
		var products []func(u, x []float64) error
		for _, d := range along {
			products = append(products, func(u, x []float64) error {
				columns := len(x) / n
				var product mat.Dense
				product.Mul(d, mat.NewDense(columns, n, x).T())
				copy(u, product.RawMatrix().Data)
				return nil
			})
		}
		slope, _, information, err := fit.MatrixScores(products)
		if err != nil {
			t.Fatal(err)
		}
		return slope, information
	}
	value := func(theta ...float64) float64 {
		fit := at(theta...)
		if !fit.factorPrecision() {
			t.Fatal(errSingular)
		}
		return fit.Evidence - 0.5*dense.LogDet(fit.curved)
	}
	slope, information := scores(at())
	for j := range along {
		theta := make([]float64, 2)
		theta[j] = h
		high := value(theta...)
		theta[j] = -h
		if low := value(theta...); math.Abs((high-low)/(2*h)-slope[j]) > 0.03*math.Sqrt(information.At(j, j)) {
			t.Errorf("slope %d is %g, by differences %g, with an error of %g", j, slope[j], (high-low)/(2*h), math.Sqrt(information.At(j, j)))
		}
		if chol := (&mat.Cholesky{}); !chol.Factorize(information) {
			t.Errorf("the information %v is not positive definite", mat.Formatted(information))
		}
	}
}
