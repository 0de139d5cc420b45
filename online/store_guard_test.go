package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// inUse is a store with history, which is open.
func inUse(t *testing.T, id *Identity) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.calamp")
	s := openStore(t, path, id)
	commit(t, s, 1, 2)
	if err := s.Checkpoint("two"); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 3, 4)
	return s, path
}

// within fails a test that hangs.
func within(t *testing.T, what string, do func() error) (err error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err = <-done:
	case <-time.After(30 * time.Second):
		t.Fatal(what, " hangs")
	}
	return err
}

// TestFileChangedWhileInUse: what something else does to a file is noticed by the next commit, which fails in words, and a copy
// with what was learned is kept.
func TestFileChangedWhileInUse(t *testing.T) {
	id := storeID(t, nil)
	overwrite := func(at int64, bytes ...byte) func(string) error {
		return func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			if at < 0 {
				stat, _ := f.Stat()
				at += stat.Size()
			}
			_, err = f.WriteAt(bytes, at)
			return errors.Join(err, f.Close())
		}
	}
	for _, c := range []struct {
		name, words string
		do          func(path string) error
		checkpoints int
	}{
		{"deleted", "deleted", os.Remove, 1},
		{"renamed", "renamed", func(path string) error { return os.Rename(path, path+".old") }, 1},
		{"replaced", "another file has its name", func(path string) error {
			other := path + ".other"
			s := openStore(t, other, id)
			commit(t, s, 77)
			return errors.Join(s.Close(), os.Rename(other, path))
		}, 1},
		{"made anew", "another file has its name", func(path string) error {
			if err := os.Rename(path, path+".old"); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o666)
		}, 1},
		{"emptied", "it has 0 bytes", func(path string) error { return os.Truncate(path, 0) }, 0},
		{"cut short", "it has 8192 bytes", func(path string) error { return os.Truncate(path, 8192) }, 0},
		{"grown", "bytes, there were", overwrite(1<<18, 1), 0},
		{"meta pages", "its bytes are not those", overwrite(16, make([]byte, 8192)...), 0},
		{"all of it", "its bytes are not those", func(path string) error {
			stat, err := os.Stat(path)
			if err != nil {
				return err
			}
			return overwrite(0, make([]byte, stat.Size())...)(path)
		}, 0},
		{"one byte", "its bytes are not those", overwrite(-1, 0xA5), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, path := inUse(t, id)
			if err := c.do(path); err != nil {
				t.Skip("SKIPPED: not on this system: ", err) // Windows holds on to a file in use
			}
			err := within(t, "Commit", func() error { return s.Commit(stateAt(5), 5) })
			rescued := path + ".rescued"
			if !errors.Is(err, ErrStateLost) || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), "after sample 4 is kept in "+rescued) {
				t.Fatalf("commit: %v", err)
			}
			if again := within(t, "Commit", func() error { return s.Checkpoint("x") }); again.Error() != err.Error() {
				t.Errorf("then %v", again)
			}
			expectState(t, s, 4)
			if err := within(t, "Close", s.Close); err != nil {
				t.Error(err)
			}
			r := openStore(t, rescued, id)
			expectState(t, r, 4)
			if all, err := r.Checkpoints(); err != nil || len(all) != c.checkpoints {
				t.Errorf("checkpoints %v, %v", all, err)
			}
			commit(t, r, 5)
		})
	}
}

// TestEarlierRescuesStay: a copy takes no other's place.
func TestEarlierRescuesStay(t *testing.T) {
	id := storeID(t, nil)
	s, path := inUse(t, id)
	if err := errors.Join(os.WriteFile(path+".rescued", []byte("mine"), 0o666), os.Remove(path)); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	if err := s.Commit(stateAt(5), 5); err == nil || !strings.HasSuffix(err.Error(), ".rescued-2") {
		t.Error(err)
	}
	if content, err := os.ReadFile(path + ".rescued"); string(content) != "mine" {
		t.Error(content, err)
	}
}

// TestFileDeletedAfterTheLastCommit is noticed when the store is closed.
func TestFileDeletedAfterTheLastCommit(t *testing.T) {
	id := storeID(t, nil)
	s, path := inUse(t, id)
	if err := os.Remove(path); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	if err := s.Close(); !errors.Is(err, ErrStateLost) {
		t.Error(err)
	}
	expectState(t, openStore(t, path+".rescued", id), 4)
}

