package solve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/baseline"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/report"
	"github.com/calamp/calamp/internal/sandals"
	"github.com/calamp/calamp/teacher"
)

// demoModel is rough knowledge of such images, not a fit to them: a fifth of
// the pixels are not black, and those are positive, of any brightness: N(0.5, 3)
// cut to x ≥ 0 falls off slowly.
var demoModel = option.Model{Density: 0.2, SignalMean: 0.5, SignalVar: 3, SRange: [2]float64{0.5, 1.5}, NoiseVar: 1e-4}

// demo is one call of calamp demo.
type demo struct {
	*console.Console
	model  option.Model
	prior  option.SignalPrior
	solver option.Solver
	p      int
	alpha  float64
	matrix teacher.Ensemble
	seed   uint64
	report string
	json   bool
	mosaic bool // --mosaic
	side   int  // of an image, in pixels
}

// DemoCommand is calamp demo.
func DemoCommand(a *console.Console) *cobra.Command {
	d := &demo{Console: a, model: demoModel, solver: option.NewSolver(), p: 20, alpha: 0.8, seed: 1, report: "calamp-demo.html", side: sandals.Side}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Recover real images from sensors with unknown gains",
		Long: `Recover real images (Fashion-MNIST sandals, 28×28 pixels, part of this program)
from simulated sensors whose gains are unknown, and compare with two other
answers to the same readings: gains ignored, and gains known. Writes a report
with the images, and opens nothing.

With --mosaic the images are of 256×256 pixels, 64 sandals each, and the sensors see
them through Walsh–Hadamard masks with random signs, which are computed and never
stored: as a table W would take 27 GB.

The model flags are what the solver is given; --s-range and --noise-var also make
the readings.`,
		Example: `  calamp demo
  calamp demo --p 5 --matrix-kind binary --report masks.html
  calamp demo --mosaic`,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Flags()) },
	}
	flags := cmd.Flags()
	option.Signals(flags, &d.p, "images, at most 256; of mosaics at most 4 (default there)")
	flags.BoolVar(&d.mosaic, "mosaic", false, "images of 256×256 pixels behind Walsh–Hadamard masks that are no table")
	option.Alpha(flags, &d.alpha, option.UpTo(10), "sensors for each pixel")
	option.MatrixKind(flags, &d.matrix, "kind of W, as in simulate: binary for masks of 0 and 1")
	option.Seed(flags, &d.seed, "seed of the matrix, the gains and the noise")
	d.model.Register(flags)
	d.prior.Register(flags, option.NonNegative)
	solvers := pflag.NewFlagSet("", pflag.ContinueOnError)
	d.solver.Register(solvers)
	flags.AddFlagSet(solvers)
	solvers.VisitAll(func(f *pflag.Flag) { option.Hide(flags, f.Name) }) // they work, and are for solve
	option.Report(flags, &d.report, "write the report to this .html; '' for none")
	option.JSON(flags, &d.json, "the table")
	return cmd
}

func (d *demo) run(flags *pflag.FlagSet) error {
	if err := errors.Join(d.model.Complete(flags), d.model.CheckStated()); err != nil {
		return err
	}
	// The readings are made with these two: they are known, not assumed.
	d.model.Assumed = slices.DeleteFunc(d.model.Assumed, func(name string) bool { return name == "s-range" || name == "noise-var" })
	if err := cmp.Or(
		d.prior.Complete(flags, &d.model, false), d.solver.Complete(flags), d.chooseImages(flags), d.solver.Check(&d.model, d.p),
		(console.Outputs{console.File("--report", d.report)}).Check(d.json),
	); err != nil {
		return err
	}
	images, err := d.images()
	if err != nil {
		return err
	}
	n := d.side * d.side
	t := teacher.Teacher{
		N: n, M: max(1, int(math.Round(d.alpha*float64(n)))), P: d.p, X: images, Matrix: d.matrix,
		Signal: d.model.Prior(), Gain: d.model.GainPrior(), NoiseVar: d.model.NoiseVar,
	}
	instance, err := d.draw(t)
	if err != nil {
		return &console.Exit{Code: console.WrongUsage, Err: err}
	}
	d.Note("solving: %d images of %d×%d pixels from %d sensors with gains unknown within a factor of %.3g",
		d.p, d.side, d.side, t.M, d.model.SRange[1]/d.model.SRange[0])

	start := time.Now()
	ctx, stop := console.Interruptible()
	defer stop()
	found, err := d.solveAll(ctx, instance)
	if found == nil || len(found.answers) == 0 {
		return err
	}
	found.wall = time.Since(start)
	return d.finish(t, found, err)
}

