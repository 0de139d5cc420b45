package main

import (
	"math"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

const (
	realWhole        = "iteration of a whole solve, real"
	complexWhole     = "iteration of a whole solve, complex"
	realIteration    = "iteration f64, real"
	complexIteration = "iteration f64, complex"
	numpyComplex     = "numpy c128, four passes"
)

// complexNumbers is an iteration of a complex problem, beside that of a real one of the same size and numpy's products.
func (b *bench) complexNumbers() error {
	t := iterationTable{2400, 4000, 4, 1}
	if b.quick {
		t = iterationTable{600, 1000, 4, 1}
	}
	d, err := newProblem(t)
	if err != nil {
		return err
	}
	directory, err := d.write()
	if err != nil {
		return err
	}
	defer remove(directory)
	s, err := d.complexSolver()
	if err != nil {
		return err
	}
	whole, err := d.solvableComplex()
	if err != nil {
		return err
	}
	if !b.cpu {
		defer pin(0)()
	}
	variants := []*variant{
		{name: realIteration, f: b.timed(d.iteration(d.double, solver.Exact))},
		{name: complexIteration, f: b.timed(nearStart(s))},
		{name: realWhole, f: b.wholeIteration(t, d.solvable(d.double))},
		{name: complexWhole, f: b.wholeIteration(t, whole)},
	}
	var pids []int
	b.printf("\n## Complex numbers\n\nM = %d, N = %d, P = %d, %s.\n", t.m, t.n, t.p, plural(t.threads, "thread"))
	if b.python != "" {
		numpy, err := b.startNumpy(directory, t.threads, false)
		if err != nil {
			return err
		}
		defer numpy.stop()
		pids = append(pids, numpy.command.Process.Pid)
		variants = append(variants, numpy.variant(numpyComplex, "c128"))
	}
	c, err := b.measure(variants, pids)
	if err != nil {
		return err
	}
	b.printf("\n")
	b.table(c, "", "ms", 1, complexIteration, complexWhole)
	b.recordIteration(t, c)
	return nil
}

// solvableComplex is a complex problem of the same size that a whole solve with all defaults finds: amplitudes known to a thousandth, as
// those of [problem.solvable], and phases to some degrees.
func (d *problem) solvableComplex() (*calamp.Problem, error) {
	t := teacher.Complex{
		N: d.n, M: d.m, P: d.p, Signal: prior.ComplexGaussBernoulli{Density: density, SignalVar: power},
		Gain: channel.ComplexPrior{Lo: 1 - narrow, Hi: 1 + narrow, Concentration: 300}, NoiseVar: quiet,
	}
	p, _, err := t.Pose(1)
	return p, err
}

// complexSolver is that of a complex problem of the same size: both parts of W are those numbers, in another order.
func (d *problem) complexSolver() (*amp.Solver, error) {
	entries := make([]complex128, len(d.w))
	for i, v := range d.w {
		entries[i] = complex(v, d.w[len(d.w)-1-i]) * math.Sqrt2 / 2
	}
	w, err := operator.NewComplex(d.m, d.n, entries)
	if err != nil {
		return nil, err
	}
	y := make([]float64, 2*len(d.y))
	for i, v := range d.y {
		y[2*i], y[2*i+1] = v, d.y[len(d.y)-1-i]
	}
	s, _, _, err := amp.NewSolver(amp.Problem{
		W: w, P: 2 * d.p, Y: y, Model: amp.Model{
			Prior:   prior.ComplexGaussBernoulli{Density: density, SignalVar: 2 * power},
			Channel: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: lo, Hi: hi, Concentration: 20}, NoiseVar: 2 * noise},
		},
	}, solver.Settings{Threads: d.threads, Precision: solver.DoublePrecision, Variance: solver.Exact, NoMeanRemoval: true})
	return s, err
}
