package operator_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

// orthogonal is an operator of which the rows are, known by its products alone.
type orthogonal struct{ *operator.Dense }

func (orthogonal) RowOrthogonal() (kappa float64, ok bool) { return 4, true }

// hidden is a matrix whose entries cannot be seen.
type hidden struct{ operator.Operator }

func randomDense(t *testing.T, m, n int, draw func(rng *rand.Rand) float64) *operator.Dense {
	t.Helper()
	rng, w := rand.New(rand.NewPCG(uint64(m), uint64(n))), make([]float64, m*n)
	for j := range w {
		w[j] = draw(rng)
	}
	d, err := operator.NewDense(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestGramIsThatOfNormalisedRows(t *testing.T) {
	for _, size := range [][2]int{{40, 70}, {50, 30}, {1, 9}} {
		m, n := size[0], size[1]
		w := randomDense(t, m, n, func(rng *rand.Rand) float64 { return rng.NormFloat64() * math.Exp(3*rng.NormFloat64()) })
		for _, op := range []operator.Operator{w, hidden{w}} {
			g, err := operator.GramOf(t.Context(), op, 2)
			if err != nil {
				t.Fatal(err)
			}
			rows := mat.NewDense(m, n, nil)
			for mu := range m {
				for i := range n {
					rows.Set(mu, i, w.At(mu, i)/g.Norms[mu])
				}
				if norm := mat.Norm(rows.RowView(mu), 2); math.Abs(norm-1) > 1e-13 {
					t.Errorf("%d×%d: row %d has norm %.15g", m, n, mu, norm)
				}
			}
			var want, got mat.Dense
			want.Mul(rows, rows.T())
			q, tri := mat.NewDense(m, m, nil), mat.NewDense(m, m, nil)
			for mu := range m {
				if err := g.Rotation.RowInto(q.RawRowView(mu), mu); err != nil {
					t.Fatal(err)
				}
				tri.Set(mu, mu, g.Diagonal[mu])
				if mu > 0 {
					tri.Set(mu, mu-1, g.Off[mu-1])
					tri.Set(mu-1, mu, g.Off[mu-1])
				}
			}
			got.Product(q, tri, q.T())
			got.Sub(&got, &want)
			if d := mat.Norm(&got, math.Inf(1)); d > 1e-12 {
				t.Errorf("%d×%d: QTQᵀ is off by %.2g", m, n, d)
			}
		}
	}
}

func TestGramIsRememberedAndCancelled(t *testing.T) {
	w := randomDense(t, 60, 80, (*rand.Rand).NormFloat64)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := operator.GramOf(ctx, w, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v of a run that was cancelled", err)
	}
	first, err := operator.GramOf(t.Context(), w, 1)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := operator.GramOf(ctx, w, 1); second != first {
		t.Error("it was decomposed again")
	}
	closed, err := operator.GramOf(ctx, orthogonal{w}, 1)
	if err != nil || closed.Rotation != nil || closed.Norms[3] != 2 || closed.Eigenvalues[3] != 1 {
		t.Errorf("orthogonal rows are decomposed, error %v", err)
	}
}

// TestHalves: the products one at a time are those of a sweep, also of a sweep that cannot do
// less than both.
func TestHalves(t *testing.T) {
	const m, n = 37, 53
	w := randomDense(t, m, n, (*rand.Rand).NormFloat64)
	for _, p := range []int{1, 2, 5} {
		x, g := make([]float64, p*n), make([]float64, m*p)
		rng := rand.New(rand.NewPCG(uint64(p), 0))
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		for j := range g {
			g[j] = rng.NormFloat64()
		}
		for _, op := range []operator.Operator{w, hidden{wholeOnly{w}}} {
			h, err := operator.NewLinear(op, p, 2)
			if err != nil {
				t.Fatal(err)
			}
			z, r := make([]float64, m*p), make([]float64, p*n)
			if err := errors.Join(h.Forward(z, x), h.Backward(r, g)); err != nil {
				t.Fatal(err)
			}
			for k := range p {
				for mu := range m {
					want := 0.0
					for i := range n {
						want += w.At(mu, i) * x[k*n+i]
					}
					if math.Abs(z[mu*p+k]-want) > 1e-12 {
						t.Fatalf("p = %d: z of %d is %g, want %g", p, mu, z[mu*p+k], want)
					}
				}
				for i := range n {
					want := 0.0
					for mu := range m {
						want += w.At(mu, i) * g[mu*p+k]
					}
					if math.Abs(r[k*n+i]-want) > 1e-12 {
						t.Fatalf("p = %d: r of %d is %g, want %g", p, i, r[k*n+i], want)
					}
				}
			}
		}
	}
}

// wholeOnly has sweeps that are not Halves.
type wholeOnly struct{ operator.Operator }

func (w wholeOnly) NewSweep(p, q, threads int) (operator.Sweep, error) {
	s, err := w.Operator.NewSweep(p, q, threads)
	return struct{ operator.Sweep }{s}, err
}
