package evidence

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/tests"
)

// realProblem are real sparse signals behind a complex W, and gains with phases.
func realProblem(seed uint64, m, n, p int, rho, noise, spread float64) (w, y [][]complex128, x [][]float64, s []complex128) {
	rng := rand.New(rand.NewPCG(seed, 1))
	normal := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) / complex(math.Sqrt2, 0) }
	w, y, x, s = make([][]complex128, m), make([][]complex128, m), make([][]float64, n), make([]complex128, m)
	for i := range x {
		x[i] = make([]float64, p)
		for k := range p {
			if rng.Float64() < rho {
				x[i][k] = rng.NormFloat64()
			}
		}
	}
	for mu := range w {
		w[mu], y[mu] = make([]complex128, n), make([]complex128, p)
		s[mu] = cmplx.Rect(0.8+0.4*rng.Float64(), spread*rng.NormFloat64())
		for i := range n {
			w[mu][i] = normal() / complex(math.Sqrt(float64(n)), 0)
		}
		for k := range p {
			for i := range n {
				y[mu][k] += w[mu][i] * complex(x[i][k], 0)
			}
			y[mu][k] = (y[mu][k] + complex(math.Sqrt(noise), 0)*normal()) / s[mu]
		}
	}
	return w, y, x, s
}

// TestRealSignals: real signals behind a complex W are found where twice as many entries are there as complex ones might be; errors of signals, and of phases with the common one, are those stated.
func TestRealSignals(t *testing.T) {
	tests.Long(t)
	for seed := range uint64(3) {
		const m, n, p = 60, 100, 10
		w, y, x, s := realProblem(seed, m, n, p, 0.3, 1e-4, 0.3)
		fit := NewComplex(m, n, p, func(mu, i int) complex128 { return w[mu][i] }, func(mu, k int) complex128 { return y[mu][k] }, 0)
		fit.Real, fit.LearnKappa = true, true
		for done := false; !done; {
			var err error
			if done, err = fit.Step(); err != nil {
				t.Fatal(err)
			}
		}
		by, off, power, open := 0.0, 0.0, 0.0, 0.0
		for mu, v := range fit.S {
			by += cmplx.Abs(s[mu]) / cmplx.Abs(v) / m
		}
		for k, snapshot := range fit.Snapshots {
			for i, v := range snapshot.X {
				d := by*real(v) - x[i][k]
				off, power, open = off+d*d, power+x[i][k]*x[i][k], open+by*by*snapshot.C[i]/2
				if imag(v) != 0 {
					t.Fatalf("a signal has an imaginary part: %v", v)
				}
			}
		}
		phases, variances := make([]float64, m), fit.covariances()[m:]
		for mu, v := range fit.S {
			phases[mu] = cmplx.Phase(s[mu] / v)
		}
		error, stated := math.Sqrt(off/power), math.Sqrt(open/power)
		phase, saidPhase := floats.Norm(phases, 2)/math.Sqrt(m), math.Sqrt(floats.Sum(variances)/m)
		if !fit.Settled() || !(error < 1.2*stated && stated < 1.2*error) || !(phase < 1.5*saidPhase && saidPhase < 1.5*phase) || !(fit.Noise > 0.7e-4 && fit.Noise < 1.4e-4) {
			t.Errorf("seed %d: settled %v after %d steps, error %.3g (stated %.3g), phases' error %.3g (stated %.3g), noise %.3g", seed, fit.Settled(), fit.steps, error, stated, phase, saidPhase, fit.Noise)
		}
	}
}

// TestRedrawnComplex: of two snapshots, which have no halves, readings are drawn from the answer: it is found again within its errors, and the same each time.
func TestRedrawnComplex(t *testing.T) {
	tests.Long(t)
	const m, n, p = 60, 80, 2
	w, y, _, _ := realProblem(3, m, n, p, 0.1, 1e-4, 0.1)
	fit := NewComplex(m, n, p, func(mu, i int) complex128 { return w[mu][i] }, func(mu, k int) complex128 { return y[mu][k] }, 0)
	fit.Real, fit.LearnKappa = true, true
	for done := false; !done; {
		var err error
		if done, err = fit.Step(); err != nil {
			t.Fatal(err)
		}
	}
	ratio, err := fit.Halves(t.Context())
	again, failed := fit.Halves(t.Context())
	if err != nil || failed != nil || !(ratio > 0.1 && ratio < 3) || again != ratio {
		t.Errorf("ratio %g, %v, and %g, %v", ratio, err, again, failed)
	}
}
