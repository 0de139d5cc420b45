package command

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestPositiveStreams: streams of entries that cannot be negative, behind masks of 0 and 1, with a state that knows that they are.
func TestPositiveStreams(t *testing.T) {
	folder := t.TempDir()
	file, state := filepath.Join(folder, "P.npz"), filepath.Join(folder, "S.calamp")
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = Run(args, strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	simulate := strings.Fields("simulate --n 100 --m 100 --p 30 --matrix-kind binary --prior nonnegative --density 0.15 --signal-mean 1 --noise-var 1e-5 --s-range 0.8,1.25 --seed 2 -o " + file)
	if code, _, stderr := run(simulate...); code != 0 {
		t.Fatal(stderr)
	}
	code, out, stderr := run("online", file, "--s-range", "0.8,1.25", "--prior", "nonnegative", "--state", state, "--json")
	var last struct {
		Metrics struct {
			XOneMinusNCC float64 `json:"x_one_minus_ncc"`
		}
		Model struct{ Density float64 }
	}
	for lines := json.NewDecoder(strings.NewReader(out)); lines.More(); {
		if err := lines.Decode(&last); err != nil || code != 0 {
			t.Fatalf("exit %d, %v: %s", code, err, stderr)
		}
	}
	if e, density := last.Metrics.XOneMinusNCC, last.Model.Density; !(e > 0 && e < 1e-3) || density < 0.12 || density > 0.18 {
		t.Errorf("1-ncc of x %.3g, density %.3g: %s", e, density, out)
	}
	if code, _, stderr := run("online", file, "--s-range", "0.8,1.25", "--prior", "nonnegative"); code != 0 || !strings.Contains(stderr, "cut to x ≥ 0") {
		t.Errorf("exit %d, the model is not said: %s", code, stderr)
	}
	if code, _, stderr := run("online", file, "--s-range", "0.8,1.25", "--state", state); code != 2 || !strings.Contains(stderr, "signal nonnegative") {
		t.Errorf("a state of another prior: exit %d: %s", code, stderr)
	}
}
