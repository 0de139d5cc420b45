package amp

import (
	"math"
	"testing"

	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// trace is one of testdata/trace_*.npz: states of the bare algorithm of the
// paper along its iterations, computed independently.
type trace struct {
	f *npz.Reader
	t testing.TB
}

func openTrace(t testing.TB, name string) trace {
	t.Helper()
	f, err := npz.Open("../../testdata/trace_" + name + ".npz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return trace{f, t}
}

func (tr trace) matrix(name string) *mat.Dense {
	tr.t.Helper()
	var m mat.Dense
	if err := tr.f.Read(name+".npy", &m); err != nil {
		tr.t.Fatal(name, err)
	}
	return &m
}

func (tr trace) vector(name string) []float64 {
	tr.t.Helper()
	var v []float64
	if err := tr.f.Read(name+".npy", &v); err != nil {
		tr.t.Fatal(name, err)
	}
	return v
}

// goldenSolver is the solver of a trace's problem on all its signals.
func (tr trace) goldenSolver() *Solver {
	tr.t.Helper()
	w, y := tr.matrix("W"), tr.matrix("Y")
	m, n := w.Dims()
	_, p := y.Dims()
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		tr.t.Fatal(err)
	}
	params := tr.vector("params") // ρ, a, b, Δ
	return newSolver(tr.t, Problem{
		W: op, P: p, Y: y.RawMatrix().Data, Model: Model{
			Prior:   prior.GaussBernoulli{Density: params[0], SignalVar: 1},
			Channel: channel.Gain{Prior: channel.Uniform(params[1], params[2]), NoiseVar: params[3]},
		},
	}, solver.Settings{NoMeanRemoval: true})
}

func newSolver(t testing.TB, p Problem, settings solver.Settings) *Solver {
	t.Helper()
	s, _, _, err := NewSolver(p, settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// step does one iteration.
func step(t testing.TB, s *Solver, delta float64) {
	t.Helper()
	if err := s.Iteration.Step(delta); err != nil {
		t.Fatal(err)
	}
}

func TestBareAlgorithmFollowsGoldenTraces(t *testing.T) {
	for _, name := range []string{"small", "mid"} {
		t.Run(name, func(t *testing.T) {
			tr := openTrace(t, name)
			solver := tr.goldenSolver()
			e := solver.State
			done := 0
			for _, c := range []struct {
				iterations int
				suffix     string
			}{{1, "1"}, {2, "2"}, {3, "3"}, {5, "5"}, {8, "8"}} {
				for ; done < c.iterations; done++ {
					step(t, solver, 0)
				}
				worst := 0.0
				worst = max(worst, relativeSignals(tr.matrix("x_"+c.suffix), e.X))
				worst = max(worst, relativeSignals(tr.matrix("xvar_"+c.suffix), e.C))
				worst = max(worst, relative(tr.vector("s_"+c.suffix), e.S))
				worst = max(worst, relative(tr.vector("svar_"+c.suffix), e.SVar))
				t.Logf("%d iterations: largest relative difference %.2g", c.iterations, worst)
				if worst > 1e-9 {
					t.Errorf("%d iterations: relative difference %.2g, want at most 1e-9", c.iterations, worst)
				}
			}
		})
	}
}

// relativeSignals compares the N×P matrix want with got, stored signal by
// signal: the largest difference relative to the larger of the entry and its
// column's root mean square times 1e-3.
func relativeSignals(want *mat.Dense, got []float64) float64 {
	n, p := want.Dims()
	worst := 0.0
	for k := range p {
		worst = max(worst, relative(mat.Col(nil, k, want), got[k*n:(k+1)*n]))
	}
	return worst
}

func relative(want, got []float64) float64 {
	worst := 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(got[i]-w)/math.Abs(w))
	}
	return worst
}
