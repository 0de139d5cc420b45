package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/coverage"
	"github.com/calamp/calamp/internal/figure"
)

// checkCalibration is one call of calamp check-calibration.
type checkCalibration struct {
	simulate // the problems
	solver   option.Solver
	faults   option.Faults
	stated   [2]float64 // range of s; zero where it is the true one
	seeds    int
	workers  int
	plot     string
}

// CheckCommand is calamp check-calibration.
func CheckCommand(a *console.Console) *cobra.Command {
	c := &checkCalibration{simulate: simulate{Console: a, model: option.DefaultModel}, solver: option.NewSolver(), seeds: 100}
	cmd := &cobra.Command{
		Use:   "check-calibration",
		Short: "Check that stated uncertainties hold",
		Long: `Draw problems from the model, solve them, and see where the truth lies in its
posterior: how often intervals of 50 … 99 % hold it, and the histograms of its
ranks, flat when the posterior is right (simulation-based calibration).

x and s are compared at the true global scale, which the readings do not give.
"s raw" is s as it is, with intervals widened by the scale's own uncertainty, and
"scale" that uncertainty alone: one number a problem. They are s_lo, s_hi in a
result file, and "s" is s_rel_lo, s_rel_hi. The solver looks for broken sensors
and for single readings that are wrong, as calamp solve does, and can be given a range of s that is
not the true one (--assume-s-range). Errors are standard errors
over the problems. Runs that do not converge say so, and are left out.

With --complex x are both parts of the entries and s the amplitudes; "phase" is at the true common
phase, and "phase raw" as it is. What is known beforehand has no column, nor have signals of a --prior whose posterior
has no distribution function.`,
		Example: `  calamp check-calibration --n 500 --alpha 0.8 --p 5 --noise-var 1e-4 --plot ranks.svg
  calamp check-calibration --prior network:N.npz --alpha 0.5 --p 5 --noise-var 1e-4
  calamp check-calibration --complex --phase 20 --n 300 --alpha 0.8 --p 5 --noise-var 1e-4`,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Flags()) },
	}
	flags := cmd.Flags()
	c.registerSize(flags)
	c.model.Register(flags)
	c.model.RegisterNoiseAt(flags)
	c.model.RegisterRows(flags)
	c.prior.Register(flags, option.GaussBernoulli)
	c.registerComplex(flags)
	flags.Var(option.Count(&c.seeds, 2), "seeds", "problems, of seeds 1, 2, …")
	c.solver.Register(flags)
	c.faults.Register(flags)
	option.RangeFlag(flags, &c.stated, "assume-s-range", "range of s that the solver is given, in place of the true --s-range")
	flags.Lookup("threads").Hidden = true // one a problem
	option.Workers(flags, &c.workers, "problems at a time, which the results do not depend on")
	option.Plot(flags, &c.plot, "draw the histograms")
	option.JSON(flags, &c.json, "the table")
	return cmd
}

func (c *checkCalibration) run(flags *pflag.FlagSet) error {
	if err := cmp.Or(
		c.model.Complete(flags), c.solver.Complete(flags), option.CheckExclusions(flags), c.faults.Complete(flags, &c.solver), c.prior.Complete(flags, &c.model, false),
		option.CheckPlot("--plot", c.plot), (console.Outputs{console.File("--plot", c.plot)}).Check(c.json),
		c.checkComplex(flags), c.model.TakePhotons(flags, false), c.model.CheckNoiseAt(c.complex), c.faults.Codes.TakeNoise(flags, &c.model),
	); err != nil {
		return err
	}
	t, err := c.teacher()
	if err != nil {
		return err
	}
	var problems coverage.Teacher = t
	if c.complex {
		problems = c.complexTeacher(t)
	}
	if err := c.faults.Codes.Load(t.M, t.P); err != nil {
		return err
	}
	if c.faults.Codes.On() {
		problems = converted{problems, &c.faults}
	}
	if err := c.solver.Check(&c.model, t.P); err != nil {
		return err
	}
	c.model.NoteAssumption(c.Console, flags)
	ctx, stop := console.Interruptible()
	defer stop()
	opt := c.solver.Options()
	opt.Outliers = c.faults.Outliers()
	bar := c.Progress()
	done := 0
	report, err := coverage.Run(ctx, &coverage.Check{
		Teacher: problems, Channel: c.channel(), Seeds: c.seeds, Options: opt, Workers: c.workers,
		Progress: func() {
			done++
			bar.Show(fmt.Sprintf("problem %d of %d", done, c.seeds), float64(done)/float64(c.seeds))
		},
	})
	bar.Done()
	switch {
	case ctx.Err() != nil:
		return console.Interruption(ctx, nil, fmt.Sprintf("%d of %d problems solved, nothing written", done, c.seeds))
	case err != nil:
		return &console.Exit{Code: console.WrongUsage, Err: err}
	}
	return c.finish(report)
}

// converted are problems whose readings are codes.
type converted struct {
	coverage.Teacher
	faults *option.Faults
}

// Pose implements [coverage.Teacher].
func (c converted) Pose(seed uint64) (*calamp.Problem, calamp.Truth, error) {
	problem, truth, err := c.Teacher.Pose(seed)
	if err == nil {
		err = c.faults.Converted(problem.Y, seed)
	}
	return problem, truth, err
}

