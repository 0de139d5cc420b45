package dataset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
)

func smallProblem(t testing.TB) *Problem {
	t.Helper()
	w, err := operator.NewDense(3, 2, []float64{1, -2, 0.5, 4, 0, 6})
	if err != nil {
		t.Fatal(err)
	}
	return &Problem{
		W: w,
		Y: mat.NewDense(3, 2, []float64{1, 2, math.NaN(), 4, 5, 6}),
		Truth: calamp.Truth{
			X: mat.NewDense(2, 2, []float64{0, 1, 2, 0}),
			S: []float64{1, 1.25, 0.75},
		},
	}
}

func smallResult() *calamp.Result {
	return &calamp.Result{
		X:    mat.NewDense(2, 2, []float64{1, 2, 3, 4}),
		XVar: mat.NewDense(2, 2, []float64{.1, .2, .3, .4}),
		S:    []float64{1, 2, 4}, SVar: []float64{.01, .02, .03}, Gain: []float64{1, .5, .25},
		Converged: []bool{true, false},
		ScaleSD:   .125,
		Residual:  mat.NewDense(3, 2, []float64{0, 1, 2, 3, 4, 5}),
	}
}

func readBytes(data []byte) (*Problem, error) { return Read(bytes.NewReader(data), "p.npz") }

