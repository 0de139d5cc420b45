package amp

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// onMasks are masks of 0 and size, and what is the solver of readings through them,
// without their means.
func onMasks(t *testing.T, rng *rand.Rand, m, n, p int, size float64, prior prior.Prior, gain channel.Gain) (of func(y []float64, settings solver.Settings) *Solver, w []float64) {
	t.Helper()
	w = make([]float64, m*n)
	for i := range w {
		w[i] = float64(rng.IntN(2)) * size
	}
	op, err := operator.NewDense(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	return func(y []float64, settings solver.Settings) *Solver {
		settings.Threads = 1
		s := newSolver(t, Problem{W: op, P: p, Y: y, Model: Model{prior, gain}}, settings)
		if s.State.further.Extra == 0 {
			t.Fatal("the means were not removed")
		}
		return s
	}, w
}

// maskSolver is a solver on masks and signals that differ.
func maskSolver(t *testing.T, m, n, p int, settings solver.Settings) *Solver {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	gain := channel.Gain{Prior: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}
	on, w := onMasks(t, rng, m, n, p, 1/math.Sqrt(float64(n)), prior.GaussBernoulli{Density: 0.2, SignalMean: 0.3, SignalVar: 1}, gain)
	y := make([]float64, m*p)
	for k := range p {
		x := make([]float64, n)
		for i := range x {
			if rng.Float64() < 0.2 {
				x[i] = 0.3 + rng.NormFloat64()
			}
		}
		for mu := range m {
			z := 1e-2 * rng.NormFloat64()
			for i, v := range x {
				z += w[mu*n+i] * v
			}
			y[mu*p+k] = z / (0.9 + 0.2*float64(mu)/float64(m))
		}
	}
	return on(y, settings)
}

// At a fixed point the evidence is stationary along the scale, with what the
// border adds to its sums; the further entries are what they stand for.
func TestBorderAtAFixedPoint(t *testing.T) {
	s := maskSolver(t, 90, 120, 3, solver.Settings{Tol: 1e-13, Damping: solver.FixedDamping(0.3), NoScaleStep: true})
	e := s.State
	if outcome, err := s.Run(context.Background(), 20000); outcome != Converged || err != nil {
		t.Fatal(outcome, err, s.Change)
	}
	evidence := alongScale(s.Iteration)
	slope, curvature := evidence.slope(1)
	if math.Abs(slope) > 1e-6*math.Abs(curvature) {
		t.Errorf("the evidence has slope %g along the scale, curvature %g", slope, curvature)
	}
	quadratic, volume := s.Sums()
	if math.Abs(quadratic/evidence.quadratic-1) > 1e-9 || math.Abs(volume/evidence.volume-1) > 1e-12 {
		t.Errorf("sums %g and %g, of the evidence %g and %g", quadratic, volume, evidence.quadratic, evidence.volume)
	}
	pulls := volume
	for mu, calibration := range e.S {
		pulls += e.calibration.Pull(e.Of(e.Stats, mu), calibration)
	}
	if math.Abs(quadratic/pulls-1) > 1e-9 {
		t.Errorf("Q + S is %g, and by what sensors pull %g", quadratic, pulls)
	}
	for j, q := range e.further.Combinations(0) {
		for k := range e.P {
			want := 0.0
			for i, c := range q {
				want += c * e.X[k*e.N+i]
			}
			at := e.P*e.N + k*e.further.Extra + j
			got := e.all.x[at]
			if sd := math.Sqrt(e.all.c[at]); math.Abs(got-want) > 3*sd {
				t.Errorf("further entry %d of signal %d is %g, the signal says %g", j, k, got, want)
			}
		}
	}
}

// Refused steps leave no trace.
func TestBorderIsRestored(t *testing.T) {
	s := maskSolver(t, 50, 60, 2, solver.Settings{})
	e := s.State
	for range 5 {
		step(t, s, 0.2)
	}
	e.Save()
	before := s.Iteration.LogEvidence()
	step(t, s, 0)
	e.rescale(1.01)
	e.Restore()
	if after := s.Iteration.LogEvidence(); after != before {
		t.Errorf("evidence %v, before %v", after, before)
	}
	step(t, s, 0.2)
	first := append([]float64(nil), e.X...)
	e.Restore()
	step(t, s, 0.2)
	for i, x := range e.X {
		if x != first[i] {
			t.Fatalf("entry %d: %v, %v", i, x, first[i])
		}
	}
}
