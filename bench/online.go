package main

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
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
	b.printf("\n## A stream\n\nOnline calibration, N = %d, M = %d, f32, %d samples after %d.\n", t.N, t.M, count, burnIn)
	rows := [][]string{{"threads", "p50, ms", "p99, ms", "iterations, p50", "p99", "other processors"}}
	most := 2
	if b.cpu {
		most = 1
	}
	for threads := 1; threads <= most; threads++ {
		row, err := b.stream(d, threads, burnIn)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	b.markdown(rows)
	return nil
}

// stream times the samples of d after the first ones.
func (b *bench) stream(d *instance, threads, burnIn int) ([]string, error) {
	t := d.Teacher
	c, err := online.NewCalibrator(d.W, t.Signal, channel.Gain{Prior: t.Gain, NoiseVar: t.NoiseVar}, &online.Options{Settings: solver.Settings{Threads: threads}})
	if err != nil {
		return nil, err
	}
	if !b.cpu && threads == 1 {
		defer pin(0)()
	}
	var ms, iterations []float64
	before := usage(nil)
	for k := range t.P {
		y := mat.Col(nil, k, d.Y)
		start := b.now()
		estimate, err := c.Absorb(context.Background(), y)
		if err != nil {
			return nil, err
		}
		if k >= burnIn {
			ms = append(ms, 1e3*(b.now()-start).Seconds())
			iterations = append(iterations, float64(estimate.Iterations))
		}
	}
	b.recordTime("sample of a stream, "+plural(threads, "thread"), 5, "ms", ms)
	return []string{
		fmt.Sprint(threads), digits(median(ms)), digits(quantile(ms, 0.99)),
		fmt.Sprint(median(iterations)), fmt.Sprint(quantile(iterations, 0.99)),
		fmt.Sprintf("%.1f", usage(nil).others(before)),
	}, nil
}
