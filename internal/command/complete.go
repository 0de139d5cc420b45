package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// worded is a flag's value some of whose values are words.
type worded interface{ Words() []string }

// fileKinds are the extensions of the files that flags name. Flags that name a
// file of any kind, or a folder, are left to the shell.
var fileKinds = map[string][]string{
	"matrix": {"npy", "npz", "mat"}, "readings": {"npy", "mat", "csv"}, "signals": {"npy", "mat"}, "truth": {"npz", "mat"},
	"overlay": {"csv", "npz", "mat"}, "sweep": {"toml"}, "model": {"toml"}, "save-model": {"toml"}, "trace": {"csv"}, "report": {"html"}, "plot": {"svg", "png", "pdf"}, "state": {"calamp"},
}

// anyFile are the flags whose value the shell completes as it likes.
var anyFile = []string{"output", "data", "http-token", "token", "nats-creds"}

// completeFlags tells shells what the flags of a command and of all below it can
// be: words, files of a kind, or nothing that could be known.
func completeFlags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" || slices.Contains(anyFile, f.Name) {
			return
		}
		var words []string
		directive := cobra.ShellCompDirectiveNoFileComp
		if v, ok := f.Value.(worded); ok {
			words = v.Words()
		} else if kinds := fileKinds[f.Name]; kinds != nil {
			words, directive = kinds, cobra.ShellCompDirectiveFilterFileExt
		} else if f.Name == "nats" {
			words = []string{"embedded", "nats://"}
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.ContainsAny(w[len(w)-1:], ":/=") }) {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		complete := func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			if directive&cobra.ShellCompDirectiveFilterFileExt != 0 {
				return words, directive
			}
			return beginningWith(typed, words), directive
		}
		cmd.RegisterFlagCompletionFunc(f.Name, complete)
	})
	for _, c := range cmd.Commands() {
		completeFlags(c)
	}
}

func beginningWith(typed string, words []string) (list []string) {
	for _, w := range words {
		if strings.HasPrefix(w, typed) {
			list = append(list, w)
		}
	}
	return list
}
