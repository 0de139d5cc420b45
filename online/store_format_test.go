package online

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var newFormat = flag.Bool("new-format-file", false, "write the file of the present format version, where there is none")

// formatFile is a file of version 1, which every later version must open. It was
// made by this test, and must never be made again.
const formatFile = "testdata/version1.calamp"

// What is in it, independently of how it is read today.
const (
	formatFingerprint = "e38938e05e39cc7f708c543651b0670b6bdf2315ae164a46ce217fcad5bbfe0c"
	formatState       = "6b9f1a0e25c6905685978ab59eecf478fa8897d53f6caa8e3d0c4428c506b455"
	formatCheckpoint  = "1066bbf5c1d2e056b677eebf71a0a8c5b67b5965de488a0b55f79c6e2a8d0fce"
)

func TestVersion1OpensForEver(t *testing.T) {
	id := storeID(t, nil)
	if _, err := os.Stat(formatFile); *newFormat && errors.Is(err, fs.ErrNotExist) {
		writeFormatFile(t, id)
	}
	content, err := os.ReadFile(formatFile)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "v1.calamp")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, path, id) // the fingerprint of the same model is the same for ever, too
	if got := s.Identity().Fingerprint.String(); got != formatFingerprint {
		t.Errorf("fingerprint %s", got)
	}
	if !strings.Contains(s.Identity().Model, "matrix sensors=48 entries=64\n") {
		t.Errorf("model %q", s.Identity().Model)
	}
	saved, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	expectSaved(t, "current", saved, 7, formatState)
	all, err := s.Checkpoints()
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	expectSaved(t, "checkpoint", all["fourth"], 4, formatCheckpoint)
	commit(t, s, 8)
	expectState(t, s, 8)
}

func expectSaved(t *testing.T, what string, saved Saved, sequence int64, sum string) {
	t.Helper()
	got := sha256.Sum256(bytesOf(t, saved.State))
	if saved.Sequence != sequence || hex.EncodeToString(got[:]) != sum {
		t.Errorf("%s: after sample %d, the state's SHA-256 is %x", what, saved.Sequence, got)
	}
}

func writeFormatFile(t *testing.T, id *Identity) {
	t.Helper()
	s := openStore(t, formatFile, id)
	commit(t, s, 3, 4)
	if err := s.Checkpoint("fourth"); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 5, 6, 7)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
