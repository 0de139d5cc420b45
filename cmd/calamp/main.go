// Command calamp calibrates sensors blindly from sparse signals: readings and a
// matrix in, signals, calibration and error bars out.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// app is one invocation of the command.
type app struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer // results, and everything else
	quiet          bool

	// started is set once the command line has been understood: errors before
	// that are wrong usage.
	started bool
}

// run is the whole command, as a function; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{args: args, stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err != nil && !a.started {
		err = commandLineError(cmd, err)
	}
	return a.report(err)
}

const exitCodes = `
Exit codes:
  0    done
  1    failed (a full disk, say)
  2    wrong usage or wrong input
  3    ended without convergence; the result is written, and marked
  130  interrupted; what there is, is written
`

const about = `calamp recovers sparse signals from readings of sensors whose gains are
unknown, and the gains with them: y = (W x + noise) / s, where the matrix W is
known, the signals x are sparse, and s, the calibration of each sensor, is the
same for all signals. A sensor's multiplicative gain is 1/s.

Results go to standard output, everything else to standard error.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "calamp",
		Short:         "Blind calibration from sparse signals",
		Long:          about,
		Version:       buildVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Suggestions go into the hint, see commandLineError.
		DisableSuggestions: true,
		PersistentPreRun:   func(*cobra.Command, []string) { a.started = true },
		Example: `  calamp demo
  calamp simulate --n 1000 --alpha 0.8 --p 4 -o P.npz
  calamp solve P.npz -o R.npz --report R.html`,
	}
	root.SetVersionTemplate("calamp {{.Version}}\n")
	root.SetUsageTemplate(root.UsageTemplate() + exitCodes)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no progress bar and no notes on standard error: only warnings and errors")
	root.PersistentFlags().SortFlags = false
	root.AddCommand(a.demoCommand(), a.simulateCommand(), a.solveCommand(), a.onlineCommand(),
		a.seCommand(), a.freeEnergyCommand(), a.thresholdCommand(), a.sweepCommand(), a.figureCommand(),
		a.checkCalibrationCommand(), a.inspectCommand(), a.versionCommand())
	for _, c := range root.Commands() {
		c.Flags().SortFlags = false
	}
	return root
}

// noArguments refuses positional arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument, found %q", cmd.Name(), args[0])
	}
	return nil
}

// commandLineError puts cobra's errors, all about usage, into the words of this
// command.
func commandLineError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help lists the flags"
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return &exit{code: exitUsage, hint: hint, err: fmt.Errorf("%s %q: %w", flagName(value.GetFlag()), value.GetValue(), value.Unwrap())}
	}
	var name string
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q", &name); n == 1 {
		err = fmt.Errorf("unknown command %q", name)
		hint = "calamp --help lists the commands"
		if meant := closeTo(cmd, name); meant != "" {
			hint = "did you mean calamp " + meant + "?"
		}
	}
	return &exit{code: exitUsage, err: err, hint: hint}
}

func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// closeTo is the command that was probably meant.
func closeTo(root *cobra.Command, name string) string {
	root.SuggestionsMinimumDistance = 2
	if names := root.SuggestionsFor(name); len(names) > 0 {
		return names[0]
	}
	return ""
}
