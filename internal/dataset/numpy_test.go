package dataset

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp/operator"
)

// python returns the path of a Python that has numpy, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	for _, candidate := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(candidate)
		if err == nil && exec.Command(path, "-c", "import numpy").Run() == nil {
			return path
		}
	}
	t.Skip("no python3 with numpy: only the numpy files in testdata are tested")
	return ""
}

// fixtures calls test with a folder of files that numpy wrote: the one that is checked
// in, and one that numpy writes now.
func fixtures(t *testing.T, test func(t *testing.T, folder string)) {
	t.Run("testdata", func(t *testing.T) { test(t, "testdata") })
	t.Run("numpy", func(t *testing.T) {
		folder := t.TempDir()
		if out, err := exec.Command(python(t), filepath.Join("testdata", "make.py"), folder).CombinedOutput(); err != nil {
			t.Fatalf("make.py: %v\n%s", err, out)
		}
		test(t, folder)
	})
}

// pattern is the values that make.py puts into an array.
func pattern(kind string, count int) []float64 {
	v := make([]float64, count)
	for k := range v {
		switch {
		case kind == "b1":
			if k%3 == 0 {
				v[k] = 1
			}
		case kind[0] == 'f':
			v[k] = float64(k-2) / 4
		case kind == "i1" || kind[0] == 'i':
			v[k] = float64(k - 2)
		default:
			v[k] = float64(k)
		}
	}
	return v
}

func TestEveryTypeOfNumpy(t *testing.T) {
	fixtures(t, func(t *testing.T, folder string) {
		for _, file := range []string{"types_stored.npz", "types_deflated.npz"} {
			path := filepath.Join(folder, file)
			for kind := range decoders {
				for _, variant := range []string{"big_C", "big_F", "little_C", "little_F"} {
					expectArray(t, path, kind+"_"+variant, []int{2, 3}, pattern(kind, 6))
				}
			}
			expectArray(t, path, "cube_F", []int{2, 3, 4}, pattern("f8", 24))
			expectArray(t, path, "scalar", []int{}, []float64{2.5})
			expectArray(t, path, "scalar_int", []int{}, []float64{360})
			expectArray(t, path, "vector", []int{5}, pattern("f8", 5))
			expectArray(t, path, "empty", []int{0, 3}, []float64{})
			inf := math.Inf(1)
			expectArray(t, path, "extremes", []int{6}, []float64{0x1p-24, 65504, -0x1.ff8p-15, inf, -inf, math.NaN()})
		}
		for version := 1; version <= 3; version++ {
			expectArray(t, filepath.Join(folder, fmt.Sprintf("version%d.npy", version)), "", []int{2, 3}, pattern("f8", 6))
		}
	})
}

func expectArray(t *testing.T, path, name string, shape []int, want []float64) {
	t.Helper()
	a, err := LoadArray(path, name)
	if err != nil {
		t.Error(err)
		return
	}
	if !slices.Equal(a.Shape, shape) || !equal(a.Data, want) {
		t.Errorf("%s: %s has shape %v and values %v, expected %v and %v", path, name, a.Shape, a.Data, shape, want)
	}
}

// equal compares values; NaN equals NaN.
func equal(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
}

