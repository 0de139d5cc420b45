package dataset

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/internal/tests"
)

// budget is what bombs are read with here, in bytes: they ask for many times as much.
const budget = 4 << 20

// slack is what reading anything takes: decompressors, buffers of a few thousand values, archives' directories.
const slack = 4 << 20

// expectRefused reads a file that asks for more than there is, and looks at what was allocated.
func expectRefused(t *testing.T, name string, size int, read func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err := read()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%s: %d bytes, %d allocated in %v: %v", name, size, allocated, took, err)
	if err == nil || !strings.Contains(err.Error(), "allowed") {
		t.Errorf("%s: found %v, expected a refusal that says what is allowed", name, err)
		return
	}
	expectInputError(t, err)
	if most := uint64(4*max(size, budget) + slack); allocated > most {
		t.Errorf("%s: %d bytes allocated for a file of %d, expected at most %d", name, allocated, size, most)
	}
}

// matVariable is a variable of a .mat, and matFile the file of them.
func matVariable(class uint32, flags uint32, rows, columns uint32, name string, elements ...[]byte) []byte {
	little := binary.LittleEndian
	element := func(kind uint32, data []byte) []byte {
		e := append(little.AppendUint32(little.AppendUint32(nil, kind), uint32(len(data))), data...)
		return append(e, make([]byte, -len(data)&7)...)
	}
	inside := element(6, little.AppendUint64(nil, uint64(class|flags)))
	inside = append(inside, element(5, little.AppendUint32(little.AppendUint32(nil, rows), columns))...)
	inside = append(inside, element(1, []byte(name))...)
	for _, e := range elements {
		inside = append(inside, e...)
	}
	return element(14, inside)
}

func matElement(kind uint32, data []byte) []byte {
	e := append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, kind), uint32(len(data))), data...)
	return append(e, make([]byte, -len(data)&7)...)
}

func matFile(deflated bool, variables ...[]byte) []byte {
	file := append(bytes.Repeat([]byte("MATLAB 5"), 16)[:124], "\x00\x01IM"...)
	for _, v := range variables {
		if deflated {
			var b bytes.Buffer
			z := zlib.NewWriter(&b)
			z.Write(v)
			z.Close()
			v = append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 15), uint32(b.Len())), b.Bytes()...)
		}
		file = append(file, v...)
	}
	return file
}