// npyFile is an array in .npy format, written as numpy would.
func npyFile(descr string, fortran bool, shape string, values []byte) []byte {
	order := "False"
	if fortran {
		order = "True"
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	file := append([]byte("\x93NUMPY\x01\x00"), byte(len(dict)), byte(len(dict)>>8))
	return append(append(file, dict...), values...)
}

func floats(values ...float64) []byte { return appendFloats(nil, values) }

func matrixFile(rows, columns int, values ...float64) []byte {
	if len(values) == 0 {
		for k := range rows * columns {
			values = append(values, float64(k+1))
		}
	}
	return npyFile("<f8", false, fmt.Sprintf("(%d, %d)", rows, columns), floats(values...))
}

func vectorFile(values ...float64) []byte {
	return npyFile("<f8", false, fmt.Sprintf("(%d,)", len(values)), floats(values...))
}

// member is an entry of an archive, in order.
type member struct {
	name string
	data []byte
}

func archiveFile(t testing.TB, members ...member) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, m := range members {
		w, err := z.Create(m.name)
		if err == nil {
			_, err = w.Write(m.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestProblemFaults(t *testing.T) {
	w := member{"W.npy", matrixFile(4, 3)}
	y := member{"Y.npy", matrixFile(4, 2)}
	nan, inf := math.NaN(), math.Inf(1)
	cases := []struct {
		members []member
		want    string
	}{
		{nil, "p.npz: W is missing: the archive is empty"},
		{[]member{{"W.npy", vectorFile(1, 2)}, y}, "p.npz: W is a vector of 2, expected a matrix M×N"},
		{[]member{w}, "p.npz: Y is missing, found only W"},
		{
			[]member{w, {"y.npy", nil}, {"X0.npy", nil}},
			"p.npz: Y is missing, found only W, y, X0; upper and lower case differ: --name Y=y reads it from there",
		},
		{[]member{{"[Content_Types].xml", nil}, {"xl/workbook.xml", nil}}, "p.npz: this zip archive holds no numpy arrays, only [Content_Types].xml, xl/workbook.xml, expected a .npz as numpy.savez writes"},
		{[]member{w, {"Y.npy", matrixFile(2, 4)}}, "p.npz: Y is 2×4 but W has 4 rows (sensors): Y looks transposed, expected 4×P"},
		{[]member{{"W.npy", matrixFile(3, 4)}, y}, "p.npz: W is 3×4 and Y has 4 rows: W looks transposed, expected 4×N"},
		{[]member{w, {"Y.npy", matrixFile(3, 4)}}, "p.npz: Y is 3×4 and W is 4×3: one of the two looks transposed, expected Y M×P and W M×N with M sensors"},
		{[]member{w, {"Y.npy", matrixFile(5, 2)}}, "p.npz: Y is 5×2 but W has 4 rows (sensors): expected 4×P"},
		{[]member{w, {"Y.npy", vectorFile(1, 2, 3, 4, 5)}}, "p.npz: Y is 5×1 but W has 4 rows (sensors): expected 4×P"},
		{[]member{w, {"Y.npy", npyFile("<f8", false, "()", floats(1))}}, "p.npz: Y is a single number, expected a matrix M×P or a vector"},
		{[]member{w, {"Y.npy", npyFile("<f8", false, "(1, 2, 2)", floats(1, 2, 3, 4))}}, "p.npz: Y is 1×2×2, expected a matrix M×P or a vector"},
		{[]member{w, {"Y.npy", matrixFile(4, 0)}}, "p.npz: Y is 4×0: there is nothing in it, expected M×P"},
		{[]member{w, {"Y.npy", matrixFile(4, 2, 1, 2, nan, 4, 5, -inf, 7, 8)}}, "p.npz: Y: row 2, column 1 is -Inf, expected a finite number, or NaN where a reading is missing"},
		{[]member{{"W.npy", matrixFile(4, 2, 1, 2, 3, 4, 5, nan, 7, 8)}, y}, "p.npz: W: row 2, column 1 is NaN, expected a finite number"},
		{[]member{w, y, {"X0.npy", matrixFile(2, 3)}}, "p.npz: X0 is 2×3: it looks transposed, expected N×P = 3×2"},
		{[]member{w, y, {"X0.npy", matrixFile(4, 2)}}, "p.npz: X0 is 4×2, expected N×P = 3×2 (columns of W, columns of Y)"},
		{[]member{w, y, {"X0.npy", matrixFile(3, 2, 1, nan, 3, 4, 5, 6)}}, "p.npz: X0: row 0, column 1 is NaN, expected a finite number"},
		{[]member{w, y, {"s0.npy", vectorFile(1, 2, 3)}}, "p.npz: s0 is a vector of 3, as many as W has columns, expected 4 values, one for each row of W"},
		{[]member{w, y, {"s0.npy", matrixFile(2, 2)}}, "p.npz: s0 is 2×2, expected 4 values, one for each row of W"},
		{[]member{w, y, {"s0.npy", vectorFile(1, 2, 0, 4)}}, "p.npz: s0 of sensor 2 is 0, expected a positive finite number"},
		{[]member{w, y, {"s0.npy", vectorFile(1, 2, nan, 4)}}, "p.npz: s0 of sensor 2 is NaN, expected a positive finite number"},
		{[]member{w, w, y}, "p.npz: W: there are two arrays of this name"},
		{[]member{{"W.npy", []byte("\x93NUM")}, y}, "p.npz: W: cut short within the .npy header: unexpected EOF"},
		{[]member{{"W.npy", []byte("not numpy at all")}, y}, "p.npz: W: not an array in .npy format"},
		{[]member{{"W.npy", npyFile("<f8", false, "(1000000000000, 1000000)", nil)}, y}, "p.npz: W: shape [1000000000000 1000000] has more entries than fit into memory"},
		{[]member{{"W.npy", npyFile("<f8", false, "(100000, 1000000)", nil)}, y}, "p.npz: W: cut short: 100000×1000000 of dtype <f8 is 800000000000 bytes, found 0"},
		{[]member{{"W.npy", npyFile("<f8", false, "(1, 1)", floats(1, 2))}, y}, "p.npz: W: 1×1 of dtype <f8 is 8 bytes, found 16"},
		{[]member{{"W.npy", npyFile("<f8", false, "(-1, 1)", nil)}, y}, "p.npz: W: negative dimension in shape [-1 1]"},
		{[]member{{"W.npy", npyFile("<c16", false, "(1, 1)", floats(1, 2))}, y}, "p.npz: Y is real (<f8) and W is complex: a complex W needs complex readings, of type c8 or c16"},
		{[]member{{"W.npy", append([]byte("\x93NUMPY\x02\x00"), 0xff, 0xff, 0xff, 0xff)}, y}, "p.npz: W: cut short or damaged: .npy header of 4294967295 bytes in 12"},
		{[]member{{"W.npy", []byte("\x93NUMPY\x01\x00\x03\x00{}\n")}, y}, "p.npz: W: unreadable .npy header: npy: invalid dictionary format"},
		{[]member{{"W.npy", []byte("\x93NUMPY\x01\x00\x02\x00{}")}, y}, "p.npz: W: unreadable .npy header: malformed"},
		{[]member{{"W.npy", []byte("\x93NUMPY\x04\x00\x02\x00{}")}, y}, "p.npz: W: .npy format version 4, expected 1 to 3"},
	}
	for _, c := range cases {
		_, err := readBytes(archiveFile(t, c.members...))
		expectFault(t, err, c.want)
	}
}

// expectFault checks that err is an InputError with the given text.
func expectFault(t *testing.T, err error, want string) {
	t.Helper()
	if _, ok := errors.AsType[*InputError](err); !ok {
		t.Errorf("got %v (%T), expected an InputError", err, err)
	} else if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestForeignFiles(t *testing.T) {
	cases := []struct{ head, want string }{
		{"", "this file is empty, expected numpy's .npz or .npy, or MATLAB's .mat"},
		{"\x89PNG\r\n\x1a\n", "this is a PNG image, expected numpy's .npz or .npy, or MATLAB's .mat"},
		{"W,Y\n1,2\n", "this is text, which --matrix and --readings take, expected numpy's .npz or .npy, or MATLAB's .mat"},
		{"\x89HDF\r\n\x1a\n\x00", "this is an HDF5 file; convert it in Python: f = h5py.File(file); " +
			"numpy.savez('problem.npz', W=f['W'][()], Y=f['Y'][()]), both transposed (.T) if MATLAB wrote them, expected numpy's .npz or .npy, or MATLAB's .mat"},
		{"MATLAB 5.0 MAT-file, Platform: GLNXA64", "this is a MATLAB file, cut short, expected numpy's .npz or .npy, or MATLAB's .mat"},
		{"\x80\x04\x95pickle", "this is a Python pickle; convert it in Python: numpy.savez('problem.npz', W=W, Y=Y), expected numpy's .npz or .npy, or MATLAB's .mat"},
		{"\x00\x01\x02", "unknown kind of file, beginning with 00 01 02, expected numpy's .npz or .npy, or MATLAB's .mat"},
		{string(matrixFile(2, 2)), "this is a single array (.npy), expected a .npz with W and Y (numpy.savez), or the matrix and the readings in two files"},
	}
	folder := t.TempDir()
	for _, c := range cases {
		_, err := Read(strings.NewReader(c.head), "f")
		expectFault(t, err, "f: "+c.want)
		path := filepath.Join(folder, "f.npz")
		writeTest(t, path, []byte(c.head))
		_, err = Load(path)
		expectFault(t, err, path+": "+c.want)
	}
	matlab73 := append([]byte(fmt.Sprintf("%-124s\x00\x02IM", "MATLAB 7.3 MAT-file")), make([]byte, 600)...)
	_, err := Read(bytes.NewReader(matlab73), "f")
	if err == nil || !strings.Contains(err.Error(), "this is a MATLAB file of version 7.3, which is HDF5; write it anew") {
		t.Error(err)
	}
	_, err = Load(folder)
	expectFault(t, err, folder+": this is a folder, expected a file")
	missing := filepath.Join(folder, "none.npz")
	_, err = Load(missing)
	expectFault(t, err, missing+": no such file or directory")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("fs.ErrNotExist is lost")
	}
}

func writeTest(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// An archive may claim sizes that its content does not have.
func TestArchiveClaims(t *testing.T) {
	for _, h := range []zip.FileHeader{
		{Method: zip.Store, CompressedSize64: 1 << 40, UncompressedSize64: 1 << 40},
		{Method: zip.Deflate, CompressedSize64: 10, UncompressedSize64: 1 << 40},
		{Method: zip.Deflate, CompressedSize64: math.MaxUint64, UncompressedSize64: math.MaxUint64},
	} {
		h.Name = "W.npy"
		var buf bytes.Buffer
		z := zip.NewWriter(&buf)
		if w, err := z.CreateRaw(&h); err != nil {
			t.Fatal(err)
		} else if _, err := w.Write(npyFile("<f8", false, "(1, 137438953472)", nil)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := readBytes(buf.Bytes()); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%d bytes packed into %d: %v", h.UncompressedSize64, h.CompressedSize64, err)
		}
	}
}

func TestChangedValuesAreFound(t *testing.T) {
	data := archiveFile(t, member{"W.npy", matrixFile(2, 2)}, member{"Y.npy", matrixFile(2, 1)})
	path := filepath.Join(t.TempDir(), "p.npz")
	if err := Save(path, smallProblem(t)); err != nil { // this one is stored, data is deflated
		t.Fatal(err)
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readBytes(data); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(stored, floats(0.5))
	stored[at+6]++
	_, err = readBytes(stored)
	expectFault(t, err, "p.npz: W: damaged: zip: checksum error")
}

func TestLoadArrayChooses(t *testing.T) {
	folder := t.TempDir()
	one, two, alone := filepath.Join(folder, "one.npz"), filepath.Join(folder, "two.npz"), filepath.Join(folder, "X.npy")
	writeTest(t, one, archiveFile(t, member{"X.npy", matrixFile(2, 3)}))
	writeTest(t, two, archiveFile(t, member{"X.npy", matrixFile(2, 3)}, member{"Z.npy", matrixFile(1, 1)}))
	writeTest(t, alone, matrixFile(2, 3))
	for _, c := range []struct{ path, name string }{{one, ""}, {one, "X"}, {two, "X"}, {alone, ""}, {alone, "signals"}} {
		expectArray(t, c.path, c.name, []int{2, 3}, []float64{1, 2, 3, 4, 5, 6})
	}
	_, err := LoadArray(two, "")
	expectFault(t, err, two+": 2 arrays (X, Z), expected a single one")
	scipy := filepath.Join(folder, "scipy.npz")
	writeTest(t, scipy, archiveFile(t, member{"indices.npy", matrixFile(1, 1)}, member{"indptr.npy", matrixFile(1, 2)}))
	_, err = LoadArray(scipy, "")
	expectFault(t, err, scipy+": a matrix of scipy.sparse, expected a single array; where a matrix may stand it is sparse:"+scipy)
	_, err = LoadArray(two, "S")
	expectFault(t, err, two+": S is missing, found only X, Z")
}

func TestInspect(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "p.npz")
	if err := Save(path, smallProblem(t)); err != nil {
		t.Fatal(err)
	}
	infos, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "[{W <f8 C [3 2] 48} {Y <f8 C [3 2] 48} {X0 <f8 C [2 2] 32} {s0 <f8 C [3] 24}]"
	if got := fmt.Sprint(infos); got != want {
		t.Errorf("got %s", got)
	}
	path = filepath.Join(folder, "single.npy")
	writeTest(t, path, npyFile(">i2", true, "(2, 3)", make([]byte, 12)))
	infos, err = Inspect(path)
	if got := fmt.Sprint(infos); err != nil || got != "[{single >i2 F [2 3] 12}]" {
		t.Errorf("got %s, %v", got, err)
	}
}

// What Save writes, Load reads, to the last bit.
func TestSaveLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.npz")
	rapid.Check(t, func(t *rapid.T) {
		m, n, p := rapid.IntRange(1, 9).Draw(t, "M"), rapid.IntRange(1, 9).Draw(t, "N"), rapid.IntRange(1, 5).Draw(t, "P")
		finite := rapid.Float64Range(-1e30, 1e30)
		values := func(label string, count int) []float64 { return rapid.SliceOfN(finite, count, count).Draw(t, label) }
		in := &Problem{Y: mat.NewDense(m, p, values("Y", m*p))}
		in.Y.Set(m-1, p-1, math.NaN())
		w := values("W", m*n)
		w[0] = 1 // not all zero
		single := rapid.Bool().Draw(t, "single")
		if single {
			w32 := make([]float32, len(w))
			for k, v := range w {
				w32[k] = float32(v)
			}
			in.W, _ = operator.NewDense32(m, n, w32)
		} else {
			in.W, _ = operator.NewDense(m, n, w)
		}
		if rapid.Bool().Draw(t, "truth") {
			in.Truth.X = mat.NewDense(n, p, values("X0", n*p))
			in.Truth.S = rapid.SliceOfN(rapid.Float64Range(1e-3, 1e3), m, m).Draw(t, "s0")
		}
		if err := Save(path, in); err != nil {
			t.Fatal(err)
		}
		out, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if tableOf(out).Storage() != tableOf(in).Storage() {
			t.Fatalf("W became %s", tableOf(out).Storage())
		}
		got, want := make([]float64, n), make([]float64, n)
		for mu := range m {
			tableOf(out).RowInto(got, mu)
			tableOf(in).RowInto(want, mu)
			if !slices.Equal(got, want) {
				t.Fatalf("row %d of W is %g, expected %g", mu, got, want)
			}
		}
		if !equal(out.Y.RawMatrix().Data, in.Y.RawMatrix().Data) || !slices.Equal(out.Truth.S, in.Truth.S) {
			t.Fatal("Y or s0 differs")
		}
		if (in.Truth.X == nil) != (out.Truth.X == nil) || in.Truth.X != nil && !mat.Equal(in.Truth.X, out.Truth.X) {
			t.Fatal("X0 differs")
		}
	})
}

// An array is read as the same array from any order and byte order.
func TestOrders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(0, 7), 0, 4).Draw(t, "shape")
		big, fortran := rapid.Bool().Draw(t, "big"), rapid.Bool().Draw(t, "fortran")
		var order binary.AppendByteOrder = binary.LittleEndian
		descr := "<u4"
		if big {
			order, descr = binary.BigEndian, ">u4"
		}
		count := Info{Shape: shape}.count()
		want, memory := make([]float64, count), make([]uint32, count)
		for k := range count {
			want[k] = float64(1000003 * k)
			at := k
			if fortran {
				at = fortranPlace(shape, k)
			}
			memory[at] = uint32(1000003 * k)
		}
		var raw []byte
		for _, v := range memory {
			raw = order.AppendUint32(raw, v)
		}
		if err := os.WriteFile(path, npyFile(descr, fortran, tuple(shape), raw), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := LoadArray(path, "a")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Data, want) {
			t.Fatalf("got %v, expected %v", a.Data, want)
		}
	})
}

