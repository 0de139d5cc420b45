package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/page"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/teacher"
)

// tolerance is that of pictures: a thousandth of what they show.
const tolerance = 1e-4

// model reads density, p, noise_var, lo and hi.
func (q *query) model() evolution.Model {
	m := evolution.Model{
		Signal:   prior.GaussBernoulli{Density: q.number("density", 1e-3, 1), SignalVar: 1},
		NoiseVar: q.number("noise_var", 0, 1),
		P:        q.whole("p", 1, 1000),
	}
	lo, hi := q.number("lo", 1e-3, 1e3), q.number("hi", 1e-3, 1e3)
	if lo < hi {
		m.Gain = channel.Uniform(lo, hi)
	} else {
		m.Gain = evolution.Known(lo)
	}
	return m
}

// tables are those of the latest models: all that a slider of ρ, α or Δ asks for, and a plane, share one.
var tables struct {
	sync.Mutex
	latest []modelTable
}

type modelTable struct {
	p     int
	gain  channel.GainPrior
	table *evolution.Table
}

func tableOf(m evolution.Model) *evolution.Table {
	const most = 32
	tables.Lock()
	defer tables.Unlock()
	for _, t := range tables.latest {
		if t.p == m.P && t.gain == m.Gain {
			return t.table
		}
	}
	t := modelTable{m.P, m.Gain, evolution.NewTable(m.P, m.Gain, tolerance)}
	tables.latest = append(tables.latest[max(0, len(tables.latest)-most+1):], t)
	return t.table
}

// theoryTime bounds one question, waiting for its turn included.
const theoryTime = 30 * time.Second

// theoryWork bounds what is computed for it, in values of integrands: 2 to 5 s of one core. The most that sliders can ask for takes two thirds
// of it (P = 30, 1 ± 0.9, Δ = 1e-12: 1.8e8), once, for the table.
var theoryWork int64 = 1 << 28

var theory = newTurns()

// bounded runs f in its turn, unless the visitor goes before.
func bounded(r *http.Request, f func(context.Context) error) (err error) {
	if err := theory.enter(); err != nil {
		return err
	}
	defer theory.leave()
	ctx, cancel := context.WithTimeout(r.Context(), theoryTime)
	defer cancel()
	if failed := theory.now(ctx, func() { err = f(ctx) }); failed != nil {
		return failed
	}
	return err
}

func answer(w http.ResponseWriter, err error, v any) {
	code := http.StatusUnprocessableEntity
	switch {
	case err == nil:
		page.JSON(w, http.StatusOK, v)
		return
	case errors.Is(err, errBusy):
		code = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		code, err = http.StatusServiceUnavailable, fmt.Errorf("no answer within %v: the machine is busy, or the question large", theoryTime)
	case errors.Is(err, evolution.ErrWork):
		err = errors.New("too much work for a page: gains in a narrower range take less, and fewer signals; what was computed is kept for the next time, calamp se has no bound")
	}
	http.Error(w, err.Error(), code)
}

// trajectory is state evolution of offline cal-AMP, 60 iterations.
func trajectory(w http.ResponseWriter, r *http.Request) {
	q := &query{Values: r.URL.Query()}
	m := q.model()
	m.Alpha = q.number("alpha", 1e-2, 10)
	if q.failed(w) {
		return
	}
	var found struct {
		X []*float64 `json:"x_mse"`
		S []*float64 `json:"s_mse"`
	}
	err := bounded(r, func(ctx context.Context) error {
		t, err := evolution.Offline(ctx, m, &evolution.Options{Tol: tolerance, Iterations: 60, Table: tableOf(m), Work: theoryWork})
		if t != nil {
			for _, step := range t.Steps {
				found.X = append(found.X, console.Known(step.MSEX.Value))
				found.S = append(found.S, console.Known(step.MSES.Value))
			}
		}
		return err
	})
	answer(w, err, found)
}

// limits are the thresholds at a density; those that are not finite are missing.
type limits struct {
	Min *float64 `json:"alpha_min"`
	CS  *float64 `json:"alpha_cs"`
	Cal *float64 `json:"alpha_cal"`
}

func limitsOf(ctx context.Context, m evolution.Model) (limits, error) {
	l := limits{Min: console.Known(recovery.AlphaMin(m.Signal.Density, m.P)), CS: console.Known(recovery.AlphaCS(m.Signal))}
	cal, err := evolution.AlphaCal(ctx, m.Signal, m.Gain, m.NoiseVar, m.P, &evolution.ThresholdOptions{Tol: 1e-3, Table: tableOf(m), Work: theoryWork})
	l.Cal = console.Known(cal.Value)
	return l, err
}

// thresholds are α_min, α_CS and α_cal.
func thresholds(w http.ResponseWriter, r *http.Request) {
	q := &query{Values: r.URL.Query()}
	m := q.model()
	if q.failed(w) {
		return
	}
	var found limits
	err := bounded(r, func(ctx context.Context) (err error) {
		found, err = limitsOf(ctx, m)
		return err
	})
	answer(w, err, found)
}

