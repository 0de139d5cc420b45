package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Row is what became of a point.
type Row struct {
	Key   string `json:"key"`
	Point Point  `json:"point"`

	Status     string    `json:"status"`                // done, converged, not converged, diverged, given up, or failed
	Class      string    `json:"error_class,omitempty"` // of a failure: panic, timeout, out-of-memory, lost, error
	Message    string    `json:"error,omitempty"`
	Iterations int       `json:"iterations,omitempty"` // of the solver, over all samples
	Measures   []Measure `json:"measures,omitempty"`

	// Where and when; no part of the merged table.
	WallS   float64   `json:"wall_s"`
	Done    time.Time `json:"done"`
	Version string    `json:"version"`
	Host    string    `json:"host"`
}

// MeasuresAt are the measures, those of a stream that was given up also at the later samples
// that were to be recorded: it was given up since it would stay as it is.
func (r *Row) MeasuresAt() []Measure {
	if r.Status != statusGivenUp || len(r.Measures) == 0 || !r.Point.Algorithm.online() {
		return r.Measures
	}
	out, last := slices.Clone(r.Measures), r.Measures[len(r.Measures)-1]
	if !r.Point.records(last.Sample - 1) { // where it was given up
		out = out[:len(out)-1]
	}
	for k := last.Sample; k < r.Point.P; k++ {
		if r.Point.records(k) {
			last.Sample = k + 1
			out = append(out, last)
		}
	}
	return out
}

// Failed says whether the point gave no result.
func (r *Row) Failed() bool { return r.Status == statusFailed }

const (
	statusDone         = "done" // of what does not iterate
	statusConverged    = "converged"
	statusNotConverged = "not converged"
	statusDiverged     = "diverged"
	statusGivenUp      = "given up"
	statusFailed       = "failed"
)

// Classes of failures.
const (
	ClassPanic       = "panic"
	ClassTimeout     = "timeout"
	ClassOutOfMemory = "out-of-memory"
	ClassLost        = "lost"  // the worker died on it, again and again
	ClassError       = "error" // anything else
)

// Measure is what was measured at one moment of a run: at its end, after a
// sample of a stream, or after an iteration.
type Measure struct {
	Sample    int    `json:"sample,omitempty"` // online, from 1
	Iteration int    `json:"iteration,omitempty"`
	Values    Values `json:"values"`
}

// Values are numbers by the names of [Columns]. What is not known, or not
// finite, is not there.
type Values map[string]float64

// Get is NaN for what is not there.
func (v Values) Get(name string) float64 {
	if x, ok := v[name]; ok {
		return x
	}
	return math.NaN()
}

func (v Values) set(name string, x float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		v[name] = x
	}
}

// Columns are the names of all numbers that rows can hold, in the order of the
// table.
var Columns = []string{
	"x_mse", "x_mse_scaled", "x_one_minus_ncc",
	"s_mse", "s_mse_scaled", "s_one_minus_ncc", "s_one_minus_cncc", "scale",
	"x_var", "s_var", "scale_sd",
	"x_in_50", "x_in_90", "x_in_99", "s_in_50", "s_in_90", "s_in_99",
	"v_diagonal", "v_off_diagonal",
	"se_x_mse", "se_x_mse_error", "se_s_mse", "se_s_mse_error", "se_m_hat",
	"alpha_min", "alpha_cs", "alpha_cal", "alpha_cal_error", "alpha_it", "alpha_it_error",
}

// complexColumns are those that only complex problems have.
var complexColumns = []string{"phase_shift", "phase_sd", "phase_in_50", "phase_in_90", "phase_in_99"}

// failure is an error with its class.
type failure struct {
	class string
	err   error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed is the row of a point that gave no result.
func failed(p Point, class string, err error) Row {
	return Row{Status: statusFailed, Class: class, Message: err.Error(), Key: p.Key(), Point: p}
}

// Lost is the row of a point on which every worker that had it died.
func Lost(p Point, times int, by Stamp) Row {
	row := failed(p, ClassLost, fmt.Errorf("given out %d times, and no worker came back with it", times))
	by.mark(&row)
	return row
}

func classOf(err error) string {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.class
	}
	return ClassError
}

// Stamp says who made a row.
type Stamp struct{ Version, Host string }

func (s Stamp) mark(r *Row) {
	r.Version, r.Host, r.Done = s.Version, s.Host, time.Now().UTC().Truncate(time.Millisecond)
}
