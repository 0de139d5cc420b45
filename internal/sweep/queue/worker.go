//go:build !small

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/sweep"
)

// Worker takes tasks from a queue, from whatever sweeps there are.
type Worker struct {
	Queue   *Queue
	Stamp   sweep.Stamp
	Workers int           // points at a time
	Idle    time.Duration // end when there was nothing to do for so long; 0 never ends

	// Each, or nil, is called with every row made here, one at a time.
	Each func(sweep.Row)

	one sync.Mutex
}

// mostDeliveries of one point. Then it is taken to be what kills the workers.
const mostDeliveries = 5

// Run works until ctx ends, then finishes the points under way and hands the
// rest of their tasks back.
func (w *Worker) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var busy sync.WaitGroup
	for range max(1, w.Workers) {
		busy.Go(func() {
			if err := w.loop(ctx); err != nil {
				stop(err)
			}
		})
	}
	busy.Wait()
	return context.Cause(ctx)
}

// loop takes one task after the other. While the rows of one are being stored
// the next is computed already.
func (w *Worker) loop(ctx context.Context) (err error) {
	stored := make(chan error, 1)
	stored <- nil
	defer func() { err = errors.Join(err, <-stored) }()
	idle := time.Now()
	for ctx.Err() == nil {
		m, err := w.next(ctx)
		switch {
		case err == nil:
			store := w.take(ctx, m)
			if err := <-stored; err != nil {
				stored <- nil
				return err
			}
			go func() { stored <- store() }()
			idle = time.Now()
		case ctx.Err() != nil:
			return nil
		case !transient(err):
			return fmt.Errorf("stream %s: %w", taskStream, err)
		case w.Idle > 0 && time.Since(idle) > w.Idle:
			return nil
		}
	}
	return nil
}

// next waits for a task, not for long.
func (w *Worker) next(ctx context.Context) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, signOfLife)
	defer cancel()
	return w.Queue.workers.Next(jetstream.FetchContext(ctx))
}

// take does a task. What it returns stores the rows, hands back what was not
// done, and then acknowledges the task.
func (w *Worker) take(ctx context.Context, m jetstream.Msg) (store func() error) {
	stop := intake.KeepAlive(m, signOfLife)
	var t task
	meta, err := m.Metadata()
	if err == nil {
		err = json.Unmarshal(m.Data(), &t)
	}
	if err != nil || len(t.Points) == 0 {
		stop()
		return func() error { return m.TermWithReason("calamp: no task") }
	}
	rest, size := t.Points, 1
	var rows []sweep.Row
	switch {
	case meta.NumDelivered > 1 && len(t.Points) > 1:
		// Somebody died on one of these: it is not to take the others with it.
	case meta.NumDelivered > mostDeliveries:
		rows, rest = append(rows, sweep.Lost(t.Points[0], mostDeliveries, w.Stamp)), nil
	default:
		rows, rest = w.compute(ctx, t)
		size = len(rest)
	}
	always := context.WithoutCancel(ctx)
	return func() error {
		defer stop()
		if err := w.deliver(always, t.Sweep, rows); err != nil {
			return err
		}
		if err := w.handBack(always, t, rest, size); err != nil {
			return err
		}
		return m.Ack()
	}
}

// compute runs points until ctx ends, and finishes the one under way then.
func (w *Worker) compute(ctx context.Context, t task) (rows []sweep.Row, rest []sweep.Point) {
	runner := sweep.Runner{Limits: t.Limits, Stamp: w.Stamp}
	for rest = t.Points; len(rest) > 0 && ctx.Err() == nil; rest = rest[1:] {
		row, _ := runner.Run(context.WithoutCancel(ctx), rest[0])
		rows = append(rows, row)
		w.tell(row)
	}
	return rows, rest
}

func (w *Worker) tell(row sweep.Row) {
	if w.Each != nil {
		w.one.Lock()
		defer w.one.Unlock()
		w.Each(row)
	}
}

// handBack makes tasks of size points each of what was not done.
func (w *Worker) handBack(ctx context.Context, t task, points []sweep.Point, size int) error {
	for len(points) > 0 {
		text, err := json.Marshal(task{t.Sweep, t.Limits, points[:size]})
		if err != nil {
			return err
		}
		if err := w.publish(ctx, taskSubject+"."+t.Sweep, text); err != nil {
			return err
		}
		points = points[size:]
	}
	return nil
}

// mostBytes of rows go into one message: half of what a server takes by default.
const mostBytes = 512 << 10

// deliver publishes rows, in as few messages as will take them.
func (w *Worker) deliver(ctx context.Context, id string, rows []sweep.Row) error {
	if len(rows) == 0 {
		return nil
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	if len(text) > mostBytes && len(rows) > 1 {
		half := len(rows) / 2
		if err := w.deliver(ctx, id, rows[:half]); err != nil {
			return err
		}
		return w.deliver(ctx, id, rows[half:])
	}
	return w.publish(ctx, rowSubject+"."+id, text)
}

// holdOut is how long a worker tries to hand in what it has done.
const holdOut = 10 * time.Minute

// publish waits until a message is stored, through restarts of the server. A
// message that was stored twice for that is harmless: rows have keys.
func (w *Worker) publish(ctx context.Context, subject string, text []byte) error {
	for start := time.Now(); ; time.Sleep(signOfLife) {
		wait, cancel := context.WithTimeout(ctx, patience)
		_, err := w.Queue.js.Publish(wait, subject, text)
		cancel()
		if err == nil {
			return nil
		}
		if !transient(err) || time.Since(start) > holdOut {
			return fmt.Errorf("%s: %w", subject, err)
		}
	}
}
