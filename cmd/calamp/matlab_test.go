package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/tests"
)

// TestMatlabFunction calls matlab/calamp.m from Octave.
func TestMatlabFunction(t *testing.T) {
	tests.Long(t)
	octave, err := exec.LookPath("octave-cli")
	if err != nil {
		t.Skip("no octave-cli")
	}
	folder, err := filepath.Abs(filepath.Join("..", "..", "matlab"))
	if err != nil {
		t.Fatal(err)
	}
	problem, second := filepath.Join(t.TempDir(), "P.mat"), filepath.Join(t.TempDir(), "C.mat")
	for path, flags := range map[string][]string{problem: {"--p", "6"}, second: {"--p", "4", "--complex", "--phase", "20"}} {
		if code, _, stderr := calampRun(t, append([]string{"simulate", "--n", "100", "--alpha", "0.9", "--seed", "3", "-o", path}, flags...)...); code != 0 {
			t.Fatal(stderr)
		}
	}
	cmd := exec.Command(octave, "--quiet", "--path", folder, "--eval", `
		load('`+problem+`');
		r = calamp(W, Y, 's_range', [0.95 1.05], 'noise_var', 1e-6);
		assert(r.json.status, 'converged');
		assert(size(r.x), [100 6]); assert(size(r.s), [90 1]); assert(size(r.converged), [1 6]);
		assert(norm(r.x - X0) < 0.02 * norm(X0)); assert(norm(r.s - s0) < 0.02 * norm(s0)); assert(r.gain, 1 ./ r.s, 1e-12);
		r = calamp(W, Y, 'noise_var', 1e-6 * ones(90, 1), 'sensors', (0:89)', 'density', 0.2 * ones(100, 1));
		assert(r.json.status, 'converged'); assert(norm(r.x - X0) < 0.05 * norm(X0));
		try, calamp(W, Y(1:5,:)); catch e, disp(e.message); end
		try, calamp(1i * W, Y); catch e, disp(e.message); end
		calamp(W, Y, 's_range', [0.95 1.05], 'max_iter', 3);
		load('`+second+`'); turn = linspace(-1, 1, 90)';
		r = calamp(W, Y .* exp(-1i * turn), 'phase', 20, 's_phase', turn, 'X0', X0);
		assert(r.json.metrics.x_mse_scaled < 1e-4); assert(norm(r.s .* exp(-1i * turn) - s0) < 0.1 * norm(s0));
		setenv('CALAMP', 'no-such-command');
		try, calamp(W, Y); catch e, disp(e.message); end
		disp('the end');`)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{
		"Y is 5×6 but W has 90 rows (sensors): expected 90×P", "and W is complex: a complex W needs complex readings", "there is no command no-such-command: put",
		"warning: calamp: not converged: the iteration limit 3 was reached", "the end",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("without %q: %v\n%s", want, err, out)
		}
	}
}

// TestMatlabDocument runs the lines of docs/python.md for MATLAB.
func TestMatlabDocument(t *testing.T) {
	tests.Long(t)
	octave, err := exec.LookPath("octave-cli")
	if err != nil {
		t.Skip("no octave-cli")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	lines := block(t, filepath.Join(root, "docs", "python.md"), "In MATLAB and Octave", "matlab")
	problem := filepath.Join(t.TempDir(), "P.mat")
	if code, _, stderr := calampRun(t, "simulate", "--n", "100", "--alpha", "0.9", "--p", "6", "-o", problem); code != 0 {
		t.Fatal(stderr)
	}
	cmd := exec.Command(octave, "--quiet", "--eval", `
		load('`+problem+`'); nominal = linspace(-1, 1, 90)'; Yc = Y .* exp(-1i * nominal);
		plot = @(varargin) 0; imagesc = @(varargin) 0;
		`+lines+`
		assert(size(r.x), [100 6]);`)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
