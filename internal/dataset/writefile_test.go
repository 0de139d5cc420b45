package dataset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func expectText(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, expected %q", path, got, err, want)
	}
}

func TestWriteFileReplaces(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.npz")
	for _, text := range []string{"first", "second"} {
		if err := WriteFile(path, writeText(text)); err != nil {
			t.Fatal(err)
		}
		expectText(t, path, text)
	}
	expectFiles(t, folder, "r.npz")
}

func TestWriteFileFails(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.npz")
	if err := WriteFile(path, writeText("old")); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no more numbers")
	err := WriteFile(path, func(w io.Writer) error {
		if err := writeText(strings.Repeat("new", 1<<20))(w); err != nil {
			return err
		}
		return cause
	})
	if !errors.Is(err, cause) || err.Error() != path+": no more numbers" {
		t.Errorf("got %v", err)
	}
	expectText(t, path, "old")
	func() {
		defer func() { _ = recover() }()
		_ = WriteFile(path, func(io.Writer) error { panic("calamp: a bug") })
	}()
	expectText(t, path, "old")
	expectFiles(t, folder, "r.npz")

	nowhere := filepath.Join(folder, "none", "r.npz")
	err = WriteFile(nowhere, writeText("x"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), nowhere+": ") || strings.Contains(err.Error(), ".tmp") {
		t.Errorf("got %v", err)
	}
	if err = WriteFile(folder, writeText("x")); err == nil || err.Error() != folder+": this is a folder, expected a file" {
		t.Errorf("got %v", err)
	}
}

func TestWriteFileKeepsLinksAndPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and permissions are others on windows")
	}
	folder := t.TempDir()
	path, link := filepath.Join(folder, "r.npz"), filepath.Join(folder, "latest.npz")
	writeTest(t, path, []byte("old"))
	if err := os.Chmod(path, 0o664); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("r.npz", link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, writeText("new")); err != nil {
		t.Fatal(err)
	}
	expectText(t, path, "new")
	if stat, err := os.Lstat(link); err != nil || stat.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if stat, err := os.Stat(path); err != nil || stat.Mode().Perm() != 0o664 {
		t.Errorf("permissions became %v", stat.Mode())
	}
}

// Devices are written to and not replaced by a file, and it is noticed when they are
// full.
func TestWriteFileToDevices(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	if err := WriteFile("/dev/null", writeText("x")); err != nil {
		t.Error(err)
	}
	if stat, err := os.Stat("/dev/null"); err != nil || stat.Mode()&fs.ModeDevice == 0 {
		t.Fatal("/dev/null was replaced")
	}
	if err := WriteFile("/dev/full", writeText("x")); err == nil {
		t.Error("a full device was not noticed")
	}
}

func TestWriteFileToStandardOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	os.Stdout = f
	err = WriteFile("-", writeText("text"))
	os.Stdout = old
	if closing := f.Close(); err != nil || closing != nil {
		t.Fatal(err, closing)
	}
	expectText(t, path, "text")
}

// TestWriteToDescriptor writes to what shells make of >(…): a link that leads to no name.
func TestWriteToDescriptor(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/dev/fd/%d", w.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /dev/fd")
	}
	err = WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "all of it")
		return err
	})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "all of it" {
		t.Errorf("%q, %v", got, err)
	}
}