// channel is the sensors' model that the solver is given.
func (c *checkCalibration) channel() channel.Channel {
	stated := c.model
	if c.stated != [2]float64{} {
		stated.SRange = c.stated
	}
	if c.complex {
		return c.faults.Channel(stated.ComplexChannel(&c.phases))
	}
	return c.faults.Channel(stated.Channel())
}

func (c *checkCalibration) finish(r *coverage.Report) error {
	if c.plot != "" && r.Converged > 0 {
		err := c.Write(c.plot, func(w io.Writer) error { return rankFigure(r).Write(w, option.PlotFormat(c.plot)) })
		if err != nil {
			return err
		}
	}
	var err error
	if c.json {
		err = c.PrintJSON(r)
	} else {
		err = printCoverage(c.Stdout, r)
	}
	if err == nil && r.Converged == 0 {
		return &console.Exit{Code: console.NotConverged, Err: errors.New("no run converged: there is no uncertainty to check")}
	}
	return err
}

// kinds are what intervals are of.
var kinds = []struct {
	name  string
	color figure.Color
	of    func(l *coverage.Level) **coverage.Share
}{
	{"x", figure.Blue, func(l *coverage.Level) **coverage.Share { return &l.X }},
	{"s", figure.Orange, func(l *coverage.Level) **coverage.Share { return &l.S }},
	{"s raw", figure.Green, func(l *coverage.Level) **coverage.Share { return &l.SRaw }},
	{"scale", figure.Purple, func(l *coverage.Level) **coverage.Share { return &l.Scale }},
	{"phase", figure.Ochre, func(l *coverage.Level) **coverage.Share { return &l.Phase }},
	{"phase raw", figure.Sky, func(l *coverage.Level) **coverage.Share { return &l.PhaseRaw }},
}

func printCoverage(w io.Writer, r *coverage.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%d of %d problems converged\n\n", r.Converged, r.Instances)
	if r.Converged > 0 {
		fmt.Fprint(t, "interval")
		for _, k := range kinds {
			if *k.of(&r.Levels[0]) != nil {
				fmt.Fprintf(t, "\t%s", k.name)
			}
		}
		fmt.Fprintln(t, "\t")
	}
	for _, l := range r.Levels {
		fmt.Fprintf(t, "%g %%", 100*l.Level)
		for _, k := range kinds {
			if s := *k.of(&l); s != nil {
				fmt.Fprintf(t, "\t%.1f ± %.1f", 100*s.Value, 100*s.Error)
			}
		}
		fmt.Fprintln(t, "\t")
	}
	return t.Flush()
}

// rankFigure is the two histograms, with two standard errors, and the coverage.
func rankFigure(r *coverage.Report) figure.Panels {
	histogram := func(title string, ranks coverage.Ranks) figure.Figure {
		var at, lo, hi []float64
		for b, f := range ranks.Frequency {
			at = append(at, (float64(b)+0.5)/coverage.Bins)
			lo, hi = append(lo, f-2*ranks.Error[b]), append(hi, f+2*ranks.Error[b])
		}
		return figure.Figure{
			Title: title,
			X:     figure.Axis{Label: "rank of the truth", Min: 0, Max: 1},
			Y:     figure.Axis{Label: "frequency", Min: 0, Max: 2},
			Series: []figure.Series{
				{X: at, Y: ranks.Frequency, Style: figure.Bars, Opacity: 0.5, Color: figure.Blue},
				{X: at, Y: ranks.Frequency, Lo: lo, Hi: hi, Style: figure.Points, Size: 1, Color: figure.Blue},
				{X: []float64{0, 1}, Y: []float64{1, 1}, Color: figure.Neutral, Dashed: true},
			},
		}
	}
	var panels []figure.Figure
	if r.X.Frequency != nil {
		panels = append(panels, histogram("signals", r.X))
	}
	if r.S.Frequency != nil {
		panels = append(panels, histogram("gains", r.S))
	}
	panels = append(panels, coverageFigure(r))
	return figure.Panels{
		Alt:     "Ranks of the true signals and gains in their posteriors, and how often intervals hold them",
		OwnAxes: true,
		Rows:    [][]figure.Figure{panels},
		Width:   620, Height: 230,
	}
}

func coverageFigure(r *coverage.Report) figure.Figure {
	fig := figure.Figure{
		Title:  "intervals",
		X:      figure.Axis{Label: "stated probability", Min: 0.4, Max: 1},
		Y:      figure.Axis{Label: "share that holds the truth", Min: 0.4, Max: 1},
		Series: []figure.Series{{X: []float64{0, 1}, Y: []float64{0, 1}, Color: figure.Neutral, Dashed: true}},
	}
	for _, kind := range kinds {
		s := figure.Series{Name: kind.name, Color: kind.color, Style: figure.Points}
		for _, l := range r.Levels {
			if share := *kind.of(&l); share != nil {
				s.X, s.Y = append(s.X, l.Level), append(s.Y, share.Value)
				s.Lo, s.Hi = append(s.Lo, share.Value-2*share.Error), append(s.Hi, share.Value+2*share.Error)
			}
		}
		if len(s.X) > 0 {
			fig.Series = append(fig.Series, s)
		}
	}
	return fig
}
