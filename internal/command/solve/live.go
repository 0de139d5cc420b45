package solve

import (
	"context"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/dataset"
)

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
