//go:build !race

package amp

import (
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

var allocated = channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 1e-3}

// An iteration allocates nothing: not the sweep, nor the row function, nor the
// denoiser, on one thread or two.
func TestStepAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		p int
		solver.Settings
	}{
		{1, solver.Settings{Threads: 1}},
		{3, solver.Settings{Threads: 2}},
		{3, solver.Settings{Threads: 2, Variance: solver.Scalar}},
		{1, solver.Settings{Threads: 1, Precision: solver.SinglePrecision}},
	} {
		if allocs := allocations(t, 150, 200, c.p, 0.2, c.Settings); allocs != 0 {
			t.Errorf("%d signals, %+v: %g allocations an iteration", c.p, c.Settings, allocs)
		}
	}
}

// Nor does one with full covariances.
func TestFullStepAllocatesNothing(t *testing.T) {
	for _, density := range []float64{0.2, 1} {
		for _, threads := range []int{1, 2} {
			settings := solver.Settings{Threads: threads, Covariance: solver.Full}
			if allocs := allocations(t, 60, 80, 3, density, settings); allocs != 0 {
				t.Errorf("density %g, %d threads: %g allocations an iteration", density, threads, allocs)
			}
		}
	}
}

// allocations is how many an iteration makes, with a step along the scale.
func allocations(t *testing.T, m, n, p int, density float64, settings solver.Settings) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	normal := func(count int) []float64 {
		v := make([]float64, count)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return v
	}
	op, err := operator.NewDense(m, n, normal(m*n))
	if err != nil {
		t.Fatal(err)
	}
	s := newSolver(t, Problem{
		W: op, P: p, Y: normal(m * p),
		Model: Model{prior.GaussBernoulli{Density: density, SignalVar: 1}, allocated},
	}, settings)
	once := func() {
		s.State.Save()
		step(t, s, 0.5)
		e := alongScale(s.Iteration)
		c, _ := e.argmax()
		s.State.rescale(c)
		e.width()
		s.Iteration.LogEvidence()
	}
	once()
	return testing.AllocsPerRun(20, once)
}
