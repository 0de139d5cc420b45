package command

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/warning"
)

// helpOnWarnings lets calamp help print the page of a warning, and that of all of them.
func helpOnWarnings(a *console.Console, root *cobra.Command) {
	root.InitDefaultHelpCmd()
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == "help" })
	help := root.Commands()[i]
	help.Use = "help [command | warning]"
	help.Short = "Help about any command, or any warning"
	help.Long = "Print the help of a command, or what a warning means, when it may be ignored, and what to do: calamp help nothing-learned.\n" +
		"calamp help warnings lists them all."
	ofCommands := help.Run
	help.Run = func(cmd *cobra.Command, args []string) {
		if len(args) == 1 {
			if args[0] == "warnings" {
				a.Print(warning.List())
				return
			}
			if p, ok := warning.Of(args[0]); ok {
				a.Print(p.Text())
				return
			}
		}
		ofCommands(cmd, args)
	}
}

// helpWidth is how many columns help has, of which -h has mostLines at most: a screen.
const (
	helpWidth = 100
	mostLines = 35
)

// addHelp gives all commands two kinds of help: -h is a screen, --help is everything, in groups.
func addHelp(a *console.Console, root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if slices.Contains(a.Args, "-h") {
			cmd.Print(shortHelp(cmd))
			return
		}
		cmd.Print(longHelp(cmd))
	})
}

// shortHelp is what a user needs first.
func shortHelp(cmd *cobra.Command) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n", cmd.Short)
	usage := cmd.UseLine()
	if !cmd.Runnable() || cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&text, "Usage: %s\n", usage)
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
		width := 0
		for _, c := range cmd.Commands() {
			width = max(width, len(c.Name()))
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&text, "%s\n", clipped(fmt.Sprintf("  %-*s  %s", width, c.Name(), c.Short), helpWidth))
			}
		}
	}
	if list := option.Essential(cmd.LocalFlags()); len(list) > 0 {
		text.WriteString("\nOptions:\n" + optionLines(list))
	}
	if cmd.Example != "" && strings.Count(text.String(), "\n") < mostLines-8 {
		examples := slices.Collect(strings.Lines(cmd.Example + "\n"))
		text.WriteString("\nExamples:\n")
		for _, line := range examples[:min(3, len(examples))] {
			if utf8.RuneCountInString(line) <= helpWidth+1 {
				text.WriteString(line)
			}
		}
	}
	rest := "all options and what they mean"
	if cmd.HasAvailableSubCommands() {
		rest = "more; " + cmd.CommandPath() + " COMMAND -h: a command's options"
	}
	fmt.Fprintf(&text, "\n%s --help: %s\n", cmd.CommandPath(), rest)
	return text.String()
}

// optionLines are flags, a line each.
func optionLines(list []*pflag.Flag) string {
	names, width := make([]string, len(list)), 0
	for i, f := range list {
		kind, _ := pflag.UnquoteUsage(f)
		names[i] = clipped(named(f, kind), helpWidth/2)
		width = max(width, utf8.RuneCountInString(names[i]))
	}
	var text strings.Builder
	for i, f := range list {
		fmt.Fprintf(&text, "%s%s  %s\n", names[i], strings.Repeat(" ", width-utf8.RuneCountInString(names[i])), clause(f.Usage, helpWidth-width-2))
	}
	return text.String()
}

// clause is the beginning of a text, up to where it can end, in so many columns.
func clause(text string, width int) string {
	text = strings.Join(strings.Fields(text), " ")
	text, _, _ = strings.Cut(text, "; ")
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	short := string([]rune(text)[:width])
	for _, end := range []string{": ", " (", ", "} {
		if at := strings.LastIndex(short, end); at > width/4 && strings.Count(short[:at], "(") == strings.Count(short[:at], ")") {
			return short[:at]
		}
	}
	return clipped(text, width)
}

// clipped is a text in so many columns, cut between words.
func clipped(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	short := string([]rune(text)[:width-1])
	if at := strings.LastIndexAny(short, " |"); at > width/2 {
		short = short[:at]
	}
	return short + "…"
}

// longHelp is everything, the flags in the groups of the catalogue.
func longHelp(cmd *cobra.Command) string {
	var text strings.Builder
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	fmt.Fprintf(&text, "%s\n\n", strings.TrimSpace(about))
	text.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&text, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\nAvailable Commands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(&text, "  %-*s %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	for _, group := range grouped(cmd) {
		fmt.Fprintf(&text, "\n%s:\n%s", group.title, usages(group.flags))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}
	text.WriteString(console.ExitCodes)
	return text.String()
}

// usages are flags with all that is said of them, in one column that begins where most names end: longer ones have a line of their own.
func usages(flags *pflag.FlagSet) string {
	const indent = 30
	var text strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, about := pflag.UnquoteUsage(f)
		name := named(f, kind)
		if d := f.DefValue; !slices.Contains([]string{"", "0", "0s", "[]", "false"}, d) {
			about += " (default " + d + ")"
		}
		lines := wrapped(about, helpWidth-indent)
		if utf8.RuneCountInString(name) > indent-2 {
			text.WriteString(name + "\n")
			name = ""
		}
		for _, line := range lines {
			fmt.Fprintf(&text, "%s%s%s\n", name, strings.Repeat(" ", indent-utf8.RuneCountInString(name)), line)
			name = ""
		}
	})
	return text.String()
}

// wrapped is a text in lines of at most so many columns.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// named is a flag as it is written, with its kind.
func named(f *pflag.Flag, kind string) string {
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	if kind != "" && f.NoOptDefVal == "" {
		name += " " + kind
	}
	return name
}

// flagGroup is the flags of a command in one group of the catalogue.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// grouped are the flags that help shows of a command, in groups; the last has those that are in none.
func grouped(cmd *cobra.Command) (list []flagGroup) {
	sets := make([]*pflag.FlagSet, len(option.Catalogue))
	add := func(f *pflag.Flag) {
		g, _ := option.GroupOf(cmd.CommandPath(), f.Name)
		if sets[g] == nil {
			sets[g] = pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
			sets[g].SortFlags = false
		}
		if !f.Hidden && sets[g].Lookup(f.Name) == nil {
			sets[g].AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	for g, set := range sets {
		if set == nil || !set.HasAvailableFlags() {
			continue
		}
		title := option.Catalogue[g].Title
		if title == "" {
			title = "Other"
		}
		list = append(list, flagGroup{title, set})
	}
	return list
}
