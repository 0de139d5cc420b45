package online

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

const storeSensors = 48

// storeID is the identity of a small model.
func storeID(t *testing.T, change func(w []float64, g *channel.Gain, o *Options)) *Identity {
	t.Helper()
	w, g, o := randomMatrix(storeSensors, 64), channel.Gain{Prior: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6}, Options{}
	if change != nil {
		change(w, &g, &o)
	}
	d, err := operator.NewDense(storeSensors, 64, w)
	if err != nil {
		t.Fatal(err)
	}
	id, err := Identify(d, prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, g, &o)
	if err != nil {
		t.Fatal(err)
	}
	return &id
}

func randomMatrix(m, n int) []float64 {
	r := rand.New(rand.NewPCG(7, 8))
	w := make([]float64, m*n)
	for i := range w {
		w[i] = r.NormFloat64()
	}
	return w
}

// stateAt is a state that differs from sample to sample.
func stateAt(sample int) *State {
	s := newState(storeSensors, gainWidth, 1)
	r := rand.New(rand.NewPCG(uint64(sample), 1))
	for mu := range storeSensors {
		copy(s.Stats[mu*gainWidth:], channel.GainStats(1e8*r.Float64(), 1e8*r.NormFloat64(), float64(sample)))
	}
	s.Quadratic, s.Volume, s.Samples = r.NormFloat64(), r.Float64(), uint64(sample)
	return &s
}

