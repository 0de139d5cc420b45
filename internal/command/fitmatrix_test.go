package command

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
)

// nearlyKnown writes P.npz with a W that is wrong by theta along D.npy, into a new folder.
func nearlyKnown(t *testing.T, theta float64) (folder string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(40, 1))
	const m, n, p = 160, 200, 5
	normal := func(sd float64) []float64 {
		v := make([]float64, m*n)
		for i := range v {
			v[i] = sd * rng.NormFloat64()
		}
		return v
	}
	w, d := normal(1/math.Sqrt(n)), normal(1/math.Sqrt(n))
	right := make([]float64, m*n)
	for i := range right {
		right[i] = w[i] + theta*d[i]
	}
	x := make([]float64, n*p)
	for i := range x {
		if rng.Float64() < 0.12 {
			x[i] = rng.NormFloat64()
		}
	}
	y := mat.NewDense(m, p, nil)
	wRight, _ := operator.NewDense(m, n, right)
	given, _ := operator.NewDense(m, n, w)
	if err := operator.Mul(y.RawMatrix().Data, wRight, x); err != nil {
		t.Fatal(err)
	}
	for mu := range m {
		s := 0.8 + 0.4*rng.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+1e-3*rng.NormFloat64())/s)
		}
	}
	folder = t.TempDir()
	if err := dataset.Save(filepath.Join(folder, "P.npz"), &dataset.Problem{W: given, Y: y}); err != nil {
		t.Fatal(err)
	}
	if err := dataset.SaveArray(filepath.Join(folder, "D.npy"), "D", &dataset.Array{Info: dataset.Info{Shape: []int{m, n}}, Data: d}); err != nil {
		t.Fatal(err)
	}
	return folder
}

// With errors of W counted, what they make of the readings does not hold the common scale in place of the noise that was given.
func TestMatrixErrorLeavesScale(t *testing.T) {
	const eta = 0.02
	folder := nearlyKnown(t, eta)
	for _, value := range []string{"auto", "0.02"} {
		var out, errs bytes.Buffer
		code := Run([]string{"solve", filepath.Join(folder, "P.npz"), "--noise-var", "1e-6", "--matrix-error", value, "-o", filepath.Join(folder, "R.npz"), "--json"}, strings.NewReader(""), &out, &errs)
		s, err := dataset.LoadArray(filepath.Join(folder, "R.npz"), "s")
		if err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s", code, err, &errs)
		}
		if mean := stat.Mean(s.Data, nil); math.Abs(mean-1) > 0.05 || !strings.Contains(errs.String(), "scale-from-gains") {
			t.Errorf("--matrix-error %s: the mean of s is %.3g: %s", value, mean, &errs)
		}
		var found struct {
			MatrixError float64 `json:"matrix_error"`
		}
		if err := json.Unmarshal(out.Bytes(), &found); err != nil || math.Abs(found.MatrixError/eta-1) > 0.15 {
			t.Errorf("--matrix-error %s: %v, %g", value, err, found.MatrixError)
		}
	}
}

// calamp solve doubts the matrix, and calamp fit-matrix finds it: with it solve has no doubt.
func TestFitMatrix(t *testing.T) {
	tests.Long(t)
	const theta = 0.02
	folder := nearlyKnown(t, theta)
	in := func(name string) string { return filepath.Join(folder, name) }
	run := func(args ...string) (out, errs string, code int) {
		var stdout, stderr bytes.Buffer
		code = Run(args, strings.NewReader(""), &stdout, &stderr)
		return stdout.String(), stderr.String(), code
	}
	if _, errs, code := run("solve", in("P.npz"), "--derivatives", in("D.npy")); code != 0 || !strings.Contains(errs, "matrix-doubtful") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	out, errs, code := run("fit-matrix", in("P.npz"), "--derivatives", in("D.npy"), "-o", in("R.npz"), "--matrix-out", in("W.npy"), "--report", in("R.html"), "--json")
	var found struct {
		Status   string
		Theta    []float64          `json:"theta"`
		SD       []float64          `json:"theta_sd"`
		Cov      [][]float64        `json:"theta_cov"`
		Runs     []calamp.MatrixRun `json:"fit_runs"`
		Warnings []calamp.Warning
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v: %s", code, err, errs)
	}
	if len(found.Theta) != 1 || math.Abs(found.Theta[0]-theta) > 4*found.SD[0] || math.Abs(found.Cov[0][0]/(found.SD[0]*found.SD[0])-1) > 1e-9 || len(found.Runs) < 4 {
		t.Errorf("%+v", found)
	}
	for _, name := range []string{"theta", "theta_sd", "theta_cov"} {
		if a, err := dataset.LoadArray(in("R.npz"), name); err != nil || len(a.Data) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if page, err := os.ReadFile(in("R.html")); err != nil || !bytes.Contains(page, []byte("Evidence along theta 0")) {
		t.Errorf("the report has no evidence: %v", err)
	}
	if _, err := os.Stat(in("R.npz.fit.json")); err == nil {
		t.Error("the state of a fit that has ended was left")
	}
	if err := os.Remove(in("R.html")); err != nil {
		t.Fatal(err)
	}
	y, err := dataset.LoadArray(in("P.npz"), "Y")
	if err != nil {
		t.Fatal(err)
	}
	if err := dataset.SaveArray(in("Y.npy"), "Y", y); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run("solve", "--matrix", in("W.npy"), "--readings", in("Y.npy"), "--derivatives", in("D.npy")); code != 0 || strings.Contains(errs, "matrix-doubtful") {
		t.Errorf("with the matrix that was found: exit code %d: %s", code, errs)
	}
	for want, args := range map[string][]string{
		"fit-matrix needs --derivatives":                    {"fit-matrix", in("P.npz")},
		"the derivatives are 160×5, expected J×160×200":     {"fit-matrix", in("P.npz"), "--derivatives", in("Y.npy")},
		"--start has 2 numbers for 1 derivative":            {"fit-matrix", in("P.npz"), "--derivatives", in("D.npy"), "--start", "1,2"},
		"two of them do the same":                           {"fit-matrix", in("P.npz"), "--derivatives", in("D.npy"), "--derivatives", in("D.npy")},
		"--resume needs a file for -o":                      {"fit-matrix", in("P.npz"), "--derivatives", in("D.npy"), "--resume"},
		"images of 3×5 pixels have 15":                      {"solve", in("P.npz"), "--image", "3x5"},
		"--image 20: expected a height and a width":         {"solve", in("P.npz"), "--image", "20"},
		"--matrix-error \"2\": expected a number between 0": {"solve", in("P.npz"), "--matrix-error", "2"},
	} {
		if _, errs, code := run(args...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
}
