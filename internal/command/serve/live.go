package serve

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/solve"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/page"
)

// solveLive is calamp solve with these arguments, shown on a board.
func solveLive(ctx context.Context, a *console.Console, args []string, board *page.Board) error {
	l := &live{board: board}
	return solve.Run(ctx, a, args, &solve.Live{Begin: l.begin, Iteration: l.iteration, End: l.end})
}

// live shows a run on a board.
type live struct {
	board   *page.Board
	view    page.View
	truth   calamp.Truth
	m, p    int
	columns int // for each signal: of a complex one, which is shown by its sizes, two

	x            *mat.Dense    // N×P, with two columns for a complex signal: the estimate that is compared with the truth
	scored, rest time.Duration // what comparing took, and everything else
	until        time.Time     // when the latest comparison ended
}

// columns are those of the board's rows: the errors are mean squares, after the best
// common factor.
var columns = []string{"iteration", "change", "x_var", "s_var", "scale", "damping", "fraction", "x_mse", "s_mse"}

func (l *live) begin(data *dataset.Problem) {
	m, n := data.W.Dims()
	m = calamp.SensorCount(data.Sensors, m)
	_, l.p = data.Y.Dims()
	l.columns = 1
	if data.Complex {
		l.columns = 2
		l.p /= 2
	}
	l.m, l.view, l.truth, l.until = m, page.NewView(n), data.Truth, time.Now()
	if x := l.truth.X; x != nil {
		if rows, _ := x.Dims(); rows != n { // a basis: the estimates are coefficients
			l.truth.X = nil
		}
	}
	head := page.Head{M: m, N: n, P: l.p, Columns: columns, S: l.truth.S, Complex: data.Complex}
	head.Rows, head.Cols = l.view.Pictures()
	if l.truth.X != nil {
		head.Signals = l.signals(l.truth.X.At)
		l.x = mat.NewDense(n, l.p*l.columns, nil)
	}
	l.board.Head(head)
}

// signals are those shown, where entry i of column k is at(i, k).
func (l *live) signals(at func(i, k int) float64) []page.Signal {
	if l.columns == 2 {
		parts := at
		at = func(i, k int) float64 { return math.Hypot(parts(i, 2*k), parts(i, 2*k+1)) }
	}
	return l.view.Signals(l.p, at)
}

func (l *live) iteration(it calamp.Iteration, fraction float64, x, s []float64) {
	xErr, sErr := l.errors(x, s)
	l.board.Row(float64(it.Index), it.Change, it.MeanXVar, it.MeanSVar, it.Scale, it.Damping, fraction, xErr, sErr)
	if !l.board.Wanted() {
		return
	}
	n := len(x) / (l.p * l.columns)
	l.board.Frame(page.Frame{
		At: it.Index, S: s, Flagged: []page.Flag{},
		Signals: l.signals(func(i, k int) float64 { return x[k*n+i] }),
	})
}

// errors compares with the truth, where it is known and comparing costs little: a
// fifth of the run, and a second.
func (l *live) errors(x, s []float64) (xErr, sErr float64) {
	xErr, sErr = math.NaN(), math.NaN()
	start := time.Now()
	l.rest += start.Sub(l.until)
	defer func() { l.until = time.Now() }()
	if l.x == nil && l.truth.S == nil || 5*l.scored > l.rest+5*time.Second {
		return xErr, sErr
	}
	var estimate *mat.Dense
	if l.x != nil {
		n := len(x) / (l.p * l.columns)
		for i := range n {
			row := l.x.RawRowView(i)
			for k := range row {
				row[k] = x[k*n+i]
			}
		}
		estimate = l.x
	}
	m := l.score(estimate, s)
	l.scored += time.Since(start)
	return m.XMSEScaled, m.SMSEScaled
}

// score compares; while a complex run goes on its phases are not shown, and of s nothing is known.
func (l *live) score(x *mat.Dense, s []float64) calamp.Metrics {
	if l.columns == 2 {
		return calamp.ScoreComplex(x, nil, calamp.Truth{X: l.truth.X})
	}
	return calamp.Score(x, s, l.truth)
}

// end shows the result, with its error bars.
func (l *live) end(res *calamp.Result) {
	_, _, lo, hi := res.SIntervals(0.95)
	_, _, below, above := res.SIntervals(math.Erf(1 / math.Sqrt2))
	f := page.Frame{
		At: res.Iterations, S: res.S, SD: make([]float64, l.m), Lo: lo, Hi: hi, Broken: res.Broken, Noise: res.NoiseVar, Offset: res.Offset,
		Z: make([]float64, l.m), Count: make([]float64, l.m), Flagged: []page.Flag{},
		Signals: l.signals(res.X.At), Phase: res.Phase,
	}
	for mu, v := range res.SVar {
		f.SD[mu] = math.Sqrt(v)
		if res.Phase != nil { // SVar has both parts of s, of which one is across it
			f.SD[mu] = 0.5 * (above[mu] - below[mu])
		}
		f.Z[mu], f.Count[mu] = offness(res.ResidualsOf(mu))
		f.Count[mu] /= float64(l.columns)
	}
	for _, b := range res.BrokenSensors {
		f.Flagged = append(f.Flagged, page.Flag{Sensor: b.Sensor, Reason: "broken"})
	}
	l.board.Frame(f)
}

// offness is the root mean square of a sensor's residuals, and how many there are; one
// that is exactly 0 has no reading.
func offness(residuals []float64) (rms, count float64) {
	for _, r := range residuals {
		if r != 0 {
			rms += r * r
			count++
		}
	}
	return math.Sqrt(rms / math.Max(count, 1)), count
}
