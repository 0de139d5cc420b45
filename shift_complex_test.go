package calamp_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/blas/cblas128"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// fourierProblem is signals behind m rows of the Fourier transform, with random signs and a permutation of the entries or without, and gains whose phases are anywhere, or about zero with this concentration.
func fourierProblem(t testing.TB, n, m, p int, kappa float64, mixed bool, seed uint64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 41))
	rows := operator.Rows{N: n, Rows: rng.Perm(n)[:m]}
	slices.Sort(rows.Rows)
	if mixed {
		rows.Permutation = rng.Perm(n)
		for range n {
			rows.Signs = append(rows.Signs, float64(1-2*rng.IntN(2)))
		}
	}
	w, err := operator.NewFourier(rows)
	if err != nil {
		t.Fatal(err)
	}
	truth := calamp.Truth{X: mat.NewDense(n, 2*p, nil)}
	for i := range n {
		for k := range p {
			if rng.Float64() < 0.08 {
				truth.X.Set(i, 2*k, rng.NormFloat64()/math.Sqrt2)
				truth.X.Set(i, 2*k+1, rng.NormFloat64()/math.Sqrt2)
			}
		}
	}
	y, entries := mat.NewDense(m, 2*p, nil), entriesOf(t, w)
	for mu := range m {
		phase := 2 * math.Pi * rng.Float64()
		if kappa > 0 {
			phase = rng.NormFloat64() / math.Sqrt(kappa)
		}
		s := cmplx.Rect(0.8+0.4*rng.Float64(), phase)
		truth.S, truth.Phase = append(truth.S, cmplx.Abs(s)), append(truth.Phase, phase)
		for k := range p {
			sum := complex(1e-3*rng.NormFloat64(), 1e-3*rng.NormFloat64())
			for i := range n {
				sum += entries[mu*n+i] * complex(truth.X.At(i, 2*k), truth.X.At(i, 2*k+1))
			}
			sum /= s
			y.Set(mu, 2*k, real(sum))
			y.Set(mu, 2*k+1, imag(sum))
		}
	}
	return &calamp.Problem{
		W: w, Y: y, Prior: prior.ComplexGaussBernoulli{Density: 0.08, SignalVar: 1},
		Channel: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: kappa}, NoiseVar: 2e-6},
	}, truth
}

// placed are signals with entries at their places in the transform, with their signs, shifted by so many, as one signal below the other.
func placed(rows operator.Rows, x *mat.Dense, by int) []complex128 {
	n, columns := x.Dims()
	out := make([]complex128, n*columns/2)
	for i := range n {
		place, sign := i, 1.0
		if rows.Permutation != nil {
			place, sign = rows.Permutation[i], rows.Signs[i]
		}
		for k := range columns / 2 {
			out[k*n+(place+by)%n] = complex(sign*x.At(i, 2*k), sign*x.At(i, 2*k+1))
		}
	}
	return out
}

// Behind rows of the Fourier transform a shift of all signals changes nothing but the phases of gains. Where these are free signals are found up to it, and that is said, as it is behind a table of the
// same rows and with a spread of phases that is learned where they are anywhere; of phases about the nominal ones it is not said, and signals are where they were.
func TestShiftsBehindFourier(t *testing.T) {
	for name, c := range map[string]struct {
		kappa        float64
		mixed, table bool
		learn        bool
	}{
		"free":                         {},
		"free, signs and permutation":  {mixed: true},
		"free, a table":                {table: true},
		"anywhere, the spread learned": {learn: true},
		"about the nominal ones":       {kappa: 4, learn: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, truth := fourierProblem(t, 128, 72, 8, c.kappa, c.mixed, 3)
			w := p.W.(*operator.Complex)
			rows, _ := w.Rows()
			if c.table {
				table, err := operator.NewComplex(72, 128, entriesOf(t, w))
				if err != nil {
					t.Fatal(err)
				}
				p.W = table
			}
			opt := &calamp.Options{}
			opt.Learn.Noise = true
			if c.learn {
				gain := p.Channel.(channel.ComplexGain)
				gain.Prior.Concentration = 4
				p.Channel, opt.Learn.Phases = gain, true
			}
			res, err := calamp.Solve(context.Background(), p, opt)
			if err != nil {
				t.Fatal(err)
			}
			best, at := 0.0, 0
			found := placed(rows, res.X, 0)
			for by := range 128 {
				if like := cmplx.Abs(cosine(placed(rows, truth.X, by), found)); like > best {
					best, at = like, by
				}
			}
			said := slices.IndexFunc(res.Warnings, func(w calamp.Warning) bool { return w.Code == calamp.ShiftedDirections })
			t.Logf("%v after %d iterations, shifted by %d, off by %.2g, said: %t", res.Status, res.Iterations, at, math.Sqrt(1-best*best), said >= 0)
			if res.Status != calamp.Converged || !(math.Sqrt(1-best*best) < 3e-3) {
				t.Errorf("%v (%s), off by %.2g at the best shift", res.Status, res.Reason, math.Sqrt(1-best*best))
			}
			if near := c.kappa > 0; near != (said < 0) || near && at != 0 {
				t.Errorf("shifted by %d, said: %t", at, said >= 0)
			}
			if said >= 0 && !strings.HasPrefix(res.Warnings[said].Message, "127 other answers") {
				t.Errorf("%s", res.Warnings[said].Message)
			}
		})
	}
}

// entriesOf are those of w, row by row.
func entriesOf(t testing.TB, w *operator.Complex) []complex128 {
	t.Helper()
	m, n := w.Dims()
	read, values := operator.RowReader(w, float64(m*n)), make([]complex128, m*n)
	re, im := make([]float64, n), make([]float64, n)
	for mu := range m {
		if err := read(re, im, mu); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			values[mu*n+i] = complex(re[i], im[i])
		}
	}
	return values
}

func cosine(a, b []complex128) complex128 {
	v, w := cblas128.Vector{N: len(a), Data: a, Inc: 1}, cblas128.Vector{N: len(b), Data: b, Inc: 1}
	return cblas128.Dotc(v, w) / complex(cblas128.Nrm2(v)*cblas128.Nrm2(w), 0)
}
