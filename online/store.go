package online

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
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
	Time     time.Time // of the commit

	size int64 // the file's, before the commit: it does not shrink
}

// StoreOptions are the options of [OpenStore]; nil is the zero value.
type StoreOptions struct {
	// ReadOnly opens an existing file without changing it. Many readers can
	// share a file, but not with a writer.
	ReadOnly bool

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
	buffer []byte
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
	s := &Store{path: path}
	err := s.open(o)
	if err == nil && id != nil {
		err = s.header.matches(id)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Close lets go of the file.
func (s *Store) Close() error {
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	return db.Close()
}

// Path is the name that the store was opened by.
func (s *Store) Path() string { return s.path }

// Identity is what the file was made for.
func (s *Store) Identity() Identity { return s.header.id }

// Created is when the file was made.
func (s *Store) Created() time.Time { return s.header.created }

// Load returns the present state.
func (s *Store) Load() (Saved, error) {
	saved := Saved{Sequence: NoSequence}
	err := s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(mainBucket).Get(currentKey)
		if b == nil {
			return nil
		}
		return saved.decode(b, currentKey)
	})
	return saved, s.fault(err)
}

// Commit replaces the present state, and returns when that is on the disk. If it
// fails, the state before is still there.
func (s *Store) Commit(state *State, sequence int64) error {
	return s.update(func(tx *bbolt.Tx) error {
		stat, err := s.file.Stat()
		if err != nil {
			return err
		}
		saved := Saved{State: state, Sequence: sequence, Time: time.Now(), size: stat.Size()}
		if s.buffer, err = saved.append(s.buffer[:0], currentKey); err != nil {
			return err
		}
		return tx.Bucket(mainBucket).Put(currentKey, s.buffer)
	})
}

var checkpointName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckCheckpoint says whether Checkpoint would accept the name, without doing
// it.
func (s *Store) CheckCheckpoint(name string) error {
	return s.fault(s.db.View(func(tx *bbolt.Tx) error { return admitCheckpoint(tx, name) }))
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
		return keep(tx, name)
	})
}

// keep copies the present state to a checkpoint.
func keep(tx *bbolt.Tx, name string) error {
	current := tx.Bucket(mainBucket).Get(currentKey)
	if current == nil {
		return errors.New("no sample was taken in yet: there is nothing to keep in a checkpoint")
	}
	record, err := moved(current, currentKey, []byte(name))
	if err != nil {
		return err
	}
	return tx.Bucket(checkpointBucket).Put([]byte(name), record)
}

// Rollback makes the checkpoint the present state again; the checkpoint stays.
// The state that was, is kept as the checkpoint BeforeRollback.
func (s *Store) Rollback(name string) error {
	return s.update(func(tx *bbolt.Tx) error {
		saved := tx.Bucket(checkpointBucket).Get([]byte(name))
		if saved == nil {
			return noCheckpoint(tx, name)
		}
		record, err := moved(saved, []byte(name), currentKey)
		if err != nil {
			return err
		}
		if err := keep(tx, BeforeRollback); err != nil {
			return err
		}
		return tx.Bucket(mainBucket).Put(currentKey, record)
	})
}

// Renumber makes sequence, at least 0, the number of the last sample taken in,
// and leaves what was learned as it is: for a stream in which a corrupt number
// was taken in, or one that has begun to count anew.
func (s *Store) Renumber(sequence int64) error {
	if sequence < 0 {
		return s.fault(fmt.Errorf("sequence number %d, expected 0 or more", sequence))
	}
	return s.update(func(tx *bbolt.Tx) error {
		current := tx.Bucket(mainBucket).Get(currentKey)
		if current == nil {
			return errors.New("no sample was taken in yet: there is no number to set")
		}
		record, err := renumbered(current, sequence)
		if err != nil {
			return err
		}
		return tx.Bucket(mainBucket).Put(currentKey, record)
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
	err := s.db.View(func(tx *bbolt.Tx) error {
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

// update runs one transaction.
func (s *Store) update(change func(*bbolt.Tx) error) error {
	err := s.db.Update(change)
	if errors.Is(err, bolterrors.ErrDatabaseReadOnly) {
		err = errors.New("the state was opened for reading")
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the file is named by fault
	}
	return s.fault(err)
}

// fault names the file in an error.
func (s *Store) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
