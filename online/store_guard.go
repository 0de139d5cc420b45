package online

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/calamp/calamp/internal/atomicfile"
)

// Locks keep other processes of calamp off a state file, and no other program: a file can be deleted, replaced, cut short or written to
// while it is in use. bbolt notices none of that. It would commit to a file without a name, follow damaged pages, and leave its locks
// taken when it panics. So every transaction first compares the file with what the one before left.

// witness is what a transaction left of the file: its size, and a CRC-32C of all its bytes.
type witness struct {
	size int64
	sum  uint32
}

// witnessBlock is how many bytes are read at once.
const witnessBlock = 1 << 18

// look reads the file as it is. It never touches the mapped memory, where a file that was cut short ends the process.
func (s *Store) look() (w witness, err error) {
	if s.block == nil {
		s.block = make([]byte, witnessBlock)
	}
	for {
		n, err := s.file.ReadAt(s.block, w.size)
		w.sum = crc32.Update(w.sum, castagnoli, s.block[:n])
		w.size += int64(n)
		if errors.Is(err, io.EOF) {
			return w, nil
		}
		if err != nil {
			return w, withoutPath(err)
		}
	}
}

// unchanged reports bytes that are not those that the last transaction left.
func (s *Store) unchanged() error {
	now, err := s.look()
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be read any more: %w", err)
	case now.size != s.left.size:
		return fmt.Errorf("it has %d bytes, there were %d", now.size, s.left.size)
	case now != s.left:
		return errors.New("its bytes are not those that were written")
	}
	return nil
}

// inPlace reports a name that no longer leads to the file.
func (s *Store) inPlace() error {
	there, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it was deleted, or renamed")
	}
	if err != nil {
		return fmt.Errorf("its name leads nowhere: %w", withoutPath(err))
	}
	own, err := s.file.Stat()
	if err != nil {
		return withoutPath(err)
	}
	if !os.SameFile(there, own) {
		return errors.New("another file has its name")
	}
	return nil
}

// lose ends the use of a file that something else has changed. What was learned is kept in another one.
func (s *Store) lose(why error) error {
	s.lost = fmt.Errorf("%w: %w; %s", ErrStateLost, why, s.rescue())
	return s.lost
}

// rescue writes the last state that was committed beside the file, and says where.
func (s *Store) rescue() string {
	if s.last == nil {
		return "nothing had been learned"
	}
	var saved Saved
	if err := saved.decode(s.last, currentKey); err != nil {
		return fmt.Sprintf("no copy could be kept: %v", err)
	}
	name := s.path + ".rescued"
	for k := 2; ; k++ {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			break
		}
		name = fmt.Sprintf("%s.rescued-%d", s.path, k)
		if k > mostRescued {
			return "no copy was kept: there are many already"
		}
	}
	if err := atomicfile.New(name, s.copyTo); err != nil {
		return fmt.Sprintf("no copy could be kept: %v", withoutPath(err))
	}
	return fmt.Sprintf("the state after sample %d is kept in %s", saved.Sequence, name)
}

// mostRescued bounds the copies, of a stream that is started again and again.
const mostRescued = 100

// copyTo writes the whole file to another one where it is still sound, with its checkpoints, and else the present state alone.
func (s *Store) copyTo(name string) error {
	content, err := contentOf(s.file)
	if err == nil && s.unchanged() == nil && new(Store).verify(content, false) == nil {
		return writeSynced(name, content)
	}
	var saved Saved
	if err := saved.decode(s.last, currentKey); err != nil {
		return err
	}
	saved.size = 0 // of another file
	record, err := saved.append(nil, currentKey)
	if err != nil {
		return err
	}
	return fill(name, &s.header, record)
}

func writeSynced(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// guarded runs a transaction. A panic within, or a fault of mapped memory, becomes an error: the file is then let go of without
// bbolt, whose locks are still taken.
func (s *Store) guarded(transaction func(func(*bbolt.Tx) error) error, do func(*bbolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = s.lose(fmt.Errorf("its pages cannot be used: %v", v))
			s.file.Close()
			s.db = nil
		}
	}()
	return transaction(do)
}

// view runs a transaction that only reads.
func (s *Store) view(do func(*bbolt.Tx) error) error {
	if s.lost != nil {
		return s.lost
	}
	if why := s.unchanged(); why != nil {
		return s.lose(why)
	}
	return s.guarded(s.db.View, do)
}

// check reports a file that is no longer the one that was opened, as the last transaction left it.
func (s *Store) check() error {
	if s.lost != nil {
		return s.lost
	}
	why := s.inPlace()
	if why == nil {
		why = s.unchanged()
	}
	if why != nil {
		return s.lose(why)
	}
	return nil
}

// update runs one transaction.
func (s *Store) update(change func(*bbolt.Tx) error) error {
	if s.readOnly {
		return s.fault(errors.New("the state was opened for reading"))
	}
	if err := s.check(); err != nil {
		return s.fault(err)
	}
	s.next = nil
	err := withoutPath(s.guarded(s.db.Update, change))
	if s.lost != nil {
		return s.fault(s.lost)
	}
	if err == nil && s.next != nil {
		s.last, s.spare, s.present = s.next, s.last, nil
	}
	left, failed := s.look() // also after a failure, which may have grown the file
	if s.left = left; failed != nil {
		err = errors.Join(err, s.lose(failed))
	}
	return s.fault(err)
}

// putCurrent makes a record the present state, once the transaction has succeeded.
func (s *Store) putCurrent(tx *bbolt.Tx, record []byte) error {
	s.next = record
	return tx.Bucket(mainBucket).Put(currentKey, record)
}

// RecordFault is a fault of one record of a state file whose others are sound. [StoreOptions].Repair opens such a file.
type RecordFault struct {
	Checkpoint string   // empty for the present state
	Sound      []string // checkpoints that are
	Err        error
}

// Error names the record.
func (f *RecordFault) Error() string {
	if f.Checkpoint == "" {
		return f.Err.Error()
	}
	return fmt.Sprintf("checkpoint %q: %v", f.Checkpoint, f.Err)
}

// Unwrap returns the fault itself.
func (f *RecordFault) Unwrap() error { return f.Err }

// Hint says what can be done about it.
func (f *RecordFault) Hint() string {
	switch {
	case f.Checkpoint != "":
		return fmt.Sprintf("the file was left as it is; calamp state drop FILE %s removes what is damaged", f.Checkpoint)
	case len(f.Sound) > 0:
		return fmt.Sprintf("the file was left as it is; calamp state rollback FILE NAME goes back to a checkpoint, of which these are sound: %s", strings.Join(f.Sound, ", "))
	}
	return ""
}
