//go:build !race

package amp

import (
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// An iteration allocates nothing: not the sweep, nor the row function, nor the
// denoiser, on one thread or two.
func TestStepAllocatesNothing(t *testing.T) {
	const m, n = 150, 200
	rng := rand.New(rand.NewPCG(1, 2))
	w := make([]float64, m*n)
	for i := range w {
		w[i] = rng.NormFloat64()
	}
	op, err := operator.NewDense(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	gain := channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 1e-3}
	for _, c := range []Config{
		{P: 1, Threads: 1},
		{P: 3, Threads: 2},
		{P: 3, Threads: 2, Scalar: true},
		{P: 1, Threads: 1, Precision: Single},
	} {
		c.W, c.Prior, c.Channel = op, prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, gain
		if c.Precision == Single {
			c.W, _ = Round(op, c.Prior)
		}
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range e.Y {
			e.Y[i] = rng.NormFloat64()
		}
		step := func() {
			e.Save()
			e.Step(0.5)
			e.ScaleStep(gain)
			e.LogEvidence()
		}
		step()
		if allocs := testing.AllocsPerRun(20, step); allocs != 0 {
			t.Errorf("%d signals, %d threads, scalar %v: %g allocations an iteration", c.P, c.Threads, c.Scalar, allocs)
		}
	}
}

// Nor does one with full covariances.
func TestFullStepAllocatesNothing(t *testing.T) {
	const m, n = 60, 80
	rng := rand.New(rand.NewPCG(1, 2))
	w := make([]float64, m*n)
	for i := range w {
		w[i] = rng.NormFloat64()
	}
	op, err := operator.NewDense(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	gain := channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 1e-3}
	for _, density := range []float64{0.2, 1} {
		for _, threads := range []int{1, 2} {
			f, err := NewFull(Config{P: 3, Threads: threads, W: op, Prior: prior.GaussBernoulli{Density: density, SignalVar: 1}, Channel: gain})
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.Y {
				f.Y[i] = rng.NormFloat64()
			}
			step := func() {
				f.Save()
				f.Step(0.5)
				f.ScaleStep(gain)
			}
			step()
			if allocs := testing.AllocsPerRun(20, step); allocs != 0 {
				t.Errorf("density %g, %d threads: %g allocations an iteration", density, threads, allocs)
			}
		}
	}
}
