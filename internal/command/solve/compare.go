package solve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/baseline"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/report"
)

// compared is one other answer to the same readings, for --compare; Skipped says
// why there is none.
type compared struct {
	Method     string         `json:"method"`
	Skipped    string         `json:"skipped,omitempty"`
	Status     *calamp.Status `json:"status,omitempty"`
	Reason     string         `json:"reason,omitempty"`
	Iterations int            `json:"iterations,omitempty"`
	WallS      float64        `json:"wall_s,omitempty"`
	Misfit     *float64       `json:"misfit,omitempty"` // ‖sY - WX‖/‖sY‖
	Metrics    facts.Metrics  `json:"metrics,omitempty"`

	res *calamp.Result
}

// comparisons are the blind result itself, then the other methods.
type comparisons []compared

// compare solves the problem in the other ways. A method in which calamp itself
// fails is left out; then there is an error, too.
func (s *solve) compare(ctx context.Context, data *dataset.Problem, p *calamp.Problem, blind *calamp.Result) (comparisons, error) {
	opt := s.solver.Options()
	calibrated := func(p *calamp.Problem, err error) (*calamp.Result, error) {
		if err != nil {
			return nil, err
		}
		return runSolver(ctx, s.Console, "comparing", p, opt)
	}
	methods := []struct {
		name string
		run  func() (*calamp.Result, error)
	}{
		{"blind", func() (*calamp.Result, error) { return blind, nil }},
		{"gains ignored", func() (*calamp.Result, error) { return calibrated(baseline.Ignoring(p)) }},
		{"gains known", func() (*calamp.Result, error) {
			if data.Truth.S == nil {
				return nil, errors.New("the problem file has no s0")
			}
			return calibrated(baseline.Knowing(p, data.Truth.S))
		}},
		{"alternating", func() (*calamp.Result, error) { return baseline.Alternating(ctx, p, s.solver.Options()) }},
		{"convex (ℓ1)", func() (*calamp.Result, error) { return baseline.L1(ctx, p) }},
	}
	var all comparisons
	var bugs error
	for _, m := range methods {
		res, err := crash.Try(m.run)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		if _, bug := errors.AsType[*crash.Error](err); bug {
			bugs = errors.Join(bugs, fmt.Errorf("--compare, %s: %w", m.name, err))
		}
		c := compared{Method: m.name}
		if err != nil {
			c.Skipped = err.Error()
		} else {
			c.res, c.Status, c.Reason = res, &res.Status, res.Reason
			c.Iterations, c.WallS = res.Iterations, res.Wall.Seconds()
			misfit, err := baseline.Misfit(p, res.X, res.S)
			if err != nil {
				return all, err
			}
			c.Misfit, c.Metrics = console.Known(misfit), s.metricsOf(data, res)
		}
		all = append(all, c)
	}
	return all, bugs
}

// baselines are for the report, which has the blind result already.
func (all comparisons) baselines() []report.Baseline {
	var out []report.Baseline
	for _, c := range all {
		if c.res != nil && c.Method != "blind" {
			out = append(out, report.Baseline{Name: c.Method, X: c.res.X, Metrics: c.Metrics.Fields()})
		}
	}
	return out
}

// table compares the answers.
func (all comparisons) table(text *console.Summary) {
	if len(all) == 0 {
		return
	}
	withX := !math.IsNaN(all[0].Metrics.Of("x_mse_scaled"))
	text.WriteString("\n")
	fmt.Fprintf(text, "%-14s %-14s %10s %10s", "", "status", "misfit", "time")
	if withX {
		fmt.Fprintf(text, " %12s", "MSE of x")
	}
	text.WriteString("\n")
	for _, c := range all {
		if c.Skipped != "" {
			fmt.Fprintf(text, "%-14s left out: %s\n", c.Method, c.Skipped)
			continue
		}
		wall := time.Duration(c.WallS * float64(time.Second))
		fmt.Fprintf(text, "%-14s %-14v %10s %10v", c.Method, *c.Status, console.Brief(console.OrNaN(c.Misfit)), wall.Round(time.Millisecond))
		if withX {
			fmt.Fprintf(text, " %12s", console.Brief(c.Metrics.Of("x_mse_scaled")))
		}
		text.WriteString("\n")
	}
	if withX {
		text.WriteString("(errors after correcting the scale)\n")
	}
}