// fortranPlace is where the entry of place k in C order lies in Fortran order.
func fortranPlace(shape []int, k int) int {
	index := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d] = k % shape[d]
		k /= shape[d]
	}
	at := 0
	for d := len(shape) - 1; d >= 0; d-- {
		at = at*shape[d] + index[d]
	}
	return at
}

// Arrays longer than a chunk are read correctly.
func TestLongArrays(t *testing.T) {
	const rows, columns = 190, 2*chunk/190 + 1
	values := make([]float64, rows*columns)
	want := make([]float64, len(values))
	for k := range values {
		want[k] = float64(k)
		values[k%columns*rows+k/columns] = float64(k)
	}
	path := filepath.Join(t.TempDir(), "a.npy")
	writeTest(t, path, npyFile("<f8", true, tuple([]int{rows, columns}), floats(values...)))
	a, err := LoadArray(path, "a")
	if err != nil || !slices.Equal(a.Data, want) {
		t.Errorf("long Fortran array: %v", err)
	}
	writeTest(t, path, npyFile("<f8", false, tuple([]int{rows, columns}), floats(want...)))
	if a, err = LoadArray(path, "a"); err != nil || !slices.Equal(a.Data, want) {
		t.Errorf("long C array: %v", err)
	}
}

func TestSaveRefuses(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "p.npz")
	cases := []struct {
		change func(*Problem)
		want   string
	}{
		{func(p *Problem) { p.W = nil }, "a problem needs W and Y"},
		{func(p *Problem) { p.Y = mat.NewDense(4, 3, nil) }, "Y is 4×3 but W has 3 rows (sensors): Y looks transposed, expected 3×P"},
		{func(p *Problem) { p.Y.Set(1, 1, math.Inf(1)) }, "Y: row 1, column 1 is +Inf, expected a finite number, or NaN where a reading is missing"},
		{func(p *Problem) { p.Truth.X = &mat.Dense{} }, "X0 is 0×0: there is nothing in it, expected N×P"},
		{func(p *Problem) { p.Truth.S[1] = -1 }, "s0 of sensor 1 is -1, expected a positive finite number"},
	}
	for _, c := range cases {
		p := smallProblem(t)
		c.change(p)
		err := Save(path, p)
		if err == nil || err.Error() != path+": "+c.want {
			t.Errorf("got %v, expected %s", err, c.want)
		}
		if _, input := errors.AsType[*InputError](err); input {
			t.Errorf("%v is an InputError, but nothing was read", err)
		}
	}
	expectFiles(t, folder)
}

