package sweep

import (
	"math"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/tests"
)

const jointSpec = `
name = "joint"
[[grid]]
algorithm = ["offline", "se"]
n = 200
density = 0.2
alpha = 0.5
p = 10
noise_var = 1e-5
s_range = [0.7, 1.3]
joint = ["off", 0, 0.9]
seeds = 1
[[grid]]
algorithm = "threshold"
density = 0.2
p = 10
noise_var = 1e-6
s_range = [0.7, 1.3]
joint = 0
`

// TestJointSweep: signals that share their entries are recovered where independent ones are not, and as state evolution has it.
func TestJointSweep(t *testing.T) {
	tests.Long(t)
	points := parsed(t, jointSpec).Points()
	dir := t.TempDir()
	if err := runInto(t, dir, points, &Local{Workers: 2}, 0); err != nil {
		t.Fatal(err)
	}
	text := table(t, dir, points)
	if strings.Contains(text, "failed") || !strings.Contains(text, ",joint,covariance") {
		t.Fatal(text)
	}
	rows, _, err := Store{dir}.Rows()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		v := rows[p.Key()].Measures[0].Values
		switch {
		case p.Algorithm == Threshold:
			if alpha := v.Get("alpha_cal"); math.Abs(alpha-0.2442) > 1e-3 || v.Get("alpha_cs") != 0.2 {
				t.Errorf("%v: α_cal %g, α_CS %g", p, alpha, v.Get("alpha_cs"))
			}
		case p.Algorithm == Offline && p.Joint.on():
			if x := v.Get("x_mse_scaled"); !(x < 1e-4) {
				t.Errorf("%v: error %g", p, x)
			}
		case p.Algorithm == SE && p.Joint.on():
			if x := v.Get("se_x_mse"); !(x < 5e-5) {
				t.Errorf("%v: error %g", p, x)
			}
		}
	}
}

// TestJointSpecs: what is refused, and that keys of independent points are what they were.
func TestJointSpecs(t *testing.T) {
	const grid = "[[grid]]\nalgorithm = \"offline\"\nn = 40\ndensity = 0.2\nalpha = 0.8\n"
	for text, want := range map[string]string{
		grid + "p = 4\njoint = 1.0":                                                               "joint: expected the correlation of signals, from 0 and below 1, or \"off\", found 1",
		grid + "p = 4\njoint = \"on\"":                                                            "found on",
		grid + "p = 1\njoint = 0":                                                                 "P of 2 or more",
		grid + "p = 4\njoint = 0\ncomplex = true":                                                 "are real",
		grid + "p = 4\njoint = 0\ncovariance = \"full\"":                                          "leave covariance out",
		strings.Replace(grid, "offline", "online", 1) + "p = 4\njoint = 0":                        "expected offline, se or threshold, found online",
		strings.Replace(grid, "offline", "se", 1) + "p = 4\njoint = 0\nmatrix = \"condition:10\"": "independent entries of W",
	} {
		if _, err := Parse("test.toml", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n: %v, want %q", text, err, want)
		}
	}
	points := parsed(t, grid+"p = 4\nnoise_var = 1e-8\njoint = [\"off\", 0]").Points()
	if p := parsed(t, grid+"p = 4\nnoise_var = 1e-8").Points()[0]; points[0].Key() != p.Key() {
		t.Error("independent signals have another key where joint ones are beside them")
	}
	if points[0].Key() == points[1].Key() || points[0].stream() == points[1].stream() {
		t.Error("joint signals have the key, or the random numbers, of independent ones")
	}
}
