package inspect

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

func inspected(t *testing.T, path string, asJSON bool, limit int64) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := inspect(&console.Console{Stdout: &out, Stderr: &out}, path, asJSON, limit)
	return out.String(), err
}

// TestHugeFile: a file above the limit is described by its headers. That its values are
// not read shows in that their being cut off is not noticed.
func TestHugeFile(t *testing.T) {
	in, err := teacher.Teacher{
		N: 20, M: 15, P: 2, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6,
	}.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "P.npz")
	if err := dataset.Save(path, &dataset.Problem{W: in.W, Y: in.Y, Truth: in.Truth}); err != nil {
		t.Fatal(err)
	}
	for _, asJSON := range []bool{false, true} {
		small, err := inspected(t, path, asJSON, mostRead)
		if err != nil || !strings.Contains(small, "mean") || strings.Contains(small, "--all") {
			t.Errorf("%v\n%s", err, small)
		}
		large, err := inspected(t, path, asJSON, 2000)
		if err != nil || strings.Contains(large, "mean") || !strings.Contains(large, "; --all reads them") || !strings.Contains(large, "X0") {
			t.Errorf("%v\n%s", err, large)
		}
	}
	damage(t, path)
	if _, err := inspected(t, path, false, mostRead); err == nil {
		t.Error("the damage was not seen when the values are read")
	}
	if _, err := inspected(t, path, false, 2000); err != nil {
		t.Error(err)
	}
}

// damage changes bytes in the middle of W's values.
func damage(t *testing.T, path string) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	offset, err := z.File[0].DataOffset()
	if err != nil {
		t.Fatal(err)
	}
	middle := offset + int64(z.File[0].CompressedSize64)/2
	z.Close()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, 16), middle); err != nil {
		t.Fatal(err)
	}
}

// TestControlCharacters: what an array is called reaches a terminal in escapes only.
func TestControlCharacters(t *testing.T) {
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	w, err := z.Create("\x1b]0;owned\x07\u009b31m\nstatus converged.npy")
	if err != nil {
		t.Fatal(err)
	}
	header := "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	w.Write([]byte("\x93NUMPY\x01\x00" + string(rune(len(header))) + "\x00" + header + "\x00\x00\x00\x00\x00\x00\xf0\x3f"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "strange.npz")
	if err := os.WriteFile(path, archive.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, asJSON := range []bool{false, true} {
		out, err := inspected(t, path, asJSON, mostRead)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out, "\x1b\x07\u009b") || !strings.Contains(out, "owned") || strings.Contains(out, "\nstatus") {
			t.Errorf("%q", out)
		}
	}
}

// TestText: readings as text are a table, with the separators that calamp solve takes; what is no table of numbers is an error.
func TestText(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ text, want string }{
		{"1,2,nan\n3,4,5\n", "text  CSV 2×3 "},
		{"monday;tuesday\n1,5;2\n;4\n3;7\n", "text  CSV 3×2 "},
		{"no numbers at all\n", ""},
	} {
		path := filepath.Join(folder, "readings.csv")
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := inspected(t, path, false, mostRead)
		if (err == nil) != (c.want != "") || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v\n%s", c.text, err, out)
		}
	}
}