// expectFiles checks that the folder holds exactly the named files.
func expectFiles(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if !slices.Equal(found, names) {
		t.Errorf("folder holds %v, expected %v", found, names)
	}
}

// A slice of a larger matrix, whose rows are not adjacent in memory, is saved correctly.
func TestSaveSlices(t *testing.T) {
	p := smallProblem(t)
	wide := mat.NewDense(3, 4, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	p.Y = wide.Slice(0, 3, 1, 3).(*mat.Dense)
	path := filepath.Join(t.TempDir(), "p.npz")
	if err := Save(path, p); err != nil {
		t.Fatal(err)
	}
	out, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !mat.Equal(out.Y, p.Y) {
		t.Errorf("Y = %v", out.Y.RawMatrix().Data)
	}
}

func TestWritingIsDeterministic(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Join(folder, "a.npz"), filepath.Join(folder, "b.npz")
	for _, path := range []string{a, b} {
		if err := SaveResult(path, smallResult(), nil); err != nil {
			t.Fatal(err)
		}
	}
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two files of one result differ")
	}
}

func TestResults(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.npz")
	in := smallResult()
	for _, residual := range []*mat.Dense{in.Residual, nil} {
		in.Residual = residual
		if err := SaveResult(path, in, nil); err != nil {
			t.Fatal(err)
		}
		out, err := LoadResult(path)
		if err != nil {
			t.Fatal(err)
		}
		same := mat.Equal(out.X, in.X) && mat.Equal(out.XVar, in.XVar) && slices.Equal(out.S, in.S) &&
			slices.Equal(out.SVar, in.SVar) && slices.Equal(out.Gain, in.Gain) && slices.Equal(out.Converged, in.Converged) &&
			out.ScaleSD == in.ScaleSD && (residual == nil) == (out.Residual == nil) && out.Status == calamp.NotConverged
		if !same {
			t.Errorf("read %+v", out)
		}
	}
	in.Converged[1] = true
	if err := SaveResult(path, in, nil); err != nil {
		t.Fatal(err)
	}
	if out, err := LoadResult(path); err != nil || out.Status != calamp.Converged {
		t.Errorf("status %v, %v", out.Status, err)
	}
}

