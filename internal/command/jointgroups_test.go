package command

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/dataset"
)

// TestJointGroups: signals with groups that share their support belong together without being asked, and the result has the densities of groups and the support.
func TestJointGroups(t *testing.T) {
	folder := t.TempDir()
	problem, result, groups, means := filepath.Join(folder, "P.npz"), filepath.Join(folder, "R.npz"), filepath.Join(folder, "g.npy"), filepath.Join(folder, "m.npy")
	of := make([]float64, 150)
	for j := range of {
		of[j] = float64(j % 3 / 2)
	}
	for path, v := range map[string][]float64{groups: of, means: {1, 0}} {
		if err := dataset.SaveArray(path, "a", &dataset.Array{Info: dataset.Info{Shape: []int{len(v)}}, Data: v}); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := run("simulate", "--signals", "joint:0.2,0.5", "--n", "150", "--alpha", "0.6", "--p", "6", "--s-range", "0.7,1.3", "--noise-var", "1e-6", "-o", problem); code != 0 {
		t.Fatal(errs)
	}
	var found struct {
		Groups []struct {
			Entries int
			Density float64
		}
	}
	code, out, errs := run("solve", problem, "--groups", groups, "-o", result, "--json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
		t.Fatal(code, err, errs)
	}
	support, err := dataset.LoadArray(result, "support")
	if err != nil {
		t.Fatalf("no joint rows: %v, %s", err, out)
	}
	for j, g := range found.Groups {
		there, entries := 0.0, 0
		for i, pi := range support.Data {
			if of[i] == float64(j) {
				there, entries = there+pi, entries+1
			}
		}
		if g.Entries != entries || math.Abs(g.Density-there/float64(entries)) > 0.01 {
			t.Errorf("group %d: %+v, and %.3g of %d entries are there", j, g, there, entries)
		}
	}
	if a, err := dataset.LoadArray(result, "group_density"); err != nil || a.Data[0] != found.Groups[0].Density {
		t.Errorf("in the result: %v, %v", a, err)
	}
	if code, out, errs := run("solve", problem, "--groups", groups, "--density", "1", "--json"); strings.Contains(out, "joint_rows") {
		t.Errorf("without a support to share: exit %d, %s, %s", code, out, errs)
	}
	if code, _, errs := run("solve", problem, "--groups", groups, "--joint", "on", "--signal-mean", means); code != 2 || !strings.Contains(errs, "a mean of 0, or one that is learned") {
		t.Errorf("means by group: exit %d, %s", code, errs)
	}
}
