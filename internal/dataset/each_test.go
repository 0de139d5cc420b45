package dataset

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

// eachTable is a 3×4 table that depends on j.
func eachTable(t *testing.T, j int) *operator.Dense {
	t.Helper()
	values := make([]float64, 12)
	for i := range values {
		values[i] = float64((i*i+3*j)%11) - 4
	}
	d, err := operator.NewDense(3, 4, values)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEachFromFiles: a W of three dimensions is read as it was written, and from a folder, a list and a file of its own.
func TestEachFromFiles(t *testing.T) {
	folder := t.TempDir()
	var tables []operator.Operator
	var files []string
	for j := range 2 {
		tables = append(tables, eachTable(t, j))
		files = append(files, filepath.Join(folder, "W"+string(rune('0'+j))+".npy"))
		if err := SaveMatrix(files[j], tables[j]); err != nil {
			t.Fatal(err)
		}
	}
	w, err := operator.NewEach(tables, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := HashMatrix(w)
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	problem, whole := filepath.Join(other, "P.npz"), filepath.Join(other, "W.npy")
	y := mat.NewDense(3, 2, []float64{1, 2, 3, 4, 5, 6})
	if err := Save(problem, &Problem{W: w, Y: y}); err != nil {
		t.Fatal(err)
	}
	if err := SaveMatrix(whole, w); err != nil {
		t.Fatal(err)
	}
	fewer, one := "W has a matrix for each of 2 signals, and Y has 1", mat.NewDense(3, 1, []float64{1, 2, 3})
	if err := Save(problem, &Problem{W: w, Y: one}); err == nil || !strings.Contains(err.Error(), fewer) {
		t.Errorf("too few readings to be written: %v", err)
	}
	readings := filepath.Join(other, "Y.npy")
	if err := WriteFile(readings, func(to io.Writer) error { return matrixOutput("Y", one).write(to) }); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadParts(whole, readings); err == nil || !strings.Contains(err.Error(), fewer) {
		t.Errorf("too few readings: %v", err)
	}
	p, err := Load(problem)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := HashMatrix(p.W); err != nil || got != want {
		t.Errorf("the problem has another W: %v", err)
	}
	for _, spec := range []string{"each:" + folder, "each:" + strings.Join(files, ","), whole} {
		got, _, err := OpenMatrix(spec, 1<<30)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if hash, err := HashMatrix(got); err != nil || hash != want {
			t.Errorf("%s is another W: %v", spec, err)
		}
	}
	for spec, want := range map[string]string{
		"each:" + files[0] + "," + filepath.Join(folder, "none.npy"): "no such file",
		"each:" + other + "/nothing":                                 "no such file",
		"each:" + files[0] + ",,":                                    "expected files with commas between them",
		"each:" + t.TempDir():                                        "expected a matrix for every signal",
		"each:" + whole + "," + files[0]:                             "it has 2 matrices, expected one for each signal",
		"each:each:" + files[0]:                                      "a list of matrices within a list",
	} {
		if _, _, err := OpenMatrix(spec, 1<<30); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", spec, err, want)
		}
	}
}

// TestMatrixOfEverySignal: the array matrix says which of fewer matrices every signal has; with what is wrong in it the problem is refused.
func TestMatrixOfEverySignal(t *testing.T) {
	var tables []operator.Operator
	for j := range 2 {
		tables = append(tables, eachTable(t, j))
	}
	w, err := operator.NewEach(tables, nil)
	if err != nil {
		t.Fatal(err)
	}
	y := mat.NewDense(3, 4, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	write := func(w operator.Operator, matrix []float64) string {
		path := filepath.Join(t.TempDir(), "P.npz")
		if err := writeArrays(path, append(matrixOutputs(w), matrixOutput("Y", y), vectorOutput(matrixName, matrix))); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write(w, []float64{1, 0, 0, 1})
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := operator.NewEach(tables, []int{1, 0, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if a, errA := HashMatrix(p.W); errA != nil {
		t.Error(errA)
	} else if b, errB := HashMatrix(want); errB != nil || a != b {
		t.Errorf("W is %v, want %v (%v)", p.W, want, errB)
	}
	if MatrixCount(path) != 2 || MatrixCount("each:"+path+","+path) != 2 || MatrixCount("hadamard:"+path) != 0 {
		t.Errorf("the file has %d matrices, want 2", MatrixCount(path))
	}
	for _, c := range []struct {
		w      operator.Operator
		matrix []float64
		want   string
	}{
		{w, []float64{1, 0, 0, 2}, "matrix of signal 3 is 2, expected one of 0 to 1"},
		{w, []float64{1, 0, 0.5, 1}, "matrix of signal 2 is 0.5, expected one of 0 to 1"},
		{w, []float64{1, 0}, "matrix is a vector of 2, expected 4 integers"},
		{tables[0], []float64{0, 0, 0, 0}, "W is one for all"},
	} {
		if _, err := Load(write(c.w, c.matrix)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