func bytesOf(t *testing.T, s *State) []byte {
	t.Helper()
	if s == nil {
		return nil
	}
	b, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openStore(t *testing.T, path string, id *Identity) *Store {
	t.Helper()
	s, err := OpenStore(path, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func commit(t *testing.T, s *Store, samples ...int) {
	t.Helper()
	for _, k := range samples {
		if err := s.Commit(stateAt(k), int64(k)); err != nil {
			t.Fatal(err)
		}
	}
}

func expectState(t *testing.T, s *Store, sample int) {
	t.Helper()
	saved, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if saved.Sequence != int64(sample) || !bytes.Equal(bytesOf(t, saved.State), bytesOf(t, stateAt(sample))) {
		t.Fatalf("found the state after %d, expected that after %d", saved.Sequence, sample)
	}
}

func TestStoreKeepsStates(t *testing.T) {
	path, id := filepath.Join(t.TempDir(), "s.calamp"), storeID(t, nil)
	s := openStore(t, path, id)
	saved, err := s.Load()
	if err != nil || saved.State != nil || saved.Sequence != NoSequence {
		t.Fatalf("a new store holds %+v, %v", saved, err)
	}
	commit(t, s, 1, 2, 3)
	expectState(t, s, 3)
	s.Close()

	s = openStore(t, path, id)
	expectState(t, s, 3)
	if s.Identity() != *id {
		t.Errorf("identity %+v, expected %+v", s.Identity(), *id)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".calamp-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStoreStaysSmall(t *testing.T) {
	path, id := filepath.Join(t.TempDir(), "s.calamp"), storeID(t, nil)
	s := openStore(t, path, id)
	for k := range 300 {
		commit(t, s, k)
	}
	stat, err := os.Stat(path)
	if err != nil || stat.Size() > 1<<17 {
		t.Errorf("%d bytes after 300 commits of a state of %d", stat.Size(), len(bytesOf(t, stateAt(1))))
	}
}

func TestCheckpoints(t *testing.T) {
	path, id := filepath.Join(t.TempDir(), "s.calamp"), storeID(t, nil)
	s := openStore(t, path, id)
	if err := s.Checkpoint("early"); err == nil {
		t.Error("a checkpoint of nothing was accepted")
	}
	commit(t, s, 1)
	if err := s.Checkpoint("one"); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 2, 3)
	if err := s.Rollback("two"); !errors.Is(err, ErrNoCheckpoint) || !strings.Contains(err.Error(), `["one"]`) {
		t.Errorf("rollback to an unknown name: %v", err)
	}
	if err := s.Rollback("one"); err != nil {
		t.Fatal(err)
	}
	expectState(t, s, 1)
	if err := s.Rollback(BeforeRollback); err != nil {
		t.Fatal(err)
	}
	expectState(t, s, 3)
	all, err := s.Checkpoints()
	if err != nil || strings.Join(CheckpointNames(all), " ") != "before-rollback one" || all["one"].Sequence != 1 {
		t.Errorf("checkpoints %v, %v", all, err)
	}
	if err := s.Drop("one"); err != nil {
		t.Fatal(err)
	}
	if err := s.Drop("one"); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("dropped twice: %v", err)
	}
}

// TestRenumber: the number changes, what was learned does not, and the file is
// as sound as before.
func TestRenumber(t *testing.T) {
	path, id := filepath.Join(t.TempDir(), "S"), storeID(t, nil)
	s := openStore(t, path, id)
	if err := s.Renumber(3); err == nil || !strings.Contains(err.Error(), "no sample was taken in yet") {
		t.Error(err)
	}
	if err := s.Commit(stateAt(5), 4_000_000_000_000); err != nil {
		t.Fatal(err)
	}
	if err := s.Renumber(-1); err == nil {
		t.Error("a negative number was set")
	}
	if err := errors.Join(s.Renumber(5), s.Close()); err != nil {
		t.Fatal(err)
	}
	saved, err := openStore(t, path, id).Load()
	if err != nil || saved.Sequence != 5 || !bytes.Equal(bytesOf(t, saved.State), bytesOf(t, stateAt(5))) {
		t.Errorf("number %d, %v", saved.Sequence, err)
	}
}

func TestCheckpointsAreBounded(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "s.calamp"), storeID(t, nil))
	commit(t, s, 1)
	for k := range MaxCheckpoints {
		if err := s.Checkpoint(fmt.Sprint("c", k)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Checkpoint("more"); !errors.Is(err, ErrCheckpointLimit) {
		t.Errorf("one too many: %v", err)
	}
	if err := s.Checkpoint("c3"); err != nil {
		t.Errorf("replacing one: %v", err)
	}
	if err := s.Rollback("c3"); err != nil {
		t.Errorf("rollback when full: %v", err)
	}
	for _, name := range []string{"", "a b", "../x", "-x", strings.Repeat("x", 65)} {
		if err := s.CheckCheckpoint(name); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
}

func TestStoreRefusesAnotherModel(t *testing.T) {
	path, id := filepath.Join(t.TempDir(), "s.calamp"), storeID(t, nil)
	s := openStore(t, path, id)
	commit(t, s, 1)
	s.Close()
	before, _ := os.ReadFile(path)
	cases := map[string]func(w []float64, g *channel.Gain, o *Options){
		"entries of W are not": func(w []float64, _ *channel.Gain, _ *Options) { w[5] += 1e-12 },
		"calibration lo=0.8":   func(_ []float64, g *channel.Gain, _ *Options) { g.Prior.Lo = 0.8 },
		"variance=1e-05":       func(_ []float64, g *channel.Gain, _ *Options) { g.NoiseVar = 1e-5 },
		"memory=100":           func(_ []float64, _ *channel.Gain, o *Options) { o.Memory = 100 },
		"commit=always":        func(_ []float64, _ *channel.Gain, o *Options) { o.Commit = Always },
		"exactly=500":          func(_ []float64, _ *channel.Gain, o *Options) { o.Tol = -1 },
		"sensor=7":             func(_ []float64, _ *channel.Gain, o *Options) { o.Sanity.Sensor = 7 },
	}
	for word, change := range cases {
		other := storeID(t, change)
		_, err := OpenStore(path, other, nil)
		if !errors.Is(err, ErrStateMismatch) {
			t.Fatalf("%s: %v", word, err)
		}
		for _, part := range []string{id.Fingerprint.String(), other.Fingerprint.String(), word} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
	}
	after, _ := os.ReadFile(path)
	if !bytes.Equal(before, after) {
		t.Error("a refused file was changed")
	}
}

func TestIdentityIgnoresHow(t *testing.T) {
	id := storeID(t, nil)
	same := storeID(t, func(w []float64, _ *channel.Gain, o *Options) {
		o.Threads, o.Freeze, o.MaxIter, o.Tol = 3, true, 77, 1e-6
		o.Sanity.Sensor = 6 // the default
		w[0] = w[0] * 1
	})
	if *same != *id {
		t.Errorf("%+v and %+v", same, id)
	}
	zero := storeID(t, func(w []float64, _ *channel.Gain, _ *Options) { w[0] = 0 })
	minus := storeID(t, func(w []float64, _ *channel.Gain, _ *Options) { w[0] = 1 / negativeInfinity() })
	if *zero != *minus {
		t.Error("0 and -0 differ")
	}
	d, _ := operator.NewDense(1, 1, []float64{1})
	if _, err := Identify(d, otherPrior{}, channel.Gain{}, nil); err == nil || !strings.Contains(err.Error(), "MarshalText") {
		t.Errorf("a prior without a name: %v", err)
	}
}

func negativeInfinity() float64 { zero := 0.0; return -1 / zero }

type otherPrior struct{ prior.Prior }

func TestOneWriter(t *testing.T) {
	path, id := filepath.Join(t.TempDir(), "s.calamp"), storeID(t, nil)
	s := openStore(t, path, id)
	commit(t, s, 1)
	for _, readOnly := range []bool{false, true} {
		_, err := OpenStore(path, id, &StoreOptions{ReadOnly: readOnly, Timeout: 50 * time.Millisecond})
		if !errors.Is(err, ErrStateInUse) {
			t.Errorf("opened twice (read only: %t): %v", readOnly, err)
		}
	}
	commit(t, s, 2)
	s.Close()
	a, errA := OpenStore(path, nil, &StoreOptions{ReadOnly: true})
	b, errB := OpenStore(path, nil, &StoreOptions{ReadOnly: true})
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	defer a.Close()
	defer b.Close()
	expectState(t, a, 2)
	expectState(t, b, 2)
	if err := a.Commit(stateAt(3), 3); err == nil {
		t.Error("a store opened for reading was written")
	}
}

func TestNoState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.calamp")
	if _, err := OpenStore(path, nil, &StoreOptions{ReadOnly: true}); !errors.Is(err, ErrNoState) {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was created")
	}
	if _, err := OpenStore(filepath.Join(t.TempDir(), "no", "s.calamp"), storeID(t, nil), nil); err == nil {
		t.Error("a file in a folder that is not there")
	}
}

// damagedFile returns the bytes of a store with history: checkpoints, free
// pages, and a state that spans pages.
func damagedFile(t *testing.T, id *Identity) []byte {
	path := filepath.Join(t.TempDir(), "s.calamp")
	s := openStore(t, path, id)
	commit(t, s, 1)
	if err := s.Checkpoint("one"); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 2, 3, 4, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// tryDamaged opens a file of these bytes. It must be refused as damaged and left
// alone, or hold what it held.
func tryDamaged(t *testing.T, id *Identity, content []byte, what string) (refused bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.calamp")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	s, err := OpenStore(path, id, nil)
	if err == nil {
		defer s.Close()
		expectState(t, s, 5)
		all, err := s.Checkpoints()
		if err != nil || len(all) != 1 {
			t.Errorf("%s: checkpoints %v, %v", what, all, err)
		}
		return false
	}
	if !errors.Is(err, ErrStateDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("%s: %v", what, err)
	}
	after, _ := os.ReadFile(path)
	if !bytes.Equal(after, content) {
		t.Errorf("%s: the refused file was changed", what)
	}
	return true
}

func TestTruncatedStores(t *testing.T) {
	id := storeID(t, nil)
	content := damagedFile(t, id)
	for size := 0; size < len(content); size += 509 {
		if !tryDamaged(t, id, content[:size], fmt.Sprintf("cut to %d of %d bytes", size, len(content))) {
			t.Errorf("cut to %d of %d bytes: opened", size, len(content))
		}
	}
	if !tryDamaged(t, id, content[:len(content)-1], "without the last byte") {
		t.Error("without the last byte: opened")
	}
}

func TestFlippedBits(t *testing.T) {
	id := storeID(t, nil)
	content := damagedFile(t, id)
	refused, tried := 0, 0
	flip := func(bit int) {
		content[bit/8] ^= 1 << (bit % 8)
		tried++
		if tryDamaged(t, id, content, fmt.Sprintf("bit %d of byte %d", bit%8, bit/8)) {
			refused++
		}
		content[bit/8] ^= 1 << (bit % 8)
	}
	// The beginnings of the pages, where bbolt's own structure is, and samples of
	// all the rest.
	for page := 0; page < len(content); page += os.Getpagesize() {
		for bit := range 8 * 40 {
			if bit%5 == page/os.Getpagesize()%5 {
				flip(8*page + bit)
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		flip(r.IntN(8 * len(content)))
	}
	t.Logf("%d of %d flipped bits refused; the others are in parts of the file that are not used", refused, tried)
	if refused < tried/10 {
		t.Errorf("only %d of %d flips were noticed", refused, tried)
	}
}

// TestGarbage overwrites blocks, as a disk that lost one would.
func TestGarbage(t *testing.T) {
	id := storeID(t, nil)
	content := damagedFile(t, id)
	r := rand.New(rand.NewPCG(5, 6))
	refused := 0
	for k := range 300 {
		damaged := bytes.Clone(content)
		at, size := r.IntN(len(content)), 1<<r.IntN(13)
		for i := at; i < min(at+size, len(damaged)); i++ {
			damaged[i] = byte(r.Uint32())
			if k%3 == 0 {
				damaged[i] = 0
			}
		}
		if tryDamaged(t, id, damaged, fmt.Sprintf("%d bytes at %d", size, at)) {
			refused++
		}
	}
	t.Logf("%d of 300 refused", refused)
}

// TestEveryFlippedStateBit flips every bit of the record itself.
func TestEveryFlippedStateBit(t *testing.T) {
	record, err := Saved{State: stateAt(5), Sequence: 5, Time: time.Now()}.append(nil, currentKey)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(record) {
		record[bit/8] ^= 1 << (bit % 8)
		if err := new(Saved).decode(record, currentKey); !errors.Is(err, ErrStateDamaged) {
			t.Fatalf("bit %d: %v", bit, err)
		}
		record[bit/8] ^= 1 << (bit % 8)
	}
}

func TestNoStateAtAll(t *testing.T) {
	id := storeID(t, nil)
	for _, content := range []string{"", "x", strings.Repeat("PK\x03\x04", 20000), strings.Repeat("\x00", 1<<15)} {
		if !tryDamaged(t, id, []byte(content), fmt.Sprintf("%d bytes of something else", len(content))) {
			t.Error("opened")
		}
	}
	if _, err := OpenStore(t.TempDir(), id, nil); err == nil {
		t.Error("a folder was opened")
	}
}

func TestNewerFormat(t *testing.T) {
	h := header{id: *storeID(t, nil), created: time.Now()}
	b := h.encode()
	b[8] = 2
	b = sealed(b[:len(b)-32], 0, headerKey)
	if err := new(header).decode(b); !errors.Is(err, ErrStateVersion) || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
}

// BenchmarkCommit is a commit of M = 600 sensors, synced to where temporary
// files are.
func BenchmarkCommit(b *testing.B) {
	d, err := operator.NewDense(600, 1, randomMatrix(600, 1))
	if err != nil {
		b.Fatal(err)
	}
	id, err := Identify(d, prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Gain{Prior: channel.Uniform(0.9, 1.1)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	s, err := OpenStore(filepath.Join(b.TempDir(), "s.calamp"), &id, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	state := newState(600, gainWidth, 1)
	for sequence := int64(0); b.Loop(); sequence++ {
		if err := s.Commit(&state, sequence); err != nil {
			b.Fatal(err)
		}
	}
}
