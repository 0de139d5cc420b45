package layers

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/prior"
)

// With Gaussian latents and the identity all is Gaussian: at the fixed point, vector AMP and layers together give the posterior and its mass as linear algebra does, whatever F is.
func TestExactForGaussians(t *testing.T) {
	for name, how := range map[string]How{"vector": {Vector: []bool{true}}, "together": {Together: true}} {
		t.Run(name, func(t *testing.T) { testExactForGaussians(t, how) })
	}
}

func testExactForGaussians(t *testing.T, how How) {
	const n, width, p, sigma = 30, 8, 2, 0.1
	rng := rand.New(rand.NewPCG(1, 39))
	l := prior.Layer{Rows: n, Cols: width, Bias: make([]float64, n)}
	for j := range n * width {
		l.Weights = append(l.Weights, rng.NormFloat64()*math.Pow(0.6, float64(j%width)))
	}
	for i := range l.Bias {
		l.Bias[i] = rng.NormFloat64()
	}
	network, err := prior.NewNetwork([]prior.Layer{l}, prior.Gaussian(0.3, 2), 0)
	if err != nil {
		t.Fatal(err)
	}
	node, err := New(network, p, 1, how)
	if err != nil {
		t.Fatal(err)
	}
	x, c, lambda, fields := make([]float64, p*n), make([]float64, p*n), make([]float64, p*n), make([]float64, p*n)
	for j := range lambda {
		lambda[j], fields[j] = 2*rng.NormFloat64(), sigma
	}
	node.Start()
	for range 100 {
		if err := node.Update(x, c, lambda, fields, 0); err != nil {
			t.Fatal(err)
		}
	}
	f := mat.NewDense(n, width, l.Weights)
	total := mat.NewSymDense(n, nil)
	var covariance mat.SymDense
	covariance.SymOuterK(2, f)
	total.CopySym(&covariance)
	for i := range n {
		total.SetSym(i, i, total.At(i, i)+sigma)
	}
	var factor mat.Cholesky
	if !factor.Factorize(total) {
		t.Fatal("not positive")
	}
	mass := float64(p) * (0.5*n*math.Log(sigma) - 0.5*factor.LogDet())
	for k := range p {
		mean, off, solved, want := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
		for i := range n {
			mean.SetVec(i, l.Bias[i])
			for j := range width {
				mean.SetVec(i, mean.AtVec(i)+0.3*f.At(i, j))
			}
		}
		off.SubVec(mat.NewVecDense(n, lambda[k*n:(k+1)*n]), mean)
		if err := factor.SolveVecTo(solved, off); err != nil {
			t.Fatal(err)
		}
		mass -= 0.5 * mat.Dot(off, solved)
		want.MulVec(&covariance, solved)
		want.AddVec(want, mean)
		for i := range n {
			if d := math.Abs(x[k*n+i] - want.AtVec(i)); !(d < 1e-8) {
				t.Errorf("x[%d,%d] is %g, expected %g", i, k, x[k*n+i], want.AtVec(i))
			}
		}
	}
	if got := node.LogNorm(); !(math.Abs(got-mass) < 1e-7) {
		t.Errorf("log mass %.10g, expected %.10g", got, mass)
	}
}
