package console

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress is a bar on standard error, where that is a terminal; elsewhere it
// is nil, and draws nothing.
type Progress struct{ bar *progressbar.ProgressBar }

// Progress opens a bar.
func (c *Console) Progress() *Progress {
	if c.Quiet || !IsTerminal(c.Stderr) {
		return nil
	}
	return &Progress{bar: progressbar.NewOptions(100,
		progressbar.OptionSetWriter(c.Stderr),
		progressbar.OptionSetWidth(24),
		progressbar.OptionSetPredictTime(false), // convergence is not that regular
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionEnableColorCodes(false), // no colour at all, so NO_COLOR asks for nothing more
	)}
}

// Show moves the bar of work whose length is known.
func (p *Progress) Show(what string, fraction float64) {
	if p == nil {
		return
	}
	p.bar.Describe(what)
	p.bar.Set(int(100 * min(fraction, 0.99)))
}

// Clear makes room for a line of text.
func (p *Progress) Clear() {
	if p != nil {
		p.bar.Clear()
	}
}

// Done removes the bar.
func (p *Progress) Done() {
	if p.Clear(); p != nil {
		p.bar.Exit()
	}
}

// IsTerminal says whether a person reads what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
