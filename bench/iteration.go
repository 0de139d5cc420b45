package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/solver"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// The model of the iterations that are timed: so much noise that the posteriors
// of the gains stay wide, which is where an iteration takes longest.
const (
	density  = 0.2
	power    = 1
	noise    = 1e-3
	lo, hi   = 0.5, 1.5
	rowNoise = 1e-6 // of the row function with one division

	// The model of whole solves.
	narrow, quiet = 1e-3, 1e-8
)

// iterationTable is one table of an iteration.
type iterationTable struct{ m, n, p, threads int }

func (b *bench) iterations() error {
	tables := []iterationTable{
		{1000, 1000, 1, 1},
		{1000, 1000, 1, 2},
		{6000, 10000, 1, 1},
		{6000, 10000, 1, 2},
		{1000, 1000, 10, 1},
		{6000, 10000, 10, 1},
		{6000, 10000, 10, 2},
	}
	if b.quick {
		tables = []iterationTable{{1000, 1000, 1, 1}, {1000, 1000, 10, 1}}
	}
	if b.m > 0 && b.n > 0 {
		tables = []iterationTable{{b.m, b.n, b.p, b.threads}}
	}
	b.printf("\n## One iteration\n")
	for i, t := range tables {
		if b.cpu && t.threads > 1 {
			b.printf("\nM = %d, N = %d, P = %d on %d threads left out: processor time says nothing about them.\n", t.m, t.n, t.p, t.threads)
			continue
		}
		if err := b.iterationTable(t, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// problem is the data of a table of iterations.
type problem struct {
	iterationTable
	w, x, c, y     []float64
	w32            []float32
	double, single *operator.Dense
}

func newProblem(t iterationTable) (*problem, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := &problem{
		iterationTable: t,
		w:              make([]float64, t.m*t.n), w32: make([]float32, t.m*t.n),
		x: make([]float64, t.p*t.n), c: make([]float64, t.p*t.n), y: make([]float64, t.m*t.p),
	}
	for i := range d.w {
		d.w32[i] = float32(rng.NormFloat64() / math.Sqrt(float64(t.n)))
		d.w[i] = float64(d.w32[i]) // both storages hold the same numbers
	}
	for i := range d.x {
		d.x[i], d.c[i] = rng.NormFloat64(), rng.Float64()
	}
	for i := range d.y {
		d.y[i] = math.Sqrt(density*power) * rng.NormFloat64() / (lo + (hi-lo)*rng.Float64())
	}
	var err error
	if d.double, err = operator.NewDense(t.m, t.n, d.w); err != nil {
		return nil, err
	}
	d.single, err = operator.NewDense32(t.m, t.n, d.w32)
	return d, err
}

// write gives the data to a child.
func (d *problem) write() (directory string, err error) {
	directory, err = scratch(float64(d.m), float64(d.n), float64(d.p), density, power, noise, lo, hi)
	for _, f := range []struct {
		name   string
		values []float64
	}{{"W", d.w}, {"x", d.x}, {"c", d.c}, {"y", d.y}} {
		if err == nil {
			err = writeFloats(directory, f.name, f.values)
		}
	}
	return directory, err
}

func (b *bench) iterationTable(t iterationTable, core bool) error {
	d, err := newProblem(t)
	if err != nil {
		return err
	}
	if t.threads == 1 && !b.cpu {
		defer pin(0)()
	}
	b.printf("\nM = %d, N = %d, P = %d, %s. ", t.m, t.n, t.p, plural(t.threads, "thread"))
	variants := []*variant{
		{name: "plain read of W, f32", f: b.timed(d.read())},
		{name: "sweep f32", f: b.timed(d.sweep(d.single, t.p))},
		{name: "sweep f64", f: b.timed(d.sweep(d.double, t.p))},
		{name: "sweep f32, scalar variance", f: b.timed(d.sweep(d.single, 0))},
		{name: "iteration f32", f: b.timed(d.iteration(d.single, solver.Exact))},
		{name: "iteration f64", f: b.timed(d.iteration(d.double, solver.Exact))},
		{name: "iteration f32, scalar variance", f: b.timed(d.iteration(d.single, solver.Scalar))},
		{name: meanSweep, f: b.timed(d.meanSweep())},
		{name: meanIteration, f: b.meanIteration(d)},
	}
	var pids []int
	directory, err := d.write()
	if err != nil {
		return err
	}
	defer remove(directory)
	if b.python != "" {
		numpy, err := b.startNumpy(directory, t.threads, core)
		if err != nil {
			return err
		}
		defer numpy.stop()
		pids = append(pids, numpy.command.Process.Pid)
		if err := b.verify(d, numpy, directory); err != nil {
			return err
		}
		variants = append(variants, numpy.variant("numpy f64", "f64"), numpy.variant("numpy f32", "f32"))
		if t.p > 1 {
			variants = append(variants, numpy.variant("numpy f64, signals first", "f64-first"), numpy.variant("numpy f32, signals first", "f32-first"))
		}
		variants = append(variants, numpy.variant("numpy f64, two passes", "two-pass"), numpy.variant("numpy whole iteration", "iteration"))
	}
	gonum, err := b.startGonum(directory, t.threads)
	if err != nil {
		return err
	}
	defer gonum.stop()
	pids = append(pids, gonum.command.Process.Pid)
	variants = append(variants, gonum.variant("gonum f64", "passes"))
	d.w, d.w32 = nil, nil
	c, err := b.measure(variants, pids)
	if err != nil {
		return err
	}
	against := []string{"numpy f64", "numpy f64, signals first", "numpy whole iteration", "iteration f32"}
	b.printf("\n")
	b.table(c, "", "ms", 1, against...)
	b.recordIteration(t, c)
	r := ratios(c.find("plain read of W, f32"), c.find("iteration f32"))
	b.printf("The iteration with f32 storage reads W at %.0f %% of the speed of a plain read [%.0f–%.0f].\n",
		100*median(r), 100*quantile(r, 0.25), 100*quantile(r, 0.75))
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// verify compares results with numpy's before anything is timed.
func (b *bench) verify(d *problem, numpy *child, directory string) error {
	for _, command := range []string{"check", "check-iteration"} {
		if _, err := numpy.time(command, 1); err != nil {
			return err
		}
	}
	want, err := readFloats(directory, "r")
	if err != nil {
		return err
	}
	if d.p == 1 || len(want) == d.p*d.n {
		r := make([]float64, d.p*d.n)
		run := d.sweepInto(d.single, d.p, r)
		run()
		if e := distance(r, want); !(e < 1e-10) {
			return fmt.Errorf("the sweep differs from numpy's by %.2g", e)
		}
	}
	if want, err = readFloats(directory, "x-found"); err != nil {
		return err
	}
	s := d.solver(d.single, solver.Exact)
	e := s.Iteration
	must(e.Step(0))
	for range 3 {
		must(e.Step(0.9))
	}
	far := distance(s.State.X, want)
	if !(far < 1e-8) {
		return fmt.Errorf("four iterations differ from numpy's by %.2g", far)
	}
	b.printf("Four iterations differ from numpy's by %.1g.", far)
	return nil
}

// distance is the relative 2-norm of a difference.
func distance(got, want []float64) float64 {
	var difference, norm float64
	for i, v := range want {
		difference += (got[i] - v) * (got[i] - v)
		norm += v * v
	}
	return math.Sqrt(difference / norm)
}

// read is a plain read of the f32 matrix.
func (d *problem) read() func() {
	const parts = 16
	w, sums := d.w32, make([]uint64, parts)
	part := func(i int) { sums[i] = kernel.Read(w[i*len(w)/parts : (i+1)*len(w)/parts]) }
	return func() { parallel.Run(parts, d.threads, part) }
}

// sweep is the linear algebra with the row function that numpy has, too.
func (d *problem) sweep(w *operator.Dense, q int) func() {
	return d.sweepInto(w, q, make([]float64, d.p*d.n))
}

func (d *problem) sweepInto(w *operator.Dense, q int, r []float64) func() {
	rows := func(first int, z, v, g, dg []float64) {
		for i, v := range v {
			dg[i] = -1 / (v + rowNoise)
		}
		for i, z := range z {
			g[i] = d.y[first*d.p+i] - z
		}
		for i, inverse := range dg {
			g[i] *= -inverse
		}
	}
	h := make([]float64, q*d.n)
	s, err := w.NewSweep(d.p, q, d.threads)
	if err != nil {
		panic(err) // a matrix in memory has every sweep
	}
	return func() { s.Run(r, h, d.x, d.c[:q*d.n], rows) }
}

func (d *problem) solver(w *operator.Dense, variance solver.Variance) *amp.Solver {
	s, _, _, err := amp.NewSolver(amp.Problem{
		W: w, P: d.p, Y: d.y, Model: amp.Model{
			Prior:   prior.GaussBernoulli{Density: density, SignalVar: power},
			Channel: channel.Gain{Prior: channel.Uniform(lo, hi), NoiseVar: noise},
		},
	}, solver.Settings{Threads: d.threads, Variance: variance, Precision: solver.DoublePrecision, NoMeanRemoval: true})
	if err != nil {
		panic(err) // as in sweepInto
	}
	return s
}

// What whole solves do by default: with squares now and then, and in single precision where that makes no difference.
const (
	meanSweep     = "sweep of a whole solve"
	meanIteration = "iteration of a whole solve"
)

// meanSweep is a sweep of a solve with variances on demand in single precision: with squares every eighth time, and over bytes else
// where they pay.
func (d *problem) meanSweep() func() {
	all, err := operator.NewSweeps(d.single, d.p, d.threads)
	if err != nil {
		panic(err) // a matrix in memory has every sweep
	}
	r, h, squares := make([]float64, d.p*d.n), make([]float64, d.p*d.n), make([]float64, d.m*d.p)
	rows := func(first int, z, v, g, dg []float64) {
		at := first * d.p
		copy(squares[at:], v) // nothing without squares
		for i, z := range z {
			g[i] = (d.y[at+i] - z) / (squares[at+i] + rowNoise)
		}
		for i, v := range v {
			dg[i] = -1 / (v + rowNoise)
		}
	}
	usual := all.Single.Linear
	if operator.BytesPay(d.m * d.n) {
		if usual, _, err = operator.ByteSweep(d.single, make([]float64, d.m), make([]float64, d.n), d.p, d.threads); err != nil {
			panic(err)
		}
	}
	count := 0
	return func() {
		if count++; count%8 == 1 {
			must(all.Single.Exact.Run(r, h, d.x, d.c, rows))
			return
		}
		must(usual.Run(r, nil, d.x, nil, rows))
	}
}

// meanIteration is a whole solve with all defaults, of readings that can be solved, divided by its iterations.
func (b *bench) meanIteration(d *problem) func(repeats int) (time.Duration, error) {
	return b.wholeIteration(d.iterationTable, d.solvable(d.single))
}

func (b *bench) wholeIteration(t iterationTable, p *calamp.Problem) func(repeats int) (time.Duration, error) {
	s := solveOnce(p, &calamp.Options{Settings: solver.Settings{Threads: t.threads}})
	run := b.timed(s.run)
	return func(repeats int) (time.Duration, error) {
		solves := max(1, repeats/50) // of some fifty iterations
		took, err := run(solves)
		if s.result == nil {
			return took, err
		}
		return took * time.Duration(repeats) / time.Duration(solves*s.result.Iterations), err
	}
}

// solvable is a problem with the same W whose gains are known to a thousandth.
func (d *problem) solvable(w operator.Operator) *calamp.Problem {
	rng := rand.New(rand.NewPCG(3, 4))
	p := &calamp.Problem{
		W: w, Y: mat.NewDense(d.m, d.p, nil), Prior: prior.GaussBernoulli{Density: density, SignalVar: power},
		Channel: channel.Gain{Prior: channel.Uniform(1-narrow, 1+narrow), NoiseVar: quiet},
	}
	x := make([]float64, d.p*d.n)
	for i := range x {
		if rng.Float64() < density {
			x[i] = rng.NormFloat64()
		}
	}
	for mu := range d.m {
		s := 1 + narrow*(2*rng.Float64()-1)
		for k := range d.p {
			z := math.Sqrt(quiet) * rng.NormFloat64()
			for i, w := range d.w32[mu*d.n : (mu+1)*d.n] {
				z += float64(w) * x[k*d.n+i]
			}
			p.Y.Set(mu, k, z/s)
		}
	}
	return p
}

// iteration is all that one iteration of blind calibration does, kept near the
// start, where the posteriors of the gains are wide.
func (d *problem) iteration(w *operator.Dense, variance solver.Variance) func() {
	return nearStart(d.solver(w, variance))
}

// nearStart are iterations that begin anew after every twenty.
func nearStart(s *amp.Solver) func() {
	e := s.State
	must(s.Iteration.Step(0))
	e.Save()
	count := 0
	return func() {
		if count++; count%20 == 0 {
			e.Restore()
		}
		if must(s.Iteration.Step(0.9)); math.IsNaN(e.X[0]) {
			panic("the iteration has diverged")
		}
	}
}

// signals times one sweep for many numbers of signals: no P must be a bad one.
func (b *bench) signals() error {
	size, counts := 1000, []int{1, 2, 3, 4, 5, 7, 10, 32, 100}
	if b.quick {
		counts = []int{1, 2, 5, 10, 32}
	}
	variants := make([]*variant, len(counts))
	for i, p := range counts {
		d, err := newProblem(iterationTable{size, size, p, 1})
		if err != nil {
			return err
		}
		variants[i] = &variant{name: fmt.Sprint(p), f: b.timed(d.sweep(d.single, p))}
	}
	c, err := b.measure(variants, nil)
	if err != nil {
		return err
	}
	b.printf("\n## Any number of signals\n\nA sweep over f32 storage, M = N = %d, 1 thread.\n", size)
	rows := [][]string{{"P", "ms", "ms a signal"}}
	for i, v := range variants {
		rows = append(rows, []string{v.name, digits(median(v.times)), digits(median(v.times) / float64(counts[i]))})
	}
	b.markdown(rows)
	b.printf("\n*%s.*\n", c.rounds)
	return nil
}

// must is for what only a W on disk could fail at.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
