package main

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// online times samples of a stream, once the gains are known well.
func (b *bench) online() error {
	burnIn, count := 30, 300
	if b.quick {
		burnIn, count = 20, 40
	}
	t := teacher.Teacher{
		N: 1000, M: 600, P: burnIn + count,
		Signal: prior.GaussBernoulli{Density: density, SignalVar: power},
		Gain:   channel.Uniform(0.95, 1.05), NoiseVar: 1e-8,
	}
	d, err := draw(t, 0)
	if err != nil {
		return err
	}
	c, err := online.NewCalibrator(d.W, t.Signal, channel.Gain{Prior: t.Gain, NoiseVar: t.NoiseVar}, &online.Options{Threads: 1})
	if err != nil {
		return err
	}
	if !b.cpu {
		defer pin(0)()
	}
	var ms, iterations []float64
	before := usage(nil)
	for k := range t.P {
		y := mat.Col(nil, k, d.Y)
		start := b.now()
		estimate, err := c.Absorb(context.Background(), y)
		if err != nil {
			return err
		}
		if k >= burnIn {
			ms = append(ms, 1e3*(b.now()-start).Seconds())
			iterations = append(iterations, float64(estimate.Iterations))
		}
	}
	b.printf("\n## A stream\n\nOnline calibration, N = %d, M = %d, f32, 1 thread, %d samples after %d: p50 %s ms, p99 %s ms; iterations a sample p50 %.0f, p99 %.0f.\n",
		t.N, t.M, count, burnIn, digits(median(ms)), digits(quantile(ms, 0.99)), median(iterations), quantile(iterations, 0.99))
	b.printf("Other processes used %.1f processors meanwhile.\n", usage(nil).others(before))
	return nil
}
