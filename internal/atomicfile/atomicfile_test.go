package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

var errFull = errors.New("no space left on device")

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alone checks that nothing but the file is left in its folder.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(text string, err error) func(*os.File) error {
		return func(f *os.File) error {
			_, failed := f.WriteString(text)
			return errors.Join(err, failed)
		}
	}
	if err := Replace(path, nil, write("first", nil)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	old, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, old, write("half of the sec", errFull)); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
	if got := content(t, path); got != "first" {
		t.Errorf("after a failure there is %q", got)
	}
	alone(t, path)
	if err := Replace(path, old, write("second", nil)); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "second" {
		t.Errorf("there is %q", got)
	}
	if stat, err := os.Stat(path); err != nil || stat.Mode() != old.Mode() {
		t.Errorf("mode %v, was %v: %v", stat.Mode(), old.Mode(), err)
	}
	alone(t, path)
}

func TestNewLeavesWhatAnotherHasMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	fill := func(text string) func(string) error {
		return func(name string) error { return os.WriteFile(name, []byte(text), 0o644) }
	}
	if err := New(path, func(name string) error { return errors.Join(fill("half")(name), errFull) }); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a failure made a file: %v", err)
	}
	for _, text := range []string{"ours", "theirs"} {
		if err := New(path, fill(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, path); got != "ours" {
		t.Errorf("there is %q", got)
	}
	alone(t, path)
}
