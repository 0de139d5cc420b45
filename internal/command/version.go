package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
)

func versionCommand(a *console.Console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built with",
		Example: `  calamp version
  calamp version --json`,
		Args: console.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.PrintJSON(facts.BuildVersion())
			}
			_, err := fmt.Fprintf(a.Stdout, "calamp %s\n", facts.BuildVersion())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
