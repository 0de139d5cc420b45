// Package sweep is the commands that run grids of experiments and draw them: calamp
// sweep and calamp figure.
package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/sweep"
)

// Command is calamp sweep.
func Command(a *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Run a grid of experiments, anywhere, and merge it into one table",
		Long: `Run a grid of experiments: described once in a TOML file, run on this machine's
cores, in shards of an array job, or by workers on many machines, resumed after
anything, and merged into one table that does not depend on who ran what.

  calamp sweep plan SPEC.toml      how many points, how much memory, how long
  calamp sweep run SPEC.toml       run what is missing
  calamp sweep status SPEC.toml    how far it is
  calamp sweep merge SPEC.toml     the table, as CSV

Rows are kept in a folder, SPEC without its .toml unless --data says otherwise.
docs/format/sweep.md has the keys of a spec, and docs/sweeps.md recipes for clusters.`,
		Example: `  calamp sweep plan phase.toml
  calamp sweep run phase.toml && calamp sweep merge phase.toml -o phase.csv`,
		Args: console.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			return console.Usage("sweep needs to know what to do").WithHint("calamp sweep plan, run, status, merge, worker or slurm")
		},
	}
	cmd.AddCommand(sweepPlanCommand(a), sweepRunCommand(a), sweepStatusCommand(a),
		sweepMergeCommand(a), sweepWorkerCommand(a), sweepSlurmCommand(a))
	return cmd
}

// grid is the sweep that a command is about.
type grid struct {
	*console.Console
	data  string
	quick bool

	spec   *sweep.Spec
	points []sweep.Point
}

func (g *grid) register(flags *pflag.FlagSet) {
	flags.StringVar(&g.data, "data", "", "folder of the rows (default SPEC without .toml)")
	flags.BoolVar(&g.quick, "quick", false, "the spec's [[quick]] grids in place of the full ones")
}

// oneSpec requires exactly one argument.
var oneSpec = console.Arguments(1, 1, "one SPEC.toml")

func (g *grid) load(path string) error {
	spec, err := sweep.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return console.Usage("%s: there is no such file", path)
	}
	if err != nil {
		return &console.Exit{Code: console.WrongUsage, Err: err}
	}
	g.data = cmp.Or(g.data, sweep.FolderOf(path))
	return g.use(spec)
}

// use takes a spec that has been read, or its sketch.
func (g *grid) use(spec *sweep.Spec) error {
	if g.quick {
		sketch, err := spec.Sketch()
		if err != nil {
			return &console.Exit{Code: console.WrongUsage, Err: err}
		}
		spec = sketch
	}
	g.spec, g.points = spec, spec.Points()
	return nil
}

func (g *grid) store() sweep.Store { return sweep.Store{Dir: g.data} }

func (g *grid) rows() (sweep.Rows, error) {
	rows, damaged, err := g.store().Rows()
	if damaged > 0 {
		g.Note("%d unfinished lines in %s are passed over: traces of a crash", damaged, g.data)
	}
	return rows, err
}

// stamp is what rows of this process say of their origin.
func stamp() sweep.Stamp {
	v := facts.BuildVersion()
	text := v.Version
	if v.Revision != "" {
		text += " " + v.Revision[:min(len(v.Revision), 12)]
		if v.Modified {
			text += "+"
		}
	}
	host, _ := os.Hostname()
	return sweep.Stamp{Version: text, Host: host}
}

// sweepPlan is one call of calamp sweep plan.
type sweepPlan struct {
	grid
	budget time.Duration
	json   bool
}

func sweepPlanCommand(a *console.Console) *cobra.Command {
	s := &sweepPlan{grid: grid{Console: a}}
	cmd := &cobra.Command{
		Use:   "plan SPEC.toml",
		Short: "Print the number of points, the memory, and an estimate of the time",
		Long: `Print the number of points, the memory that the largest one needs, and an
estimate of the time, from a few points that are run to see how long they take.`,
		Example: `  calamp sweep plan phase.toml --probe 1m`,
		Args:    oneSpec,
		RunE:    func(_ *cobra.Command, args []string) error { return s.run(args[0]) },
	}
	s.register(cmd.Flags())
	cmd.Flags().DurationVar(&s.budget, "probe", 20*time.Second, "time to spend on probes, about")
	option.JSON(cmd.Flags(), &s.json, "the text")
	return cmd
}

