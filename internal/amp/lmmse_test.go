package amp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

// TestLinearHalf compares the linear half with plain linear algebra: weights below 1 are
// noise that is larger, those of 0 are rows that are not there.
func TestLinearHalf(t *testing.T) {
	for _, c := range []struct{ m, n int }{{12, 20}, {20, 20}, {20, 12}} {
		for _, weights := range [][]float64{nil, {0}, {0, 0, 0, 0}, {0.3}, {0, 0.5, 0.899, 1e-3}} {
			t.Run(fmt.Sprint(c.m, c.n, weights), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(c.m), uint64(c.n)))
				w := mat.NewDense(c.m, c.n, nil)
				for mu := range c.m {
					for i := range c.n {
						w.Set(mu, i, rng.NormFloat64()*math.Pow(10, rng.Float64()-0.5))
					}
				}
				op, err := operator.NewDense(c.m, c.n, w.RawMatrix().Data)
				if err != nil {
					t.Fatal(err)
				}
				gram, err := operator.GramOf(t.Context(), op, 1)
				if err != nil {
					t.Fatal(err)
				}
				for mu, norm := range gram.Norms {
					for i := range c.n {
						w.Set(mu, i, w.At(mu, i)/norm)
					}
				}
				const p = 2
				l, err := newLMMSE(gram, c.n, p, 1)
				if err != nil {
					t.Fatal(err)
				}
				e := make([]float64, c.m*p)
				for j := range e {
					e[j], l.weight[j] = rng.NormFloat64(), 1
				}
				for a, weight := range weights {
					l.weight[(3*a+1)*p+1] = weight // of the second signal
				}
				l.gamma, l.tau = []float64{1, 0.7}, []float64{2, 300}
				given := append([]float64(nil), e...)
				if err := l.solve(e); err != nil {
					t.Fatal(err)
				}
				for k := range p {
					compareLinear(t, w, l, k, given, e)
				}
			})
		}
	}
}

// compareLinear solves (γ + τ W̃ᵀDW̃) x = τ W̃ᵀDe for signal k.
func compareLinear(t *testing.T, w *mat.Dense, l *lmmse, k int, given, e []float64) {
	t.Helper()
	m, n := w.Dims()
	a, right := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		a.SetSym(i, i, l.gamma[k])
	}
	counted := 0.0
	for mu := range m {
		row, weight := mat.NewVecDense(n, w.RawRowView(mu)), l.weight[mu*l.p+k]
		a.SymRankOne(a, l.tau[k]*weight, row)
		right.AddScaledVec(right, l.tau[k]*weight*given[mu*l.p+k], row)
		counted += weight
	}
	var factor mat.Cholesky
	factor.Factorize(a)
	var x mat.VecDense
	if err := factor.SolveVecTo(&x, right); err != nil {
		t.Fatal(err)
	}
	var inverse mat.SymDense
	if err := factor.InverseTo(&inverse); err != nil {
		t.Fatal(err)
	}
	free := l.gamma[k] * mat.Trace(&inverse)
	close := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-10*(math.Abs(want)+1) {
			t.Errorf("signal %d: %s is %.15g, want %.15g", k, name, got, want)
		}
	}
	close("Σw", l.counted[k], counted)
	close("N - F", l.free[k], free)
	close("Σw - F", l.left[k], counted-(float64(n)-free))
	mine, z := mat.NewVecDense(n, nil), mat.NewVecDense(m, nil)
	for mu := range m {
		mine.AddScaledVec(mine, l.tau[k]/l.gamma[k]*l.h[mu*l.p+k], mat.NewVecDense(n, w.RawRowView(mu)))
	}
	for i := range n {
		close(fmt.Sprint("x of ", i), mine.AtVec(i), x.AtVec(i))
	}
	z.MulVec(w, &x)
	for mu := range m {
		close(fmt.Sprint("z of ", mu), e[mu*l.p+k]-l.h[mu*l.p+k], z.AtVec(mu))
	}
	// log det of K/γ + 1/(τw), over the rows that count.
	var rows []int
	for mu := range m {
		if l.weight[mu*l.p+k] > counts {
			rows = append(rows, mu)
		}
	}
	covariance := mat.NewSymDense(len(rows), nil)
	for i, mu := range rows {
		for j, nu := range rows[:i+1] {
			v := mat.Dot(mat.NewVecDense(n, w.RawRowView(mu)), mat.NewVecDense(n, w.RawRowView(nu))) / l.gamma[k]
			if i == j {
				v += 1 / (l.tau[k] * l.weight[mu*l.p+k])
			}
			covariance.SetSym(i, j, v)
		}
	}
	factor.Factorize(covariance)
	close("log det", -l.logDet[k]-float64(len(rows))*math.Log(l.tau[k]), factor.LogDet())
}