const (
	mosaicSide   = 256 // pixels
	mosaicAcross = 8   // sandals
	mosaicCount  = sandals.Count / (mosaicAcross * mosaicAcross)
)

// chooseImages checks which images are asked for.
func (d *demo) chooseImages(flags *pflag.FlagSet) error {
	if !d.mosaic {
		if d.p > sandals.Count {
			return console.Usage("--p %d: there are %d images", d.p, sandals.Count)
		}
		return nil
	}
	if !option.Given(flags, "p") {
		d.p = mosaicCount
	}
	switch {
	case option.Given(flags, "matrix-kind"):
		return console.Usage("--mosaic has masks of its own: leave out --matrix-kind")
	case d.p > mosaicCount:
		return console.Usage("--p %d: there are %d mosaics", d.p, mosaicCount)
	}
	d.side, d.matrix = mosaicSide, teacher.Ensemble{Kind: "hadamard"}
	return nil
}

// DemoProblem is the readings of calamp demo with p images, and the flags of calamp
// solve that specify what the demo specifies.
func DemoProblem(p int) (*dataset.Problem, []string, error) {
	images, err := sandals.Load(min(p, sandals.Count))
	if err != nil {
		return nil, nil, err
	}
	_, p = images.Dims()
	t := teacher.Teacher{
		N: sandals.Size, M: sandals.Size * 4 / 5, P: p, X: images,
		Signal: demoModel.Prior(), Gain: demoModel.GainPrior(), NoiseVar: demoModel.NoiseVar,
	}
	in, err := t.Draw(1)
	if err != nil {
		return nil, nil, err
	}
	m := demoModel
	stated := []string{
		"--prior", option.NonNegative, "--density", console.Short(m.Density), "--signal-mean", console.Short(m.SignalMean), "--signal-var", console.Short(m.SignalVar),
		"--s-range", console.Short(m.SRange[0]) + "," + console.Short(m.SRange[1]), "--noise-var", console.Short(m.NoiseVar),
	}
	return &dataset.Problem{W: in.W, Y: in.Y, Truth: in.Truth}, stated, nil
}

// images are the signals, one a column.
func (d *demo) images() (*mat.Dense, error) {
	if !d.mosaic {
		return sandals.Load(d.p)
	}
	all, err := sandals.Load(sandals.Count)
	if err != nil {
		return nil, err
	}
	x := mat.NewDense(mosaicSide*mosaicSide, d.p, nil)
	const border = (mosaicSide - mosaicAcross*sandals.Side) / 2
	for k := range sandals.Count * d.p / mosaicCount {
		image, tile := k/(mosaicAcross*mosaicAcross), k%(mosaicAcross*mosaicAcross)
		top, left := border+tile/mosaicAcross*sandals.Side, border+tile%mosaicAcross*sandals.Side
		for i := range sandals.Size {
			x.Set((top+i/sandals.Side)*mosaicSide+left+i%sandals.Side, image, all.At(i, k))
		}
	}
	return x, nil
}

// draw makes the readings.
func (d *demo) draw(t teacher.Teacher) (*dataset.Problem, error) {
	if !d.mosaic {
		in, err := t.Draw(d.seed)
		if err != nil {
			return nil, err
		}
		return &dataset.Problem{W: in.W, Y: in.Y, Truth: in.Truth}, nil
	}
	w, err := t.Matrix.Structured(t.M, t.N, d.seed)
	if err != nil {
		return nil, err
	}
	y, truth, err := t.Readings(w, d.seed)
	return &dataset.Problem{W: w, Y: y, Truth: truth}, err
}

