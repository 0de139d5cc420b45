// Package console is how the commands speak: standard streams, notes, warnings
// and progress on standard error, summaries and JSON on standard output, files
// that are written whole or not at all, exit codes. It does not depend on
// calibration.
package console

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Console is one invocation of the command.
type Console struct {
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer // results, and everything else
	Quiet          bool

	// Started is set once the command line has been understood: errors before
	// that are wrong usage.
	Started bool
}

// NoArguments refuses positional arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument, found %q", cmd.Name(), args[0])
	}
	return nil
}

// Arguments is for from least to most positional arguments: "a problem file", say.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			found := strings.TrimSuffix(fmt.Sprintf("%d: %s", len(args), strings.Join(args, ", ")), ": ")
			return fmt.Errorf("%s takes %s, found %s", strings.TrimPrefix(cmd.CommandPath(), "calamp "), what, found)
		}
		return nil
	}
}

// FromModel is the annotation of a flag that was given by a model file: its values.
const FromModel = "calamp_model"
