package online

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"strconv"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/stream"
	"github.com/calamp/calamp/online"
)

// With --mpi the first rank has the source, the state file and the sinks. The others take in the samples
// that it passes on, from the state that it has, and so have the same posterior.

// checkRanks refuses what one process has for itself.
func (c *calibration) checkRanks(args []string) error {
	switch {
	case !c.ranks.On():
		return nil
	case len(c.derivatives) > 0:
		return console.Usage("--sensor-derivatives is for one process: leave out --mpi")
	case c.sourceKind == natsSource:
		return console.Usage("--nats is for one process: leave out --mpi")
	case c.sourceKind == noSource:
		return console.Usage("there are no samples: leave out --mpi to change the state")
	case len(args) == 1 && args[0] == "-":
		return console.Usage("--mpi reads the problem on every rank, standard input is only the first's: give a file")
	}
	return nil
}

// shareState lets all ranks go on from the state of the first one.
func (r *onlineRun) shareState() error {
	var raw []byte
	if r.ranks.First() {
		saved, err := r.store.Load()
		if err != nil {
			return err
		}
		if saved.State != nil {
			if raw, err = saved.State.MarshalBinary(); err != nil {
				return err
			}
		}
	}
	last, err := r.ranks.All("the last number", strconv.FormatInt(r.loop.Last, 10))
	if err != nil {
		return err
	}
	if r.loop.Last, err = strconv.ParseInt(last[0], 10, 64); err != nil {
		return err
	}
	texts, err := r.ranks.All("the state", string(raw))
	if err != nil || r.ranks.First() || len(texts[0]) == 0 {
		return err
	}
	var state online.State
	if err := state.UnmarshalBinary([]byte(texts[0])); err != nil {
		return err
	}
	if err := r.loop.Calibrator.Restore(&state); err != nil {
		return err
	}
	return r.takeAnchor(state.Anchor)
}

// sharedStore is the store of the first rank: all know whether it has committed.
type sharedStore struct {
	ranks *option.Ranks
	store stream.Store // nil on others
}

// Commit implements [stream.Store].
func (s sharedStore) Commit(state *online.State, sequence int64) error {
	return s.ranks.OfFirst(func() error { return s.store.Commit(state, sequence) })
}

// sharedSource passes on what the source of the first rank gives.
type sharedSource struct {
	ranks  *option.Ranks
	source intake.Source // nil on others
}

// item is what a source gave.
type item struct {
	Ending  ending
	Sample  intake.Sample
	Refused intake.Refused
	Text    string // of an error
}

type ending uint8

const (
	goesOn ending = iota
	refused
	atEnd
	cancelled
	failed
)

// Next implements [intake.Source].
func (s sharedSource) Next(ctx context.Context) (*intake.Sample, error) {
	var raw bytes.Buffer
	var own *intake.Sample
	if s.ranks.First() {
		sample, err := s.source.Next(ctx)
		var it item
		switch no, isRefused := errors.AsType[*intake.Refused](err); {
		case errors.Is(err, io.EOF):
			it.Ending = atEnd
		case isRefused:
			it.Ending, it.Text = refused, no.Err.Error()
			it.Refused = intake.Refused{Place: no.Place, Sequence: no.Sequence, Stored: no.Stored}
		case errors.Is(err, context.Canceled):
			it.Ending = cancelled
		case err != nil:
			it.Ending, it.Text = failed, err.Error()
		default:
			own, it.Sample = sample, *sample
		}
		if err := gob.NewEncoder(&raw).Encode(it); err != nil {
			return nil, err
		}
	}
	texts, err := s.ranks.All("the next sample", raw.String())
	if err != nil {
		return nil, err
	}
	var it item
	if err := gob.NewDecoder(bytes.NewReader([]byte(texts[0]))).Decode(&it); err != nil {
		return nil, err
	}
	switch it.Ending {
	case atEnd:
		return nil, io.EOF
	case refused:
		it.Refused.Err = errors.New(it.Text)
		return nil, &it.Refused
	case cancelled:
		return nil, context.Canceled
	case failed:
		return nil, errors.New(it.Text)
	}
	if own != nil {
		return own, nil
	}
	return &it.Sample, nil
}

// Close implements [intake.Source].
func (s sharedSource) Close() error {
	if s.source == nil {
		return nil
	}
	return s.source.Close()
}