// TestSmallFilesThatAskForGigabytes reads problems and matrices that are small and ask for many times the budget. Each is
// refused before that is allocated.
func TestSmallFilesThatAskForGigabytes(t *testing.T) {
	tests.Long(t)
	zeros := make([]byte, 3*budget) // of which deflate leaves a thousandth
	y := matVariable(6, 0, 4, 1, "Y", matElement(9, floats(1, 2, 3, 4)))
	small := npyFile("<f8", false, "(4, 1)", floats(1, 2, 3, 4))
	const many = 3 * budget
	problems := map[string][]byte{
		"sparse MAT of 2³¹-1 × 0": matFile(false, matVariable(5, 0, math.MaxInt32, 0, "W", matElement(5, nil), matElement(5, make([]byte, 4)), matElement(9, nil)), y),
		"sparse MAT of 0 × 2³¹-1": matFile(false, matVariable(5, 0, 0, math.MaxInt32, "W", matElement(5, nil), matElement(5, make([]byte, 4)), matElement(9, nil)), y),
		"sparse MAT with its zeros": matFile(false, matVariable(5, 0, 5000, 5000, "W",
			matElement(5, make([]byte, 4)), matElement(5, make([]byte, 4*5001)), matElement(9, floats(1))), y),
		"sparse MAT with room for more": matFile(true, matVariable(5, 0, 1, 1, "W", matElement(5, zeros), matElement(5, make([]byte, 8)), matElement(9, nil)), y),
		"deflated MAT":                  matFile(true, matVariable(6, 0, many/8, 1, "W", matElement(9, zeros)), y),
		"deflated complex MAT":          matFile(true, matVariable(6, 0x800, many/8, 1, "W", matElement(9, zeros), matElement(9, nil)), y),
		"deflated bytes of a MAT":       matFile(true, matVariable(6, 0, many, 1, "W", matElement(2, zeros)), y),
		"deflated text of a MAT": matFile(true, matVariable(6, 0, 4, 1, "W", matElement(9, floats(1, 2, 3, 4))), y,
			matVariable(4, 0, 1, many, "X0", matElement(1, zeros))),
		"u1 npz": archiveFile(t, member{"W.npy", npyFile("|u1", false, fmt.Sprintf("(4, %d)", budget/4), zeros[:budget])}, member{"Y.npy", small}),
		"deflated npz": archiveFile(t, member{"W.npy", npyFile("<f8", false, fmt.Sprintf("(4, %d)", many/32), zeros)},
			member{"Y.npy", small}),
		"deflated truth": archiveFile(t, member{"W.npy", small}, member{"Y.npy", small},
			member{"X0.npy", npyFile("<f4", false, fmt.Sprintf("(1, %d)", budget/4), zeros[:budget])}),
		"complex readings of real ones": archiveFile(t, member{"W.npy", npyFile("<f4", false, fmt.Sprintf("(%d, 1)", budget/4), zeros[:budget])},
			member{"Y.npy", npyFile("<c8", false, fmt.Sprintf("(%d, 1)", budget/8), zeros[:budget])}),
		"a single column, which kernels widen": archiveFile(t, member{"W.npy", npyFile("<f4", false, fmt.Sprintf("(%d, 1)", budget/16), bytes.Repeat([]byte{0, 0, 128, 63}, budget/16))},
			member{"Y.npy", npyFile("<f4", false, fmt.Sprintf("(%d, 1)", budget/16), zeros[:budget/4])}),
	}
	for name, data := range problems {
		path := filepath.Join(t.TempDir(), "P.mat")
		writeTest(t, path, data)
		expectRefused(t, name, len(data), func() error { _, err := LoadNamed(path, budget, nil); return err })
		if !strings.Contains(name, "text") { // which is no array of a problem
			expectRefused(t, name+", from a stream", len(data), func() error {
				_, err := ReadWithin(bytes.NewReader(data), "stream", budget)
				return err
			})
		}
	}
}

// TestSmallSpecsThatAskForGigabytes is the same for matrices that are no tables.
func TestSmallSpecsThatAskForGigabytes(t *testing.T) {
	column := func(rows, columns int) string {
		path := filepath.Join(t.TempDir(), "A.npy")
		writeTest(t, path, npyFile("<f8", false, fmt.Sprintf("(%d, %d)", rows, columns), bytes.Repeat(floats(1), rows*columns)))
		return path
	}
	sparse := func(format string, shape ...float64) string {
		path := filepath.Join(t.TempDir(), "S.npz")
		integers := func(values ...float64) []byte {
			var raw []byte
			for _, v := range values {
				raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
			}
			return npyFile("<i8", false, fmt.Sprintf("(%d,)", len(values)), raw)
		}
		writeTest(t, path, archiveFile(t, member{"format.npy", npyFile("|S3", false, "()", []byte(format))}, member{"shape.npy", integers(shape...)},
			member{"indptr.npy", integers(0, 1)}, member{"indices.npy", integers(0)}, member{"data.npy", vectorFile(1)}))
		return "sparse:" + path
	}
	rows := withArrays(t, map[string][]float64{"n": {1 << 27}, "rows": {0}})
	specs := map[string]string{
		"csc of 2³¹-1 × 1": sparse("csc", math.MaxInt32, 1), "csr of 1 × 2³¹-1": sparse("csr", 1, math.MaxInt32),
		"hadamard": "hadamard:" + rows, "dct": "dct:" + rows, "fft": "fft:" + rows,
		"kron of two 40000 × 2":            "kron:" + column(40000, 2) + "," + column(40000, 2),
		"kron that is wide in its middle":  "kron:" + column(1, 10000) + "," + column(10000, 1),
		"kron of kron":                     "kron:" + column(300, 1) + ",kron:" + column(300, 1) + "," + column(300, 1),
		"bytes that become numbers":        bytesTable(t, budget/2),
		"kron of bytes that become double": "kron:" + column(1, 1) + "," + bytesTable(t, budget/2),
	}
	for name, spec := range specs {
		size := 0
		for _, path := range SpecFiles(spec) {
			if stat, err := os.Stat(path[strings.LastIndex(path, ":")+1:]); err == nil {
				size += int(stat.Size())
			}
		}
		expectRefused(t, name, size, func() error { _, _, err := OpenMatrix(spec, budget); return err })
	}
	for _, spec := range []string{"dct:1000000000", "dct:9223372036854775807", "dct2:30000x30000", "dct2:4294967296x4294967296"} {
		_, err := OpenBasis(spec, 6)
		expectWords(t, err, "expected 6 rows, one for each column of W")
		_, err = openBasis(strings.Replace(spec, "9223372036854775807", "1000000000", 1), 1000000000, memory.Allow(budget))
		if err == nil {
			t.Errorf("%s: no error", spec)
		}
	}
}

