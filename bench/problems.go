package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

//go:embed octave/calamp.m
var octaveScript string

// tolerances are relative changes that end blind problems, here and in Octave.
// The script, which has no step along the global scale, drifts along it for long.
var tolerances = []float64{1e-6, 1e-8}

// blind is a blind problem with little noise.
func blind(n, m, p int) teacher.Teacher {
	return teacher.Teacher{
		N: n, M: m, P: p,
		Signal: prior.GaussBernoulli{Density: density, SignalVar: power},
		Gain:   channel.Uniform(0.9, 1.1), NoiseVar: 1e-8,
	}
}

// instance is a drawn problem, with W stored as f32; both sides are given the
// rounded W, which readings with this noise cannot tell from the drawn one.
type instance struct {
	teacher.Teacher
	*teacher.Instance
	w []float64
}

func draw(t teacher.Teacher, seed uint64) (*instance, error) {
	in, err := t.Draw(seed)
	if err != nil {
		return nil, err
	}
	d := &instance{Teacher: t, Instance: in, w: make([]float64, t.M*t.N)}
	w32 := make([]float32, len(d.w))
	for mu := range t.M {
		if err := in.W.RowInto(d.w[mu*t.N:(mu+1)*t.N], mu); err != nil {
			return nil, err
		}
	}
	for i, v := range d.w {
		w32[i] = float32(v)
		d.w[i] = float64(w32[i])
	}
	in.W, err = operator.NewDense32(t.M, t.N, w32)
	return d, err
}

// problems compares whole solves, from the same readings to the same tolerance.
func (b *bench) problems() error {
	b.printf("\n## Whole problems\n")
	if err := b.calibrated(); err != nil {
		return err
	}
	return b.blindAgainstOctave()
}

// calibrated is compressed sensing with known gains.
func (b *bench) calibrated() error {
	n, m := 2000, 1000
	if b.quick {
		n, m = 1000, 500
	}
	t := teacher.Teacher{
		N: n, M: m, P: 1,
		Signal: prior.GaussBernoulli{Density: density, SignalVar: power},
		Gain:   channel.Uniform(1-1e-12, 1+1e-12), NoiseVar: 1e-8,
	}
	d, err := draw(t, 1)
	if err != nil {
		return err
	}
	p := &calamp.Problem{W: d.W, Y: d.Y, Prior: t.Signal, Channel: channel.AWGN{NoiseVar: t.NoiseVar}}
	exact, scalar := solveOnce(p, &calamp.Options{Settings: solver.Settings{Threads: 1}}), solveOnce(p, &calamp.Options{Settings: solver.Settings{Threads: 1, Variance: solver.Scalar}})
	early := solveOnce(p, &calamp.Options{Settings: solver.Settings{Threads: 1, Tol: 1e-6}})
	earlyScalar := solveOnce(p, &calamp.Options{Settings: solver.Settings{Threads: 1, Tol: 1e-6, Variance: solver.Scalar}})
	double, err := operator.NewDense(m, n, d.w)
	if err != nil {
		return err
	}
	wide := *p
	wide.W = double
	mixed := solveOnce(&wide, &calamp.Options{Settings: solver.Settings{Threads: 1}})
	whole := solveOnce(&wide, &calamp.Options{Settings: solver.Settings{Threads: 1, Precision: solver.DoublePrecision}})
	if !b.cpu {
		defer pin(0)()
	}
	variants := []*variant{
		{name: "calamp, f32", f: b.timed(exact.run)},
		{name: "calamp, f32, scalar variance", f: b.timed(scalar.run)},
		{name: "calamp, f64, auto: in f32 first", f: b.timed(mixed.run)},
		{name: "calamp, f64", f: b.timed(whole.run)},
		{name: "calamp, f32, tolerance 1e-6", f: b.timed(early.run)},
		{name: "calamp, f32, scalar variance, tolerance 1e-6", f: b.timed(earlyScalar.run)},
	}
	var pids []int
	var directory string
	if b.python != "" {
		directory, err = scratch(float64(m), float64(n), 1, density, power, t.NoiseVar, 0, 0)
		if err != nil {
			return err
		}
		defer remove(directory)
		if err := errors.Join(writeFloats(directory, "W", d.w), writeFloats(directory, "x", make([]float64, n)),
			writeFloats(directory, "c", make([]float64, n)), writeFloats(directory, "y", d.Y.RawMatrix().Data)); err != nil {
			return err
		}
		numpy, err := b.startNumpy(directory, 1, false)
		if err != nil {
			return err
		}
		defer numpy.stop()
		variants = append(variants, numpy.variant("AMP in numpy, four passes", "calibrated"))
		pids = append(pids, numpy.command.Process.Pid)
	}
	c, err := b.measure(variants, pids)
	if err != nil {
		return err
	}
	b.printf("\nCompressed sensing with known gains, N = %d, M = %d, ρ = %g, Δ = %g, from Y to convergence on 1 thread.\n", n, m, density, t.NoiseVar)
	b.table(c, "", "ms", 1, "AMP in numpy, four passes")
	if !b.quick {
		b.recordTime("compressed sensing with known gains, default stop rule", 25, "ms", c.find("calamp, f32").times)
		b.recordTime("the same to a change of 1e-6", 25, "ms", c.find("calamp, f32, tolerance 1e-6").times)
	}
	b.printf("Mean squared errors and iterations, in the same order: ")
	for i, s := range []*solve{exact, scalar, mixed, whole, early, earlyScalar} {
		if i > 0 {
			b.printf("; ")
		}
		b.printf("%.4g in %d", s.score(d), s.result.Iterations)
	}
	if directory != "" {
		x, err := readFloats(directory, "x-found")
		if err != nil {
			return err
		}
		iterations, err := readFloats(directory, "iterations")
		if err != nil {
			return err
		}
		b.printf("; %.4g in %.0f", calamp.Score(mat.NewDense(n, 1, x), nil, d.Truth).XMSE, iterations[0])
	}
	b.printf(".\n")
	return nil
}

