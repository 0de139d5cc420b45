//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/tables"
)

// Blind runs of a million entries and half as many sensors through rows of a transform: as their user runs them,
// with time and memory of the process. LARGE_BITS in the environment makes N smaller.
func TestLongLargeTransforms(t *testing.T) {
	if !*tables.Long {
		t.Skip("a long measurement, see -long")
	}
	bits, err := strconv.Atoi(os.Getenv("LARGE_BITS"))
	if err != nil {
		bits = 20
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	table := tables.New(t, "", "rows of", "N", "status", "iterations", "error", "minutes", "processor minutes", "peak, MiB")
	for _, kind := range []string{"hadamard", "dct"} {
		folder := t.TempDir()
		path := filepath.Join(folder, "P.npz")
		run := func(args []string) (*exec.Cmd, []byte) {
			c := exec.Command(self, args...)
			c.Args[0] = "calamp" // as which the test binary is the command
			c.Stderr = os.Stderr
			out, err := c.Output()
			if err != nil {
				t.Errorf("%v: %v", args, err)
			}
			return c, out
		}
		model := []string{"--density", "0.1", "--s-range", "0.8,1.2", "--noise-var", "1e-6", "--quiet"}
		run(append([]string{"simulate"}, append(model, "--matrix-kind", kind, "--structured", "--n", strconv.Itoa(1<<bits), "--alpha", "0.5", "--p", "4", "--seed", "1", "-o", path)...))
		start := time.Now()
		c, out := run(append([]string{"solve"}, append(model, "--matrix", kind+":"+path, "--readings", path, "-o", filepath.Join(folder, "R.npz"), "--json")...))
		wall := time.Since(start)
		var result struct {
			Status     string `json:"status"`
			Iterations int    `json:"iterations"`
			Metrics    struct {
				Error float64 `json:"x_mse_scaled"`
			} `json:"metrics"`
		}
		if err := json.Unmarshal(out, &result); err != nil {
			t.Fatal(err)
		}
		used := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		peak := float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
		table.Row("| %s | 2^%d | %s | %d | %.2g | %.1f | %.1f | %.0f |", kind, bits, result.Status, result.Iterations, result.Metrics.Error, wall.Minutes(), used.Minutes(), peak)
		if result.Status != "converged" || result.Metrics.Error > 1e-5 || peak > 1024 {
			t.Errorf("%s: %+v, %.0f MiB", kind, result, peak)
		}
	}
}
