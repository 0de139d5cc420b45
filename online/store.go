package online

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// NoSequence is the last sequence number before any sample was taken in.
const NoSequence int64 = -1

// MaxCheckpoints is how many named checkpoints a state file holds.
const MaxCheckpoints = 16

// BeforeRollback is the name under which [Store.Rollback] keeps the state that
// it undoes. It does not count among the MaxCheckpoints.
const BeforeRollback = "before-rollback"

// The faults of state files, for errors.Is. Every error of a Store names the
// file, and says what was found.
var (
	ErrStateLost       = errors.New("the state file was changed by something else while it was in use")
	ErrStateInUse      = errors.New("the state is in use by another process")
	ErrStateDamaged    = errors.New("the state file is damaged")
	ErrStateVersion    = errors.New("the state file's format is not known to this version")
	ErrStateMismatch   = errors.New("the state was made with another matrix or model")
	ErrNoState         = errors.New("there is no such state file")
	ErrNoCheckpoint    = errors.New("no such checkpoint")
	ErrCheckpointLimit = errors.New("no room for another checkpoint")
)

// Saved is a state as a file holds it: what was learned, and from how much of
// the stream.
type Saved struct {
	State    *State    // nil before the first commit
	Sequence int64     // of the last sample taken in, learned from or rejected
	Time     time.Time // of the commit, or of Renumber

	// Origin is when the stream was made whose numbers Sequence is one of; zero where numbers are of nothing that can be distinguished
	// from another of its name, as lines and columns are.
	Origin time.Time

	size int64 // the file's, before the commit: it does not shrink
}

// StoreOptions are the options of [OpenStore]; nil is the zero value.
type StoreOptions struct {
	// ReadOnly opens an existing file without changing it. Many readers can
	// share a file, but not with a writer.
	ReadOnly bool

	// Repair opens a file of which single records are damaged as well: its present state, so that [Store.Rollback]
	// can replace it, or checkpoints, so that [Store.Drop] can remove them.
	Repair bool

	// Timeout is how long to wait for another process to let go of the file.
	// The default is one second.
	Timeout time.Duration
}

// Store is a state file: a calibration's state and the sequence number of the
// last sample it has taken in, always changed together, in one transaction that
// is on the disk when Commit returns. Layout: docs/format/state.md.
//
// It is a bbolt file; a process has it to itself as long as it is open.
type Store struct {
	path   string
	db     *bbolt.DB
	file   *os.File // that of db
	header header
	origin time.Time // of the numbers to come

	readOnly    bool
	last, spare []byte  // the record of the present state, nil for none, and memory for the next one
	next        []byte  // put in the present transaction
	present     error   // fault of the present state, of a file that is to be repaired
	left        witness // what the last transaction left of the file
	block       []byte  // workspace of reading it
	lost        error   // the file is no longer what it was
}