func TestResultFaults(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.npz")
	cases := []struct {
		change func(*calamp.Result)
		want   string
	}{
		{func(r *calamp.Result) { r.X = nil }, "a result needs x and x_var"},
		{func(r *calamp.Result) { r.X.Set(1, 0, math.NaN()) }, "x: row 1, column 0 is NaN, expected a finite number"},
		{func(r *calamp.Result) { r.XVar = mat.NewDense(2, 1, nil) }, "x_var is 2×1, expected 2×2"},
		{func(r *calamp.Result) { r.Residual = mat.NewDense(2, 2, nil) }, "residual is 2×2, expected 3×2"},
		{func(r *calamp.Result) { r.Gain[2] = math.Inf(1) }, "gain of index 2 is +Inf, expected a finite number"},
		{func(r *calamp.Result) { r.ScaleSD = math.NaN() }, "scale_sd of index 0 is NaN, expected a finite number"},
		{func(r *calamp.Result) { r.SVar = r.SVar[:1] }, "s_var has 1 values, expected 3"},
		{func(r *calamp.Result) { r.Converged = nil }, "converged has 0 values, expected one for each of 2 signals"},
	}
	for _, c := range cases {
		r := smallResult()
		c.change(r)
		if err := SaveResult(path, r, nil); err == nil || err.Error() != path+": "+c.want {
			t.Errorf("got %v, expected %s", err, c.want)
		}
	}
	expectFiles(t, folder)

	writeTest(t, path, archiveFile(t, member{"W.npy", matrixFile(2, 2)}))
	_, err := LoadResult(path)
	expectFault(t, err, path+": x is missing, found only W")
	writeTest(t, path, matrixFile(2, 2))
	_, err = LoadResult(path)
	expectFault(t, err, path+": this is a single array (.npy), expected a result (.npz)")
}

func tableOf(p *Problem) operator.Matrix { return p.W.(operator.Matrix) }
