package dataset

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
)

// FuzzRead checks that any bytes give either a sound problem or an InputError, without more memory than is allowed.
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
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := ReadWithin(bytes.NewReader(data), "p.npz", budget)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(4*max(budget, memory.OfFile*len(data))+slack) {
			t.Errorf("%d bytes allocated for a file of %d", allocated, len(data))
		}
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
		c, err := buffer(bytes.NewReader(data), "a.npy", nil)
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
		a, err := parseText("y.csv", "Y", data, nil)
		if err != nil {
			expectInputError(t, err)
			return
		}
		if len(a.Data) != a.count() || a.count() == 0 {
			t.Errorf("%d values, shape %v", len(a.Data), a.Shape)
		}
	})
}

// FuzzMatrix opens matrices by any specification, with files of rows of a transform, of a sparse matrix and of a table, and
// multiplies with them: a sound operator or an InputError, and no more memory than four times the files and the budget.
func FuzzMatrix(f *testing.F) {
	folder := f.TempDir()
	table := matrixFile(4, 3)
	identity := []byte{0, 1, 2, 3, 4, 5, 6, 7}
	for _, spec := range []string{
		"T.npy", "A.npy", "sparse:S.npz", "hadamard:R.npz", "dct:R.npz", "fft:R.npz", "kron:T.npy,T.npy", "kron:dct:R.npz,sparse:S.npz",
		"kron:kron:T.npy,T.npy,A.npy", "kron:fft:R.npz,T.npy", "dct:8", "dct2:2x4", "dct:1000000000", "dct2:30000x30000", "sparse:R.npz", "hadamard:S.npz", "nothing:R.npz", "kron:R.npz",
	} {
		f.Add(spec, int64(8), int64(3), int64(7), identity[:3], identity, table)
		f.Add(spec, int64(1)<<27, int64(1)<<31-1, int64(-1), []byte{0, 1}, []byte{0}, table)
	}
	f.Add("sparse:S.npz", int64(8), int64(2), int64(7), []byte{0, 1, 2}, []byte{5, 6}, []byte{1, 2})
	f.Add("kron:sparse:S.npz,T.npy", int64(8), int64(2), int64(-7), []byte{0, 1, 1, 1, 1, 1, 1, 2}, []byte{0, 1}, []byte{1, 2})
	f.Add("kron:hadamard:R.npz,dct:R.npz", int64(8), int64(6), int64(7), []byte{0, 3, 5}, []byte{7, 6, 5, 4, 3, 2, 1, 0}, table)
	write := func(t *testing.T, name string, data []byte) int {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	integers := func(name string, bytes []byte) output {
		values := make([]int, len(bytes))
		for i, b := range bytes {
			values[i] = int(b)
		}
		return integersOutput(name, []int{len(values)}, values)
	}
	f.Fuzz(func(t *testing.T, spec string, n, m, k int64, first, second, table []byte) {
		if strings.ContainsAny(spec, "/\\\x00") || len(spec) > 200 {
			return // no other files than ours
		}
		stored := func(name string, outputs ...output) int {
			var b bytes.Buffer
			if err := writeArchive(&b, outputs); err != nil {
				t.Fatal(err)
			}
			return write(t, name, b.Bytes())
		}
		rows := []output{integersOutput("n", nil, []int{int(n)}), integers("rows", first)}
		if m%2 == 0 {
			rows = append(rows, integers("permutation", second))
		}
		if m%3 == 0 {
			signs := make([]float64, len(second))
			for i, b := range second {
				signs[i] = float64(b%2)*2 - 1
			}
			rows = append(rows, vectorOutput("signs", signs))
		}
		format, columns := "csr", k
		if k < 0 {
			format, columns = "csc", -k
		}
		entries := make([]float64, min(len(second), len(table)))
		for i := range entries {
			entries[i] = float64(table[i])
		}
		size := stored("R.npz", rows...) + write(t, "A.npy", table) + write(t, "T.npy", matrixFile(4, 3)) +
			stored("S.npz", textOutput("format", format), integersOutput("shape", []int{2}, []int{int(m), int(columns)}), integers("indptr", first),
				integers("indices", second), vectorOutput("data", entries))
		named := spec
		for _, name := range []string{"R.npz", "S.npz", "A.npy", "T.npy"} {
			named = strings.ReplaceAll(named, name, filepath.Join(folder, name))
		}
		const columnsOfW = 8
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		w, file, err := openMatrix(named, budget, memory.Allow(budget))
		if err == nil {
			multiply(t, w)
			if file != nil {
				file.Close()
			}
		} else {
			expectInputError(t, err)
		}
		if w, err := openBasis(named, columnsOfW, memory.Allow(budget)); err == nil {
			multiply(t, w)
		} else {
			expectInputError(t, err)
		}
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if took > 10*time.Second {
			t.Errorf("%v for %q", took, spec)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(2*4*max(budget, size)+slack) { // both
			t.Errorf("%d bytes allocated for %q with files of %d", allocated, spec, size)
		}
	})
}

// multiply makes both products of w with one signal.
func multiply(t *testing.T, w operator.Operator) {
	t.Helper()
	w = operator.RealOf(w)
	m, n := w.Dims()
	if m < 1 || n < 1 || !(w.MeanSquare() > 0) {
		t.Fatalf("a matrix of %d×%d with the mean square %g", m, n, w.MeanSquare())
	}
	q := 0
	if operator.HasSquares(w) {
		q = 1
	}
	sweep, err := w.NewSweep(1, q, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, r := make([]float64, n), make([]float64, n)
	c, h := make([]float64, n*q), make([]float64, n*q)
	for i := range x {
		x[i] = 1
	}
	if err := sweep.Run(r, h, x, c, func(_ int, z, _, g, d []float64) { copy(g, z); clear(d) }); err != nil {
		t.Fatal(err)
	}
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
