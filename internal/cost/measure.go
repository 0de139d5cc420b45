package cost

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

const (
	// What is measured is so large that it leaves the caches, and takes a second or so.
	sampleEntries = 1 << 23
	sampleColumns = 1 << 12
	sampleRounds  = 5

	// Beside W a small problem is enough: one of few columns for each row.
	sampleSensors, sampleN, sampleIterations = 2048, 64, 30
	mostSignals                              = 32
)

// Measure finds what this machine does, on so many threads: all but the network and the disk.
func Measure(p Problem, threads int) (Rates, error) {
	var r Rates
	n := min(p.N, sampleColumns)
	m := max(64, min(p.M, sampleEntries/n))
	signals := min(p.P, mostSignals)
	more := float64(p.P) / float64(signals)
	rng := rand.New(rand.NewPCG(21, 0))
	values := make([]float32, m*n)
	for i := range values {
		values[i] = float32(rng.NormFloat64() / math.Sqrt(float64(n)))
	}
	w, err := operator.NewDense32(m, n, values)
	if err != nil {
		return r, err
	}
	s, err := w.NewSweeps(signals, threads)
	if err != nil {
		return r, err
	}
	x := make([]float64, signals*n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	out, squares := make([]float64, signals*n), make([]float64, signals*n)
	of := func(sweep operator.Sweep, h, c []float64) (float64, error) {
		best := math.Inf(1)
		for range sampleRounds {
			start := time.Now()
			err := sweep.Run(out, h, x, c, func(_ int, z, v, g, d []float64) {
				copy(g, z)
				copy(d, v)
			})
			if err != nil {
				return 0, err
			}
			best = min(best, time.Since(start).Seconds())
		}
		return best / float64(m*n), nil
	}
	single, err := of(s.Single.Linear, nil, nil)
	if err != nil {
		return r, err
	}
	inBytes, _, err := operator.ByteSweep(w, make([]float64, m), make([]float64, n), signals, threads)
	if err != nil {
		return r, err
	}
	bytes, err := of(inBytes, nil, nil)
	if err != nil {
		return r, err
	}
	double, err := of(s.Exact, squares, x)
	if err != nil {
		return r, err
	}
	r.Bytes, r.Single, r.Double = bytes*more, single*more, double*more
	r.Beside, err = beside(signals, threads)
	return r, err
}

// beside is what an iteration takes but for W, for each reading and entry of a signal.
func beside(signals, threads int) (float64, error) {
	gauss := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}
	te := teacher.Teacher{
		N: sampleN, M: sampleSensors, P: signals, Signal: gauss, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4,
	}
	in, err := te.Draw(1)
	if err != nil {
		return 0, err
	}
	p := te.Problem(in)
	best := math.Inf(1)
	for range sampleRounds {
		// Before it converges, as in most iterations.
		settings := solver.Settings{Tol: -1, MaxIter: sampleIterations, Threads: threads, Algorithm: solver.AMP}
		var marks []time.Time
		_, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: settings, Observe: func(calamp.Iteration, []float64, []float64) {
			marks = append(marks, time.Now())
		}})
		if err != nil {
			return 0, err
		}
		took := marks[len(marks)-1].Sub(marks[0]).Seconds() / float64(len(marks)-1)
		best = min(best, took/float64((sampleSensors+sampleN)*signals))
	}
	return best, nil
}
