package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/command"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
)

// calampRun is the command in this process.
func calampRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command.Run(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// TestBareAlgorithm compares the published algorithm with an independent
// implementation, iteration by iteration.
func TestBareAlgorithm(t *testing.T) {
	cases := []struct{ file, density, sRange, noise string }{
		{"trace_small", "0.25", "0.9,1.1", "1e-6"},
		{"trace_mid", "0.20", "0.95,1.05", "1e-8"},
	}
	for _, c := range cases {
		golden := filepath.Join("..", "..", "testdata", c.file+".npz")
		for _, iterations := range []int{1, 2, 3, 5, 8} {
			out := filepath.Join(t.TempDir(), "R.npz")
			code, _, stderr := calampRun(t, "solve", golden, "-o", out,
				"--damping", "0", "--no-scale-step", "--tol", "0", "--max-iter", fmt.Sprint(iterations),
				"--density", c.density, "--s-range", c.sRange, "--noise-var", c.noise)
			if code != 0 {
				t.Fatalf("%s: exit %d: %s", c.file, code, stderr)
			}
			for ours, theirs := range map[string]string{"x": "x", "x_var": "xvar", "s": "s", "s_var": "svar"} {
				name := fmt.Sprintf("%s_%d", theirs, iterations)
				if worst := relativeError(t, out, ours, golden, name); worst > 1e-9 {
					t.Errorf("%s: %s differs by %.2g", c.file, name, worst)
				}
			}
		}
	}
}

// relativeError is the largest one, relative to the entry, or to the smallest
// entries' usual size where it is (nearly) zero.
func relativeError(t *testing.T, file, name, goldenFile, goldenName string) float64 {
	t.Helper()
	found, err := dataset.LoadArray(file, name)
	if err != nil {
		t.Fatal(err)
	}
	want, err := dataset.LoadArray(goldenFile, goldenName)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Data) != len(want.Data) {
		t.Fatalf("%s has %d values, %s %d", name, len(found.Data), goldenName, len(want.Data))
	}
	worst, scale := 0.0, 0.0
	for _, v := range want.Data {
		scale += v * v
	}
	scale = math.Sqrt(scale / float64(len(want.Data)))
	for i, v := range want.Data {
		worst = max(worst, math.Abs(found.Data[i]-v)/max(math.Abs(v), 1e-6*scale))
	}
	return worst
}

// TestInterrupt sends Ctrl-C, and a job's end of time, to a long run.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("signals cannot be sent there")
	}
	dir := t.TempDir()
	problem := filepath.Join(dir, "P.npz")
	if code, _, stderr := calampRun(t, "simulate", "--n", "50", "--m", "60", "--p", "3", "-o", problem); code != 0 {
		t.Fatal(stderr)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if ossignal.Ignored(signal) {
			continue // these tests run under nohup
		}
		t.Run(signal.String(), func(t *testing.T) {
			out, trace := filepath.Join(t.TempDir(), "R.npz"), filepath.Join(t.TempDir(), "T.csv")
			// TestMain has put this program into the path, as calamp.
			cmd := exec.Command("calamp", "solve", problem, "--tol", "0", "--max-iter", "100000000", "-o", out, "--trace", trace, "--json")
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(stderr)
			// Signals are awaited once the assumptions have been reported.
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "assumed") {
				t.Fatalf("%q, %v", line, err)
			}
			time.Sleep(300 * time.Millisecond)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			var rest bytes.Buffer
			rest.ReadFrom(lines)
			err = cmd.Wait()
			failed, ok := errors.AsType[*exec.ExitError](err)
			if !ok || failed.ExitCode() != console.Interrupted {
				t.Fatalf("%v, expected exit code %d\n%s", err, console.Interrupted, rest.String())
			}
			if text := rest.String(); !strings.Contains(text, "calamp: interrupted: ") {
				t.Errorf("standard error: %s", text)
			}
			if !strings.Contains(stdout.String(), `"status": "cancelled"`) {
				t.Errorf("standard output: %s", stdout.String())
			}
			if _, err := dataset.LoadResult(out); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDemo is what the demo is there to show, as it comes: ignoring the gains is
// at least ten times worse.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; few images are in testdata/script/demo.txtar")
	}
	code, stdout, stderr := calampRun(t, "demo", "--json", "--report", filepath.Join(t.TempDir(), "demo.html"))
	if code != 0 || stderr == "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var found struct {
		Answers []struct {
			Name string  `json:"name"`
			MSE  float64 `json:"x_mse_scaled"`
		} `json:"answers"`
		Error  float64 `json:"s_error"`
		Stated float64 `json:"s_sd"`
		WallS  float64 `json:"wall_s"`
	}
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatal(err)
	}
	blind, ignored, known := found.Answers[0].MSE, found.Answers[1].MSE, found.Answers[2].MSE
	t.Logf("MSE blind %.3g, gains ignored %.3g, known %.3g; %.2f s", blind, ignored, known, found.WallS)
	if ignored < 10*blind {
		t.Errorf("gains ignored: %.3g, less than ten times the blind error %.3g", ignored, blind)
	}
	if blind > 2*known {
		t.Errorf("blind: %.3g, more than twice the error with known gains, %.3g", blind, known)
	}
	if found.Error > 3*found.Stated {
		t.Errorf("gains are off by %.2g, stated %.2g", found.Error, found.Stated)
	}
}

// TestDemoMasks recovers real images behind masks of 0 and 1, where AMP alone
// creeps: gains can take the place of what the images have in common.
func TestDemoMasks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes many seconds")
	}
	code, stdout, stderr := calampRun(t, "demo", "--matrix-kind", "binary", "--p", "12", "--json", "--report", "")
	var found struct {
		Answers []struct {
			NMSE float64 `json:"x_nmse_scaled"`
		} `json:"answers"`
		Warnings []struct{ Code string } `json:"warnings"`
	}
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatal(err)
	}
	if nmse := found.Answers[0].NMSE; !(nmse <= 3e-4) {
		t.Errorf("error relative to the images' power %.3g", nmse)
	}
	for _, w := range found.Warnings { // the demonstration fixes the variance of pixels as 3, and these say 1.3
		if w.Code != "signals-alike" && w.Code != "told-contradicted" {
			t.Errorf("warnings %v", found.Warnings)
		}
	}
}
