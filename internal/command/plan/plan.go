// Package plan is calamp plan: what a problem takes, before it is run.
package plan

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/cost"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/memory"
)

// plan is one call of calamp plan.
type plan struct {
	*console.Console
	m, n, p    int
	single     bool
	storage    string
	parts      option.Parts
	ranks      []int
	threads    int
	memory     memory.Size
	disk       memory.Size
	network    memory.Size
	latency    time.Duration
	iterations int
	json       bool
}

// Command is calamp plan.
func Command(a *console.Console) *cobra.Command {
	c := &plan{
		Console: a, storage: "f8", ranks: []int{1, 2, 4, 8, 16, 64, 256}, threads: runtime.NumCPU(), memory: memory.Total() / 2,
		disk: 1e9, network: 5e9, latency: 20 * time.Microsecond, iterations: 60,
	}
	cmd := &cobra.Command{
		Use:   "plan [P.npz]",
		Short: "Say what a problem takes: memory, time an iteration, ranks",
		Long: `Say what a problem with a table W takes, on one machine and divided over the ranks of
--mpi: memory, time an iteration, bytes between ranks, and what limits it.

The problem is a file, of which only the sizes are read, or --m, --n and --p. What this
machine computes is measured, in a few seconds; disks and networks are described by
flags, with defaults that are on the safe side.`,
		Example: `  calamp plan P.npz
  calamp plan --m 600000 --n 1000000 --p 10 --storage f4 --ranks 16,256 --memory 200GiB --network 12.5GB`,
		Args:              console.Arguments(0, 1, "one problem file"),
		ValidArgsFunction: option.CompleteFiles("npz", "mat"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Flags(), args) },
	}
	flags := cmd.Flags()
	flags.Var(option.Count(&c.m, 1), "m", "sensors")
	flags.Var(option.Count(&c.n, 1), "n", "entries of a signal")
	option.Signals(flags, &c.p, "signals")
	flags.Var(option.Choice(&c.storage, "f4", "f8"), "storage", "entries of W, where there is no file")
	flags.StringVar(&c.parts.Matrix, "matrix", "", "the matrix W.npy, in place of P.npz")
	flags.StringVar(&c.parts.Readings, "readings", "", "the readings Y (.npy, .npz or .mat), with --matrix")
	flags.IntSliceVar(&c.ranks, "ranks", c.ranks, "numbers of ranks")
	flags.Var(option.Count(&c.threads, 1), "threads", "threads of a rank; more than this machine has cannot be measured")
	sizes := option.Wording[memory.Size]{Kind: "size"}
	flags.Var(option.Text(&c.memory, sizes), "memory", "memory for the rows of W of one rank (default half of what this machine has)")
	flags.Lookup("memory").DefValue = "0"
	flags.Var(option.Text(&c.disk, sizes), "disk", "what a rank reads from its disk in a second")
	flags.Lookup("disk").DefValue = "1GB"
	flags.Var(option.Text(&c.network, sizes), "network", "what a rank sends in a second")
	flags.Lookup("network").DefValue = "5GB"
	flags.DurationVar(&c.latency, "latency", c.latency, "of one message between ranks")
	flags.Var(option.Count(&c.iterations, 1), "iterations", "iterations of a run, of which most take 45 to 80")
	option.JSON(flags, &c.json, "the table")
	return cmd
}

func (c *plan) run(flags *pflag.FlagSet, args []string) error {
	if err := c.sizes(flags, args); err != nil {
		return err
	}
	if len(c.ranks) == 0 || slices.Min(c.ranks) < 1 {
		return console.Usage("--ranks: expected whole numbers, at least 1")
	}
	if c.latency < 0 {
		return console.Usage("--latency %v: expected a time, at least 0", c.latency)
	}
	problem := cost.Problem{M: c.m, N: c.n, P: c.p, Single: c.single}
	rates, err := cost.Measure(problem, c.threads)
	if err != nil {
		return err
	}
	rates.Disk, rates.Network, rates.Latency = float64(c.disk), float64(c.network), c.latency
	var all []cost.Estimate
	for _, ranks := range c.ranks {
		if ranks <= (c.m+3)/4 { // others would have no rows
			all = append(all, problem.On(cost.Setup{Ranks: ranks, Memory: int64(c.memory)}, rates))
		}
	}
	return c.print(problem, rates, all)
}

// sizes finds them, in a file or in flags.
func (c *plan) sizes(flags *pflag.FlagSet, args []string) error {
	bySize := option.Given(flags, "m") || option.Given(flags, "n") || option.Given(flags, "p")
	switch {
	case c.p > 0 && c.m == 0 && c.n == 0 && c.parts.Matrix != "" && c.parts.Readings == "":
		w, err := find(c.parts.Matrix, "W")
		if err != nil {
			return err
		}
		if len(w.Shape) != 2 || slices.Min(w.Shape) < 1 {
			return console.Usage("W is %v, expected M×N", w.Shape)
		}
		c.m, c.n, c.single = w.Shape[0], w.Shape[1], strings.HasSuffix(w.Dtype, "f4")
		return nil
	case bySize && (len(args) > 0 || c.parts.Matrix != ""):
		return console.Usage("the sizes come from a file, or from --m, --n and --p, not from both")
	case bySize && (c.m == 0 || c.n == 0 || c.p == 0):
		return console.Usage("--m, --n and --p go together")
	case bySize:
		c.single = c.storage == "f4"
		return nil
	case len(args) == 1 && c.parts.Matrix == "" && c.parts.Readings == "":
		return c.sizesOf(args[0], args[0])
	case len(args) == 0 && c.parts.Matrix != "" && c.parts.Readings != "":
		return c.sizesOf(c.parts.Matrix, c.parts.Readings)
	}
	return console.Usage("no problem to plan").WithHint("calamp plan P.npz, or --matrix W.npy --readings Y.npy, or --m, --n and --p")
}

