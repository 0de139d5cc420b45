package solve

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/dataset"
)

// runSolver runs the solver with a progress bar, unless opt shows progress already.
func runSolver(ctx context.Context, a *console.Console, what string, p *calamp.Problem, opt *calamp.Options) (res *calamp.Result, err error) {
	defer crash.Catch(&err)
	if opt.Progress != nil {
		return calamp.Solve(ctx, p, opt)
	}
	bar := a.Progress()
	defer bar.Done()
	if bar != nil {
		bar.Show(what+", preparing W and the readings", 0)
	}
	showIterations(bar, opt, what)
	return calamp.Solve(ctx, p, opt)
}

// showIterations shows a run's iterations on the bar, which never goes back.
func showIterations(bar *console.Progress, opt *calamp.Options, what string) {
	if bar == nil {
		return
	}
	best := 0.0
	opt.Progress = func(it calamp.Iteration) {
		best = max(best, fractionDone(it, opt))
		doing := what
		if it.Try > 1 { // and the first did not come to an answer
			doing = fmt.Sprintf("try %d, %s", it.Try, it.What)
		}
		bar.Show(fmt.Sprintf("%s (%v), iteration %d, change %.0e", doing, it.Algorithm, it.Index, it.Change), best)
	}
}

// fractionDone is how far a run is on its way to the iteration limit, or to
// convergence if that is nearer: the change falls geometrically, in general.
func fractionDone(it calamp.Iteration, opt *calamp.Options) float64 {
	done := float64(it.Index) / float64(opt.MaxIter)
	if opt.Tol >= 0 && it.Change > 0 && it.Change < 1 {
		target := opt.Tol
		if target == 0 {
			target = usualChange
		}
		done = max(done, math.Log(it.Change)/math.Log(target))
	}
	return done
}

// tellIterations writes a line an iteration, with the columns of --trace, in JSON of which readers know the first field. A reader who has gone does not end the run.
func tellIterations(w io.Writer, opt *calamp.Options) {
	best := 0.0
	opt.Progress = func(it calamp.Iteration) {
		best = max(best, min(fractionDone(it, opt), 1))
		o := console.Object{"iteration", it.Index, "fraction", best}
		for i, v := range valuesOf(it) {
			o = append(o, columns[i], console.Known(v))
		}
		if line, err := append(o, "try?", it.Try, "what?", it.What, "algorithm", it.Algorithm.String()).MarshalJSON(); err == nil {
			w.Write(append(line, '\n'))
		}
	}
}

// usualChange is where runs with the default tolerance mostly end.
const usualChange = 1e-9

// mostWarnings is how many warnings are printed in full, those that matter most.
const mostWarnings = 3

// showWarnings tells what a run warns of.
func showWarnings(a *console.Console, res *calamp.Result) {
	shown := min(mostWarnings, len(res.Warnings))
	for _, w := range res.Warnings[:shown] {
		a.Warn("%s: %s", w.Code, w.Message)
	}
	var further []string
	for _, w := range res.Warnings[shown:] {
		further = append(further, string(w.Code))
	}
	switch {
	case len(further) > 0:
		a.Note("%s more, which --report and --json have in full: %s; calamp help CODE says what to do", console.Plural(len(further), "warning"), strings.Join(further, ", "))
	case shown > 0:
		a.Note("calamp help %s says more", res.Warnings[0].Code)
	}
}

// columns are the numbers of an iteration.
var columns = []string{"change", "mean_x_var", "mean_s_var", "mean_v", "off_v", "scale", "damping", "log_evidence"}

func valuesOf(it calamp.Iteration) []float64 {
	return []float64{it.Change, it.MeanXVar, it.MeanSVar, it.MeanV, it.OffV, it.Scale, it.Damping, it.LogEvidence}
}

// writeTrace writes the iterations as CSV; a value that is not finite is left
// empty.
func writeTrace(w io.Writer, trace []calamp.Iteration) error {
	c := csv.NewWriter(w)
	c.Write(append([]string{"iteration"}, columns...))
	for _, it := range trace {
		row := []string{strconv.Itoa(it.Index)}
		for _, v := range valuesOf(it) {
			cell := ""
			if console.Known(v) != nil {
				cell = strconv.FormatFloat(v, 'g', -1, 64)
			}
			row = append(row, cell)
		}
		c.Write(row)
	}
	c.Flush() // keeps the first error of the writes before
	return c.Error()
}

// Live is who watches a run from the same process, such as a page. It receives what
// --progress json tells, and the estimates.
type Live struct {
	// Begin receives the problem, before the first iteration.
	Begin func(*dataset.Problem)

	// Iteration receives how far the run is, from 0 to 1, and its estimates as
	// [calamp.Options.Observe] has them.
	Iteration func(it calamp.Iteration, fraction float64, x, s []float64)

	// End receives the result, also of a run that was cut short.
	End func(*calamp.Result)
}

// Run is calamp solve with these arguments, for a caller in the same process: ctx ends
// it as Ctrl-C ends the command. The error is for console.Report.
func Run(ctx context.Context, a *console.Console, args []string, live *Live) (err error) {
	defer crash.Catch(&err)
	s := newSolve(a)
	s.live, s.within = live, ctx
	cmd := s.command()
	option.AddSpellings(cmd.Flags())
	option.AddModel(a, cmd)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(a.Stdout)
	cmd.SetErr(a.Stderr)
	return cmd.Execute()
}

// context ends the run: with whoever called Run, or by a signal.
func (s *solve) context() (context.Context, context.CancelFunc) {
	if s.within == nil {
		return console.Interruptible()
	}
	return context.WithCancel(s.within)
}

// begin lets whoever watches see the run's iterations.
func (s *solve) begin(data *dataset.Problem, opt *calamp.Options) {
	if s.live == nil {
		return
	}
	s.live.Begin(data)
	best := 0.0
	opt.Observe = func(it calamp.Iteration, x, gains []float64) {
		best = max(best, min(fractionDone(it, opt), 1))
		s.live.Iteration(it, best, x, gains)
	}
}

func (s *solve) end(res *calamp.Result) {
	if s.live != nil {
		s.live.End(res)
	}
}
