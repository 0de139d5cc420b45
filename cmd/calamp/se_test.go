package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/tests"
)

// TestStateEvolutionGolden compares the command with an independent computation,
// every iteration and column.
func TestStateEvolutionGolden(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "evolution", "testdata", "state_evolution.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rows []struct {
			P                       int
			Alpha, Rho, A, B, Delta float64
			MSEX                    []float64 `json:"mse_x"`
			MHat                    []float64 `json:"m_hat"`
			MSES                    []float64 `json:"mse_s"`
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Rows) == 0 {
		t.Fatal("no rows")
	}
	for _, r := range file.Rows {
		text := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
		code, stdout, stderr := calampRun(t, "se", "offline", "--csv", "--iterations", fmt.Sprint(len(r.MSEX)),
			"--alpha", text(r.Alpha), "--p", fmt.Sprint(r.P), "--density", text(r.Rho),
			"--s-range", text(r.A)+","+text(r.B), "--noise-var", text(r.Delta))
		if code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		lines, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) != 1+len(r.MSEX) {
			t.Fatalf("%d lines for %d iterations", len(lines), len(r.MSEX))
		}
		for i, line := range lines[1:] {
			for k, want := range []float64{float64(i + 1), r.MSEX[i], r.MHat[i], r.MSES[i]} {
				got, err := strconv.ParseFloat(line[k], 64)
				if err != nil {
					t.Fatal(err)
				}
				if e := math.Abs(got/want - 1); e > 1e-6 {
					t.Errorf("P = %d, iteration %d, %s: %g, want %g", r.P, i+1, lines[0][k], got, want)
				}
			}
		}
	}
}

// TestPredictionInterrupted sends Ctrl-C to long predictions: what there is, is
// written.
func TestPredictionInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("signals cannot be sent there")
	}
	for name, args := range map[string][]string{
		"online":    {"se", "online", "--alpha", "0.6", "--p", "100000", "--noise-var", "1e-2", "--iterations", "3"},
		"given":     {"se", "online", "--alpha", "0.6", "--p", "100000", "--noise-var", "1e-2", "--assume-density", "0.3", "--iterations", "2", "--sensors", "160"},
		"threshold": {"threshold", "--p", "2", "--densities", "0.1,0.9,100000", "--tol", "1e-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "T.csv")
			// TestMain has put this program into the path, as calamp.
			cmd := exec.Command("calamp", append(args, "--json", "-o", out)...)
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
			time.Sleep(2 * time.Second)
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			var rest bytes.Buffer
			rest.ReadFrom(lines)
			err = cmd.Wait()
			failed, ok := errors.AsType[*exec.ExitError](err)
			if !ok || failed.ExitCode() != console.Interrupted {
				t.Fatalf("%v, expected exit code %d\n%s", err, console.Interrupted, rest.String())
			}
			if !strings.Contains(rest.String(), "calamp: interrupted: ") {
				t.Errorf("standard error: %s", rest.String())
			}
			table, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Count(table, []byte("\n")) < 2 || !json.Valid(stdout.Bytes()) {
				t.Errorf("%s\n%s", table, stdout.String())
			}
		})
	}
}

// TestThresholdOfJointSignals: the number of sensors with noise is a sentence about errors near those of known gains, --joint takes its value as solve has it, and
// what is not available is an error that says so.
func TestThresholdOfJointSignals(t *testing.T) {
	tests.Long(t)
	args := []string{"threshold", "--density", "0.2", "--p", "5", "--s-range", "0.7,1.3", "--noise-var", "1e-3", "--n", "500"}
	want := ""
	for _, joint := range [][]string{{"--joint"}, {"--joint", "on"}, {"--joint=on"}} {
		code, stdout, stderr := calampRun(t, append(args, joint...)...)
		if code != 0 || !strings.Contains(stdout, "198 sensors for 500 entries and 5 signals") {
			t.Fatalf("%v: exit %d: %s%s", joint, code, stdout, stderr)
		}
		if want != "" && stdout != want {
			t.Errorf("%v: %s", joint, stdout)
		}
		want = stdout
	}
	for text, wrong := range map[string][]string{
		"takes no argument, found \"maybe\"": {"--joint", "maybe"},
		"--offset together with --joint":     {"--joint", "on", "--offset", "0.1"},
		"needs --joint":                      {"--joint", "off", "--correlation", "0.5"},
		"one snapshot says as much as all":   {"--joint", "on", "--correlation", "1"},
	} {
		if code, _, stderr := calampRun(t, append(args, wrong...)...); code != console.WrongUsage || !strings.Contains(stderr, text) {
			t.Errorf("%v: exit %d: %s, expected %q", wrong, code, stderr, text)
		}
	}
}