// TestDamageThatBboltMeets: pages that change within a transaction, after they were looked at. Whatever bbolt makes of them, the
// process lives, nothing hangs, and what was learned is kept.
func TestDamageThatBboltMeets(t *testing.T) {
	id := storeID(t, nil)
	r := rand.New(rand.NewPCG(1, 2))
	lost := 0
	for k := range 150 {
		s, path := inUse(t, id)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case k%10 == 0:
			err = os.Truncate(path, int64(r.IntN(len(content))))
		default:
			page := r.IntN(len(content)/os.Getpagesize()) * os.Getpagesize()
			at, size := page+r.IntN(200), 1<<r.IntN(12)
			for i := at; i < min(at+size, len(content)); i++ {
				content[i] = byte(r.Uint32())
			}
			var f *os.File
			if f, err = os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				_, err = f.WriteAt(content, 0)
				err = errors.Join(err, f.Close())
			}
		}
		if err != nil {
			t.Skip("SKIPPED: ", err)
		}
		if s.left, err = s.look(); err != nil { // it happens after that
			t.Fatal(err)
		}
		if err := within(t, "Commit", func() error { return s.Commit(stateAt(5), 5) }); errors.Is(err, ErrStateLost) {
			lost++
			expectState(t, s, 4)
			expectState(t, openStore(t, path+".rescued", id), 4)
		}
		within(t, "Close", s.Close)
	}
	t.Logf("%d of 150 noticed", lost)
	if lost == 0 {
		t.Error("nothing was noticed")
	}
}

// spoilt has statistics that no stream leaves behind.
func spoilt(sample int) *State {
	s := stateAt(sample)
	s.Stats[1] = math.NaN()
	return s
}

// TestImpossibleStateIsNotCommitted: the state before it stays.
func TestImpossibleStateIsNotCommitted(t *testing.T) {
	id := storeID(t, nil)
	s, path := inUse(t, id)
	if err := s.Commit(spoilt(5), 5); err == nil || errors.Is(err, ErrStateLost) || !strings.Contains(err.Error(), "statistics") {
		t.Errorf("commit: %v", err)
	}
	expectState(t, s, 4)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path, id)
	expectState(t, s, 4)
	commit(t, s, 5)
}

// damage puts a record with the state where versions before this one would have, with a sound checksum or not.
func damage(t *testing.T, path, checkpoint string, sound bool) {
	t.Helper()
	s := openStore(t, path, nil)
	key := currentKey
	if checkpoint != "" {
		key = []byte(checkpoint)
	}
	record, err := Saved{State: spoilt(5), Sequence: 5, Time: time.Now()}.append(nil, key)
	if err != nil {
		t.Fatal(err)
	}
	if !sound {
		record[len(record)-1] ^= 1
	}
	if checkpoint == "" {
		err = s.update(func(tx *bbolt.Tx) error { return s.putCurrent(tx, record) })
	} else {
		err = s.update(func(tx *bbolt.Tx) error { return tx.Bucket(checkpointBucket).Put(key, record) })
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRollbackOfADamagedState: where only the present state is damaged its checkpoints bring it back.
func TestRollbackOfADamagedState(t *testing.T) {
	id := storeID(t, nil)
	for _, sound := range []bool{true, false} {
		s, path := inUse(t, id)
		s.Close()
		damage(t, path, "", sound)
		_, err := OpenStore(path, id, nil)
		if fault, ok := errors.AsType[*RecordFault](err); !ok || !errors.Is(err, ErrStateDamaged) || !strings.Contains(fault.Hint(), "two") {
			t.Fatalf("opened: %v", err)
		}
		s, err = OpenStore(path, id, &StoreOptions{Repair: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Load(); !errors.Is(err, ErrStateDamaged) || s.Fault() == nil {
			t.Errorf("loaded: %v", err)
		}
		if s.Checkpoint("x") == nil || s.Renumber(7) == nil {
			t.Error("what is damaged was kept")
		}
		if err := s.Rollback("two"); err != nil {
			t.Fatal(err)
		}
		expectState(t, s, 2)
		all, err := s.Checkpoints()
		if err != nil || len(all) != 1 {
			t.Errorf("checkpoints %v, %v", all, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, path, id)
		expectState(t, s, 2)
		commit(t, s, 3)
	}
}

// TestDamagedCheckpointIsDropped, which opens the file again.
func TestDamagedCheckpointIsDropped(t *testing.T) {
	id := storeID(t, nil)
	s, path := inUse(t, id)
	s.Close()
	damage(t, path, "two", true)
	_, err := OpenStore(path, id, nil)
	if fault, ok := errors.AsType[*RecordFault](err); !ok || !strings.Contains(fault.Hint(), "state drop FILE two") {
		t.Fatal(err)
	}
	s, err = OpenStore(path, id, &StoreOptions{Repair: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Rollback("two"); !errors.Is(err, ErrStateDamaged) {
		t.Errorf("went back to what is damaged: %v", err)
	}
	if err := errors.Join(s.Drop("two"), s.Close()); err != nil {
		t.Fatal(err)
	}
	expectState(t, openStore(t, path, id), 4)
}
