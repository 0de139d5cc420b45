package console

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSameFile: names of one file are found out whether it is there yet or not.
func TestSameFile(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	there := filepath.Join(folder, "there")
	if err := errors.Join(os.Mkdir("sub", 0o777), os.Mkdir("other", 0o777), os.WriteFile(there, []byte("x"), 0o666)); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"dangling": "new", "chain": "dangling", filepath.Join("sub", "back"): "../new", "folder": "sub", "loop": "loop", "far": filepath.Join(folder, "sub", "new")}
	linked := true
	for name, to := range links {
		linked = os.Symlink(to, name) == nil && linked
	}
	hard := os.Link(there, "hard") == nil
	for _, c := range []struct {
		a, b string
		same bool
		ok   bool
	}{
		{"new", "./new", true, true},
		{"new", filepath.Join(folder, "new"), true, true},
		{"new", "sub/../new", true, true},
		{"new", "sub/new", false, true},
		{"new", "newer", false, true},
		{"there", "./there", true, true},
		{"there", "hard", true, hard},
		{"there", "new", false, true},
		{"no folder/new", "new", false, true},
		{"new", "dangling", true, linked},
		{"new", "chain", true, linked},
		{"new", "sub/back", true, linked},
		{"new", "folder/back", true, linked},
		{"sub/new", "folder/new", true, linked},
		{"sub/new", "far", true, linked},
		{"other/new", "folder/new", false, linked},
		{"loop", "new", false, linked},
	} {
		if c.ok && (SameFile(c.a, c.b) != c.same || SameFile(c.b, c.a) != c.same) {
			t.Errorf("%s and %s: found %t", c.a, c.b, !c.same)
		}
	}
	err := Outputs{File("-o", "sub/../new")}.Check(false, "", "new")
	if err == nil || !strings.Contains(err.Error(), "would overwrite") {
		t.Errorf("an input that is not there yet: %v", err)
	}
}
