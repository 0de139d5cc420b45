// Package stream takes samples in, durably: each one is solved, published,
// committed together with its number, and acknowledged, in this order, so that
// every sample counts once, however the process ends. It knows sources, a
// calibrator and a store; of the flags of a command, and of what is done with a
// sample afterwards, it knows nothing.
package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/online"
)

// Store keeps what was learned together with the number of the last sample, both
// or neither. [online.Store] is one.
type Store interface {
	Commit(state *online.State, sequence int64) error
}

// Fate is what became of an item of the stream.
type Fate uint8

// The fates.
const (
	Taken     Fate = iota // it was solved and committed, learned from or not
	Refused               // it is no sample
	Duplicate             // its number is not above the last one
	Skipped               // its number is below the first one that was asked for
	Noticed               // it is about the stream itself: messages that never came, for one
)

// Event tells what became of an item. What it points to is valid until the next
// one.
type Event struct {
	Fate     Fate
	Sequence int64  // -1 where a refused item has none
	Place    string // where it came from, as in "line 17"
	Stored   int64  // number of its message in the JetStream it came from, 0 elsewhere

	Estimate *online.Estimate // of one that was taken
	Err      error            // why it was refused, or what was noticed
	Missing  int64            // messages that never came

	Solving time.Duration
	Saving  time.Duration // publishing, committing and acknowledging

	line *Line // once it is made
}

// Sink receives events. Its error ends the stream.
type Sink interface {
	Put(e *Event) error
}

// SinkFunc is a function as a sink.
type SinkFunc func(e *Event) error

// Put calls the function.
func (f SinkFunc) Put(e *Event) error { return f(e) }

// Loop takes samples in. The order is what makes each of them count once:
//
//   - A sample is published before it is committed. When publishing fails, or the
//     process dies in between, the sample is not committed and not acknowledged: it
//     comes again, and is published again. Publish must recognise the repetition.
//   - What was learned and the number of the sample are committed together. A
//     sample whose number is not above the last one is dropped: it counted before.
//   - It is acknowledged only after its commit. When that fails it comes again, and
//     is dropped.
//   - The sinks are called last: what they show is safe.
//
// A sample that is being solved is finished when the context is cancelled; the
// loop ends before the next one.
type Loop struct {
	Source     intake.Source
	Calibrator *online.Calibrator
	Store      Store // nil where nothing is kept
	Publish    Sink  // nil where nothing is published; which receives samples only
	Sinks      []Sink
	Ended      func(*online.Together) // gets samples that were solved together because no others came; may be nil

	Last   int64 // number of the last sample taken in, [online.NoSequence] before any
	From   int64 // samples with numbers below are left out
	Limit  int   // samples to take in, 0 for all
	Frozen bool  // nothing is learned, so nothing is committed, and no number is a duplicate

	// Ahead is set when a sample was learned from and not committed: the calibrator
	// has learned more than the store.
	Ahead bool
}

// Resume lets the calibrator go on from what the store holds; a state that does
// not fit is [online.ErrStateDamaged]. The state is nil before the first commit.
func Resume(store *online.Store, c *online.Calibrator) (online.Saved, error) {
	saved, err := store.Load()
	if err != nil || saved.State == nil {
		return saved, err
	}
	if err := c.Restore(saved.State); err != nil {
		return saved, fmt.Errorf("%s: %w: %w", store.Path(), online.ErrStateDamaged, err)
	}
	return saved, nil
}

