// Package command is the whole command as a function: it puts the families of
// commands together, and turns what happened into an exit code. It has no
// algorithm and no flag of any family.
package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/apply"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/groups"
	"github.com/calamp/calamp/internal/command/inspect"
	"github.com/calamp/calamp/internal/command/online"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/command/plan"
	"github.com/calamp/calamp/internal/command/serve"
	"github.com/calamp/calamp/internal/command/simulate"
	"github.com/calamp/calamp/internal/command/solve"
	"github.com/calamp/calamp/internal/command/state"
	"github.com/calamp/calamp/internal/command/sweep"
	"github.com/calamp/calamp/internal/command/theory"
	"github.com/calamp/calamp/internal/crash"
)

// Run is the whole command, as a function; it returns the exit code.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &console.Console{Args: args, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return a.Report(execute(a, root(a)))
}

// execute runs the command of the tree that the arguments name. A panic below is
// an error like any other.
func execute(a *console.Console, tree *cobra.Command) (err error) {
	defer crash.Catch(&err)
	tree.SetArgs(a.Args)
	tree.SetIn(a.Stdin)
	tree.SetOut(a.Stdout)
	tree.SetErr(a.Stderr)
	cmd, err := tree.ExecuteC()
	if err != nil && !a.Started {
		err = commandLineError(cmd, err)
	}
	return err
}

const about = `calamp recovers sparse signals from readings of sensors whose gains are
unknown, and the gains with them: y = (W x + noise) / s, where the matrix W is
known, the signals x are sparse, and s, the calibration of each sensor, is the
same for all signals. A sensor's multiplicative gain is 1/s.

Results go to standard output, everything else to standard error.`

func root(a *console.Console) *cobra.Command {
	root := &cobra.Command{
		Use:           "calamp",
		Short:         "Blind calibration from sparse signals",
		Long:          about,
		Version:       facts.BuildVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Suggestions go into the hint, see commandLineError.
		DisableSuggestions: true,
		PersistentPreRun:   func(*cobra.Command, []string) { a.Started = true },
		Example: `  calamp demo
  calamp simulate --n 1000 --alpha 0.8 --p 4 -o P.npz
  calamp solve P.npz -o R.npz --report R.html`,
	}
	root.SetVersionTemplate("calamp {{.Version}}\n")
	root.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false, "no progress bar and no notes on standard error: only warnings and errors")
	root.PersistentFlags().SortFlags = false
	root.AddCommand(solve.DemoCommand(a), simulate.Command(a), solve.Command(a), solve.FitCommand(a), solve.ModelCommand(a), online.Command(a),
		theory.SECommand(a), theory.FreeEnergyCommand(a), theory.ThresholdCommand(a), sweep.Command(a), sweep.FigureCommand(a),
		serve.Command(a), plan.Command(a),
		simulate.CheckCommand(a), apply.Command(a), groups.Command(a), inspect.Command(a), state.Command(a), versionCommand(a))
	finish(a, root)
	addHelp(a, root)
	addMan(a, root)
	helpOnWarnings(a, root)
	completeFlags(root)
	return root
}

// finish gives all commands below one their flags' other names, and those that take a model --model, and has help list flags as they were
// registered. The demo's model is its own.
func finish(a *console.Console, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		c.Flags().SortFlags = false
		if !c.Runnable() && c.HasSubCommands() { // which cobra answers with help, and calls it done
			c.Args, c.RunE = cobra.ArbitraryArgs, unknown
		}
		option.AddSpellings(c.Flags())
		if c.Name() != "demo" && c.Flags().Lookup("density") != nil || c.Name() == "plan" {
			option.AddModel(a, c)
		}
		finish(a, c)
	}
}

// unknown refuses what is no command below one that only has others.
func unknown(cmd *cobra.Command, args []string) error {
	what := "nothing"
	hint := cmd.CommandPath() + " -h lists them"
	if len(args) > 0 {
		what = strconv.Quote(args[0])
		if meant := closeTo(cmd, args[0]); meant != "" {
			hint = "did you mean " + cmd.CommandPath() + " " + meant + "?"
		}
	}
	return console.Usage("expected a command of %s, found %s", cmd.CommandPath(), what).WithHint("%s", hint)
}

// commandLineError puts cobra's errors, all about usage, into the words of this
// command.
func commandLineError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help lists the flags"
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return &console.Exit{Code: console.WrongUsage, Hint: hint, Err: fmt.Errorf("%s %.100q: %w", flagName(value.GetFlag()), value.GetValue(), value.Unwrap())}
	}
	var name string
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q", &name); n == 1 {
		err = fmt.Errorf("unknown command %q", name)
		hint = "calamp --help lists the commands"
		if meant := closeTo(cmd, name); meant != "" {
			hint = "did you mean calamp " + meant + "?"
		}
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()) // -density is letters to pflag
		if meant := option.Near(cmd.Flags(), name); meant != "" {
			hint = "did you mean --" + meant + "?"
		}
		if solve, _, _ := cmd.Root().Find([]string{"solve"}); cmd.Name() == "online" && solve.Flags().Lookup(name) != nil {
			err = fmt.Errorf("--%s is of calamp solve, and not of streams", name)
			hint = "solve some samples with it, calamp solve SAMPLES.npz --" + name + " … -o R.npz, and begin the stream with the gains it finds: --s-from R.npz"
		}
	}
	return &console.Exit{Code: console.WrongUsage, Err: err, Hint: hint}
}

func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// closeTo is the command that was probably meant: first of all one with the same
// letters in another order.
func closeTo(root *cobra.Command, name string) string {
	root.SuggestionsMinimumDistance = 2
	names := root.SuggestionsFor(name)
	if k := slices.IndexFunc(names, func(n string) bool { return letters(n) == letters(name) }); k >= 0 {
		return names[k]
	}
	if len(names) > 0 {
		return names[0]
	}
	return ""
}

// letters are those of a word, in order.
func letters(word string) string { return string(slices.Sorted(slices.Values([]byte(word)))) }
