//go:build small

package command

import (
	"github.com/spf13/cobra"

	"github.com/calamp/calamp/internal/command/console"
)

func addMan(*console.Console, *cobra.Command) {}
