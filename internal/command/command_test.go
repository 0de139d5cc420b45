package command

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// each calls f for every command that can be run.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	if cmd.Runnable() && !slices.Contains([]string{"help", "completion"}, cmd.Name()) {
		f(cmd)
	}
	for _, c := range cmd.Commands() {
		each(c, f)
	}
}

func freshTree() *cobra.Command { return root(&console.Console{}) }

// TestExamples requires examples in every command, with flags that exist.
func TestExamples(t *testing.T) {
	each(freshTree(), func(cmd *cobra.Command) {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		mine := false
		for line := range strings.Lines(cmd.Example) {
			for call := range strings.SplitSeq(strings.ReplaceAll(line, "&&", "|"), "|") {
				_, args, found := strings.Cut(" "+call, " calamp ")
				if !found {
					continue
				}
				args, _, _ = strings.Cut(args, ">")
				args, _, _ = strings.Cut(args, " < ")
				called, rest, err := freshTree().Find(strings.Fields(args))
				if err == nil {
					err = called.ParseFlags(rest)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", cmd.CommandPath(), strings.TrimSpace(call), err)
					continue
				}
				mine = mine || strings.HasPrefix(called.CommandPath(), cmd.CommandPath())
			}
		}
		if !mine {
			t.Errorf("the examples of %s do not call it", cmd.CommandPath())
		}
	})
}

// TestOneDefinition: a flag of the same name is the same kind of thing wherever it
// is, but for those whose names are fixed and mean different things.
func TestOneDefinition(t *testing.T) {
	different := map[string]string{
		"sensors":   "of solve is which sensor a row is read with, of theory is how many are sampled",
		"prior":     "of solve is of any signals, of theory is of networks",
		"memory":    "of solve is for W, of online is how many samples are remembered",
		"output":    "of figure can be given more than once",
		"offset":    "of solutions may be off or auto, of problems is a number",
		"noise-var": "of problems and their solution may be a file, of theory is a number",
	}
	kinds := map[string]string{}
	each(freshTree(), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name := strings.TrimPrefix(f.Name, "assume-")
			kind := strings.TrimSuffix(f.Value.Type(), "|auto") // learned by some commands, given in others
			if before, seen := kinds[name]; seen && before != kind && different[name] == "" {
				t.Errorf("--%s of %s is %s, elsewhere %s", f.Name, cmd.CommandPath(), kind, before)
			}
			kinds[name] = kind
		})
	})
}

// TestCompletion: what is known of a flag's values is passed to shells.
func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"solve --covariance ":      "diagonal\nfull\nexchangeable\n:4\n",
		"solve --damping ":         "auto\n:4\n",
		"solve --density ":         "auto\n:4\n",
		"simulate --density ":      ":4\n",
		"solve --faulty ":          "auto\noff\n:4\n",
		"solve --anchor ":          "mean=\nsensor=\nphase-sensor=\noff\n:6\n",
		"solve --matrix ":          "npy\nnpz\nmat\n:8\n",
		"online --commit ":         "sane\nalways\n:4\n",
		"online --input ":          "jsonl\nf4\nf8\nc8\nc16\n:4\n",
		"simulate --matrix-kind s": "sign\nsparse:\n:6\n",
		"se offline --plot ":       "svg\npng\npdf\n:8\n",
		"solve --output ":          ":0\n",
		"inspect ":                 "npz\nnpy\nmat\ncsv\ncalamp\n:8\n",
	} {
		var out, errs bytes.Buffer
		code := Run(append([]string{"__complete"}, strings.Split(args, " ")...), strings.NewReader(""), &out, &errs)
		if code != 0 || out.String() != want {
			t.Errorf("%s: exit %d, %q, expected %q", args, code, out.String(), want)
		}
	}
}

// TestManualPages: one for every command that is not hidden.
func TestManualPages(t *testing.T) {
	folder := t.TempDir()
	var out, errs bytes.Buffer
	if code := Run([]string{"man", folder}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	each(freshTree(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Contains(page, []byte(".SH EXAMPLE")) {
			t.Errorf("%s: %v", name, err)
		}
		for _, group := range grouped(cmd) { // as help has them
			if !bytes.Contains(page, []byte(".SS "+group.title)) {
				t.Errorf("%s has no options under %q", name, group.title)
			}
		}
	})
	if code := Run([]string{"man", filepath.Join(folder, "nowhere")}, strings.NewReader(""), &out, &errs); code != console.WrongUsage {
		t.Errorf("a folder that is not there: exit %d", code)
	}
}
