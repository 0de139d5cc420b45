package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/experiments"
	"github.com/calamp/calamp/figure"
)

// drawFigure is one call of calamp figure.
type drawFigure struct {
	sweepRun
	out  []string
	only bool
}

func (a *app) figureCommand() *cobra.Command {
	f := &drawFigure{sweepRun: sweepRun{grid: grid{app: a}}}
	var list strings.Builder
	for _, e := range experiments.All {
		fmt.Fprintf(&list, "  %-22s %s\n", e.Name, e.About)
	}
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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("figure takes one name, found %d arguments", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, e := range experiments.All {
				names = append(names, e.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return f.run(args[0]) },
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.Lookup("data").Usage = "folder of the rows (default the name of the sweep, with -quick for --quick)"
	flags.StringArrayVarP(&f.out, "output", "o", nil, "write the picture to this .svg, .png or .pdf; more than once for several (default NAME.svg)")
	flags.BoolVar(&f.only, "draw-only", false, "draw what there is, and run nothing")
	flags.Var(count{&f.workers, 0}, "workers", "points at a time on this machine, 0 for one a core")
	f.nats.register(flags)
	flags.StringVar(&f.nats.listen, "nats-listen", "127.0.0.1:4222", "address of the embedded server")
	return cmd
}

func (f *drawFigure) run(name string) error {
	e, err := experiments.Find(name)
	if err != nil {
		return &exit{code: exitUsage, err: err, hint: "calamp figure --help says what they show"}
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
	var all outputs
	for _, path := range f.out {
		if !slices.Contains(figure.Formats, formatOf(path)) {
			return usage("-o %s: expected a name that ends in .%s", path, strings.Join(figure.Formats, ", ."))
		}
		all = append(all, output{"-o", path})
	}
	return all.check(false)
}

// formatOf is a file's extension.
func formatOf(path string) string { return strings.ToLower(path[strings.LastIndexByte(path, '.')+1:]) }

// runMissing runs what has no row yet. A figure is drawn of what there is, even
// when some points failed.
func (f *drawFigure) runMissing() error {
	if f.only {
		return nil
	}
	ctx, stop := orderly()
	defer stop()
	f.shard = "all"
	err := f.complete(ctx)
	if err != nil && f.failed > 0 && ctx.Err() == nil {
		f.warn("%v", err)
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
		return usage("there are no rows in %s", f.data)
	} else if n > 0 {
		f.warn("%d of %d points have not been run, and are not in the picture", n, len(f.points))
	}
	picture, notes := e.Draw(f.points, rows)
	for _, note := range notes {
		fmt.Fprintln(f.stdout, note)
	}
	for _, path := range f.out {
		err := f.write(path, func(w io.Writer) error { return picture.Write(w, formatOf(path)) })
		if err != nil {
			return err
		}
		f.note("written %s", path)
	}
	return nil
}
