//go:build !small

package command

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
)

// addMan adds the command that writes the manual pages, for those who package calamp.
func addMan(c *console.Console, tree *cobra.Command) {
	tree.AddCommand(&cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write manual pages, one a command, to a folder",
		Example: `  calamp man /usr/local/share/man/man1`,
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
				return console.Usage("%s is no folder", args[0])
			}
			build := facts.BuildVersion()
			header := &doc.GenManHeader{Section: "1", Source: "calamp " + build.Version}
			if at := build.RevisionTime; !at.IsZero() { // so that the same revision writes the same pages
				header.Date = &at
			}
			tree.DisableAutoGenTag = true
			if err := doc.GenManTree(tree, header, args[0]); err != nil {
				return err
			}
			c.Note("manual pages written to %s", args[0])
			return nil
		},
	})
}
