package amp

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// TestSizeOfErrorsOfMatrix: how far entries of W are wrong is found to some percent, since what signals follow of the errors is counted.
func TestSizeOfErrorsOfMatrix(t *testing.T) {
	tests.Long(t)
	const m, n, p, rho, seeds = 240, 300, 20, 0.2, 4
	for _, eta := range []float64{0.003, 0.03} {
		squares := 0.0
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 7))
			entries, x, y := make([]float64, m*n), make([]float64, n*p), make([]float64, m*p)
			for i := range x {
				if r.Float64() < rho {
					x[i] = r.NormFloat64()
				}
			}
			for mu := range m {
				s := 0.8 + 0.4*r.Float64()
				for i := range n {
					v := r.NormFloat64() / math.Sqrt(n)
					entries[mu*n+i] = v + eta*r.NormFloat64()/math.Sqrt(n)
					for k := range p {
						y[mu*p+k] += v * x[i*p+k] / s
					}
				}
				for k := range p {
					y[mu*p+k] += 1e-4 * r.NormFloat64() / s
				}
			}
			w, err := operator.NewDense(m, n, entries)
			if err != nil {
				t.Fatal(err)
			}
			e := newSolver(t, Problem{W: w, P: p, Y: y, LearnNoise: true, Model: Model{
				Prior: prior.GaussBernoulli{Density: rho, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-3},
			}}, solver.Settings{})
			if outcome, err := e.Run(t.Context(), 500); outcome != Converged || err != nil {
				t.Fatalf("η = %g: %v, %v", eta, outcome, err)
			}
			e.Report()
			size := e.MatrixDoubtOf().Size
			squares += size * size / (eta * eta) / seeds
		}
		t.Logf("η = %g: η̂/η is %.3f", eta, math.Sqrt(squares))
		if off := math.Sqrt(squares); math.Abs(off-1) > 0.08 { // 1.15 where signals are taken to follow nothing
			t.Errorf("η = %g comes out %.3f times as large", eta, off)
		}
	}
}

// TestErrorsOfComplexMatrix: the same of complex numbers, with phases that are free and known. A W that is right is not doubted.
func TestErrorsOfComplexMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, which take many times as long with the race detector")
	}
	const m, n, p, rho, seeds = 160, 200, 10, 0.2, 4
	for _, concentration := range []float64{0, math.Inf(1)} {
		for _, eta := range []float64{0, 0.01} {
			squares, most := 0.0, 0.0
			for seed := range uint64(seeds) {
				r := rand.New(rand.NewPCG(seed, 8))
				normal := func() complex128 { return complex(r.NormFloat64(), r.NormFloat64()) / math.Sqrt2 }
				entries, x, y := make([]complex128, m*n), make([]complex128, n*p), make([]float64, 2*m*p)
				for i := range x {
					if r.Float64() < rho {
						x[i] = normal()
					}
				}
				for mu := range m {
					s := complex(0.8+0.4*r.Float64(), 0)
					if concentration == 0 {
						s *= cmplx.Rect(1, 2*math.Pi*r.Float64())
					}
					read := make([]complex128, p)
					for i := range n {
						v := normal() / complex(math.Sqrt(n), 0)
						entries[mu*n+i] = v + complex(eta/math.Sqrt(n), 0)*normal()
						for k := range p {
							read[k] += v * x[i*p+k]
						}
					}
					for k, z := range read {
						z = (z + 1e-3*normal()) / s
						y[2*(mu*p+k)], y[2*(mu*p+k)+1] = real(z), imag(z)
					}
				}
				w, err := operator.NewComplex(m, n, entries)
				if err != nil {
					t.Fatal(err)
				}
				e := newSolver(t, Problem{W: w, P: 2 * p, Y: y, LearnNoise: true, Model: Model{
					Prior:   prior.ComplexGaussBernoulli{Density: rho, SignalVar: 1},
					Channel: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: concentration}, NoiseVar: 1e-3},
				}}, solver.Settings{})
				if outcome, err := e.Run(t.Context(), 500); outcome != Converged || err != nil {
					t.Fatalf("η = %g: %v, %v", eta, outcome, err)
				}
				e.Report()
				d := e.MatrixDoubtOf()
				squares, most = squares+d.Size*d.Size/seeds, max(most, d.Score)
				t.Logf("κ = %g, η = %g: score %.2f, η̂ %.4f", concentration, eta, d.Score, d.Size)
			}
			if eta == 0 && most > leastMatrixScore || eta > 0 && math.Abs(math.Sqrt(squares)/eta-1) > 0.15 {
				t.Errorf("κ = %g, η = %g: η̂ is %.4f, by %.1f standard errors at most", concentration, eta, math.Sqrt(squares), most)
			}
		}
	}
}
