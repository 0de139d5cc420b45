package dataset

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp/operator"
)

func TestReadings(t *testing.T) {
	nan := math.NaN()
	cases := []struct {
		text  string
		shape []int
		want  []float64
	}{
		{"1,2\n3,4\n", []int{2, 2}, []float64{1, 2, 3, 4}},
		{"1,2\r\n3,4", []int{2, 2}, []float64{1, 2, 3, 4}},
		{"\ufeffa,b\n1,2\n\n \n", []int{1, 2}, []float64{1, 2}},
		{"# first signal, second signal, and more\n1,2\n", []int{1, 2}, []float64{1, 2}},
		{" 1 , \"2\" \n-3e-2,+4.\n", []int{2, 2}, []float64{1, 2, -0.03, 4}},
		{"1,\nNaN,nan\n,4\n,\n", []int{4, 2}, []float64{1, nan, nan, nan, nan, 4, nan, nan}},
		{"nan,nan\n1,2\n", []int{2, 2}, []float64{nan, nan, 1, 2}},
		{"1\n\n3\n", []int{3, 1}, []float64{1, nan, 3}}, // with one column, an empty line is a missing reading
	}
	for _, c := range cases {
		a, err := parseText("y.csv", "Y", []byte(c.text), nil)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if !slices.Equal(a.Shape, c.shape) || !equal(a.Data, c.want) {
			t.Errorf("%q: %v %v", c.text, a.Shape, a.Data)
		}
	}
}

func TestReadingsFaults(t *testing.T) {
	const expected = ", expected a finite number, or nothing or nan where a reading is missing"
	cases := []struct{ text, want string }{
		{"1,2\n3,x\n", `line 2, column 2: found "x"` + expected},
		{"a,b\n1,2\n3,4x", `line 3, column 2: found "4x"` + expected},
		{"1,2x\n3,4\n", `line 1, column 2: found "2x"` + expected}, // a header has no numbers at all
		{"1e999\n1\n", `line 1, column 1: found "1e999"` + expected},
		{"1,2\n3,-inf\n", `line 2, column 2: found "-inf"` + expected},
		{"1,2\n3\n", "line 2 has 1 column, expected 2, as in the lines before"},
		{"1,2\n\n3,4\n", "line 2 has nothing in it, expected 2, as in the lines before"},
		{"1;2\n3;4x\n", `line 2, column 2: found "4x"` + expected},
		{"1 2\n\n3 4\n", "line 2 has nothing in it, expected 2, as in the lines before"},
		{"1 2\n3\n", "line 2 has 1 column, expected 2, as in the lines before"},
		{"index,a\n0,2\n1,7\n2,5\n", "the first column counts the rows, which is an index and no signal: remove it (pandas: to_csv(index=False, header=False)), or give a .npy, where it is none"},
		{"1 2\n2 7\n3 5\n", "the first column counts the rows, which is an index and no signal: remove it (pandas: to_csv(index=False, header=False)), or give a .npy, where it is none"},
		{"sensor,a\ns0,2\ns1,7\n", `line 2: the first column is "s0", a label of the row perhaps: remove it (pandas: to_csv(index=False))`},
		{"a,b\n", "no numbers, expected them separated by commas, semicolons, tabs or spaces, one sensor a line"},
		{"1\n" + strings.Repeat("é", 60), `line 2, column 1: found "` + strings.Repeat("é", 20) + `"…` + expected},
	}
	for _, c := range cases {
		_, err := parseText("y.csv", "Y", []byte(c.text), nil)
		expectFault(t, err, "y.csv: Y: "+c.want)
	}
	if _, err := parseText("w.csv", "W", []byte("0,2,3\n1,7,4\n2,5,6\n"), nil); err == nil || !strings.Contains(err.Error(), "counts the rows") {
		t.Errorf("an index column is a column of W: %v", err)
	}
}

// TestSeparators: commas, semicolons, with which a decimal comma goes, tabs and spaces.
func TestSeparators(t *testing.T) {
	for _, text := range []string{
		"1.5,2\n3,4\n", "1.5;2\n3;4\n", "1,5;2\n3;4,0\n", "1,5;2,0\n3,0;4,0\n", "a;b\n1.5;2\n3;4\n", "1.5\t2\n3\t4\n", "1.5 2\n3 4\n", "  1.5   2\r\n 3  4\r\n", "a b\n1.5 2\n3 4\n",
	} {
		a, err := parseText("y.csv", "Y", []byte(text), nil)
		if err != nil || !slices.Equal(a.Data, []float64{1.5, 2, 3, 4}) || !slices.Equal(a.Shape, []int{2, 2}) {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
	a, err := parseText("y.csv", "Y", []byte("1;;3\n4;5;\n"), nil)
	if err != nil || !math.IsNaN(a.Data[1]) || !math.IsNaN(a.Data[5]) {
		t.Errorf("missing ones: %v, %v", a, err)
	}
}

func TestParts(t *testing.T) {
	folder := t.TempDir()
	w, y := filepath.Join(folder, "W.npy"), filepath.Join(folder, "Y.csv")
	writeTest(t, w, matrixFile(3, 2))
	writeTest(t, y, []byte("a,b\n1,2\n,4\n5,6\n"))
	p, err := LoadParts(w, y)
	if err != nil {
		t.Fatal(err)
	}
	if m, columns := p.Y.Dims(); m != 3 || columns != 2 || !math.IsNaN(p.Y.At(1, 0)) || p.Y.At(2, 1) != 6 {
		t.Errorf("Y = %v", p.Y.RawMatrix())
	}
	writeTest(t, y, []byte("0,1\n1,2\n3,4\n5,6\n"))
	_, err = LoadParts(w, y)
	expectFault(t, err, y+": Y is 4×2 but W has 3 rows (sensors): expected 3×P; if the first line is a header, remove it: all in it are numbers")
	writeTest(t, y, []byte("1,2,3\n1,2,3\n"))
	_, err = LoadParts(w, y)
	expectFault(t, err, y+": Y is 2×3 and W is 3×2: one of the two looks transposed, expected Y M×P and W M×N with M sensors")
	writeTest(t, y, []byte("\x89PNG"))
	_, err = LoadParts(w, y)
	expectFault(t, err, y+": this is a PNG image, expected numpy's .npz or .npy, or MATLAB's .mat, or readings as text (CSV)")
	_, err = LoadParts(y, y)
	expectFault(t, err, y+": this is a PNG image, expected numpy's .npz or .npy, or MATLAB's .mat")
	writeTest(t, y, []byte("1,2\n3,4\n"))
	if p, err := LoadParts(y, y); err != nil || p.W.(*operator.Dense).At(1, 0) != 3 {
		t.Errorf("W as text: %v", err)
	}
}
