package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dataset"
)

// TestBareVectorAMP compares bare cal-VAMP with an independent implementation, which works
// with a singular value decomposition (testdata/trace_vamp.npz: three cases, arrays
// case_W, case_Y, case_params = [ρ, a, b, Δ, δ], and case_x_t and so on after t iterations).
func TestBareVectorAMP(t *testing.T) {
	golden := filepath.Join("..", "..", "testdata", "trace_vamp.npz")
	for _, name := range []string{"cond100", "damped", "uneven"} {
		problem, out := filepath.Join(t.TempDir(), "P.npz"), filepath.Join(t.TempDir(), "R.npz")
		writeProblem(t, problem, golden, name)
		params, err := dataset.LoadArray(golden, name+"_params")
		if err != nil {
			t.Fatal(err)
		}
		p := params.Data
		for _, iterations := range []int{2, 3, 5, 8} {
			code, _, stderr := calampRun(t, "solve", problem, "-o", out,
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

// writeProblem writes the arrays W and Y of a case as a problem.
func writeProblem(t *testing.T, path, golden, name string) {
	t.Helper()
	f, err := npz.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, array := range []string{"W", "Y"} {
		a, err := dataset.LoadArray(golden, name+"_"+array)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Write(array+".npy", mat.NewDense(a.Shape[0], a.Shape[1], a.Data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
