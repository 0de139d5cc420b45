package dataset

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/operator"

	"gonum.org/v1/gonum/mat"
)

// TestMatIsRead writes a problem and a result as .mat, and reads the same back as from a .npz.
func TestMatIsRead(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "P.mat")
	in := smallProblem(t)
	if err := Save(path, in); err != nil {
		t.Fatal(err)
	}
	out, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	m, n := out.W.Dims()
	if m != 3 || n != 2 || !mat.Equal(out.Truth.X, in.Truth.X) || !equal(out.Truth.S, in.Truth.S) || !equal(out.Y.RawMatrix().Data, in.Y.RawMatrix().Data) {
		t.Errorf("%d×%d, %v", m, n, out.Truth)
	}
	row := make([]float64, 2)
	if err := out.W.(operator.Matrix).RowInto(row, 1); err != nil || !equal(row, []float64{0.5, 4}) {
		t.Errorf("row 1 of W is %v: %v", row, err)
	}
	path = filepath.Join(folder, "R.MAT")
	if err := SaveResult(path, smallResult(), nil); err != nil {
		t.Fatal(err)
	}
	r, err := LoadResult(path)
	if err != nil {
		t.Fatal(err)
	}
	want := smallResult()
	if !mat.Equal(r.X, want.X) || !equal(r.S, want.S) || len(r.Converged) != len(want.Converged) || r.ScaleSD != want.ScaleSD {
		t.Errorf("%+v, expected %+v", r, want)
	}
}

// TestOctave exchanges a problem with Octave, both ways.
func TestOctave(t *testing.T) {
	octave, err := exec.LookPath("octave-cli")
	if err != nil {
		t.Skip("no octave-cli: only the files in testdata that it wrote are tested")
	}
	folder := t.TempDir()
	if err := Save(filepath.Join(folder, "in.mat"), smallProblem(t)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(octave, "--quiet", "--eval", `
		load('in.mat');
		assert(W, [1 -2; 0.5 4; 0 6]); assert(Y, [1 2; NaN 4; 5 6]); assert(X0, [0 1; 2 0]); assert(s0, [1; 1.25; 0.75]);
		save('-v7', 'full.mat', 'W', 'Y', 's0', 'X0');
		W = sparse(W); Y = single(Y); s0 = s0'; save('-v6', 'sparse.mat', 'W', 'Y', 's0');
		W = full(W) + 1i; save('-v7', 'half.mat', 'W', 'Y');
		Y = double(Y) - 2i; save('-v7', 'complex.mat', 'W', 'Y');
		W = {1}; save('-v7', 'cell.mat', 'W', 'Y');
		save('-v4', 'version4.mat', 'Y');`)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(out), "preparing to exit") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{"full.mat", "sparse.mat"} {
		p, err := Load(filepath.Join(folder, file))
		if err != nil {
			t.Error(err)
			continue
		}
		row := make([]float64, 2)
		if err := p.W.(operator.Matrix).RowInto(row, 2); err != nil || !equal(row, []float64{0, 6}) || !equal(p.Y.RawMatrix().Data, smallProblem(t).Y.RawMatrix().Data) || !equal(p.Truth.S, []float64{1, 1.25, 0.75}) {
			t.Errorf("%s: %v, %v, %v", file, row, p.Y, p.Truth)
		}
	}
	p, err := Load(filepath.Join(folder, "complex.mat"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Y.RawMatrix().Data, []float64{1, -2, 2, -2, math.NaN(), -2, 4, -2, 5, -2, 6, -2}; !p.Complex || !equal(got, want) {
		t.Errorf("complex: %v, expected %v", got, want)
	}
	for file, want := range map[string]string{
		"half.mat":     "Y is real (<f4) and W is complex",
		"cell.mat":     "W: dtype cell of MATLAB, expected floats, integers or bools",
		"version4.mat": "this is a MATLAB file of version 4; write it anew",
	} {
		_, err := Load(filepath.Join(folder, file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestMatMessages looks at what is said of names and of a file cut short.
func TestMatMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "P.mat")
	if err := Save(path, smallProblem(t)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A variable of another name.
	if err := os.WriteFile(path, bytes.Replace(data, []byte("\x01\x00\x00\x00W"), []byte("\x01\x00\x00\x00w"), 1), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Load(path)
	expectFault(t, err, path+": W is missing, found only w, Y, X0, s0; upper and lower case differ: --name W=w reads it from there")
	if err := os.WriteFile(path, data[:200], 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err = Load(path); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Error(err)
	}
}