// answer is one way of reading the same readings.
type answer struct {
	name string
	res  *calamp.Result
	calamp.Metrics
	nmse float64 // scale corrected
}

// findings are all answers; only the first is there when interrupted.
type findings struct {
	instance *dataset.Problem
	answers  []answer // blind, gains ignored, gains known
	wall     time.Duration
}

func (f *findings) blind() answer { return f.answers[0] }

// solveAll solves blindly, then as if gains were all the same, then with the
// true ones.
func (d *demo) solveAll(ctx context.Context, in *dataset.Problem) (*findings, error) {
	blind := &calamp.Problem{W: in.W, Y: in.Y, Prior: d.prior.Of(&d.model), Channel: d.model.Channel()}
	ignored, err := baseline.Ignoring(blind)
	if err != nil {
		return nil, err
	}
	oracle, err := baseline.Knowing(blind, in.Truth.S)
	if err != nil {
		return nil, err
	}
	tasks := []struct {
		name    string
		problem *calamp.Problem
	}{{"blind", blind}, {"gains ignored", ignored}, {"gains known", oracle}}
	f := &findings{instance: in}
	for _, task := range tasks {
		res, err := runSolver(ctx, d.Console, task.name, task.problem, d.solver.Options())
		if err != nil && (res == nil || ctx.Err() == nil) {
			return f, &console.Exit{Code: console.WrongUsage, Err: err}
		}
		if len(f.answers) == 0 || ctx.Err() == nil {
			f.answers = append(f.answers, newAnswer(task.name, res, in.Truth))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return f, nil
}

func newAnswer(name string, res *calamp.Result, truth calamp.Truth) answer {
	a := answer{name: name, res: res, Metrics: calamp.Score(res.X, res.S, truth)}
	rows, columns := truth.X.Dims()
	norm := mat.Norm(truth.X, 2)
	a.nmse = a.XMSEScaled * float64(rows*columns) / (norm * norm)
	return a
}

// finish writes the report and prints the table, of what there is when not all
// could be solved.
func (d *demo) finish(t teacher.Teacher, f *findings, failed error) error {
	res := f.blind().res
	showWarnings(d.Console, res)
	wrote := d.report != ""
	if wrote {
		err := d.Write(d.report, func(w io.Writer) error { return report.Write(w, d.reportOf(t, f)) })
		if err != nil {
			return err
		}
	}
	if err := d.print(t, f, wrote); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if err := ending(res, &d.solver, false); err != nil {
		return err
	}
	if len(f.answers) < 3 {
		return &console.Exit{Code: console.Interrupted, Err: fmt.Errorf("interrupted: not all baselines were solved")}
	}
	return nil
}

func (d *demo) reportOf(t teacher.Teacher, f *findings) report.Report {
	blind := f.blind()
	r := report.Report{
		Title:   "Sandals seen by sensors of unknown gain",
		Problem: report.Problem{M: t.M, N: t.N, P: t.P, Storage: facts.MatrixName(f.instance.W, blind.res.Storage, blind.res.Arithmetic)},
		Model:   slices.Concat(d.prior.Fields(), d.model.Fields()),
		Result:  blind.res, Truth: f.instance.Truth,
		Metrics:    blind.fields(true),
		ImageShape: [2]int{d.side, d.side},
		Version:    facts.BuildVersion().Version, Command: d.CommandLine(),
	}
	for _, a := range f.answers[1:] {
		r.Baselines = append(r.Baselines, report.Baseline{Name: a.name, X: a.res.X, Metrics: a.fields(false)})
	}
	return r
}

// fields is the scores in words, for the report.
func (a *answer) fields(withGains bool) []report.Field {
	all := []report.Field{
		{Name: "MSE of x, scale corrected", Value: console.Short(a.XMSEScaled)},
		{Name: "Relative to the images' power", Value: console.Short(a.nmse)},
		{Name: "1 − correlation of x", Value: console.Short(a.XOneMinusNCC)},
	}
	if withGains {
		all = append(all,
			report.Field{Name: "MSE of s, scale corrected", Value: console.Short(a.SMSEScaled)},
			report.Field{Name: "1 − correlation of s, centred", Value: console.Short(a.SOneMinusCNCC)},
		)
	}
	return all
}

// gains are the errors of s, relative to its mean, and the error bars stated
// for them before and after the readings.
type gains struct {
	Error, Stated, Before float64
}

func (d *demo) gains(f *findings) gains {
	blind := f.blind()
	mean, variance := d.model.GainPrior().Moments()
	total := 0.0
	for _, v := range blind.res.SVar {
		total += v
	}
	return gains{
		Error:  math.Sqrt(blind.SMSEScaled) / mean,
		Stated: math.Sqrt(total/float64(len(blind.res.SVar))) / mean,
		Before: math.Sqrt(variance) / mean,
	}
}

func (d *demo) print(t teacher.Teacher, f *findings, wrote bool) error {
	if d.json {
		return d.PrintJSON(d.toJSON(t, f, wrote))
	}
	res := f.blind().res
	var text console.Summary
	text.Line("images", "%d of %d×%d pixels, from %s (α = %.3g), s in [%g, %g], noise variance %g",
		t.P, d.side, d.side, console.Plural(t.M, "sensor"), float64(t.M)/float64(t.N), d.model.SRange[0], d.model.SRange[1], d.model.NoiseVar)
	text.Line("given", "%s: not fitted to these images", d.prior.Words(&d.model))
	text.Line("status", "%v: %s", res.Status, res.Reason)
	d.table(&text, f)
	if wrote {
		text.Line("report", "%s", d.report)
	}
	if d.report == "-" {
		return d.PrintBeside(text.String())
	}
	return d.Print(text.String())
}

// table compares the answers.
func (d *demo) table(text *console.Summary, f *findings) {
	text.WriteString("\n")
	row := func(cells ...any) { fmt.Fprintf(text, "%-14s %10s %10s %10s %11s %8s\n", cells...) }
	row("", "MSE of x", "relative", "1-ncc", "iterations", "time")
	for _, a := range f.answers {
		row(a.name, console.Brief(a.XMSEScaled), console.Brief(a.nmse), console.Brief(a.XOneMinusNCC), strconv.Itoa(a.res.Iterations), fmt.Sprintf("%.2f s", a.res.Wall.Seconds()))
	}
	g := d.gains(f)
	text.WriteString("\n")
	text.Line("gains", "typical error %s, stated ±%s, before the readings ±%s", console.Percent(g.Error), console.Percent(g.Stated), console.Percent(g.Before))
	text.Line("scale", "off by %s, stated ±%s; the errors above are after correcting it", console.Percent(math.Abs(f.blind().Scale-1)), console.Percent(f.blind().res.ScaleSD))
	text.Line("time", "%.2f s for all", f.wall.Seconds())
}

// toJSON is what demo prints with --json.
func (d *demo) toJSON(t teacher.Teacher, f *findings, wrote bool) console.Object {
	blind, path, g := f.blind(), "", d.gains(f)
	if wrote {
		path = d.report
	}
	var answers []console.Object
	for _, a := range f.answers {
		answers = append(answers, console.Object{
			"name", a.name, "status", a.res.Status, "iterations", a.res.Iterations, "wall_s", a.res.Wall.Seconds(),
			"x_mse_scaled?", console.Known(a.XMSEScaled), "x_nmse_scaled?", console.Known(a.nmse), "x_one_minus_ncc?", console.Known(a.XOneMinusNCC),
		})
	}
	return console.Object{
		"m", t.M, "n", t.N, "p", t.P, "", d.prior, "model", d.model, "options", d.solver.JSON(), "answers", answers,
		"s_error", g.Error, "s_sd", g.Stated, "s_sd_prior", g.Before, "scale?", console.Known(blind.Scale), "scale_sd?", console.Known(blind.res.ScaleSD),
		"warnings", console.OrEmpty(blind.res.Warnings), "wall_s", f.wall.Seconds(), "report?", path,
	}
}
