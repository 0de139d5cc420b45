package main

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// ours are calamp's variants, and the plain read of W that none can beat.
func ours(c *config, w []float64) ([]*variant, error) {
	double, err := operator.NewDense(c.m, c.n, w)
	if err != nil {
		return nil, err
	}
	w32 := make([]float32, len(w))
	for i, v := range w {
		w32[i] = float32(v)
	}
	single, err := operator.NewDense32(c.m, c.n, w32)
	if err != nil {
		return nil, err
	}
	list := []*variant{
		{name: "read f32", f: timed(c, read(c, w32))},
		{name: "sweep f32", f: timed(c, sweep(c, single, c.p))},
		{name: "sweep f64", f: timed(c, sweep(c, double, c.p))},
		{name: "sweep f32 scalar", f: timed(c, sweep(c, single, 0))},
		{name: "iteration f32", f: timed(c, iteration(c, single, false))},
		{name: "iteration f64", f: timed(c, iteration(c, double, false))},
		{name: "iteration f32 scalar", f: timed(c, iteration(c, single, true))},
	}
	return list, nil
}

func timed(c *config, f func()) func(int) (time.Duration, error) {
	return func(repeats int) (time.Duration, error) {
		start, startCPU := time.Now(), threadTime()
		for range repeats {
			f()
		}
		if c.cpu {
			return threadTime() - startCPU, nil
		}
		return time.Since(start), nil
	}
}

func read(c *config, w []float32) func() {
	const parts = 16
	sums := make([]uint64, parts)
	part := func(i int) { sums[i] = kernel.Read(w[i*len(w)/parts : (i+1)*len(w)/parts]) }
	return func() { parallel.Run(parts, c.threads, part) }
}

// sweep is the linear algebra with the row function that numpy has, too.
func sweep(c *config, w *operator.Dense, q int) func() {
	rng := rand.New(rand.NewPCG(3, 4))
	x, cs := make([]float64, c.p*c.n), make([]float64, q*c.n)
	r, h := make([]float64, c.p*c.n), make([]float64, q*c.n)
	y := make([]float64, c.m*c.p)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range cs {
		cs[i] = rng.Float64()
	}
	rows := func(first int, z, v, g, d []float64) {
		for i, v := range v {
			d[i] = -1 / (v + 1e-6)
		}
		for i, z := range z {
			g[i] = y[first*c.p+i] - z
		}
		for i, d := range d {
			g[i] *= d
		}
	}
	s := w.NewSweep(c.p, q, c.threads)
	return func() { s.Run(r, h, x, cs, rows) }
}

// iteration is all that one iteration of blind calibration does, with the state
// kept where it is: in the hard regime, with wide gain posteriors.
func iteration(c *config, w *operator.Dense, scalar bool) func() {
	rng := rand.New(rand.NewPCG(5, 6))
	e := amp.New(amp.Config{
		W: w, Prior: prior.GaussBernoulli{Density: 0.2, SignalVar: 1 / (0.2 * float64(c.n))},
		Channel: channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 1e-3},
		P:       c.p, Threads: c.threads, Scalar: scalar,
	})
	for i := range e.Y {
		e.Y[i] = rng.NormFloat64() / (0.5 + rng.Float64())
	}
	e.Step(0)
	e.Save()
	count := 0
	return func() {
		if count++; count%20 == 0 {
			e.Restore()
		}
		if e.Step(0.9); math.IsNaN(e.X[0]) {
			panic("the iteration has diverged")
		}
	}
}