// solve is a problem solved again and again.
type solve struct {
	p      *calamp.Problem
	opt    *calamp.Options
	result *calamp.Result
}

func solveOnce(p *calamp.Problem, opt *calamp.Options) *solve { return &solve{p: p, opt: opt} }

func (s *solve) run() {
	var err error
	if s.result, err = calamp.Solve(context.Background(), s.p, s.opt); err != nil {
		panic(err)
	}
}

func (s *solve) score(d *instance) float64 {
	return calamp.Score(s.result.X, nil, calamp.Truth{X: d.Truth.X}).XMSE
}

// blindAgainstOctave compares with octave/calamp.m.
func (b *bench) blindAgainstOctave() error {
	n, m, p := 500, 400, 3
	if b.quick {
		n, m = 200, 160
	}
	d, err := draw(blind(n, m, p), 1)
	if err != nil {
		return err
	}
	b.printf("\nBlind calibration, N = %d, M = %d, P = %d, ρ = %g, Δ = %g, s in [0.9, 1.1], until the relative change is below the tolerance, 1 thread.\n", n, m, p, density, d.NoiseVar)
	if b.octave == "" {
		b.printf("\n**Skipped: Octave is not there.**\n")
	}
	if !b.cpu {
		defer pin(0)()
	}
	const repeats = 3 // of the script, which takes long
	rows := [][]string{{"tolerance", "", "ms", "÷ calamp", "iterations", "mean squared error"}}
	note := ""
	for _, tolerance := range tolerances {
		s := solveOnce(d.Problem(d.Instance), &calamp.Options{Settings: solver.Settings{Threads: 1, Tol: tolerance}})
		c, err := b.measure([]*variant{{name: "calamp", f: b.timed(s.run)}}, nil)
		if err != nil {
			return err
		}
		note = c.rounds
		took := median(c.variants[0].times)
		rows = append(rows, []string{fmt.Sprint(tolerance), "calamp", digits(took), "1", strconv.Itoa(s.result.Iterations), fmt.Sprintf("%.3g", s.score(d))})
		if b.octave == "" {
			continue
		}
		o, err := b.runOctave(d, repeats, tolerance)
		if err != nil {
			return err
		}
		theirs := 1e3 * median(o.seconds)
		if b.quick {
			continue
		}
		b.bars = append(b.bars, bar{
			work: fmt.Sprintf("blind, whole solve to a change of %g: Octave ÷ calamp", tolerance), asked: 30, atLeast: true, got: []float64{theirs / took},
		})
		rows = append(rows, []string{"", "Octave", digits(theirs), digits(theirs / took), strconv.Itoa(o.iterations), fmt.Sprintf("%.3g", o.mse)})
	}
	b.markdown(rows)
	b.printf("\n*%s; Octave %d times, one after the other.*\n", note, repeats)
	return nil
}

