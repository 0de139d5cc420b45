package amp

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
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
				const p = 2
				l := newDecomposed(newLMMSE(op, p, 1))
				if err := l.prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				for mu, norm := range l.norms {
					for i := range c.n {
						w.Set(mu, i, w.At(mu, i)/norm)
					}
				}
				r := believe(l.lmmse, weights, rng)
				if err := l.solve(); err != nil {
					t.Fatal(err)
				}
				for k := range p {
					compareLinear(t, w, l.lmmse, r, k, 1e-10)
				}
				if len(weights) > 0 && weights[len(weights)-1] > 0 {
					return // which need a decomposition
				}
				g := newGradients(newLMMSE(op, p, 1))
				if err := g.prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				r = believe(g.lmmse, weights, rng)
				for range 2 { // from nothing, and from the solution
					if err := g.solve(); err != nil {
						t.Fatal(err)
					}
					for k := range p {
						compareLinear(t, w, g.lmmse, r, k, 1e-7)
					}
				}
				if g.steps > 0 {
					t.Errorf("%d steps from the solution", g.steps)
				}
			})
		}
	}
}

// TestLinearHalfOfOtherRows leaves rows out of all signals: a few for long, which are equations at first, and then most of them.
func TestLinearHalfOfOtherRows(t *testing.T) {
	for _, c := range []struct{ m, n int }{{16, 24}, {24, 16}} {
		for _, weights := range [][]float64{nil, {0}, {0, 0.3}} {
			rng := rand.New(rand.NewPCG(uint64(c.m), 1))
			w := mat.NewDense(c.m, c.n, nil)
			for j := range w.RawMatrix().Data {
				w.RawMatrix().Data[j] = rng.NormFloat64()
			}
			op, err := operator.NewDense(c.m, c.n, w.RawMatrix().Data)
			if err != nil {
				t.Fatal(err)
			}
			l := newDecomposed(newLMMSE(op, 2, 1))
			if err := l.prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			for mu, norm := range l.norms {
				for i := range c.n {
					w.Set(mu, i, w.At(mu, i)/norm)
				}
			}
			solved := func(rows int, equations bool) {
				t.Helper()
				r := believe(l.lmmse, weights, rng)
				for mu := range rows {
					l.weight[2*(2*mu)], l.weight[2*(2*mu)+1] = 0, 0
				}
				if err := l.solve(); err != nil {
					t.Fatal(err)
				}
				if (l.absent.made == nil) != equations {
					t.Errorf("%d×%d, %v: %d rows are left out; as equations: %v, want %v", c.m, c.n, weights, rows, !equations, equations)
				}
				for k := range 2 {
					compareLinear(t, w, l.lmmse, r, k, 1e-10)
				}
			}
			solved(2, true)
			for range 200 { // which take as long as a decomposition
				believe(l.lmmse, weights, rng)
				l.weight[0], l.weight[1], l.weight[4], l.weight[5] = 0, 0, 0, 0
				if err := l.solve(); err != nil {
					t.Fatal(err)
				}
			}
			solved(2, false)
			solved(3, true)
			solved(c.m/2, false)
			solved(c.m/2, false)
			solved(0, true)
		}
	}
}

// TestLinearHalfOrthogonal: rows of a transform, of which some do not count.
func TestLinearHalfOrthogonal(t *testing.T) {
	op, err := operator.NewHadamard(operator.Rows{N: 16, Rows: []int{3, 1, 15, 4, 8, 9, 2, 12, 6, 0, 5, 13}})
	if err != nil {
		t.Fatal(err)
	}
	w := mat.NewDense(12, 16, nil)
	for mu, row := range []int{3, 1, 15, 4, 8, 9, 2, 12, 6, 0, 5, 13} {
		for i := range 16 {
			w.Set(mu, i, float64(1-2*(bits.OnesCount(uint(row&i))%2))/4)
		}
	}
	for _, weights := range [][]float64{nil, {0}, {0, 0, 0, 0}, {0.3}, {0, 0.5, 0.899, 1e-3}} {
		l := newOrthogonal(newLMMSE(op, 2, 1))
		if err := l.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := believe(l.lmmse, weights, rand.New(rand.NewPCG(12, 16)))
		if err := l.solve(); err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			compareLinear(t, w, l.lmmse, r, k, 1e-10)
		}
	}
}

// believe draws what two signals are given, and gives some readings of the second other weights. It returns what is
// believed of x, which a solution may overwrite.
func believe(l *lmmse, weights []float64, rng *rand.Rand) (r []float64) {
	for j := range l.q {
		l.q[j], l.weight[j] = rng.NormFloat64(), 1
	}
	for i := range l.r {
		l.r[i] = rng.NormFloat64()
	}
	for a, weight := range weights {
		l.weight[(3*a+1)*l.p+1] = weight
	}
	copy(l.gamma, []float64{1, 0.7})
	copy(l.tau, []float64{2, 300})
	return slices.Clone(l.r)
}

// compareLinear solves (γ + τ W̃ᵀDW̃) x = γr + τ W̃ᵀDq for signal k.
func compareLinear(t *testing.T, w *mat.Dense, l *lmmse, r []float64, k int, within float64) {
	t.Helper()
	m, n := w.Dims()
	a, right := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		a.SetSym(i, i, l.gamma[k])
		right.SetVec(i, l.gamma[k]*r[k*n+i])
	}
	counted := 0.0
	for mu := range m {
		row, weight := mat.NewVecDense(n, w.RawRowView(mu)), l.weight[mu*l.p+k]
		a.SymRankOne(a, l.tau[k]*weight, row)
		right.AddScaledVec(right, l.tau[k]*weight*l.q[mu*l.p+k], row)
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
		if math.Abs(got-want) > within*(math.Abs(want)+1) {
			t.Errorf("signal %d: %s is %.15g, want %.15g", k, name, got, want)
		}
	}
	close("Σw", l.counted[k], counted)
	close("N - F", l.free[k], free)
	close("Σw - F", l.left[k], counted-(float64(n)-free))
	var z mat.VecDense
	z.MulVec(w, &x)
	for i := range n {
		close(fmt.Sprint("x of ", i), r[k*n+i]+l.change[k*n+i], x.AtVec(i))
	}
	quadratic := 0.0
	for mu := range m {
		j := mu*l.p + k
		close(fmt.Sprint("z of ", mu), l.z[j], z.AtVec(mu))
		weight := l.weight[j]
		miss := l.q[j] - z.AtVec(mu)
		quadratic += weight * miss * miss
		if weight > whole || weight == 0 {
			close(fmt.Sprint("h of ", mu), l.h[j], weight*miss)
		}
	}
	for i := range n {
		quadratic += l.gamma[k] / l.tau[k] * l.change[k*n+i] * l.change[k*n+i]
	}
	close("eᵀBe", l.quadratics[k], quadratic)
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