// OpenStore opens the state file at path for the matrix, model and options that
// id stands for, and creates it where there is none. It refuses a file that is
// damaged, that another process is writing, or that was made for another id; a
// refused file is left as it is. A nil id accepts any, and creates none.
func OpenStore(path string, id *Identity, opt *StoreOptions) (*Store, error) {
	var o StoreOptions
	if opt != nil {
		o = *opt
	}
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	if err := ensureFile(path, id, o.ReadOnly); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Store{path: path, readOnly: o.ReadOnly}
	err := s.open(o)
	if err == nil && id != nil {
		err = s.header.matches(id)
	}
	if err != nil {
		s.readOnly = true // nothing was lost
		s.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Close lets go of the file. It is an error where the file was changed by something else since the last commit.
func (s *Store) Close() error {
	if s.db == nil {
		return nil
	}
	var err error
	if !s.readOnly && s.lost == nil { // else it was reported
		err = s.fault(s.check())
	}
	db := s.db
	s.db = nil
	return errors.Join(err, db.Close())
}

// Path is the name that the store was opened by.
func (s *Store) Path() string { return s.path }

// Identity is what the file was made for.
func (s *Store) Identity() Identity { return s.header.id }

// Created is when the file was made.
func (s *Store) Created() time.Time { return s.header.created }

// SetOrigin says of which stream the numbers of later commits are: of the one made then. See [Saved].
func (s *Store) SetOrigin(made time.Time) { s.origin = made }

// Load returns the present state.
func (s *Store) Load() (Saved, error) {
	saved := Saved{Sequence: NoSequence}
	switch {
	case s.present != nil:
		return saved, s.fault(s.present)
	case s.last == nil:
		return saved, nil
	}
	return saved, s.fault(saved.decode(s.last, currentKey))
}

// Fault is what is wrong with the present state of a file that was opened to be repaired; nil once a rollback has replaced it.
func (s *Store) Fault() error { return s.present }

// Commit replaces the present state, and returns when that is on the disk. If it
// fails, the state before is still there: so it does for a state that could not be read again (see [State.Validate]). Where the file
// itself was deleted, replaced or changed by something else the error is ErrStateLost; nothing is committed from then on, and
// a copy with the state before is kept beside it, which the error names.
func (s *Store) Commit(state *State, sequence int64) error {
	if err := state.Validate(); err != nil {
		return s.fault(err)
	}
	saved := Saved{State: state, Sequence: sequence, Time: time.Now(), Origin: s.origin, size: s.left.size}
	record, err := saved.append(s.spare[:0], currentKey)
	if s.spare = record; err != nil {
		return s.fault(err)
	}
	return s.update(func(tx *bbolt.Tx) error { return s.putCurrent(tx, record) })
}

var checkpointName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckCheckpoint says whether Checkpoint would accept the name, without doing
// it.
func (s *Store) CheckCheckpoint(name string) error {
	return s.fault(s.view(func(tx *bbolt.Tx) error { return admitCheckpoint(tx, name) }))
}

func admitCheckpoint(tx *bbolt.Tx, name string) error {
	if !checkpointName.MatchString(name) {
		return fmt.Errorf("checkpoint %q: expected at most 64 letters, digits, dots, dashes and underscores, beginning with a letter or a digit", name)
	}
	var names []string
	tx.Bucket(checkpointBucket).ForEach(func(key, _ []byte) error {
		if string(key) != BeforeRollback {
			names = append(names, string(key))
		}
		return nil
	})
	if len(names) >= MaxCheckpoints && name != BeforeRollback && !slices.Contains(names, name) {
		return fmt.Errorf("%w: there are %d: %q", ErrCheckpointLimit, len(names), names)
	}
	return nil
}

// Checkpoint keeps the present state under a name, in place of an earlier one of
// that name.
func (s *Store) Checkpoint(name string) error {
	return s.update(func(tx *bbolt.Tx) error {
		if err := admitCheckpoint(tx, name); err != nil {
			return err
		}
		return s.keep(tx, name)
	})
}

// keep copies the present state to a checkpoint.
func (s *Store) keep(tx *bbolt.Tx, name string) error {
	switch {
	case s.present != nil:
		return s.present
	case s.last == nil:
		return errors.New("no sample was taken in yet: there is nothing to keep in a checkpoint")
	}
	record, err := moved(s.last, currentKey, []byte(name))
	if err != nil {
		return err
	}
	return tx.Bucket(checkpointBucket).Put([]byte(name), record)
}

// Rollback makes the checkpoint the present state again; the checkpoint stays.
// The state that was, is kept as the checkpoint BeforeRollback, unless it was damaged.
func (s *Store) Rollback(name string) error {
	return s.update(func(tx *bbolt.Tx) error {
		saved := tx.Bucket(checkpointBucket).Get([]byte(name))
		if saved == nil {
			return noCheckpoint(tx, name)
		}
		if err := new(Saved).decode(saved, []byte(name)); err != nil {
			return &RecordFault{Checkpoint: name, Err: err}
		}
		record, err := moved(saved, []byte(name), currentKey)
		if err != nil {
			return err
		}
		if s.present == nil {
			if err := s.keep(tx, BeforeRollback); err != nil {
				return err
			}
		}
		return s.putCurrent(tx, record)
	})
}

// Renumber makes sequence, at least 0, the number of the last sample taken in,
// and leaves what was learned as it is: for a stream in which a corrupt number
// was taken in, or one that has begun to count anew: the number is then of no [Saved.Origin].
func (s *Store) Renumber(sequence int64) error {
	if sequence < 0 {
		return s.fault(fmt.Errorf("sequence number %d, expected 0 or more", sequence))
	}
	return s.update(func(tx *bbolt.Tx) error {
		switch {
		case s.present != nil:
			return s.present
		case s.last == nil:
			return errors.New("no sample was taken in yet: there is no number to set")
		}
		record, err := renumbered(s.last, sequence, time.Now())
		if err != nil {
			return err
		}
		return s.putCurrent(tx, record)
	})
}

func noCheckpoint(tx *bbolt.Tx, name string) error {
	names := []string{}
	tx.Bucket(checkpointBucket).ForEach(func(key, _ []byte) error {
		names = append(names, string(key))
		return nil
	})
	return fmt.Errorf("%w %q, there are %q", ErrNoCheckpoint, name, names)
}

// Drop removes a checkpoint.
func (s *Store) Drop(name string) error {
	return s.update(func(tx *bbolt.Tx) error {
		if tx.Bucket(checkpointBucket).Get([]byte(name)) == nil {
			return noCheckpoint(tx, name)
		}
		return tx.Bucket(checkpointBucket).Delete([]byte(name))
	})
}

// Checkpoints returns all checkpoints by name.
func (s *Store) Checkpoints() (map[string]Saved, error) {
	all := map[string]Saved{}
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(checkpointBucket).ForEach(func(key, value []byte) error {
			var saved Saved
			if err := saved.decode(value, key); err != nil {
				return fmt.Errorf("checkpoint %q: %w", key, err)
			}
			all[string(key)] = saved
			return nil
		})
	})
	return all, s.fault(err)
}

// CheckpointNames are the names in order.
func CheckpointNames(all map[string]Saved) []string { return slices.Sorted(maps.Keys(all)) }

// fault names the file in an error.
func (s *Store) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