// octaveRun is what the script found.
type octaveRun struct {
	seconds    []float64
	iterations int
	mse        float64
}

// octaveDamping is the damping with which the script needs the fewest
// iterations on these problems.
const octaveDamping = 0

func (b *bench) runOctave(d *instance, repeats int, tolerance float64) (*octaveRun, error) {
	directory, err := scratch(float64(d.M), float64(d.N), float64(d.P), density, power, d.NoiseVar, d.Gain.Lo, d.Gain.Hi, tolerance, octaveDamping)
	if err != nil {
		return nil, err
	}
	defer remove(directory)
	script := filepath.Join(directory, "calamp.m")
	if err := errors.Join(writeFloats(directory, "W", d.w), writeFloats(directory, "y", d.Y.RawMatrix().Data),
		os.WriteFile(script, []byte(octaveScript), 0o644)); err != nil {
		return nil, err
	}
	command := exec.Command(b.octave, script, directory, strconv.Itoa(repeats))
	command.Env = childEnvironment(os.Environ(), 1, "0")
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("octave: %w: %s", err, complaints.String())
	}
	fields := strings.Fields(string(out))
	if len(fields) != 2*repeats+1 {
		return nil, fmt.Errorf("octave answered %q", out)
	}
	o := &octaveRun{}
	for i := range repeats {
		at := 2 * i
		if b.cpu {
			at++
		}
		v, err := strconv.ParseFloat(fields[at], 64)
		if err != nil {
			return nil, err
		}
		o.seconds = append(o.seconds, v)
	}
	if o.iterations, err = strconv.Atoi(fields[2*repeats]); err != nil {
		return nil, err
	}
	x, err := readFloats(directory, "x-found")
	if err != nil {
		return nil, err
	}
	o.mse = calamp.Score(mat.NewDense(d.N, d.P, x), nil, calamp.Truth{X: d.Truth.X}).XMSE
	return o, nil
}

// solves draws the time of a whole blind solve against N.
func (b *bench) solves() error {
	sizes := []int{100, 200, 500, 1000, 2000, 4000}
	most := 500 // for Octave
	if b.quick {
		sizes, most = sizes[:3], 200
	}
	var ns, ours, theirs []float64
	rows := [][]string{{"N", "iterations", "calamp, ms", "Octave, ms"}}
	for _, n := range sizes {
		d, err := draw(blind(n, n*4/5, 3), 2)
		if err != nil {
			return err
		}
		s := solveOnce(d.Problem(d.Instance), &calamp.Options{Settings: solver.Settings{Threads: 1, Tol: tolerances[0]}})
		c, err := b.measure([]*variant{{name: "calamp", f: b.timed(s.run)}}, nil)
		if err != nil {
			return err
		}
		ns, ours = append(ns, float64(n)), append(ours, median(c.variants[0].times))
		row := []string{strconv.Itoa(n), strconv.Itoa(s.result.Iterations), digits(median(c.variants[0].times)), "–"}
		if b.octave != "" && n <= most {
			o, err := b.runOctave(d, 3, tolerances[0])
			if err != nil {
				return err
			}
			theirs = append(theirs, 1e3*median(o.seconds))
			row[3] = digits(1e3 * median(o.seconds))
		}
		rows = append(rows, row)
	}
	b.printf("\n## Whole blind solves against N\n\nM = 0.8 N, P = 3, tolerance %g, otherwise as above.\n", tolerances[0])
	b.markdown(rows)
	f := figure.Figure{
		Title:  "Whole blind solve, P = 3, one thread",
		X:      figure.Axis{Label: "N", Log: true},
		Y:      figure.Axis{Label: "ms", Log: true},
		Series: []figure.Series{{Name: "calamp", X: ns, Y: ours}},
	}
	if len(theirs) > 0 {
		f.Series = append(f.Series, figure.Series{Name: "Octave", X: ns[:len(theirs)], Y: theirs})
	}
	return b.plot("solve.svg", f)
}
