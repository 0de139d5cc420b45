package dataset

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRead checks that any bytes give either a sound problem or an InputError.
func FuzzRead(f *testing.F) {
	w, y := matrixFile(4, 3), matrixFile(4, 2)
	f.Add([]byte{})
	f.Add([]byte("text"))
	f.Add(w)
	f.Add(archiveFile(f))
	f.Add(archiveFile(f, member{"W.npy", w}, member{"Y.npy", y}))
	f.Add(archiveFile(f, member{"W.npy", w}, member{"Y.npy", vectorFile(1, 2, 3, 4)}, member{"X0.npy", vectorFile(1, 2, 3)}, member{"s0.npy", vectorFile(1, 2, 3, 4)}))
	for _, descr := range []string{">f4", "<f2", "|b1", "|O", "<U3", ">i8"} {
		f.Add(archiveFile(f, member{"W.npy", npyFile(descr, true, "(2, 2)", make([]byte, 32))}, member{"Y.npy", y}))
	}
	var stored bytes.Buffer // not compressed: a changed value does not break the stream
	if err := writeArchive(&stored, []output{denseOutput("W", tableOf(smallProblem(f))), matrixOutput("Y", smallProblem(f).Y)}); err != nil {
		f.Fatal(err)
	}
	f.Add(stored.Bytes())
	path := filepath.Join(f.TempDir(), "P.mat")
	if err := Save(path, smallProblem(f)); err != nil {
		f.Fatal(err)
	}
	matlab, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(matlab)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := readBytes(data)
		if err != nil {
			expectInputError(t, err)
			return
		}
		if err := p.check(); err != nil {
			t.Errorf("read an unsound problem: %v", err)
		}
	})
}

// FuzzArray reads arrays without an archive around them, whose checksums would keep the
// fuzzer from changing headers and values.
func FuzzArray(f *testing.F) {
	f.Add(matrixFile(4, 3))
	f.Add(vectorFile(1, 2))
	f.Add(npyFile(">f2", true, "()", []byte{1, 2}))
	f.Add(npyFile("|b1", true, "(2, 3)", make([]byte, 6)))
	f.Add([]byte("\x93NUMPY\x03\x00\x02\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := buffer(bytes.NewReader(data), "a.npy")
		if err != nil {
			expectInputError(t, err)
			return
		}
		a, err := c.read("a", len(data)%2 == 0)
		if err != nil {
			expectInputError(t, err)
			return
		}
		if len(a.Data)+len(a.data32) != a.count() {
			t.Errorf("%d and %d values, shape %v", len(a.Data), len(a.data32), a.Shape)
		}
	})
}

// FuzzReadings reads readings as text.
func FuzzReadings(f *testing.F) {
	for _, text := range []string{"", "a,b\n1,2\n,nan\n", "1;2\n", "\"1\",\"\n\n", "\ufeff1e5\r\n\r\n2", strings.Repeat("\xbf", 50)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseReadings("y.csv", data)
		if err != nil {
			expectInputError(t, err)
			return
		}
		if len(a.Data) != a.count() || a.count() == 0 {
			t.Errorf("%d values, shape %v", len(a.Data), a.Shape)
		}
	})
}

func expectInputError(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*InputError](err); !ok {
		t.Errorf("%v (%T) is no InputError", err, err)
	}
	if err.Error() == "" {
		t.Error("an error without words")
	}
}
