//go:build !small

// Package queue runs the points of a sweep on many machines, by way of two work
// queues of a NATS JetStream: tasks, which workers take, and rows, which the one
// who asked collects. Workers come and go as they like. A task is acknowledged
// when its rows are stored; that of a worker which died comes to another one.
// Rows are distinguished by their keys, and land once.
package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/calamp/calamp/internal/sweep"
)

// Queue is the two queues on a server.
type Queue struct {
	js          jetstream.JetStream
	tasks, rows jetstream.Stream
	workers     jetstream.Consumer
}

// task is some points for one worker.
type task struct {
	Sweep  string        `json:"sweep"`
	Limits sweep.Limits  `json:"limits,omitzero"`
	Points []sweep.Point `json:"points"`
}

// The version of the points' computation is in all names: a worker of another
// version never sees a task whose rows it would make differently.
var (
	taskSubject  = fmt.Sprintf("calamp.sweep.v%d.tasks", sweep.Version)
	rowSubject   = fmt.Sprintf("calamp.sweep.v%d.rows", sweep.Version)
	ownerSubject = fmt.Sprintf("calamp.sweep.v%d.owner", sweep.Version)
	taskStream   = fmt.Sprintf("CALAMP_SWEEP_V%d_TASKS", sweep.Version)
	rowStream    = fmt.Sprintf("CALAMP_SWEEP_V%d_ROWS", sweep.Version)
)

const (
	// DefaultRedeliver is how long the server waits for a sign of life before it
	// gives a worker's task to another one.
	DefaultRedeliver = 15 * time.Second

	signOfLife = time.Second
	patience   = 10 * time.Second // with the server
)

// Open makes the queues where they are not there yet. With redeliver above 0 it
// also sets how long the server waits for a worker, [DefaultRedeliver] at first.
func Open(ctx context.Context, js jetstream.JetStream, redeliver time.Duration) (*Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q := &Queue{js: js}
	var err error
	if q.tasks, err = stream(ctx, js, taskStream, taskSubject); err != nil {
		return nil, err
	}
	if q.rows, err = stream(ctx, js, rowStream, rowSubject); err != nil {
		return nil, err
	}
	q.workers, err = q.tasks.Consumer(ctx, "workers")
	if err == nil && redeliver <= 0 {
		return q, nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("stream %s: %w", taskStream, err)
	}
	if redeliver <= 0 {
		redeliver = DefaultRedeliver
	}
	q.workers, err = q.tasks.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", Description: "calamp sweep worker",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: redeliver, MaxDeliver: -1, MaxAckPending: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", taskStream, err)
	}
	return q, nil
}

func stream(ctx context.Context, js jetstream.JetStream, name, subject string) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: name, Subjects: []string{subject + ".>"},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	return s, nil
}

// identity of a sweep is that of its points.
func identity(points []sweep.Point) string {
	h := sha256.New()
	for _, p := range points {
		h.Write([]byte(p.Key()))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Job is a sweep whose points are to be run by whoever works on the queue.
type Job struct {
	Points  []sweep.Point // all of the sweep's: what identifies it
	Missing []sweep.Point // those to be run
	Limits  sweep.Limits
	Batch   int // points a task, at most; see [sweep.Plan.BatchSize]

	// Each is called with rows as they come, each once. They are gone from the
	// server when it returns, so it must have put them on the disk.
	Each func([]sweep.Row) error
}

// Run hands the points out and collects the rows. When ctx ends it takes back
// what no worker has begun, waits for finish, which ends the workers of this
// process if there are any, collects what there is, and returns ctx's error.
// What other workers are still at comes with the next run of the same job.
func (q *Queue) Run(ctx context.Context, job *Job, finish func()) error {
	r := &run{Queue: q, Job: job, id: identity(job.Points), wanted: make(map[string]bool)}
	for _, p := range job.Missing {
		r.wanted[p.Key()] = true
	}
	always := context.WithoutCancel(ctx)
	release, err := r.claim()
	if err != nil {
		return err
	}
	defer release()
	if err := r.open(always); err != nil {
		return err
	}
	if err := r.collect(always, true); err != nil { // of an earlier run
		return err
	}
	if err := r.publish(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	if err = r.collect(ctx, false); err != nil {
		err = errors.Join(err, r.withdraw(always))
		finish()
		if ctx.Err() == nil {
			return err
		}
		return errors.Join(context.Cause(ctx), r.collect(always, true))
	}
	finish()
	return r.close(always)
}

type run struct {
	*Queue
	*Job
	id     string
	wanted map[string]bool // keys without a row
	back   jetstream.Consumer
}

// claim makes sure that no other process collects the rows of this job: two would
// share them out between them. While it holds the job it answers whoever asks.
func (r *run) claim() (release func(), err error) {
	conn, subject := r.js.Conn(), ownerSubject+"."+r.id
	switch m, err := conn.Request(subject, nil, signOfLife); {
	case err == nil:
		return nil, fmt.Errorf("the rows of this sweep are being collected by another run, on %s", m.Data)
	case !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrTimeout):
		return nil, fmt.Errorf("asking who collects this sweep: %w", err)
	}
	name, err := os.Hostname()
	if err != nil {
		name = "an unknown machine"
	}
	answer, err := conn.Subscribe(subject, func(m *nats.Msg) {
		_ = m.Respond([]byte(fmt.Sprintf("%s (process %d)", name, os.Getpid()))) // who asks asks once more
	})
	if err != nil {
		return nil, fmt.Errorf("claiming this sweep: %w", err)
	}
	return func() { _ = answer.Unsubscribe() }, nil // no one is left to answer
}

func (r *run) open(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.back, err = r.rows.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: r.id, Description: "calamp sweep run", FilterSubject: rowSubject + "." + r.id,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: -1,
	})
	if err != nil {
		return fmt.Errorf("stream %s: %w", rowStream, err)
	}
	return r.withdraw(ctx) // what an earlier run left there
}

