package online

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of a quarter MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: a full disk: only root can mount a small one")
	}
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("SKIPPED: a full disk: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(folder, syscall.MNT_DETACH) })
	return folder
}

// fillDisk writes until nothing fits.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 512))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

func TestFullDisk(t *testing.T) {
	folder, id := smallDisk(t), storeID(t, nil)
	path, filler := filepath.Join(folder, "s.calamp"), filepath.Join(folder, "filler")
	s := openStore(t, path, id)
	commit(t, s, 1, 2)
	fillDisk(t, filler)
	// Pages that are free within the file may still take some.
	last, err := 2, error(nil)
	for ; err == nil && last < 40; last++ {
		if err = s.Checkpoint(string(rune('a' + last%MaxCheckpoints))); err == nil {
			err = s.Commit(stateAt(last+1), int64(last+1))
		}
		if err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("commits on a full disk: %v", err)
	}
	if want := path + ": no space left on device"; err.Error() != want {
		t.Errorf("%q, expected %q", err, want)
	}
	expectState(t, s, last)
	s.Close()
	s = openStore(t, path, id)
	expectState(t, s, last)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 99)
	expectState(t, s, 99)
	s.Close()

	// A new state where nothing fits leaves nothing behind.
	fillDisk(t, filler)
	other := filepath.Join(folder, "new.calamp")
	if _, err := OpenStore(other, id, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("created on a full disk: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 2 {
		t.Errorf("there are %v", left)
	}
}
