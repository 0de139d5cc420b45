package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/dataset"
)

// TestPersistent: how long entries stay is learned and said, and kept in the state; what excludes it is refused.
func TestPersistent(t *testing.T) {
	folder := t.TempDir()
	problem, state := filepath.Join(folder, "P.npz"), filepath.Join(folder, "S.calamp")
	if code, _, errs := run("simulate", "--signals", "joint:0.15,0", "--n", "100", "--alpha", "0.8", "--p", "12", "--s-range", "0.8,1.2", "--noise-var", "1e-4", "-o", problem); code != 0 {
		t.Fatal(errs)
	}
	for _, from := range []string{"0", "20"} { // at the second call the samples come again, behind those of the first
		var found struct {
			Stay      *float64
			Committed int
			Block     string
		}
		code, out, errs := run("online", problem, "--persistent", "--s-range", "0.8,1.2", "--state", state, "--from", from, "--after", from, "--json")
		if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
			t.Fatal(code, err, errs, out)
		}
		if found.Stay == nil || *found.Stay < 0.9 || found.Block != "auto" {
			t.Errorf("stay %v after %d samples, block %q", found.Stay, found.Committed, found.Block)
		}
	}
	if code, out, _ := run("online", problem, "--s-range", "0.8,1.2", "--json"); code != 0 || strings.Contains(out, `"stay"`) {
		t.Errorf("without it: exit %d, %s", code, out)
	}
	for _, args := range [][]string{{"--block", "1"}, {"--memory", "100"}} {
		if code, out, errs := run(append([]string{"online", problem, "--persistent", "--s-range", "0.8,1.2", "--json"}, args...)...); code != 0 || !strings.Contains(out, `"stay"`) || strings.Contains(out, `"block"`) {
			t.Errorf("%v: exit %d, %s, %s", args, code, errs, out)
		}
	}
	if code, _, errs := run("online", problem, "--persistent", "--s-range", "0.8,1.2", "--prior", "nonnegative"); code != 2 || !strings.Contains(errs, "persistent") {
		t.Errorf("nonnegative: exit %d, %s", code, errs)
	}
}

// TestPersistentOfGroups: densities and how long entries stay are learned by group, and --freeze follows the support without a change of the state.
func TestPersistentOfGroups(t *testing.T) {
	folder := t.TempDir()
	problem, groups, state := filepath.Join(folder, "P.npz"), filepath.Join(folder, "g.npy"), filepath.Join(folder, "S.calamp")
	of := make([]float64, 120)
	for i := range of[60:] {
		of[60+i] = 1
	}
	if err := dataset.SaveArray(groups, "a", &dataset.Array{Info: dataset.Info{Shape: []int{len(of)}}, Data: of}); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run("simulate", "--signals", "joint:0.15,0", "--n", "120", "--alpha", "0.7", "--p", "24", "--s-range", "0.8,1.2", "--noise-var", "1e-4", "-o", problem); code != 0 {
		t.Fatal(errs)
	}
	common := []string{"online", problem, "--persistent", "--groups", groups, "--s-range", "0.8,1.2", "--state", state, "--json"}
	var found, frozen struct {
		Stay      float64
		Committed int
		Groups    []struct{ Density float64 }
	}
	code, out, errs := run(common...)
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
		t.Fatal(code, err, errs, out)
	}
	if found.Stay < 0.9 || found.Committed < 20 || len(found.Groups) != 2 || found.Groups[0].Density < 0.03 || found.Groups[0].Density > 0.4 {
		t.Errorf("%+v", found)
	}
	before, _ := os.ReadFile(state)
	code, out, errs = run(append(common, "--freeze")...)
	if err := json.Unmarshal([]byte(out), &frozen); err != nil || code != 0 || frozen.Stay != found.Stay || frozen.Committed != 0 {
		t.Errorf("frozen: exit %d, %v, %+v, %s", code, err, frozen, errs)
	}
	if after, _ := os.ReadFile(state); !bytes.Equal(before, after) {
		t.Error("--freeze changed the state")
	}
}

// TestPersistentOfArrays: complex signals whose phases are free.
func TestPersistentOfArrays(t *testing.T) {
	problem := filepath.Join(t.TempDir(), "P.npz")
	if code, _, errs := run("simulate", "--complex", "--phase", "free", "--signals", "joint:0.1,0", "--n", "100", "--alpha", "0.8", "--p", "16", "--s-range", "0.8,1.2", "--noise-var", "1e-4", "-o", problem); code != 0 {
		t.Fatal(errs)
	}
	var found struct {
		Stay      float64
		Committed int
	}
	code, out, errs := run("online", problem, "--persistent", "--phase", "free", "--s-range", "0.8,1.2", "--json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 || found.Stay < 0.8 || found.Committed < 12 {
		t.Errorf("exit %d, %v, %+v, %s", code, err, found, errs)
	}
}
