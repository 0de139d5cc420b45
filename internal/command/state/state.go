// Package state is calamp state: what a stream keeps in its file, shown and changed between two runs of calamp online, which can do
// the same before and after a run.
package state

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/online"
)

const about = `What a stream has learned, in the file of calamp online --state: show it, keep it
under a name, go back to what was kept, or set the number of the next sample.

A rollback keeps the state that it leaves as ` + online.BeforeRollback + `, and mends a file whose
present state is damaged. drop removes what is kept, also where that is damaged.
With restart-at, what was learned stays.

One process at a time can have a state: a running stream is not disturbed.`

// Command is calamp state.
func Command(a *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "state", Short: "Show what a stream has learned, keep it, or go back to it", Long: about,
		Example: `  calamp state show S.calamp
  calamp state checkpoint S.calamp monday
  calamp state rollback S.calamp monday`,
	}
	var asJSON bool
	show := action("show S.calamp", "Show what is learned, and the checkpoints", "show S.calamp --json", 1, func(args []string) error { return Show(a, args[0], asJSON) })
	option.JSON(show.Flags(), &asJSON, "lines")
	changed := func(use, short, word string, what func(k *Keeping, word string) error) *cobra.Command {
		return action(use, short, strings.Fields(use)[0]+" S.calamp "+word, 2, func(args []string) error {
			k := &Keeping{Console: a, Path: args[0]}
			if err := what(k, args[1]); err != nil {
				return console.Usage("%s %s: %w", strings.Fields(use)[0], args[1], err)
			}
			return k.Change()
		})
	}
	cmd.AddCommand(show,
		changed("checkpoint S.calamp NAME", "Keep the state under a name as well", "monday", func(k *Keeping, word string) error { k.Checkpoint = word; return nil }),
		changed("rollback S.calamp NAME", "Go back to the state kept under a name", "monday", func(k *Keeping, word string) error { k.Rollback = word; return nil }),
		changed("drop S.calamp NAME", "Remove the state kept under a name", "monday", func(k *Keeping, word string) error { k.Drop = word; return nil }),
		changed("restart-at S.calamp N", "Make N the number of the next sample", "18", func(k *Keeping, word string) error { return option.Sequence(&k.RestartAt, 1).Set(word) }))
	return cmd
}

// action is a command of so many arguments, of which the first is a state file.
func action(use, short, example string, arguments int, run func(args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  calamp state " + example, Args: cobra.ExactArgs(arguments), ValidArgsFunction: option.CompleteFiles("calamp"),
		RunE: func(_ *cobra.Command, args []string) error { return run(args) },
	}
}

// Keeping is what is to be done to a state file beside learning.
type Keeping struct {
	*console.Console
	Path string

	Checkpoint, Rollback, Drop string // names of what is kept, empty for none
	RestartAt                  int64  // 0 for none
}

// Register adds the flags by which calamp online does the same. Help does not show them.
func (k *Keeping) Register(flags *pflag.FlagSet) {
	flags.StringVar(&k.Checkpoint, "checkpoint", "", "at the end, keep the state under this name as well")
	flags.StringVar(&k.Rollback, "rollback", "", "first go back to the state kept under this name; without a source, only that")
	flags.StringVar(&k.Drop, "drop-checkpoint", "", "remove the state kept under this name")
	flags.Var(option.Sequence(&k.RestartAt, 1), "restart-at", "make this the next number that the state takes in, and do nothing else")
	option.Hide(flags, "checkpoint", "rollback", "drop-checkpoint", "restart-at")
}

// Flag is a flag of [Keeping.Register] that was given; empty for none.
func (k *Keeping) Flag() string {
	restart := ""
	if k.RestartAt > 0 {
		restart = strconv.FormatInt(k.RestartAt, 10)
	}
	for _, f := range [][2]string{{"--checkpoint", k.Checkpoint}, {"--rollback", k.Rollback}, {"--drop-checkpoint", k.Drop}, {"--restart-at", restart}} {
		if f[1] != "" {
			return f[0]
		}
	}
	return ""
}

// Repairs reports whether damaged records are to be replaced or removed.
func (k *Keeping) Repairs() bool { return k.Rollback != "" || k.Drop != "" }

// Change changes the file, without any samples.
func (k *Keeping) Change() error {
	store, err := online.OpenStore(k.Path, nil, &online.StoreOptions{Repair: k.Repairs()})
	if err != nil {
		return facts.StateFault(err)
	}
	defer store.Close()
	if err := k.Before(store); err != nil {
		return err
	}
	if k.RestartAt > 0 {
		if err := k.renumber(store); err != nil {
			return err
		}
	}
	if err := k.After(store); err != nil {
		return err
	}
	return facts.StateFault(store.Close())
}

// Before does what is to be done before samples come.
func (k *Keeping) Before(store *online.Store) error {
	if k.Drop != "" {
		if err := store.Drop(k.Drop); err != nil {
			return facts.StateFault(err)
		}
		k.Note("checkpoint %s removed", k.Drop)
	}
	if k.Checkpoint != "" {
		if err := store.CheckCheckpoint(k.Checkpoint); err != nil {
			e := facts.StateFault(err).(*console.Exit)
			e.Code = console.WrongUsage
			return e.WithHint("calamp state drop %s NAME removes one", k.Path)
		}
	}
	if k.Rollback == "" {
		return nil
	}
	was := "is kept as " + online.BeforeRollback
	if store.Fault() != nil {
		was = "was damaged, and is gone"
	}
	if err := store.Rollback(k.Rollback); err != nil {
		return facts.StateFault(err)
	}
	saved, err := store.Load()
	if err != nil {
		return facts.StateFault(err)
	}
	k.Note("back to checkpoint %s: %s learned from, the last number is %d; the state before %s",
		k.Rollback, console.Plural(int(saved.State.Samples), "sample"), saved.Sequence, was)
	return nil
}

// renumber does what restart-at says.
func (k *Keeping) renumber(store *online.Store) error {
	saved, err := store.Load()
	if err != nil {
		return facts.StateFault(err)
	}
	if err := store.Renumber(k.RestartAt - 1); err != nil {
		return facts.StateFault(err)
	}
	k.Note("the next number is %d; it was %d before, and what was learned is as it was", k.RestartAt, saved.Sequence+1)
	return nil
}

// After does what is to be done when samples have come.
func (k *Keeping) After(store *online.Store) error {
	if k.Checkpoint == "" {
		return nil
	}
	if err := store.Checkpoint(k.Checkpoint); err != nil {
		return facts.StateFault(err)
	}
	k.Note("the state is kept as checkpoint %s", k.Checkpoint)
	return nil
}

// RestartHint is how to set the number of a state back.
func RestartHint(path string) string {
	return fmt.Sprintf("where that number is wrong, calamp state restart-at %s N makes N the next one", path)
}
