package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/calamp/calamp"
)

// progress is a bar on standard error, where that is a terminal; elsewhere it
// is nil, and draws nothing.
type progress struct {
	bar  *progressbar.ProgressBar
	best int // percent
}

func (a *app) progress() *progress {
	if a.quiet || !isTerminal(a.stderr) {
		return nil
	}
	return &progress{bar: progressbar.NewOptions(100,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetWidth(24),
		progressbar.OptionSetPredictTime(false), // convergence is not that regular
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionEnableColorCodes(false), // no colour at all, so NO_COLOR asks for nothing more
	)}
}

// attach shows a run's iterations on the bar.
func (p *progress) attach(opt *calamp.Options, what string) {
	if p == nil {
		return
	}
	opt.Progress = func(it calamp.Iteration) {
		p.best = max(p.best, percentDone(it, opt))
		p.bar.Describe(fmt.Sprintf("%s, iteration %d, change %.0e", what, it.Index, it.Change))
		p.bar.Set(p.best)
	}
}

// show moves the bar of work whose length is known.
func (p *progress) show(what string, fraction float64) {
	if p == nil {
		return
	}
	p.bar.Describe(what)
	p.bar.Set(int(100 * min(fraction, 0.99)))
}

// percentDone is how far a run is on its way to the iteration limit, or to
// convergence if that is nearer: the change falls geometrically, in general.
func percentDone(it calamp.Iteration, opt *calamp.Options) int {
	done := float64(it.Index) / float64(opt.MaxIter)
	if opt.Tol >= 0 && it.Change > 0 && it.Change < 1 {
		target := opt.Tol
		if target == 0 {
			target = usualChange
		}
		done = max(done, math.Log(it.Change)/math.Log(target))
	}
	return int(100 * min(done, 0.99))
}

// usualChange is where runs with the default tolerance mostly end.
const usualChange = 1e-9

// done removes the bar.
func (p *progress) done() {
	if p != nil {
		p.bar.Clear()
		p.bar.Exit()
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
