package command

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/option"
)

// all calls f for every command, those that only have others below them, too.
func all(cmd *cobra.Command, f func(*cobra.Command)) {
	if cmd.Name() == "completion" {
		return // cobra's own
	}
	f(cmd)
	for _, c := range cmd.Commands() {
		all(c, f)
	}
}

// TestHelpFitsOnAScreen: -h of every command, and it says how to go on.
func TestHelpFitsOnAScreen(t *testing.T) {
	all(freshTree(), func(cmd *cobra.Command) {
		var out, errs bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "-h")
		if code := Run(args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%v: exit %d, %s", args, code, errs.String())
		}
		if lines := strings.Count(out.String(), "\n"); lines > mostLines {
			t.Errorf("%s -h has %d lines", cmd.CommandPath(), lines)
		}
		for line := range strings.Lines(out.String()) {
			if width := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > helpWidth {
				t.Errorf("%s -h: %d columns: %s", cmd.CommandPath(), width, line)
			}
		}
		for _, want := range []string{"Usage: calamp", cmd.CommandPath() + " --help"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s -h does not say %q:\n%s", cmd.CommandPath(), want, out.String())
			}
		}
	})
}

// TestEveryFlagIsInAGroup: --help shows each flag once, under a heading; a new one goes into option.Catalogue.
func TestEveryFlagIsInAGroup(t *testing.T) {
	all(freshTree(), func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		times := map[string]int{}
		for _, group := range grouped(cmd) {
			group.flags.VisitAll(func(f *pflag.Flag) { times[f.Name]++ })
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, listed := option.GroupOf(cmd.CommandPath(), f.Name); !listed {
				t.Errorf("--%s of %s is in no group of option.Catalogue", f.Name, cmd.CommandPath())
			}
			if shown := times[f.Name]; shown > 1 || (shown == 1) == f.Hidden {
				t.Errorf("%s --help shows --%s %d times", cmd.CommandPath(), f.Name, shown)
			}
		})
	})
}

// TestDidYouMean: a wrong flag is answered with the one that was probably meant, and none where nothing is near.
func TestDidYouMean(t *testing.T) {
	for given, want := range map[string]string{
		"solve --densty 1": "did you mean --density?", "solve --noise_var 1": "did you mean --noise-var?", "solve --gain-rnage 1": "did you mean --gain-range?",
		"solve --gains 1": "did you mean --gain-range?", "solve -density 1": "did you mean --density?",
		"online --stat x": "did you mean --state?", "simulate --sed 1": "did you mean --seed?", "solve --xyzzy 1": "calamp solve --help lists the flags",
	} {
		var out, errs bytes.Buffer
		if code := Run(strings.Fields(given), strings.NewReader(""), &out, &errs); code != 2 || !strings.Contains(errs.String(), "hint: "+want) {
			t.Errorf("calamp %s: exit %d, %s", given, code, errs.String())
		}
	}
}

// TestEarlierSpellings: scripts of before work.
func TestEarlierSpellings(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(strings.Fields("check-calibration --n 100 --alpha 1.2 --p 4 --seeds 2 --told-s-range 0.9,1.1"), strings.NewReader(""), &out, &errs); code != 0 {
		t.Errorf("exit %d, %s", code, errs.String())
	}
}

// TestOtherSpellings: a flag's other name is the flag, in any command; gains are 1/s.
func TestOtherSpellings(t *testing.T) {
	for given, want := range map[string]string{
		"--gain-range 0.5,2": "--s-range 0.5,2", "--gain-range 0.8,1": "--s-range 1,1.25", "--gain-prior normal": "--s-prior normal",
		"--reference mean=2": "--anchor mean=2", "--sparsity 0.25": "--density 0.25",
	} {
		a, b := freshTree(), freshTree()
		var values [2]string
		for i, c := range []struct {
			tree *cobra.Command
			args string
		}{{a, given}, {b, want}} {
			cmd, rest, err := c.tree.Find(strings.Fields("solve " + c.args))
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(want[2:], " ")
			if f := cmd.Flags().Lookup(name); f.Changed {
				values[i] = f.Value.String()
			}
		}
		if values[0] != values[1] {
			t.Errorf("%s gives %q, %s %q", given, values[0], want, values[1])
		}
	}
}
