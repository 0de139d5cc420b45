package sweep

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/calamp/calamp/internal/crash"
)

// Runner runs single points. Its zero value is ready.
type Runner struct {
	Limits Limits
	Stamp  Stamp

	drawn matrices

	// compute replaces the computation in tests.
	compute func(ctx context.Context, p Point, threads int) (*outcome, error)
}

// outcome is what a computation gives.
type outcome struct {
	status     string
	iterations int
	measures   []Measure
}

// grace is how long a point whose time is up may take to notice.
const grace = 2 * time.Second

// Run computes a point. Whatever happens is a row, except that ctx ended: then
// ok is false, and the point is to be run again.
func (r *Runner) Run(ctx context.Context, p Point) (row Row, ok bool) {
	start := time.Now()
	out, err := r.guarded(ctx, p)
	switch {
	case ctx.Err() != nil:
		return Row{}, false
	case err != nil:
		row = failed(p, classOf(err), err)
	default:
		row = Row{
			Key: p.Key(), Point: p, Status: out.status,
			Iterations: out.iterations, Measures: out.measures,
		}
	}
	row.WallS = time.Since(start).Seconds()
	r.Stamp.mark(&row)
	return row, true
}

// guarded bounds a point's time and memory, and turns a panic into an error.
func (r *Runner) guarded(ctx context.Context, p Point) (*outcome, error) {
	if need, have := p.Memory(), r.Limits.memory(); need > have {
		return nil, &failure{ClassOutOfMemory, fmt.Errorf("needs about %v, and may have %v", need, have)}
	}
	limit := time.Duration(r.Limits.Timeout)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	type answer struct {
		out *outcome
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		out, err := r.recovered(ctx, p)
		answers <- answer{out, err}
	}()
	select {
	case a := <-answers:
		return a.out, timedOut(ctx, limit, a.err)
	case <-ctx.Done():
	}
	// A computation that does not look at its context is left behind.
	select {
	case a := <-answers:
		return a.out, timedOut(ctx, limit, a.err)
	case <-time.After(grace):
		return nil, timedOut(ctx, limit, ctx.Err())
	}
}

var errTimeout = errors.New("timeout")

// timedOut names the reason of a computation that was cancelled because its
// time was up.
func timedOut(ctx context.Context, limit time.Duration, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return &failure{ClassTimeout, fmt.Errorf("not done after %v", limit)}
	}
	return err
}

// collectAbove is how much memory a point must have taken for it to be collected
// at once.
const collectAbove = baseMemory + 8e6

func (r *Runner) recovered(ctx context.Context, p Point) (out *outcome, err error) {
	if p.Memory() > collectAbove {
		// The collector waits until the heap has doubled. Left to it, one large
		// point after the other takes twice the memory of one.
		defer runtime.GC()
	}
	defer func() {
		if v := recover(); v != nil {
			bug := crash.Of(v)
			err = &failure{ClassPanic, fmt.Errorf("%v (%s)", bug.Value, bug.Where)}
		}
	}()
	compute := r.compute
	if compute == nil {
		compute = r.computePoint
	}
	return compute(ctx, p, max(1, r.Limits.Threads))
}

// computePoint is the pure function that a point is.
func (r *Runner) computePoint(ctx context.Context, p Point, threads int) (*outcome, error) {
	if p.Algorithm.synthetic() {
		return r.solve(ctx, p, threads)
	}
	return withoutProblem(ctx, p)
}

// withoutProblem computes what needs no problem drawn at random.
func withoutProblem(ctx context.Context, p Point) (*outcome, error) {
	switch p.Algorithm {
	case SE:
		return evolveOffline(ctx, p)
	case SEOnline:
		return evolveOnline(ctx, p)
	case Threshold:
		return thresholds(ctx, p)
	case Rehearsal:
		return rehearse(ctx, p)
	}
	return nil, fmt.Errorf("there is no algorithm %q", p.Algorithm)
}

// solve solves a problem drawn at random.
func (r *Runner) solve(ctx context.Context, p Point, threads int) (*outcome, error) {
	instance, done, err := r.draw(p)
	defer done()
	switch {
	case err != nil:
		return nil, err
	case p.Algorithm == Online:
		return solveOnline(ctx, p, threads, instance)
	}
	return solveOffline(ctx, p, threads, instance)
}