func (s *sweepPlan) run(path string) error {
	if err := s.load(path); err != nil {
		return err
	}
	ctx, stop := console.Orderly()
	defer stop()
	rows, err := s.rows()
	if err != nil {
		return err
	}
	missing := rows.Missing(s.points, false)
	plan, err := sweep.NewPlan(ctx, &sweep.Runner{Limits: s.spec.Run, Stamp: stamp()}, missing, s.budget)
	if err != nil {
		return err
	}
	if s.json {
		parts := make(map[string]float64)
		for _, part := range plan.Parts {
			parts[string(part.Algorithm)] = part.Work.Seconds()
		}
		return s.PrintJSON(map[string]any{
			"points": len(s.points), "missing": plan.Points, "memory_bytes": int64(plan.Memory),
			"work_s": plan.Work.Seconds(), "work_s_by_algorithm": parts, "probes": len(plan.Probes),
		})
	}
	var text console.Summary
	text.Line("points", "%d, %d of them still to be run", len(s.points), plan.Points)
	text.Line("memory", "%v for the largest", plan.Memory)
	for _, part := range plan.Parts {
		text.Line(string(part.Algorithm), "%d points, about %v of work", part.Points, rough(part.Work))
	}
	text.Line("in all", "about %v, one point at a time, from %d probes", rough(plan.Work), len(plan.Probes))
	return s.Print(text.String())
}

// rough is a duration without needless digits.
func rough(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond} {
		if d >= 10*unit {
			return d.Round(unit)
		}
	}
	return d.Round(10 * time.Microsecond)
}

// sweepStatus is one call of calamp sweep status.
type sweepStatus struct {
	grid
	json bool
}

func sweepStatusCommand(a *console.Console) *cobra.Command {
	s := &sweepStatus{grid: grid{Console: a}}
	cmd := &cobra.Command{
		Use:   "status SPEC.toml",
		Short: "Print how many points are done, how many failed, and the time left",
		Example: `  calamp sweep status phase.toml
  calamp sweep status phase.toml --json`,
		Args: oneSpec,
		RunE: func(_ *cobra.Command, args []string) error { return s.run(args[0]) },
	}
	s.register(cmd.Flags())
	option.JSON(cmd.Flags(), &s.json, "the text")
	return cmd
}

func (s *sweepStatus) run(path string) error {
	if err := s.load(path); err != nil {
		return err
	}
	rows, err := s.rows()
	if err != nil {
		return err
	}
	p := sweep.StatusOf(s.points, rows)
	if s.json {
		return s.PrintJSON(map[string]any{
			"points": p.Points, "done": p.Done, "failed": p.Failed, "failed_by_class": p.Classes,
			"points_per_s": p.Rate, "left_s": p.Left.Seconds(),
		})
	}
	var text console.Summary
	text.Line("done", "%d of %d points", p.Done, p.Points)
	if p.Failed > 0 {
		text.Line("failed", "%s", classes(p))
	}
	if p.Rate > 0 {
		text.Line("rate", "%.3g points a second, lately", p.Rate)
	}
	if p.Done < p.Points && p.Rate > 0 {
		text.Line("left", "about %v at that rate", rough(p.Left))
	}
	return s.Print(text.String())
}

// classes lists failures, as in "3: panic 1, timeout 2".
func classes(p sweep.Progress) string {
	var words []string
	for _, class := range slices.Sorted(maps.Keys(p.Classes)) {
		words = append(words, fmt.Sprintf("%s %d", class, p.Classes[class]))
	}
	return fmt.Sprintf("%d: %s", p.Failed, strings.Join(words, ", "))
}

// sweepMerge is one call of calamp sweep merge.
type sweepMerge struct {
	grid
	out  string
	runs bool
}

func sweepMergeCommand(a *console.Console) *cobra.Command {
	s := &sweepMerge{grid: grid{Console: a}, out: "-"}
	cmd := &cobra.Command{
		Use:   "merge SPEC.toml",
		Short: "Write the table of a sweep as CSV",
		Long: `Write the table of a sweep as CSV: a line for every point, in the order of the
grid; where trajectories or several samples are recorded, one for each of their
moments. A point that failed has a line with the class of its error. The bytes
do not depend on workers, shards or resumptions. When, where and how long is
left out therefore, unless --runs asks for it.`,
		Example: `  calamp sweep merge phase.toml -o phase.csv
  calamp sweep merge phase.toml --runs`,
		Args: oneSpec,
		RunE: func(_ *cobra.Command, args []string) error { return s.run(args[0]) },
	}
	s.register(cmd.Flags())
	option.Output(cmd.Flags(), &s.out, "write the table to this .csv; - for standard output")
	cmd.Flags().BoolVar(&s.runs, "runs", false, "add columns with wall time, end, version and host of each run")
	return cmd
}

func (s *sweepMerge) run(path string) error {
	if err := s.load(path); err != nil {
		return err
	}
	if err := (console.Outputs{console.File("-o", s.out)}).Check(false, path); err != nil {
		return err
	}
	rows, err := s.rows()
	if err != nil {
		return err
	}
	n := len(rows.Missing(s.points, false))
	if n == len(s.points) {
		e := &console.Exit{Code: console.Failed, Err: fmt.Errorf("none of the %d points has a row in %s: there is nothing to merge", n, s.data)}
		return e.WithHint("calamp sweep run %s runs them; --data names another folder", path)
	}
	if n > 0 {
		s.Warn("%d of %d points have not been run, and are not in the table", n, len(s.points))
	}
	return s.Write(s.out, func(w io.Writer) error {
		return sweep.Merge(w, s.points, rows, &sweep.MergeOptions{Runs: s.runs})
	})
}
