package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sbinet/npyio"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/dataset"
)

// TestBareVectorAMP compares bare cal-VAMP with an independent implementation, which works
// with a singular value decomposition (testdata/trace_vamp.npz: three cases, arrays
// case_W, case_Y, case_params = [ρ, a, b, Δ, δ], and case_x_t and so on after t iterations).
func TestBareVectorAMP(t *testing.T) {
	golden := filepath.Join("..", "..", "testdata", "trace_vamp.npz")
	for _, name := range []string{"cond100", "damped", "uneven"} {
		dir := t.TempDir()
		for _, array := range []string{"W", "Y"} {
			writeNpy(t, filepath.Join(dir, array+".npy"), golden, name+"_"+array)
		}
		params, err := dataset.LoadArray(golden, name+"_params")
		if err != nil {
			t.Fatal(err)
		}
		p := params.Data
		for _, iterations := range []int{2, 3, 5, 8} {
			out := filepath.Join(dir, "R.npz")
			code, _, stderr := calampRun(t, "solve", "--matrix", filepath.Join(dir, "W.npy"), "--readings", filepath.Join(dir, "Y.npy"), "-o", out,
				"--algorithm", "vamp", "--damping", fmt.Sprint(p[4]), "--no-scale-step", "--tol", "0", "--max-iter", fmt.Sprint(iterations),
				"--density", fmt.Sprint(p[0]), "--s-range", fmt.Sprintf("%v,%v", p[1], p[2]), "--noise-var", fmt.Sprint(p[3]))
			if code != 0 {
				t.Fatalf("%s: exit %d: %s", name, code, stderr)
			}
			for ours, theirs := range map[string]string{"x": "x", "x_var": "xvar", "s": "s", "s_var": "svar"} {
				array := fmt.Sprintf("%s_%s_%d", name, theirs, iterations)
				if worst := relativeError(t, out, ours, golden, array); !(worst <= 1e-9) {
					t.Errorf("%s differs by %.2g", array, worst)
				}
			}
		}
	}
}

func writeNpy(t *testing.T, path, from, name string) {
	t.Helper()
	a, err := dataset.LoadArray(from, name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := npyio.Write(f, mat.NewDense(a.Shape[0], a.Shape[1], a.Data)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
