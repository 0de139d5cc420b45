package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestReference compares docs/reference/command.md with the help of all commands: go test ./internal/command -run Reference -update writes it.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The command\n\n<!-- generated: go test ./internal/command -run Reference -update -->\n\n")
	b.WriteString("What `calamp help COMMAND` says, of all commands. [Solving](../guides/solving.md) has examples, [exit codes](../trust.md#when-a-run-fails) say how a run ended, and\n")
	b.WriteString("[warnings](../warnings/README.md) are explained one by one.\n")
	each(freshTree(), func(cmd *cobra.Command) {
		if cmd.IsAvailableCommand() {
			fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimRight(longHelp(cmd), "\n"))
		}
	})
	name := filepath.Join("..", "..", "docs", "reference", "command.md")
	if *updateDocs {
		if err := os.WriteFile(name, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(have), "\r\n", "\n") != b.String() {
		t.Errorf("%s is out of date: go test ./internal/command -run Reference -update", name)
	}
}
