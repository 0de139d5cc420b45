package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFullDisk: a clear error, and the state before is still there.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: a full disk: only root can mount a small one")
	}
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=128k"); err != nil {
		t.Skip("SKIPPED: a full disk: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(folder, syscall.MNT_DETACH) })
	problem, _ := smallStream(t, t.TempDir(), 40)
	state, filler := filepath.Join(folder, "S.calamp"), filepath.Join(folder, "filler")
	calibrate := func(args ...string) (code int, stderr string) {
		code, _, stderr = calampRun(t, append([]string{"online", problem, "--state", state, "--density", "0.1", "--noise-var", "1e-6", "--max-iter", "20", "--tol", "0"}, args...)...)
		return code, stderr
	}
	if code, stderr := calibrate("--limit", "1"); code != 0 {
		t.Fatal(code, stderr)
	}
	f, err := os.Create(filler)
	for err == nil {
		_, err = f.Write(make([]byte, 512))
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	code, stderr := calibrate("--limit", "20", "-o", filepath.Join(t.TempDir(), "R.npz"))
	if code != 1 || !strings.Contains(stderr, "S.calamp: no space left on device") || !strings.Contains(stderr, "could not be committed") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	before, last, err := stateBytes(state)
	if err != nil || last < 1 || before == nil {
		t.Fatal(last, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if code, stderr := calibrate(); code != 0 {
		t.Fatal(code, stderr)
	}
	if _, last, err = stateBytes(state); err != nil || last != 40 {
		t.Error(last, err)
	}
}