func TestRefusedTypesAreNamed(t *testing.T) {
	expected := map[string]string{
		"complex64":  `dtype <c8 (complex64), expected`,
		"complex128": `dtype <c16 (complex128), expected`,
		"object":     `dtype |O (object), expected`,
		"text":       `dtype <U2 (text), expected`,
		"bytes":      `dtype |S2 (bytes), expected`,
		"date":       `dtype <M8[D] (datetime64), expected`,
		"table":      `dtype of a table with named columns, expected`,
	}
	fixtures(t, func(t *testing.T, folder string) {
		path := filepath.Join(folder, "refused.npz")
		for name, want := range expected {
			_, err := LoadArray(path, name)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := LoadArray(path, "longdouble"); err == nil {
			t.Error("a long double was accepted")
		}
		infos, err := Inspect(path)
		if err != nil || len(infos) != 8 {
			t.Errorf("Inspect must list what cannot be read: %v, %v", infos, err)
		}
	})
}

func TestProblemsOfNumpy(t *testing.T) {
	fixtures(t, func(t *testing.T, folder string) {
		for file, storage := range map[string]string{"problem.npz": "f64", "problem_single.npz": "f32"} {
			p, err := Load(filepath.Join(folder, file))
			if err != nil {
				t.Fatal(err)
			}
			expectProblem(t, p, storage)
			if n, columns := p.Truth.X.Dims(); n != 4 || columns != 3 || p.Truth.X.At(2, 1) != 7 {
				t.Errorf("%s: X0 is %d×%d with %g at (2, 1)", file, n, columns, p.Truth.X.At(2, 1))
			}
			if want := []float64{1, 1.125, 1.25, 1.375, 1.5}; !slices.Equal(p.Truth.S, want) {
				t.Errorf("%s: s0 = %v", file, p.Truth.S)
			}
		}
		p, err := LoadParts(filepath.Join(folder, "W.npy"), filepath.Join(folder, "Y.npy"))
		if err != nil {
			t.Fatal(err)
		}
		expectProblem(t, p, "f32")
		p, err = LoadParts(filepath.Join(folder, "W.npy"), filepath.Join(folder, "vector.npy"))
		if err != nil {
			t.Fatal(err)
		}
		if m, columns := p.Y.Dims(); m != 5 || columns != 1 || p.Y.At(4, 0) != 2.25 {
			t.Errorf("a vector Y became %d×%d", m, columns)
		}
	})
}

func expectProblem(t *testing.T, p *Problem, storage string) {
	t.Helper()
	if m, n := p.W.Dims(); m != 5 || n != 4 || tableOf(p).Storage() != storage {
		t.Fatalf("W is %d×%d %s, expected 5×4 %s", m, n, tableOf(p).Storage(), storage)
	}
	row := make([]float64, 4)
	for mu := range 5 {
		tableOf(p).RowInto(row, mu)
		for i, w := range row {
			if want := float64(4*mu+i-7) / 8; w != want {
				t.Fatalf("W[%d, %d] = %g, expected %g", mu, i, w, want)
			}
		}
		for k := range 3 {
			got, want := p.Y.At(mu, k), float64(3*mu+k-3)/4
			if mu == 1 && k == 2 {
				want = math.NaN()
			}
			if !equal([]float64{got}, []float64{want}) {
				t.Fatalf("Y[%d, %d] = %g, expected %g", mu, k, got, want)
			}
		}
	}
}

// numpyView is an array as numpy sees it; null is NaN.
type numpyView struct {
	Dtype  string
	Shape  []int
	Values []*float64
}

const viewScript = `
import json, sys, numpy as np
z = np.load(sys.argv[1])
json.dump({k: {"Dtype": a.dtype.str, "Shape": a.shape,
    "Values": [None if v != v else float(v) for v in a.ravel().tolist()]}
    for k, a in z.items()}, sys.stdout)
`

func viewInNumpy(t *testing.T, path string) map[string]numpyView {
	t.Helper()
	out, err := exec.Command(python(t), "-c", viewScript, path).Output()
	if err != nil {
		t.Fatal(err)
	}
	views := map[string]numpyView{}
	if err := json.Unmarshal(out, &views); err != nil {
		t.Fatal(err)
	}
	return views
}

func (v numpyView) expect(t *testing.T, name, dtype string, shape []int, want []float64) {
	t.Helper()
	values := make([]float64, len(v.Values))
	for k, x := range v.Values {
		values[k] = math.NaN()
		if x != nil {
			values[k] = *x
		}
	}
	if v.Dtype != dtype || !slices.Equal(v.Shape, shape) || !equal(values, want) {
		t.Errorf("numpy sees %s as %s %v %v, expected %s %v %v", name, v.Dtype, v.Shape, values, dtype, shape, want)
	}
}

func TestNumpyReadsProblems(t *testing.T) {
	p := smallProblem(t)
	path := filepath.Join(t.TempDir(), "p.npz")
	for _, single := range []bool{false, true} {
		dtype := "<f8"
		w := []float64{1, -2, 0.5, 4, 0, 6}
		if single {
			dtype = "<f4"
			var err error
			if p.W, err = operator.NewDense32(3, 2, []float32{1, -2, 0.5, 4, 0, 6}); err != nil {
				t.Fatal(err)
			}
		}
		if err := Save(path, p); err != nil {
			t.Fatal(err)
		}
		views := viewInNumpy(t, path)
		views["W"].expect(t, "W", dtype, []int{3, 2}, w)
		views["Y"].expect(t, "Y", "<f8", []int{3, 2}, []float64{1, 2, math.NaN(), 4, 5, 6})
		views["X0"].expect(t, "X0", "<f8", []int{2, 2}, []float64{0, 1, 2, 0})
		views["s0"].expect(t, "s0", "<f8", []int{3}, []float64{1, 1.25, 0.75})
	}
}

func TestNumpyReadsResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.npz")
	if err := SaveResult(path, smallResult(), nil); err != nil {
		t.Fatal(err)
	}
	views := viewInNumpy(t, path)
	views["x"].expect(t, "x", "<f8", []int{2, 2}, []float64{1, 2, 3, 4})
	views["x_var"].expect(t, "x_var", "<f8", []int{2, 2}, []float64{.1, .2, .3, .4})
	views["s"].expect(t, "s", "<f8", []int{3}, []float64{1, 2, 4})
	views["s_var"].expect(t, "s_var", "<f8", []int{3}, []float64{.01, .02, .03})
	views["gain"].expect(t, "gain", "<f8", []int{3}, []float64{1, .5, .25})
	views["converged"].expect(t, "converged", "|b1", []int{2}, []float64{1, 0})
	views["scale_sd"].expect(t, "scale_sd", "<f8", []int{}, []float64{.125})
	views["residual"].expect(t, "residual", "<f8", []int{3, 2}, []float64{0, 1, 2, 3, 4, 5})
	if len(views) != 8 {
		t.Errorf("%d arrays, expected 8", len(views))
	}
}

// Files that are cut anywhere, or have any byte changed, are refused or read as before;
// nothing panics. Changed values are noticed by the archive's checksum.
func TestDamagedFilesOfNumpy(t *testing.T) {
	for _, file := range []string{"problem.npz", "problem_single.npz"} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for size := range len(data) {
			if _, err := readBytes(data[:size]); err == nil {
				t.Errorf("%s cut to %d of %d bytes was read", file, size, len(data))
			}
		}
		for at := range data {
			changed := slices.Clone(data)
			changed[at] ^= 0x55
			p, err := readBytes(changed)
			if err == nil {
				if m, n := p.W.Dims(); m != 5 || n != 4 || entryOf(p, 4, 3) != 1.5 {
					t.Errorf("%s with byte %d changed was read as another problem", file, at)
				}
			}
		}
	}
}

func entryOf(p *Problem, mu, i int) float64 {
	_, n := p.W.Dims()
	row := make([]float64, n)
	tableOf(p).RowInto(row, mu)
	return row[i]
}
