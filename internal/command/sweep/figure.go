package sweep

import (
	"fmt"
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/experiments"
	"github.com/calamp/calamp/experiments/imager"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
)

// drawFigure is one call of calamp figure.
type drawFigure struct {
	sweepRun
	out  []string
	only bool
}

// FigureCommand is calamp figure.
func FigureCommand(a *console.Console) *cobra.Command {
	f := &drawFigure{sweepRun: sweepRun{grid: grid{Console: a}}}
	var list strings.Builder
	for _, e := range experiments.All {
		fmt.Fprintf(&list, "  %-22s %s\n", e.Name, e.About)
	}
	fmt.Fprintf(&list, "  %-22s %s\n", imagerName, "real readings of a compressive imager: its gains, found blindly")
	cmd := &cobra.Command{
		Use:   "figure NAME",
		Short: "Draw a figure of the paper, after running what is missing for it",
		Long: `Draw a figure of the paper, or one of our own, after running what is missing for
it. The experiments are sweeps (see calamp sweep --help): they can be interrupted
and go on, and be run by workers elsewhere. What the picture says in numbers is
printed.

` + list.String() + `
At the size of the paper some take hours; --quick takes seconds, and shows what
the picture will look like.`,
		Example: `  calamp figure phase-x --quick
  calamp figure phase-x --data results/phase -o phase.pdf -o phase.png`,
		Args: console.Arguments(1, 1, "one name"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, e := range experiments.All {
				names = append(names, e.Name)
			}
			return append(names, imagerName), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return f.run(args[0]) },
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.Lookup("data").Usage = "folder of the rows (default the name of the sweep, with -quick for --quick)"
	flags.StringArrayVarP(&f.out, "output", "o", nil, "write the picture to this .svg, .png or .pdf; more than once for several (default NAME.svg)")
	flags.BoolVar(&f.only, "draw-only", false, "draw what there is, and run nothing")
	option.Workers(flags, &f.workers, "points at a time on this machine")
	f.nats.Register(flags, handOut)
	f.nats.RegisterListen(flags)
	return cmd
}

func (f *drawFigure) run(name string) error {
	if name == imagerName {
		return f.drawImager()
	}
	e, err := experiments.Find(name)
	if err != nil {
		return &console.Exit{Code: console.WrongUsage, Err: err, Hint: "calamp figure --help says what they show"}
	}
	if len(f.out) == 0 {
		f.out = []string{name + ".svg"}
	}
	if err := f.checkOutputs(); err != nil {
		return err
	}
	spec, err := e.Spec()
	if err != nil {
		return err
	}
	if f.data == "" {
		f.data = spec.Name
		if f.quick {
			f.data += "-quick"
		}
	}
	if err := f.use(spec); err != nil {
		return err
	}
	if err := f.runMissing(); err != nil {
		return err
	}
	return f.draw(e)
}

func (f *drawFigure) checkOutputs() error {
	var all console.Outputs
	for _, path := range f.out {
		if err := option.CheckPlot("-o", path); err != nil {
			return err
		}
		all = append(all, console.File("-o", path))
	}
	return all.Check(false)
}

// runMissing runs what has no row yet. A figure is drawn of what there is, even
// when some points failed.
func (f *drawFigure) runMissing() error {
	if f.only {
		return nil
	}
	ctx, stop := console.Orderly()
	defer stop()
	f.shard = "all"
	err := f.complete(ctx)
	if err != nil && f.failed > 0 && ctx.Err() == nil {
		f.Warn("%v", err)
		return nil
	}
	return err
}

func (f *drawFigure) draw(e *experiments.Experiment) error {
	rows, err := f.rows()
	if err != nil {
		return err
	}
	if n := len(rows.Missing(f.points, false)); n == len(f.points) {
		return console.Usage("there are no rows in %s", f.data)
	} else if n > 0 {
		f.Warn("%d of %d points have not been run, and are not in the picture", n, len(f.points))
	}
	picture, notes := e.Draw(f.points, rows)
	for _, note := range notes {
		if err := f.Print(note + "\n"); err != nil {
			return err
		}
	}
	for _, path := range f.out {
		err := f.Write(path, func(w io.Writer) error { return picture.Write(w, option.PlotFormat(path)) })
		if err != nil {
			return err
		}
		f.Note("written %s", path)
	}
	return nil
}

// imagerName is the figure that is no sweep: it has readings of its own.
const imagerName = "imager"

// drawImager runs the experiment on real readings, and draws it.
func (f *drawFigure) drawImager() error {
	if len(f.out) == 0 {
		f.out = []string{imagerName + ".svg"}
	}
	scene := strings.TrimSuffix(f.out[0], filepath.Ext(f.out[0])) + "-scene.png"
	if err := f.checkOutputs(); err != nil {
		return err
	}
	ctx, stop := console.Interruptible()
	defer stop()
	bar := f.Progress()
	result, err := imager.Run(ctx, f.quick, bar.Show)
	bar.Done()
	if ctx.Err() != nil {
		return console.Interruption(ctx, nil, "nothing to draw yet")
	}
	if err != nil {
		return err
	}
	for _, note := range result.Notes() {
		if err := f.Print(note + "\n"); err != nil {
			return err
		}
	}
	for _, path := range f.out {
		if err := f.Write(path, func(w io.Writer) error { return result.Picture().Write(w, option.PlotFormat(path)) }); err != nil {
			return err
		}
		f.Note("written %s", path)
	}
	if err := f.Write(scene, func(w io.Writer) error { return png.Encode(w, result.Scene) }); err != nil {
		return err
	}
	f.Note("written %s", scene)
	return nil
}
