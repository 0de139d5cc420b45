package calamp_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// orthonormalRows are m random orthonormal rows of length n.
func orthonormalRows(rng *rand.Rand, m, n int) [][]complex128 {
	rows := make([][]complex128, m)
	for mu := range rows {
		row := make([]complex128, n)
		for i := range row {
			row[i] = complex(rng.NormFloat64(), rng.NormFloat64())
		}
		for range 2 { // twice is enough
			for _, other := range rows[:mu] {
				along := complex128(0)
				for i, v := range other {
					along += cmplx.Conj(v) * row[i]
				}
				for i, v := range other {
					row[i] -= along * v
				}
			}
		}
		square := 0.0
		for _, v := range row {
			square += real(v)*real(v) + imag(v)*imag(v)
		}
		for i := range row {
			row[i] /= complex(math.Sqrt(square), 0)
		}
		rows[mu] = row
	}
	return rows
}

// complexConditioned is a problem whose W has random singular vectors, and singular values that fall by the factor
// condition, evenly in their logarithm.
func complexConditioned(t *testing.T, te teacher.Complex, condition float64, seed uint64) (*calamp.Problem, *teacher.ComplexInstance) {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 18))
	left, right := orthonormalRows(rng, te.M, te.M), orthonormalRows(rng, te.M, te.N)
	values, square := make([]float64, te.M), 0.0
	for a := range values {
		values[a] = math.Pow(condition, -float64(a)/float64(te.M-1))
		square += values[a] * values[a]
	}
	size := math.Sqrt(float64(te.M) / square)
	entries := make([]complex128, te.M*te.N)
	for mu := range te.M {
		for a, row := range right {
			factor := left[mu][a] * complex(values[a]*size, 0)
			for i, v := range row {
				entries[mu*te.N+i] += factor * v
			}
		}
	}
	w, err := operator.NewComplex(te.M, te.N, entries)
	if err != nil {
		t.Fatal(err)
	}
	in.W = w
	s, part := in.Truth.ComplexS(), math.Sqrt(0.5*te.NoiseVar)
	in.Y = mat.NewDense(te.M, 2*te.P, nil)
	for mu := range te.M {
		for k := range te.P {
			z := complex(part*rng.NormFloat64(), part*rng.NormFloat64())
			for i := range te.N {
				z += entries[mu*te.N+i] * complex(in.Truth.X.At(i, 2*k), in.Truth.X.At(i, 2*k+1))
			}
			in.Y.Set(mu, 2*k, real(z/s[mu]))
			in.Y.Set(mu, 2*k+1, imag(z/s[mu]))
		}
	}
	return te.Problem(in), in
}

// TestComplexVectorAMP: complex problems whose W is no matrix of independent entries, whatever is known of phases.
func TestComplexVectorAMP(t *testing.T) {
	for name, c := range map[string]struct {
		gain      channel.ComplexPrior
		condition float64
	}{
		"condition 100, von Mises":   {channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20}, 100},
		"condition 30, free":         {channel.ComplexPrior{Lo: 0.8, Hi: 1.2}, 30},
		"orthogonal rows, von Mises": {channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			te := teacher.Complex{N: 120, M: 90, P: 6, Signal: prior.ComplexGaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-5}
			p, in := complexConditioned(t, te, c.condition, 2)
			res := solve(t, p, nil)
			m := calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth)
			t.Logf("%v after %d iterations: x %.3g, stated %.3g; s %.3g; scale %+.2g ± %.2g", res.Status, res.Iterations, m.XMSEScaled, meanTotal(res), m.SMSEScaled, math.Log(m.Scale), res.ScaleSD)
			if res.Plan.Algorithm != solver.VAMP || res.Status != calamp.Converged {
				t.Fatalf("%v, %v: %s", res.Plan.Algorithm, res.Status, res.Reason)
			}
			if ratio := m.XMSEScaled / meanTotal(res); !(ratio > 0.5 && ratio < 2) {
				t.Errorf("mean square error %.3g, stated %.3g", m.XMSEScaled, meanTotal(res))
			}
		})
	}
}
