package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMatlabFunction calls matlab/calamp.m from Octave.
func TestMatlabFunction(t *testing.T) {
	octave, err := exec.LookPath("octave-cli")
	if err != nil {
		t.Skip("no octave-cli")
	}
	folder, err := filepath.Abs(filepath.Join("..", "..", "matlab"))
	if err != nil {
		t.Fatal(err)
	}
	problem := filepath.Join(t.TempDir(), "P.mat")
	if code, _, stderr := calampRun(t, "simulate", "--n", "100", "--alpha", "0.9", "--p", "6", "-o", problem, "--seed", "3"); code != 0 {
		t.Fatal(stderr)
	}
	cmd := exec.Command(octave, "--quiet", "--path", folder, "--eval", `
		load('`+problem+`');
		r = calamp(W, Y, 's_range', [0.95 1.05], 'noise_var', 1e-6);
		assert(r.json.status, 'converged');
		assert(size(r.x), [100 6]); assert(size(r.s), [90 1]); assert(size(r.converged), [1 6]);
		assert(norm(r.x - X0) < 0.02 * norm(X0)); assert(norm(r.s - s0) < 0.02 * norm(s0)); assert(r.gain, 1 ./ r.s, 1e-12);
		try, calamp(W, Y(1:5,:)); catch e, disp(e.message); end
		try, calamp(1i * W, Y); catch e, disp(e.message); end
		calamp(W, Y, 's_range', [0.95 1.05], 'max_iter', 3);
		disp('the end');`)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{
		"Y is 5×6 but W has 90 rows (sensors): expected 90×P", "W or Y is complex, expected real numbers",
		"warning: calamp: not converged: iteration limit 3 reached", "the end",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("without %q: %v\n%s", want, err, out)
		}
	}
}
