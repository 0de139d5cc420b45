package dataset

import (
	"archive/zip"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

// scipyFixtures calls test with files that scipy wrote: the ones that are checked in, and
// those that scipy writes now, where it is installed.
func scipyFixtures(t *testing.T, test func(t *testing.T, folder string)) {
	t.Run("testdata", func(t *testing.T) { test(t, filepath.Join("testdata", "scipy")) })
	t.Run("scipy", func(t *testing.T) {
		path := python(t)
		if exec.Command(path, "-c", "import scipy").Run() != nil {
			t.Skip("no scipy: only its files in testdata are tested")
		}
		folder := t.TempDir()
		if out, err := exec.Command(path, filepath.Join("testdata", "scipy", "make.py"), folder).CombinedOutput(); err != nil {
			t.Fatalf("make.py: %v\n%s", err, out)
		}
		test(t, folder)
	})
}

func openSpec(t *testing.T, spec string) operator.Operator {
	t.Helper()
	w, _, err := OpenMatrix(spec, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func matrixOf(t *testing.T, path, name string) *mat.Dense {
	t.Helper()
	a, err := LoadArray(path, name)
	if err != nil {
		t.Fatal(err)
	}
	return a.matrix()
}

// compareProducts multiplies w with x (N×P), or wᵀ with g (M×P) where trans is set.
func compareProducts(t *testing.T, w operator.Operator, x, want *mat.Dense, trans bool) {
	t.Helper()
	m, n := w.Dims()
	_, p := x.Dims()
	z := make([]float64, m*p)
	err := error(nil)
	got := mat.NewDense(m, p, z)
	if trans {
		r := mat.NewDense(p, n, nil)
		err = operator.MulTrans(r.RawMatrix().Data, w, mat.DenseCopyOf(x).RawMatrix().Data)
		got = mat.DenseCopyOf(r.T())
	} else {
		err = operator.Mul(z, w, mat.DenseCopyOf(x.T()).RawMatrix().Data)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !mat.EqualApprox(got, want, 1e-14) {
		t.Errorf("%s, transposed %t: %v\nwant %v", operator.Describe(w), trans, mat.Formatted(got), mat.Formatted(want))
	}
}

// Matrices have the products that scipy computes.
func TestMatricesOfScipy(t *testing.T) {
	scipyFixtures(t, func(t *testing.T, folder string) {
		file := func(name string) string { return filepath.Join(folder, name) }
		products := func(name string) *mat.Dense { return matrixOf(t, file("products.npz"), name) }
		table := products("table")
		m, n := table.Dims()
		identity := mat.NewDense(n, n, nil)
		for i := range n {
			identity.Set(i, i, 1)
		}
		rounded := mat.NewDense(m, n, nil)
		rounded.Apply(func(_, _ int, v float64) float64 { return float64(float32(v)) }, table)
		for _, name := range []string{"csr", "csc", "long", "single"} {
			want := table
			if name == "single" {
				want = rounded
			}
			compareProducts(t, openSpec(t, "sparse:"+file(name+".npz")), identity, want, false)
		}
		for _, name := range []string{"hadamard", "dct"} {
			w := openSpec(t, name+":"+file(name+".npz"))
			compareProducts(t, w, products(name+"_x"), products(name+"_Wx"), false)
			compareProducts(t, w, products(name+"_g"), products(name+"_WTg"), true)
		}
		compareProducts(t, openSpec(t, "kron:"+file("A.npy")+","+file("B.npy")), products("kron_x"), products("kron_Wx"), false)
		basis, err := OpenBasis("dct2:3x4", 12)
		if err != nil {
			t.Fatal(err)
		}
		compareProducts(t, basis, products("basis_x"), products("basis_Bx"), false)
	})
}

// What is written of a matrix is read as the same one, from the file of the problem.
func TestMatricesAreWrittenAsTheyAre(t *testing.T) {
	folder := filepath.Join("testdata", "scipy")
	for _, kind := range []string{"hadamard", "dct", "sparse"} {
		name := kind
		if kind == "sparse" {
			name = "csr"
		}
		w := openSpec(t, kind+":"+filepath.Join(folder, name+".npz"))
		m, _ := w.Dims()
		path := filepath.Join(t.TempDir(), "P.npz")
		if err := Save(path, &Problem{W: w, Y: mat.NewDense(m, 2, nil)}); err != nil {
			t.Fatal(err)
		}
		p, err := LoadParts(kind+":"+path, path)
		if err != nil {
			t.Fatal(err)
		}
		var before, after strings.Builder
		if err := operator.Identify(&before, w); err != nil {
			t.Fatal(err)
		}
		if err := operator.Identify(&after, p.W); err != nil {
			t.Fatal(err)
		}
		if before.String() != after.String() {
			t.Errorf("%s became %s", operator.Describe(w), operator.Describe(p.W))
		}
	}
}

// The truth that stands beside the readings is read, and compared with the matrix.
func TestTruthBesideReadings(t *testing.T) {
	w := openSpec(t, "hadamard:"+filepath.Join("testdata", "scipy", "hadamard.npz"))
	m, n := w.Dims()
	p := &Problem{W: w, Y: mat.NewDense(m, 2, nil)}
	p.Truth.X, p.Truth.S = mat.NewDense(n, 2, nil), make([]float64, m)
	for mu := range p.Truth.S {
		p.Truth.S[mu] = 1
	}
	path := filepath.Join(t.TempDir(), "P.npz")
	if err := Save(path, p); err != nil {
		t.Fatal(err)
	}
	read, err := LoadParts("hadamard:"+path, path)
	if err != nil || read.Truth.X == nil || read.Truth.S == nil {
		t.Errorf("%+v, %v", read, err)
	}
	_, err = LoadParts("dct:"+filepath.Join("testdata", "scipy", "dct.npz"), path)
	expectInputError(t, err)
	if err == nil || !strings.Contains(err.Error(), "X0 is 16×2, expected N×P = 15×2") {
		t.Errorf("signals of another size: %v", err)
	}
}

// withArrays writes a .npz of vectors; those whose names end in 0 are single numbers.
func withArrays(t *testing.T, arrays map[string][]float64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "R.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	archive := zip.NewWriter(f)
	for name, values := range arrays {
		o := vectorOutput(name, values)
		if len(values) == 1 {
			o = scalarOutput(name, values[0])
		}
		entry, err := archive.Create(name + ".npy")
		if err == nil {
			err = o.write(entry)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every wrong file is named, with the array and the place.
func TestWrongSpecs(t *testing.T) {
	scipy := func(name string) string { return filepath.Join("testdata", "scipy", name) }
	rows := func(n float64, arrays map[string][]float64) string {
		arrays["n"] = []float64{n}
		return withArrays(t, arrays)
	}
	for spec, want := range map[string]string{
		"hadamard:" + rows(12, map[string][]float64{"rows": {1, 2}}):                     "n is 12, expected a power of two",
		"hadamard:" + rows(8, map[string][]float64{"rows": {1, 8}}):                      "rows 1 (counting from 0) is 8, expected 0 to 7",
		"hadamard:" + rows(8, map[string][]float64{"rows": {1, -1}}):                     "rows 1 (counting from 0) is -1",
		"dct:" + rows(8, map[string][]float64{"rows": {4, 1, 4}}):                        "rows 0 and 2 (counting from 0) are both 4",
		"dct:" + rows(8, map[string][]float64{"rows": {4, 1.5}}):                         "rows 1 (counting from 0) is 1.5, expected a whole number",
		"dct:" + rows(3, map[string][]float64{"rows": {0, 1}, "signs": {1, -1, 2}}):      "signs of entry 2 is 2, expected 1 or -1",
		"dct:" + rows(3, map[string][]float64{"rows": {0, 1}, "signs": {1, -1}}):         "signs has 2 values, expected n = 3",
		"dct:" + rows(3, map[string][]float64{"rows": {0, 1}, "permutation": {0, 0, 1}}): "permutation 0 and 1 (counting from 0) are both 0",
		"dct:" + rows(-3, map[string][]float64{"rows": {0, 1}}):                          "n is -3",
		"dct:" + withArrays(t, map[string][]float64{"rows": {0, 1}}):                     "n is missing",
		"dct:" + withArrays(t, map[string][]float64{"rows": {0, 1}, "n": {4, 4}}):        "n has 2 values, expected a single number",
		"dct:" + filepath.Join("testdata", "problem.npz"):                                "rows is missing",
		"hadamard:" + filepath.Join("testdata", "W.npy"):                                 "this is a single array (.npy), expected a .npz with n, rows",
		"hadamard:missing.npz": "no such file",
		"hadamard:":            "expected a file behind the colon, as in hadamard:R.npz",
		"sparse:" + filepath.Join("testdata", "W.npy"):         "expected what scipy.sparse.save_npz writes",
		"sparse:" + filepath.Join("testdata", "problem.npz"):   "format is missing",
		"sparse:" + scipy("hadamard.npz"):                      "format is missing",
		"sparse:" + scipy("coo.npz"):                           `format is "coo", expected csr or csc`,
		"sparse:" + scipy("twice.npz"):                         "row 0 has column 2 twice",
		"kron:" + scipy("A.npy"):                               "expected two files with a comma between them",
		"kron:" + scipy("A.npy") + ",nil.npy":                  "no such file",
		"fft:" + rows(8, map[string][]float64{"rows": {1, 8}}): "rows 1 (counting from 0) is 8, expected 0 to 7",
		"haar:" + scipy("dct.npz"):                             `there is no kind of matrix "haar", expected W.npy, sparse:W.npz`,
		scipy("csr.npz"):                                       "this is a sparse matrix: sparse:" + scipy("csr.npz"),
		scipy("dct.npz"):                                       "this looks like rows of a transform: hadamard:" + scipy("dct.npz"),
	} {
		_, _, err := OpenMatrix(spec, math.MaxInt64)
		expectInputError(t, err)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %q in it", spec, err, want)
		}
	}
	for spec, want := range map[string]string{
		"dct:5":                      "the basis is 5×5, expected 6 rows, one for each column of W",
		"dct2:2":                     "expected a height and a width, as in dct2:28x28",
		"dct2:0x4":                   "a cosine basis of 0 entries",
		"dct:0":                      "a cosine basis of 0 entries",
		"dct2:2x4":                   "the basis is 8×8, expected 6 rows",
		"wavelet:6":                  `there is no kind of matrix "wavelet"`,
		"dct:" + scipy("dct.npz"):    "the basis is 10×15, expected 6 rows",
		"hadamard:" + scipy("x.npz"): "no such file",
	} {
		_, err := OpenBasis(spec, 6)
		expectInputError(t, err)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("basis %s: %v\nwant %q in it", spec, err, want)
		}
	}
}

// A file whose name has a colon is a file.
func TestColonInAName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a:b.npy")
	content, err := os.ReadFile(filepath.Join("testdata", "W.npy"))
	if err == nil {
		err = os.WriteFile(path, content, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := openSpec(t, path).(*operator.Dense); !ok || IsSpec(path) {
		t.Error("a file is taken for a kind")
	}
	if files := fmt.Sprint(SpecFiles("kron:a.npy,sparse:b.npz")); files != "[a.npy b.npz]" {
		t.Error(files)
	}
}
