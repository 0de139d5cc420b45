package amp

import (
	"fmt"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// offsetProblem is that of testdata/trace_offset.npz, a trace of the bare recursion computed independently.
func (tr trace) offsetProblem() Problem {
	tr.t.Helper()
	w, y := tr.matrix("W"), tr.matrix("Y")
	m, n := w.Dims()
	_, p := y.Dims()
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		tr.t.Fatal(err)
	}
	params := tr.vector("params") // ρ, a, b, Δ, σ_o²
	return Problem{
		W: op, P: p, Y: y.RawMatrix().Data, Model: Model{
			Prior: prior.GaussBernoulli{Density: params[0], SignalVar: 1},
			Channel: channel.Offset{
				Prior:    channel.OffsetPrior{Gain: channel.Uniform(params[1], params[2]), SD: math.Sqrt(params[4])},
				NoiseVar: params[3],
			},
		},
	}
}

func TestOffsetsFollowGoldenTrace(t *testing.T) {
	tr := openTrace(t, "offset")
	e := newSolver(t, tr.offsetProblem(), solver.Settings{NoMeanRemoval: true, NoScaleStep: true})
	done := 0
	for _, iterations := range []int{1, 2, 3, 5, 8} {
		for ; done < iterations; done++ {
			step(t, e, 0)
		}
		s := e.State
		name := func(array string) string { return fmt.Sprintf("%s_%d", array, iterations) }
		worst := max(relativeSignals(tr.matrix(name("x")), s.X), relativeSignals(tr.matrix(name("xvar")), s.C),
			relative(tr.vector(name("s")), s.S), relative(tr.vector(name("svar")), s.SVar),
			relative(tr.vector(name("o")), s.O), relative(tr.vector(name("ovar")), s.OVar))
		t.Logf("%d iterations: largest relative difference %.2g", iterations, worst)
		if !(worst <= 1e-9) {
			t.Errorf("%d iterations: relative difference %.2g, want at most 1e-9", iterations, worst)
		}
	}
}

func TestOffsetsWithNoiseOfEverySensorFollowGoldenTrace(t *testing.T) {
	tr := openTrace(t, "offset")
	p := tr.offsetProblem()
	p.Noise = tr.vector("noise_per_sensor")
	e := newSolver(t, p, solver.Settings{NoMeanRemoval: true, NoScaleStep: true})
	for range 5 {
		step(t, e, 0)
	}
	s := e.State
	worst := max(relativeSignals(tr.matrix("hetero_x_5"), s.X), relative(tr.vector("hetero_s_5"), s.S), relative(tr.vector("hetero_o_5"), s.O))
	if !(worst <= 1e-9) {
		t.Errorf("relative difference %.2g, want at most 1e-9", worst)
	}
}

func TestExchangeableOffsetsFollowGoldenTrace(t *testing.T) {
	tr := openTrace(t, "offset")
	e := newSolver(t, tr.offsetProblem(), solver.Settings{NoMeanRemoval: true, Covariance: solver.Exchangeable})
	done := 0
	for _, iterations := range []int{1, 2, 3, 5, 8} {
		for ; done < iterations; done++ {
			step(t, e, 0)
		}
		s := e.State
		name := func(array string) string { return fmt.Sprintf("exch_%s_%d", array, iterations) }
		it := e.Iteration.(*exchangeable)
		w, p := 1/float64(s.N), float64(s.P) // the trace has covariances of entries, not of z
		each, together := w*sum(s.C)/p, w*sum(it.together)/p
		off := (together - each) / (p - 1)
		worst := max(relativeSignals(tr.matrix(name("x")), s.X), relative(tr.vector(name("s")), s.S), relative(tr.vector(name("o")), s.O),
			relative(tr.vector(name("scalars")), []float64{each - off, off, it.apart, it.shift}))
		t.Logf("%d iterations: largest relative difference %.2g", iterations, worst)
		if !(worst <= 1e-9) {
			t.Errorf("%d iterations: relative difference %.2g, want at most 1e-9", iterations, worst)
		}
	}
}
