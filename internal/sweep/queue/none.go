//go:build small

// Package queue is empty here: this program is built without NATS.
package queue

import (
	"context"
	"time"

	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/sweep"
)

// DefaultRedeliver is what it is with NATS, for the help.
const DefaultRedeliver = 15 * time.Second

// Queue is never open here.
type Queue struct{}

// Open says that there is no NATS.
func Open(context.Context, any, time.Duration) (*Queue, error) { return nil, intake.ErrNone }

// Job is as with NATS.
type Job struct {
	Points, Missing []sweep.Point
	Limits          sweep.Limits
	Batch           int
	Each            func([]sweep.Row) error
}

// Run says that there is no NATS.
func (q *Queue) Run(context.Context, *Job, func()) error { return intake.ErrNone }

// Worker is as with NATS.
type Worker struct {
	Queue   *Queue
	Stamp   sweep.Stamp
	Workers int
	Idle    time.Duration
	Each    func(sweep.Row)
}

// Run says that there is no NATS.
func (w *Worker) Run(context.Context) error { return intake.ErrNone }
