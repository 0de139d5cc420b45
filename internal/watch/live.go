package watch

import (
	"math"
	"net/http"

	"github.com/calamp/calamp/internal/page"
)

// live is the stream as the page shows it.
type live struct {
	board   *page.Board
	view    page.View
	entries int       // of a signal, 0 before the first sample
	counted []float64 // readings of each sensor that counted so far
	since   []float64 // samples since the latest of them
	z       []float64 // the latest residual of each sensor that is known
}

func newLive() *live { return &live{board: page.NewBoard()} }

// columns are those of the board's rows.
var columns = []string{"sample", "iterations", "chi2", "learned", "sd_median", "sd_worst", "scale_sd", "scale_step", "drift", "flagged", "solve_ms"}

// sample shows a sample, and the posterior after it.
func (l *live) sample(x Sample, v *View) {
	if v == nil {
		return
	}
	l.begin(len(x.X), len(v.Posterior.S), v.Posterior.Phase != nil)
	l.follow(x, v)
	learned := 0.0
	if x.Committed {
		learned = 1
	}
	median, worst := v.spread()
	l.board.Row(float64(x.Sequence), float64(x.Iterations), x.ChiSquare, learned, median, worst,
		v.Posterior.ScaleSD, x.ScaleStep, v.Posterior.Drift, float64(len(v.Posterior.Flagged)), 1e3*x.Solving.Seconds())
	if l.board.Wanted() {
		l.board.Frame(l.frame(x, v))
	}
}

// begin tells what is shown, with the first sample.
func (l *live) begin(n, m int, complex bool) {
	if l.entries == n {
		return
	}
	l.entries, l.view = n, page.NewView(n)
	l.counted, l.since, l.z = make([]float64, m), make([]float64, m), make([]float64, m)
	for mu := range l.z {
		l.z[mu] = math.NaN()
	}
	head := page.Head{Name: "stream", M: m, N: n, Columns: columns, Complex: complex}
	head.Rows, head.Cols = l.view.Pictures()
	l.board.Head(head)
}

// follow notes which sensors' readings counted, and how far the worst were off.
func (l *live) follow(x Sample, v *View) {
	for mu, count := range v.Posterior.Count {
		l.since[mu]++
		if count > l.counted[mu] || x.Committed && count > 0 && v.Posterior.Drift > 0 { // where the past is forgotten counts need not grow
			l.since[mu] = 0
		}
		l.counted[mu] = count
	}
	for _, r := range x.Worst {
		l.z[r.Sensor] = r.Chi
	}
}

func (l *live) frame(x Sample, v *View) page.Frame {
	p := v.Posterior
	f := page.Frame{
		At: int(x.Sequence), Signals: l.view.Signals(1, func(i, _ int) float64 { return x.X[i] }),
		S: p.S, SD: v.deviationsOfSize(), Phase: p.Phase, Z: l.z, Count: p.Count, Age: l.since, Flagged: []page.Flag{},
	}
	for _, flagged := range p.Flagged {
		f.Flagged = append(f.Flagged, page.Flag{Sensor: flagged.Sensor, Reason: flagged.Reason.String()})
	}
	return f
}

func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	page.ServeEvents(w, r, page.Source{Name: "run", Board: l.board})
}
