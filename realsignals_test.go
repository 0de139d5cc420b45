package calamp_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Signals of which a third are not zero are more than complex ones may be behind 40 rows for 64 entries, and gains with phases about zero. Where they are real they are found, with intervals that hold, and the plan says so;
// where they are complex, but few, they are found as that.
func TestRealSignals(t *testing.T) {
	tests.Long(t)
	const m, n, p = 40, 64, 16
	for name, c := range map[string]struct {
		density float64
		real    bool
	}{"real": {0.35, true}, "complex": {0.1, false}} {
		rng := rand.New(rand.NewPCG(7, 34))
		normal := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) / math.Sqrt2 }
		table, s, x, y := make([]complex128, m*n), make([]complex128, m), mat.NewDense(n, 2*p, nil), mat.NewDense(m, 2*p, nil)
		for i := range table {
			table[i] = normal() / 8
		}
		for mu := range s {
			s[mu] = cmplx.Rect(0.8+0.4*rng.Float64(), 0.2*rng.NormFloat64())
		}
		for k := range p {
			for i := range n {
				if v := normal(); rng.Float64() < c.density {
					if c.real {
						v = complex(math.Sqrt2*real(v), 0)
					}
					x.Set(i, 2*k, real(v))
					x.Set(i, 2*k+1, imag(v))
				}
			}
			for mu := range m {
				z := 0.01 * normal()
				for i := range n {
					z += table[mu*n+i] * complex(x.At(i, 2*k), x.At(i, 2*k+1))
				}
				z /= s[mu]
				y.Set(mu, 2*k, real(z))
				y.Set(mu, 2*k+1, imag(z))
			}
		}
		w, err := operator.NewComplex(m, n, table)
		if err != nil {
			t.Fatal(err)
		}
		res := solve(t, &calamp.Problem{
			W: w, Y: y, Prior: prior.ComplexGaussBernoulli{Density: 0.1, SignalVar: 1, Learn: prior.Density | prior.SignalVar},
			Channel: channel.ComplexGain{Prior: channel.ComplexPrior{Concentration: 1}.WithAmplitude(channel.Uniform(0.02, 5)), NoiseVar: 1e-3},
		}, &calamp.Options{Settings: solver.Settings{Algorithm: solver.Evidence}, Learn: calamp.Learn{Range: true, Noise: true, Phases: true}})
		scale := 0.0
		for mu, v := range res.ComplexS() {
			scale += cmplx.Abs(s[mu]) / cmplx.Abs(v) / m
		}
		off, power, stated, imaginary := 0.0, 0.0, 0.0, 0.0
		for i := range n {
			for k := range 2 * p {
				d := scale*res.X.At(i, k) - x.At(i, k)
				off, power, stated = off+d*d, power+x.At(i, k)*x.At(i, k), stated+scale*scale*res.XVar.At(i, k)
				if k%2 == 1 {
					imaginary += res.XVar.At(i, k) + math.Abs(res.X.At(i, k))
				}
			}
		}
		said := false
		for _, part := range res.Plan.Parts {
			said = said || part.Part == "complex numbers" && strings.Contains(part.Why, "signals are real")
		}
		t.Logf("%s: %v, error %.3g, stated %.3g", name, res.Status, math.Sqrt(off/power), math.Sqrt(stated/power))
		if res.Status != calamp.Converged || !(off < 0.001*power) || off > 2*stated || stated > 2*off || said != c.real || (imaginary == 0) != c.real {
			t.Errorf("%s: %v, error %.3g, stated %.3g, said to be real: %v, of imaginary parts %g", name, res.Status, math.Sqrt(off/power), math.Sqrt(stated/power), said, imaginary)
		}
	}
}
