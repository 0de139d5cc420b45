package amp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// prefixed reads the arrays of one of the cases of testdata/trace_vamp.npz, states of bare
// cal-VAMP that were computed independently with a singular value decomposition.
type prefixed struct {
	trace
	name string
}

func (p prefixed) matrix(name string) *mat.Dense { return p.trace.matrix(p.name + "_" + name) }
func (p prefixed) vector(name string) []float64  { return p.trace.vector(p.name + "_" + name) }

func (p prefixed) solver(settings solver.Settings) (s *Solver, delta float64) {
	w, y, params := p.matrix("W"), p.matrix("Y"), p.vector("params") // ρ, a, b, Δ, δ
	m, n := w.Dims()
	_, signals := y.Dims()
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		p.t.Fatal(err)
	}
	settings.Algorithm = solver.VAMP
	return newSolver(p.t, Problem{
		W: op, P: signals, Y: y.RawMatrix().Data, Model: Model{
			Prior:   prior.GaussBernoulli{Density: params[0], SignalVar: 1},
			Channel: channel.Gain{Prior: channel.Uniform(params[1], params[2]), NoiseVar: params[3]},
		},
	}, settings), params[4]
}

func TestVectorAMPFollowsGoldenTraces(t *testing.T) {
	for _, name := range []string{"cond100", "damped", "uneven"} {
		t.Run(name, func(t *testing.T) {
			tr := prefixed{openTrace(t, "vamp"), name}
			s, delta := tr.solver(solver.Settings{})
			if err := s.Iteration.prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			v := s.Iteration.(*vamp)
			done := 0
			for _, iterations := range []int{1, 2, 3, 5, 8} {
				for ; done < iterations; done++ {
					keep := delta
					if done == 0 {
						keep = 0
					}
					step(t, s, keep)
				}
				of := func(name string) string { return fmt.Sprintf("%s_%d", name, iterations) }
				off := map[string]float64{
					"x": farOfSignals(tr.matrix(of("x")), v.X), "xvar": farOfSignals(tr.matrix(of("xvar")), v.C),
					"s": far(tr.vector(of("s")), v.S), "svar": far(tr.vector(of("svar")), v.SVar),
					"gamma1": far(tr.vector(of("gamma1")), v.gamma1), "tau1": far(tr.vector(of("tau1")), v.tau1),
					"r1": farOfSignals(tr.matrix(of("r1")), v.r1),
					"p1": far(tr.matrix(of("p1")).RawMatrix().Data, v.p1),
				}
				t.Logf("%d iterations: %v", iterations, off)
				for name, d := range off {
					if !(d <= 1e-9) {
						t.Errorf("%d iterations: %s is off by %.2g, want at most 1e-9", iterations, name, d)
					}
				}
			}
		})
	}
}

// far is the largest difference, relative to the root mean square of what is wanted, or to
// the entry where that is larger.
func far(want, got []float64) float64 {
	size := math.Sqrt(cholesky.Dot(want, want) / float64(len(want)))
	worst := 0.0
	for i, w := range want {
		d := math.Abs(got[i]-w) / max(math.Abs(w), size, 1e-300)
		if !(d <= worst) {
			worst = d
		}
	}
	return worst
}

func farOfSignals(want *mat.Dense, got []float64) float64 {
	n, p := want.Dims()
	worst := 0.0
	for k := range p {
		worst = max(worst, far(mat.Col(nil, k, want), got[k*n:(k+1)*n]))
	}
	return worst
}

