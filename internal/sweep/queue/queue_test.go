package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/sweep"
)

func points(t *testing.T, seeds int) []sweep.Point {
	t.Helper()
	s, err := sweep.Parse("t.toml", fmt.Sprintf("[[grid]]\nalgorithm = \"rehearsal\"\nseeds = %d\n[rehearsal]\nwork = \"10ms\"", seeds))
	if err != nil {
		t.Fatal(err)
	}
	return s.Points()
}

func opened(t *testing.T, redeliver time.Duration) *Queue {
	t.Helper()
	e, err := intake.StartEmbedded(intake.EmbeddedOptions{Folder: t.TempDir(), Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	q, err := Open(t.Context(), e.JetStream(), redeliver)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// rows collects what lands.
type rows struct {
	sync.Mutex
	all []sweep.Row
}

func (r *rows) each(more []sweep.Row) error {
	r.Lock()
	defer r.Unlock()
	r.all = append(r.all, more...)
	return nil
}

// Two that collect the rows of one sweep would share them out: the second is
// refused, and may come back when the first is gone.
func TestOneCollector(t *testing.T) {
	t.Parallel()
	q := opened(t, 0)
	first, stop := context.WithCancel(t.Context())
	job := Job{Points: points(t, 3), Missing: points(t, 3), Batch: 1, Each: new(rows).each}
	ended := make(chan error, 1)
	go func() { ended <- q.Run(first, &job, func() {}) }()
	for { // until the first has claimed it
		if _, err := q.js.Conn().Request(ownerSubject+"."+identity(job.Points), nil, time.Second); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	second := job
	if err := q.Run(t.Context(), &second, func() {}); err == nil || !strings.Contains(err.Error(), "another run, on ") {
		t.Errorf("beside the first: %v", err)
	}
	stop()
	<-ended
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := q.Run(ctx, &second, func() {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the first has gone: %v", err)
	}
}

// A point on which every worker dies becomes a row of its own class.
func TestLost(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for redeliveries")
	}
	t.Parallel()
	q := opened(t, 200*time.Millisecond)
	done, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for range mostDeliveries { // workers that take it and are never heard of again
			for done.Err() == nil {
				if _, err := q.workers.Next(jetstream.FetchMaxWait(5 * time.Second)); err == nil {
					break
				}
			}
		}
		(&Worker{Queue: q}).Run(done)
	}()
	all, got := points(t, 1), &rows{}
	if err := q.Run(t.Context(), &Job{Points: all, Missing: all, Each: got.each}, stop); err != nil {
		t.Fatal(err)
	}
	if len(got.all) != 1 || got.all[0].Class != sweep.ClassLost {
		t.Errorf("%+v", got.all)
	}
}

// A worker that is asked to leave hands back what it has not done.
func TestLeavingWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a server")
	}
	t.Parallel()
	q := opened(t, time.Minute) // nothing would be redelivered in time
	all, got := points(t, 40), &rows{}
	done, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for range 5 {
			leaving, leave := context.WithCancel(done)
			w := &Worker{Queue: q, Each: func(sweep.Row) { leave() }}
			w.Run(leaving)
			leave()
		}
		(&Worker{Queue: q}).Run(done)
	}()
	if err := q.Run(t.Context(), &Job{Points: all, Missing: all, Batch: 40, Each: got.each}, stop); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, r := range got.all {
		seen[r.Key] = true
	}
	if len(got.all) != 40 || len(seen) != 40 {
		t.Errorf("%d rows of %d points", len(got.all), len(seen))
	}
}

// What workers hand in while no job collects lands with the next run.
func TestInterruptedJob(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a server")
	}
	t.Parallel()
	q := opened(t, time.Minute)
	all, got := points(t, 60), &rows{}
	working, stop := context.WithCancel(t.Context())
	defer stop()
	go (&Worker{Queue: q}).Run(working)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	job := &Job{Points: all, Missing: all, Batch: 3, Each: func(more []sweep.Row) error {
		cancel() // at the first rows
		return got.each(more)
	}}
	if err := q.Run(ctx, job, func() {}); err == nil {
		t.Fatal("an interrupted run ended without an error")
	}
	first := len(got.all)
	there := make(sweep.Rows)
	for i := range got.all {
		there.Add(&got.all[i])
	}
	job.Missing = there.Missing(all, false)
	if err := q.Run(t.Context(), job, stop); err != nil {
		t.Fatal(err)
	}
	if first == 0 || first >= 60 || len(got.all) != 60 {
		t.Errorf("%d rows, then %d", first, len(got.all))
	}
}
