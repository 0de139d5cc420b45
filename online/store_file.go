package online

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/calamp/calamp/internal/atomicfile"
)

// ensureFile creates the file if there is none and it may be created.
func ensureFile(path string, id *Identity, readOnly bool) error {
	stat, err := os.Stat(path)
	switch {
	case err == nil && !stat.Mode().IsRegular(): // opening a pipe would wait for a writer
		return errors.New("this is no regular file")
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return withoutPath(err)
	case readOnly || id == nil:
		return ErrNoState
	}
	return create(path, id)
}

// create makes a file with a header and no state, all or nothing: under another
// name first, so that a process killed here leaves no half of one behind, and
// without replacing a file that another process has made meanwhile.
func create(path string, id *Identity) error {
	err := atomicfile.New(path, func(name string) error {
		return fill(name, &header{id: *id, created: time.Now()}, nil)
	})
	if err != nil {
		return fmt.Errorf("the state cannot be created: %w", withoutPath(err))
	}
	return nil
}

// fill makes a file with a header, and with the record of a state where there is one.
func fill(path string, h *header, record []byte) error {
	db, err := bbolt.Open(path, 0o666, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(mainBucket)
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket(checkpointBucket); err != nil {
			return err
		}
		if record != nil {
			if err := b.Put(currentKey, record); err != nil {
				return err
			}
		}
		return b.Put(headerKey, h.encode())
	})
	return errors.Join(err, db.Close())
}

// open locks the file, verifies it, and only then lets bbolt map it into memory:
// bbolt trusts what it maps, and a damaged page can take the process down.
func (s *Store) open(o StoreOptions) error {
	f, err := lock(s.path, o)
	if err != nil {
		return err
	}
	content, err := contentOf(f)
	if err == nil {
		err = s.verify(content, o.Repair)
	}
	if err != nil {
		f.Close()
		return withoutPath(err)
	}
	options := &bbolt.Options{
		ReadOnly: o.ReadOnly, Timeout: o.Timeout,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return f, nil },
	}
	s.db, err = openMapped(s.path, options)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return ErrStateInUse
	}
	if err != nil {
		return err
	}
	s.file = f
	s.left, err = s.look()
	return err
}

// contentOf reads all of a file into memory of its size.
func contentOf(f *os.File) ([]byte, error) {
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	content := make([]byte, stat.Size())
	n, err := f.ReadAt(content, 0)
	if errors.Is(err, io.EOF) { // it has become shorter, which will be noticed
		err = nil
	}
	return content[:n], err
}

// openMapped is bbolt.Open, with panics and faults of memory turned into errors.
func openMapped(path string, options *bbolt.Options) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, fmt.Errorf("%w: %v", ErrStateDamaged, r)
		}
	}()
	return bbolt.Open(path, 0o666, options)
}

// lock opens the file and takes the lock that bbolt will find taken by itself.
func lock(path string, o StoreOptions) (*os.File, error) {
	flag := os.O_RDWR
	if o.ReadOnly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	stat, err := f.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = errors.New("this is no regular file")
	}
	if err == nil {
		err = lockWithin(f, !o.ReadOnly, o.Timeout)
	}
	if err != nil {
		f.Close()
		return nil, withoutPath(err)
	}
	return f, nil
}

// verify reads the bytes of a whole file, apart from bbolt, and checks its structure and
// every checksum. A file that is to be repaired may have damaged records.
func (s *Store) verify(content []byte, repair bool) error {
	buckets, err := readPages(content)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStateDamaged, err)
	}
	main := buckets[string(mainBucket)]
	checkpoints, ok := buckets[string(checkpointBucket)]
	if main == nil || !ok || len(buckets) != 2 || !onlyKnown(main) {
		return fmt.Errorf("%w: this is no state of calamp", ErrStateDamaged)
	}
	if err := s.header.decode(main[string(headerKey)]); err != nil {
		return err
	}
	var damaged *RecordFault
	var sound []string
	for _, name := range slices.Sorted(maps.Keys(checkpoints)) {
		if err := new(Saved).decode(checkpoints[name], []byte(name)); err != nil {
			damaged = &RecordFault{Checkpoint: name, Err: err}
		} else {
			sound = append(sound, name)
		}
	}
	current, ok := main[string(currentKey)]
	var saved Saved
	if ok {
		s.last = bytes.Clone(current)
		if err := saved.decode(current, currentKey); err != nil {
			damaged = &RecordFault{Sound: sound, Err: err}
			s.present = damaged
		}
	}
	if damaged != nil && !repair {
		return damaged
	}
	if saved.size > int64(len(content)) {
		return fmt.Errorf("%w: cut short: %d bytes, there were %d at the last commit", ErrStateDamaged, len(content), saved.size)
	}
	return nil
}

// onlyKnown refuses keys that no version 1 has: one of them may be a damaged key
// of the present state.
func onlyKnown(main bucketContent) bool {
	for key := range main {
		if key != string(headerKey) && key != string(currentKey) {
			return false
		}
	}
	return true
}

// withoutPath takes the path out of a file error: the caller names it.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	if errors.Is(err, syscall.ENOSPC) {
		return syscall.ENOSPC
	}
	return err
}