// TestVectorAMPIsExactWhereAllIsGaussian: with Gaussian signals and known gains the answer
// is that of linear algebra, and so is the evidence, also where readings are missing.
func TestVectorAMPIsExactWhereAllIsGaussian(t *testing.T) {
	const m, n, noise, variance = 15, 25, 0.03, 2.0
	rng := rand.New(rand.NewPCG(1, 2))
	w, y := mat.NewDense(m, n, nil), make([]float64, m)
	for mu := range m {
		y[mu] = 3 * rng.NormFloat64()
		for i := range n {
			w.Set(mu, i, (0.3+rng.NormFloat64())*math.Pow(10, float64(mu)/m))
		}
	}
	for _, missing := range [][]int{nil, {3}, {0, 7, 14}} {
		op, err := operator.NewDense(m, n, w.RawMatrix().Data)
		if err != nil {
			t.Fatal(err)
		}
		readings := slices.Clone(y)
		var rows []int
		for mu := range m {
			if slices.Contains(missing, mu) {
				readings[mu] = math.NaN()
			} else {
				rows = append(rows, mu)
			}
		}
		s := newSolver(t, Problem{
			W: op, P: 1, Y: readings,
			Model: Model{Prior: prior.GaussBernoulli{Density: 1, SignalVar: variance}, Channel: channel.AWGN{NoiseVar: noise}},
		}, solver.Settings{Algorithm: solver.VAMP, Tol: 1e-13})
		if outcome, err := s.Run(t.Context(), 1000); outcome != Converged || err != nil {
			t.Fatalf("outcome %v, error %v", outcome, err)
		}
		covariance, known := mat.NewSymDense(len(rows), nil), mat.NewVecDense(len(rows), nil)
		for i, mu := range rows {
			known.SetVec(i, y[mu])
			for j, nu := range rows[:i+1] {
				v := variance * cholesky.Dot(w.RawRowView(mu), w.RawRowView(nu))
				if i == j {
					v += noise
				}
				covariance.SetSym(i, j, v)
			}
		}
		var factor mat.Cholesky
		factor.Factorize(covariance)
		var solved mat.VecDense
		if err := factor.SolveVecTo(&solved, known); err != nil {
			t.Fatal(err)
		}
		evidence := -0.5 * (mat.Dot(known, &solved) + factor.LogDet() + float64(len(rows))*math.Log(2*math.Pi))
		if got := s.Iteration.LogEvidence(); math.Abs(got-evidence) > 1e-6*math.Abs(evidence) {
			t.Errorf("without %v: log-evidence %.10g, want %.10g", missing, got, evidence)
		}
		for i := range n {
			want := 0.0
			for a, mu := range rows {
				want += variance * w.At(mu, i) * solved.AtVec(a)
			}
			if got := s.State.X[i]; math.Abs(got-want) > 1e-7 {
				t.Errorf("without %v: entry %d is %.10g, want %.10g", missing, i, got, want)
			}
		}
	}
}

// A step of vector AMP that is taken back leaves nothing behind, whatever the linear half, and the next one is that which it was.
func TestVectorAMPTakesBack(t *testing.T) {
	s, delta := prefixed{openTrace(t, "vamp"), "damped"}.solver(solver.Settings{})
	if err := s.Iteration.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	step(t, s, 0)
	for range 3 {
		step(t, s, delta)
	}
	v := s.Iteration.(*vamp)
	arrays := [][]float64{
		v.X, v.C, v.Lambda, v.Sigma, v.Omega, v.V, v.G, v.DG, v.Stats, v.S, v.SVar, v.LogZ, v.Norm, v.SumC,
		v.r1, v.p1, v.gamma1, v.tau1, v.logGamma, v.logTau, v.given,
	}
	copies := func() (list [][]float64) {
		for _, a := range arrays {
			list = append(list, slices.Clone(a))
		}
		return list
	}
	before := copies()
	v.Save()
	step(t, s, delta)
	after := copies()
	v.Restore()
	for i, a := range copies() {
		if !slices.Equal(a, before[i]) {
			t.Errorf("array %d is not what it was", i)
		}
	}
	v.forget() // what a step back needs is made again
	v.Save()
	step(t, s, delta)
	for i, a := range copies() {
		if !slices.Equal(a, after[i]) {
			t.Errorf("array %d is another after the same step", i)
		}
	}
}
