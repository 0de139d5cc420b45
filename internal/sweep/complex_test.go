package sweep

import (
	"math"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/tests"
)

const complexSpec = `
name = "complex"
[[grid]]
algorithm = ["offline", "published"]
complex = true
phase = ["known", "free", 20]
n = 60
density = 0.15
alpha = 0.9
p = 4
noise_var = 1e-6
s_range = [0.5, 1.5]
shared_matrix = true
seeds = [3, 5]
solver = { max_iter = 150 }
[[grid]]
algorithm = "online"
complex = true
phase = ["free", 20]
n = 60
density = 0.2
alpha = 0.9
p = 5
noise_var = 1e-6
s_range = [[0.5, 1.5], [1, 1]]
solver = { max_iter = 100 }
record = { samples = [4, 5] }
[[grid]]
algorithm = ["se-online", "threshold"]
complex = true
n = 60
density = 0.2
alpha = 0.9
p = 4
noise_var = 1e-4
s_range = [0.5, 1.5]
solver = { max_iter = 15 }
[[grid]]
algorithm = "offline"
complex = true
n = 40
density = 0.1
alpha = 1
p = 4
noise_var = 1e-4
solver = { max_iter = 5, tol = -1.0, damping = 0 }
record = { trajectory = true, prediction = true }
[[grid]]
algorithm = ["offline", "threshold"]
n = 40
density = 0.2
alpha = 0.9
p = 3
noise_var = 1e-6
`

// TestComplexSweep: complex points beside real ones, in one run and in pieces; their errors are those that are stated.
func TestComplexSweep(t *testing.T) {
	tests.Long(t)
	points := parsed(t, complexSpec).Points()
	dir := t.TempDir()
	if err := runInto(t, dir, points, &Local{Workers: 2}, 0); err != nil {
		t.Fatal(err)
	}
	want := table(t, dir, points)
	if strings.Contains(want, "failed") || !strings.Contains(want, ",phase,covariance") || !strings.Contains(want, "phase_in_99") {
		t.Fatal(want)
	}
	pieces := t.TempDir()
	for i := range 3 {
		if err := runInto(t, pieces, Shard{i + 1, 3}.Of(points), &Local{Workers: 1}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := table(t, pieces, points); got != want {
		t.Error("shards make another table")
	}
	rows, _, err := Store{dir}.Rows()
	if err != nil {
		t.Fatal(err)
	}
	var inside, of float64
	for _, p := range points {
		row := rows[p.Key()]
		if !p.Complex() || !p.Algorithm.synthetic() || p.Algorithm == Published || p.Record.Trajectory {
			continue
		}
		for _, m := range row.Measures {
			v := m.Values
			if ratio := v.Get("x_mse_scaled") / v.Get("x_var"); !(ratio > 0.2 && ratio < 4) {
				t.Errorf("%v: sample %d: error %g, stated %g", p, m.Sample, v.Get("x_mse_scaled"), v.Get("x_var"))
			}
			for name, there := range map[string]bool{
				"x_in_90": true, "s_in_90": p.SRange[0] < p.SRange[1], "phase_in_90": p.Phase != phaseKnown, "phase_sd": true,
			} {
				if share := v.Get(name); math.IsNaN(share) == there {
					t.Errorf("%v: %s is %g", p, name, share)
				} else if there && strings.HasSuffix(name, "90") {
					inside, of = inside+share, of+1
				}
			}
		}
	}
	if share := inside / of; share < 0.84 || share > 0.97 {
		t.Errorf("intervals of 90 %% hold %.3f", share)
	}
}

// TestComplexSpecs: what is refused, and that keys of real points are what they were.
func TestComplexSpecs(t *testing.T) {
	const grid = "[[grid]]\nalgorithm = \"online\"\nn = 40\ndensity = 0.2\nalpha = 0.8\n"
	for text, want := range map[string]string{
		grid + "p = 4\nphase = 20":                                                                     "phase is for complex problems",
		grid + "p = 4\ncomplex = true\nphase = \"fixed\"":                                              `expected "known", "free" or a finite number above 0, found "fixed"`,
		grid + "p = 4\ncomplex = true\nphase = -1":                                                     "found -1",
		grid + "p = 3\ncomplex = true":                                                                 "begins with 4 samples",
		grid + "p = 5\ncomplex = true\nrecord = { samples = [2, 5] }":                                  "sample 2: the first 4",
		grid + "p = 5\ncomplex = true\nphase = \"known\"\ns_range = [1, 1]":                            "nothing to calibrate",
		strings.Replace(grid, "online", "offline", 1) + "p = 3\ncomplex = true\ncovariance = \"full\"": "full covariances are for real numbers",
	} {
		if _, err := Parse("test.toml", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n: %v, want %q", text, err, want)
		}
	}
	p := parsed(t, grid+"p = 4\nnoise_var = 1e-8").Points()[0]
	if want, got := "2c2bc12f198b56e747468d740acb3985", p.Key(); got != want {
		t.Errorf("the key of a real point is %s, was %s", got, want)
	}
	q := parsed(t, grid+"p = 4\nnoise_var = 1e-8\ncomplex = true").Points()[0]
	if q.Key() == p.Key() || q.stream() == p.stream() {
		t.Error("a complex point has the key, or the random numbers, of a real one")
	}
}
