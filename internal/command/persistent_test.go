package command

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
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
		}
		code, out, errs := run("online", problem, "--persistent", "--s-range", "0.8,1.2", "--state", state, "--from", from, "--after", from, "--json")
		if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
			t.Fatal(code, err, errs, out)
		}
		if found.Stay == nil || *found.Stay < 0.9 {
			t.Errorf("stay %v after %d samples", found.Stay, found.Committed)
		}
	}
	if code, out, _ := run("online", problem, "--s-range", "0.8,1.2", "--json"); code != 0 || strings.Contains(out, `"stay"`) {
		t.Errorf("without it: exit %d, %s", code, out)
	}
	for _, args := range [][]string{{"--block", "auto"}, {"--prior", "nonnegative"}, {"--state", state, "--freeze"}} {
		if code, _, errs := run(append([]string{"online", problem, "--persistent", "--s-range", "0.8,1.2"}, args...)...); code != 2 || !strings.Contains(errs, "persistent") {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}