// Run takes samples in until there are no more, or as many as the limit says: then
// the error is nil. When ctx is cancelled it is ctx's.
func (l *Loop) Run(ctx context.Context) error {
	for taken := 0; l.Limit == 0 || taken < l.Limit; {
		sample, err := l.Source.Next(ctx)
		refused, isRefused := errors.AsType[*intake.Refused](err)
		notice, isNotice := errors.AsType[*intake.Notice](err)
		switch {
		case errors.Is(err, io.EOF):
			return l.finish(ctx)
		case isRefused:
			err = l.tell(&Event{
				Fate: Refused, Sequence: refused.Sequence, Place: refused.Place, Stored: refused.Stored, Err: refused.Err,
			})
		case isNotice:
			err = l.tell(&Event{Fate: Noticed, Sequence: -1, Place: notice.Place, Err: notice.Err, Missing: notice.Missing})
		case err != nil:
			return err
		default:
			var counts bool
			counts, err = l.guarded(sample)
			if counts {
				taken++
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish solves what the stream has kept to be solved together with samples that do not come.
func (l *Loop) finish(ctx context.Context) error {
	together, err := l.Calibrator.Finish(ctx)
	if err != nil || together == nil {
		return err
	}
	if l.Store != nil {
		if err := l.Store.Commit(l.Calibrator.Snapshot(), l.Last); err != nil {
			return &CommitError{Sequence: l.Last, Err: err}
		}
	}
	if l.Ended != nil {
		l.Ended(together)
	}
	return nil
}

// guarded makes a panic an error that names the sample.
func (l *Loop) guarded(s *intake.Sample) (counts bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: %w", s.Place, crash.Of(v))
		}
	}()
	return l.take(s)
}

// take takes in one sample, and says whether it counts towards the limit.
func (l *Loop) take(s *intake.Sample) (counts bool, err error) {
	e := &Event{Sequence: s.Sequence, Place: s.Place, Stored: s.Stored}
	switch {
	case s.Sequence < l.From:
		e.Fate = Skipped
	case !l.Frozen && s.Sequence <= l.Last:
		e.Fate = Duplicate
	default:
		return l.solve(s, e)
	}
	return false, errors.Join(s.Done(), l.tell(e))
}

func (l *Loop) solve(s *intake.Sample, e *Event) (counts bool, err error) {
	start := time.Now()
	l.Ahead = !l.Frozen
	// Cancellation does not disturb a sample: solving is what a stream waits for
	// anyway, and an estimate cut short would be of no use.
	if len(s.Matrix) > 0 {
		err = l.Calibrator.Use(s.Matrix)
	}
	if err == nil {
		e.Estimate, err = l.Calibrator.Absorb(context.Background(), s.Y)
	}
	if err != nil {
		l.Ahead = false // nothing was learned
		e.Fate, e.Err = Refused, err
		return false, errors.Join(s.Done(), l.tell(e))
	}
	solved := time.Now()
	e.Solving = solved.Sub(start)
	if err := l.keep(e); err != nil {
		return false, err
	}
	l.Ahead = false
	if err = s.Done(); err != nil {
		err = fmt.Errorf("%s could not be acknowledged: %w", s.Place, err)
	}
	e.Saving = time.Since(solved)
	return true, errors.Join(err, l.tell(e))
}

// keep publishes and commits.
func (l *Loop) keep(e *Event) error {
	if l.Publish != nil {
		if err := l.Publish.Put(e); err != nil {
			return fmt.Errorf("sample %d could not be published: %w", e.Sequence, err)
		}
	}
	if l.Frozen {
		return nil
	}
	if l.Store != nil {
		if err := l.Store.Commit(l.Calibrator.Snapshot(), e.Sequence); err != nil {
			return &CommitError{Sequence: e.Sequence, Err: err}
		}
	} else if err := l.Calibrator.Validate(); err != nil {
		return &CommitError{Sequence: e.Sequence, Err: err}
	}
	l.Last = e.Sequence
	return nil
}

// CommitError is the error of a commit that failed. The store holds the state of
// the sample before.
type CommitError struct {
	Sequence int64
	Err      error
}

// Error names the sample.
func (e *CommitError) Error() string {
	return fmt.Sprintf("sample %d could not be committed: %v", e.Sequence, e.Err)
}

// Unwrap returns the store's error.
func (e *CommitError) Unwrap() error { return e.Err }

// tell tells all sinks, also when one of them fails.
func (l *Loop) tell(e *Event) error {
	var errs []error
	for _, s := range l.Sinks {
		errs = append(errs, s.Put(e))
	}
	return errors.Join(errs...)
}