// withdraw removes the tasks that no worker has done.
func (r *run) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.tasks.Purge(ctx, jetstream.WithPurgeSubject(taskSubject+"."+r.id)); err != nil {
		return fmt.Errorf("stream %s: %w", taskStream, err)
	}
	return nil
}

// close removes what the server keeps about the job.
func (r *run) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return errors.Join(
		r.withdraw(ctx),
		r.rows.Purge(ctx, jetstream.WithPurgeSubject(rowSubject+"."+r.id)), // of points run twice
		r.rows.DeleteConsumer(ctx, r.id),
	)
}

func (r *run) publish(ctx context.Context) error {
	var points []sweep.Point
	for _, p := range sweep.InTurn(r.Missing) {
		if r.wanted[p.Key()] {
			points = append(points, p)
		}
	}
	var stored []jetstream.PubAckFuture
	for len(points) > 0 && ctx.Err() == nil {
		n := r.share(len(points))
		text, err := json.Marshal(task{r.id, r.Limits, points[:n]})
		if err != nil {
			return err
		}
		future, err := r.js.PublishAsync(taskSubject+"."+r.id, text)
		if err != nil {
			return fmt.Errorf("stream %s: %w", taskStream, err)
		}
		stored, points = append(stored, future), points[n:]
	}
	for _, future := range stored {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return fmt.Errorf("stream %s: %w", taskStream, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// usualWorkers is how many workers the last tasks should be enough for.
const usualWorkers = 16

// share is how many of the points left make the next task: fewer towards the end,
// so that no worker is still busy with many when the others are done.
func (r *run) share(left int) int { return max(1, min(r.Batch, left/usualWorkers)) }

// collect takes rows until all are there; with drain, until the server has none.
func (r *run) collect(ctx context.Context, drain bool) error {
	for len(r.wanted) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		wait := signOfLife
		if drain {
			wait = 100 * time.Millisecond
		}
		m, err := r.back.Next(jetstream.FetchMaxWait(wait))
		switch {
		case err == nil:
			if err := r.take(m); err != nil {
				return err
			}
		case !transient(err):
			return fmt.Errorf("stream %s: %w", rowStream, err)
		case drain:
			return nil
		}
	}
	return nil
}

// transient errors pass: nothing came, or the connection is being taken up again.
func transient(err error) bool {
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoMessages) ||
		errors.Is(err, jetstream.ErrNoHeartbeat) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrNoResponders)
}

func (r *run) take(m jetstream.Msg) error {
	var rows, fresh []sweep.Row
	if err := json.Unmarshal(m.Data(), &rows); err != nil {
		return m.TermWithReason("calamp: no rows")
	}
	for _, row := range rows {
		if r.wanted[row.Key] {
			delete(r.wanted, row.Key)
			fresh = append(fresh, row)
		}
	}
	if len(fresh) > 0 {
		if err := r.Each(fresh); err != nil {
			return err
		}
	}
	return m.Ack()
}