// The plane of density and α.
const (
	planeCells           = 20
	densityLo, densityHi = 0.05, 1.0
	alphaLo, alphaHi     = 0.1, 2.0
	planeTime            = time.Minute
)

// cell is the error at the fixed point, in units of the signals' power, or with column
// -1 the thresholds at the row's density.
type cell struct {
	Row    int      `json:"row"`    // of density, from the smallest
	Column int      `json:"column"` // of α
	Error  *float64 `json:"error"`
	*limits
}

// plane computes the fixed points of a plane of 20×20 cells, a line of JSON each, the
// coarse picture first. It ends when the visitor goes.
func plane(w http.ResponseWriter, r *http.Request) {
	q := &query{Values: r.URL.Query()}
	q.Set("density", "1")
	m := q.model()
	if q.failed(w) {
		return
	}
	if err := theory.enter(); err != nil {
		answer(w, err, nil)
		return
	}
	defer theory.leave()
	ctx, cancel := context.WithTimeout(r.Context(), planeTime)
	defer cancel()
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{})
	control.SetWriteDeadline(time.Now().Add(planeTime + time.Second))
	w.Header().Set("Content-Type", "application/x-ndjson")
	cells := coarseFirst(planeCells)
	results := make(chan cell)
	next := make(chan [2]int)
	var workers sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for at := range next {
				var c cell
				if theory.later(ctx, func() { c = planeCell(ctx, m, at) }) == nil {
					results <- c // to who may be slow: another cell is computed meanwhile
				}
			}
		})
	}
	go func() {
		defer close(results)
		defer workers.Wait()
		defer close(next)
		for _, at := range cells {
			select {
			case next <- at:
			case <-ctx.Done():
				return
			}
		}
	}()
	lines := json.NewEncoder(w)
	for c := range results {
		if ctx.Err() == nil && (lines.Encode(c) != nil || control.Flush() != nil) {
			cancel()
		}
	}
}

// planeCell is one fixed point, or the thresholds of a row; what is not to be had is missing.
func planeCell(ctx context.Context, m evolution.Model, at [2]int) cell {
	c := cell{Row: at[0], Column: at[1]}
	m.Signal.Density = densityLo + (densityHi-densityLo)*float64(c.Row)/(planeCells-1)
	m.Alpha = alphaLo + (alphaHi-alphaLo)*float64(c.Column)/(planeCells-1)
	if c.Column < 0 {
		l, _ := limitsOf(ctx, m)
		c.limits = &l
		return c
	}
	if p, err := evolution.FixedPoint(ctx, m, &evolution.Options{Tol: tolerance, Iterations: 2000, Table: tableOf(m), Work: theoryWork}); err == nil {
		c.Error = console.Known(p.MSEX.Value / (m.Signal.Density * m.Signal.SignalVar))
	}
	return c
}

// coarseFirst are the cells of an n×n plane, every eighth of them first, then every
// fourth, and so on; the thresholds of a row, column -1, come with its first cells.
func coarseFirst(n int) [][2]int {
	var cells [][2]int
	seen := make(map[[2]int]bool)
	add := func(row, column int) {
		if at := [2]int{row, column}; !seen[at] {
			seen[at] = true
			cells = append(cells, at)
		}
	}
	for step := 8; step > 0; step /= 2 {
		for row := 0; row < n; row += step {
			add(row, -1)
			for column := 0; column < n; column += step {
				add(row, column)
			}
		}
	}
	return cells
}

// simulate solves a real instance of the model: density, alpha, p, noise_var, lo, hi,
// with n entries a signal and a seed. The solver is given the model, and is else as it
// always is.
func (s *server) simulate(w http.ResponseWriter, r *http.Request) {
	q := &query{Values: r.URL.Query()}
	m := q.model()
	m.Alpha = q.number("alpha", 1e-2, 10)
	n, seed := q.whole("n", 10, 4000), q.whole("seed", 0, math.MaxInt32)
	if q.failed(w) {
		return
	}
	t := teacher.Teacher{
		N: n, M: max(1, int(math.Round(m.Alpha*float64(n)))), P: m.P,
		Signal: m.Signal, Gain: m.Gain, NoiseVar: m.NoiseVar,
	}
	if float64(max(t.M, t.P))*float64(n) > s.entries {
		http.Error(w, "too large for a page: calamp simulate makes problems of any size", http.StatusBadRequest)
		return
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	flags := []string{"--density", number(m.Signal.Density), "--noise-var", number(m.NoiseVar)}
	if m.Gain.Lo < m.Gain.Hi {
		flags = append(flags, "--s-range", number(m.Gain.Lo)+","+number(m.Gain.Hi))
	}
	s.submit(w, &job{Name: "simulated", own: true, prepare: func(_ context.Context, folder string) ([]string, error) {
		in, err := t.Draw(uint64(seed))
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, "simulated.npz")
		return append([]string{path}, flags...), dataset.Save(path, &dataset.Problem{W: in.W, Y: in.Y, Truth: in.Truth})
	}}, "")
}
