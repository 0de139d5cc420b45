package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/internal/command/console"
)

// TestPanicBelow: one clear message, exit 1, and no trace of the stack unless it is
// asked for.
func TestPanicBelow(t *testing.T) {
	run := func() (code int, stderr string) {
		var out, errs bytes.Buffer
		c := &console.Console{Args: []string{"broken"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
		tree := root(c)
		tree.AddCommand(&cobra.Command{Use: "broken", RunE: func(*cobra.Command, []string) error {
			panic("mat: use without successful factorization")
		}})
		return c.Report(execute(c, tree)), errs.String()
	}
	t.Setenv("GOTRACEBACK", "")
	code, stderr := run()
	if code != console.Failed {
		t.Errorf("exit %d", code)
	}
	if !strings.HasPrefix(stderr, "calamp: internal error: mat: use without successful factorization (github.com/calamp/calamp/internal/command.TestPanicBelow") ||
		strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "hint: this is a fault of calamp") {
		t.Error(stderr)
	}
	t.Setenv("GOTRACEBACK", "all")
	if _, stderr := run(); !strings.Contains(stderr, "goroutine ") {
		t.Error(stderr)
	}
}