// bytesTable is a table of bytes, deflated.
func bytesTable(t *testing.T, n int) string {
	path := filepath.Join(t.TempDir(), "B.npz")
	writeTest(t, path, archiveFile(t, member{"W.npy", npyFile("|u1", false, fmt.Sprintf("(2, %d)", n/2), bytes.Repeat([]byte{1}, n))}))
	return path
}

// TestReadingsThatAskForGigabytes counts the cells of a text.
func TestReadingsThatAskForGigabytes(t *testing.T) {
	text := bytes.Repeat([]byte(","), 1<<20)
	_, err := parseText("Y.csv", "Y", text, memory.Allow(budget))
	expectWords(t, err, "1048577 cells: it takes 25.2 MB of memory, expected at most the 4.19 MB allowed")
}

// TestFilesMayTakeWhatTheyAre reads, with next to no budget, files of numbers that are all there.
func TestFilesMayTakeWhatTheyAre(t *testing.T) {
	values := bytes.Repeat(floats(1, 2, 3), 20000)
	data := archiveFile(t, member{"W.npy", npyFile("<f8", false, "(600, 100)", values)}, member{"Y.npy", npyFile("<f8", true, "(600, 100)", values)})
	var stored bytes.Buffer // archiveFile deflates, and these are all equal
	if p, err := Read(bytes.NewReader(data), "P.npz"); err != nil {
		t.Fatal(err)
	} else if err := writeArchive(&stored, []output{denseOutput("W", tableOf(p)), matrixOutput("Y", p.Y)}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "P.npz")
	writeTest(t, path, stored.Bytes())
	if _, err := LoadNamed(path, 1, nil); err != nil {
		t.Error(err)
	}
}

// TestManyArrays lists a file of many arrays in a time that grows as the file does.
func TestManyArrays(t *testing.T) {
	tests.Long(t)
	var variables [][]byte
	for i := range 40000 {
		variables = append(variables, matVariable(6, 0, 0, 0, fmt.Sprintf("v%d", i), matElement(9, nil)))
	}
	start := time.Now()
	c, err := buffer(bytes.NewReader(matFile(false, variables...)), "P.mat", nil)
	if err != nil || len(c.entries) != len(variables) {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("%v for %d arrays", took, len(variables))
	}
	_, err = buffer(bytes.NewReader(matFile(false, append(variables, variables[7])...)), "P.mat", nil)
	expectWords(t, err, "there are two arrays of this name")
}

func expectWords(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("found %v, expected %q in it", err, words)
	}
}
