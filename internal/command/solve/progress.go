package solve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/crash"
)

// runSolver runs the solver with a progress bar, unless opt shows progress already.
func runSolver(ctx context.Context, a *console.Console, what string, p *calamp.Problem, opt *calamp.Options) (res *calamp.Result, err error) {
	defer crash.Catch(&err)
	if opt.Progress != nil {
		return calamp.Solve(ctx, p, opt)
	}
	bar := a.Progress()
	defer bar.Done()
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
		bar.Show(fmt.Sprintf("%s, iteration %d, change %.0e", what, it.Index, it.Change), best)
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

// progressLine is a line of --progress json: an iteration, with the columns of --trace.
type progressLine struct {
	Iteration   int      `json:"iteration"`
	Fraction    float64  `json:"fraction"` // done, as the bar shows it
	Change      *float64 `json:"change"`
	MeanXVar    *float64 `json:"mean_x_var"`
	MeanSVar    *float64 `json:"mean_s_var"`
	MeanV       *float64 `json:"mean_v"`
	OffV        *float64 `json:"off_v"`
	Scale       *float64 `json:"scale"`
	Damping     *float64 `json:"damping"`
	LogEvidence *float64 `json:"log_evidence"`
}

// tellIterations writes a line an iteration. A reader who has gone does not end the run.
func tellIterations(w io.Writer, opt *calamp.Options) {
	best := 0.0
	opt.Progress = func(it calamp.Iteration) {
		best = max(best, min(fractionDone(it, opt), 1))
		line, err := json.Marshal(progressLine{
			it.Index, best, console.Known(it.Change), console.Known(it.MeanXVar), console.Known(it.MeanSVar), console.Known(it.MeanV),
			console.Known(it.OffV), console.Known(it.Scale), console.Known(it.Damping), console.Known(it.LogEvidence),
		})
		if err == nil {
			w.Write(append(line, '\n'))
		}
	}
}

// usualChange is where runs with the default tolerance mostly end.
const usualChange = 1e-9

// showWarnings tells what a run warns of.
func showWarnings(a *console.Console, res *calamp.Result) {
	for _, w := range res.Warnings {
		a.Warn("%s: %s", w.Code, w.Message)
	}
}
