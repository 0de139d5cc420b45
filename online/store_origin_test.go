package online

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"
)

// TestOrigin: of which stream a number is, is committed with it, kept by checkpoints, and gone when the number is set by hand.
func TestOrigin(t *testing.T) {
	path, id := filepath.Join(t.TempDir(), "S.calamp"), storeID(t, nil)
	store, err := OpenStore(path, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	state := stateAt(5)
	first, second := time.Unix(0, 1795474114936588401), time.Unix(0, 1795474114936588402)
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want time.Time, sequence int64) {
		t.Helper()
		step(store.Close())
		store, err = OpenStore(path, id, nil)
		step(err)
		saved, err := store.Load()
		step(err)
		if !saved.Origin.Equal(want) || saved.Sequence != sequence || !bytes.Equal(bytesOf(t, saved.State), bytesOf(t, state)) {
			t.Errorf("number %d of %v, expected %d of %v", saved.Sequence, saved.Origin, sequence, want)
		}
	}
	step(store.Commit(state, 3))
	expect(time.Time{}, 3)
	store.SetOrigin(first)
	step(store.Commit(state, 4))
	step(store.Checkpoint("a"))
	expect(first, 4)
	store.SetOrigin(second)
	step(store.Commit(state, 2))
	expect(second, 2)
	step(store.Rollback("a"))
	expect(first, 4)
	before := time.Now()
	step(store.Renumber(17))
	expect(time.Time{}, 17)
	if saved, err := store.Load(); err != nil || saved.Time.Before(before) {
		t.Errorf("set at %v, %v", saved.Time, err)
	}
	step(store.Close())
}
