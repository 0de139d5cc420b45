//go:build !small

package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
			if err := groupOptions(tree, header, args[0]); err != nil {
				return err
			}
			c.Note("manual pages written to %s", args[0])
			return nil
		},
	})
}

// groupOptions puts the options of the pages in a folder under the headings of help.
func groupOptions(cmd *cobra.Command, header *doc.GenManHeader, folder string) error {
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := groupOptions(c, header, folder); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const heading = "\n.SH OPTIONS"
	before, rest, found := strings.Cut(string(page), heading)
	if !found {
		return nil
	}
	_, after, _ := strings.Cut(rest, "\n.SH EXAMPLE")
	var options strings.Builder
	for _, group := range grouped(cmd) {
		alone := &cobra.Command{Use: cmd.Name(), Run: func(*cobra.Command, []string) {}}
		alone.Flags().SortFlags = false
		alone.Flags().AddFlagSet(group.flags)
		alone.DisableAutoGenTag = true
		var text bytes.Buffer
		own := *header
		if err := doc.GenMan(alone, &own, &text); err != nil {
			return err
		}
		_, list, _ := strings.Cut(text.String(), heading)
		list, _, _ = strings.Cut(list, "\n.SH ")
		fmt.Fprintf(&options, "\n.SS %s%s", group.title, list)
	}
	text := before + heading + options.String()
	if after != "" {
		text += "\n.SH EXAMPLE" + after
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