// sizesOf reads the shapes of W and Y.
func (c *plan) sizesOf(matrix, readings string) error {
	w, err := find(matrix, "W")
	if err != nil {
		return err
	}
	y, err := find(readings, "Y")
	if err != nil {
		return err
	}
	if len(w.Shape) != 2 || len(y.Shape) < 1 || len(y.Shape) > 2 || y.Shape[0] != w.Shape[0] || slices.Min(w.Shape) < 1 || slices.Min(y.Shape) < 1 {
		return console.Usage("W is %v and Y is %v, expected M×N and M×P, or M", w.Shape, y.Shape)
	}
	c.m, c.n, c.p = w.Shape[0], w.Shape[1], 1
	if len(y.Shape) == 2 {
		c.p = y.Shape[1]
	}
	c.single = strings.HasSuffix(w.Dtype, "f4")
	return nil
}

// find describes the array of a name, or the only one.
func find(path, name string) (dataset.Info, error) {
	all, err := dataset.Inspect(path)
	if err != nil {
		return dataset.Info{}, err
	}
	if i := slices.IndexFunc(all, func(a dataset.Info) bool { return a.Name == name }); i >= 0 {
		return all[i], nil
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return dataset.Info{}, console.Usage("%s: there is no array %s", path, name)
}

func (c *plan) print(p cost.Problem, r cost.Rates, all []cost.Estimate) error {
	storage, entry := "f8", int64(8)
	if p.Single {
		storage, entry = "f4", 4
	}
	bytes, least := int64(p.M)*int64(p.N)*entry, p.Least(int64(c.memory), r)
	if c.json {
		ranks := []console.Object(nil)
		for _, e := range all {
			ranks = append(ranks, console.Object{
				"ranks", e.Ranks, "memory_bytes", e.Resident, "on_disk", e.OnDisk, "sent_bytes", e.Sent, "sweep_s", e.Sweep.Seconds(), "disk_s", e.Disk.Seconds(),
				"beside_s", e.Beside.Seconds(), "network_s", e.Network.Seconds(), "waiting_s", e.Waiting.Seconds(), "iteration_s", e.Iteration.Seconds(), "limit", string(e.Limit),
			})
		}
		return c.PrintJSON(console.Object{
			"m", p.M, "n", p.N, "p", p.P, "storage", storage, "w_bytes", bytes, "threads", c.threads, "least_ranks", least, "rates", console.Object{
				"sweep_s_per_entry", r.Single, "exact_sweep_s_per_entry", r.Double, "beside_s_per_number", r.Beside,
				"disk_bytes_per_s", r.Disk, "network_bytes_per_s", r.Network, "latency_s", r.Latency.Seconds(),
			}, "ranks", ranks,
		})
	}
	var text console.Summary
	text.Line("problem", "%s with %d entries, %s (α = %.3g)", console.Plural(p.P, "signal"), p.N, console.Plural(p.M, "sensor"), float64(p.M)/float64(p.N))
	text.Line("W", "%v as %s; in memory of %v a rank from %s on", memory.Size(bytes), storage, c.memory, console.Plural(max(1, least), "rank"))
	text.Line("machine", "measured here with %s: %s multiplications a second in a usual sweep, %s in an exact one", console.Plural(c.threads, "thread"),
		console.Brief(2*float64(p.P)/r.Single), console.Brief(4*float64(p.P)/r.Double))
	text.Line("given", "%v/s from a disk, %v/s between ranks, %v a message", c.disk, c.network, c.latency)
	text.WriteString("\n")
	row := func(cells ...any) { fmt.Fprintf(&text, "%6s %11s %10s %10s %10s %10s %10s %11s %9s  %s\n", cells...) }
	row("ranks", "memory", "sweep", "disk", "beside", "network", "iteration", "sent", "run", "limit")
	for _, e := range all {
		row(fmt.Sprint(e.Ranks), memory.Size(e.Resident), short(e.Sweep), short(e.Disk), short(e.Beside), short(e.Network+e.Waiting),
			short(e.Iteration), memory.Size(e.Sent), short(time.Duration(c.iterations)*e.Iteration), e.Limit)
	}
	fmt.Fprintf(&text, "(memory and bytes sent are of one rank; a run has %d iterations)\n", c.iterations)
	return c.Print(text.String())
}

// short is a time in three digits.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.3g h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.3g min", d.Minutes())
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return fmt.Sprintf("%.3g ms", 1e3*d.Seconds())
}
