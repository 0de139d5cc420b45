package option

import (
	"strings"

	"github.com/spf13/pflag"
)

// Heading is a part of what help lists, with the flags in it, in their order.
type Heading struct {
	Title string
	Flags string // names, with spaces between them
}

// Catalogue is every flag of every command, once: help, manual pages and tests go through it. A flag that means something else in
// one command stands as "command:flag", too.
var Catalogue = []Heading{
	{"Input", "model readings name signals input from after max-gap limit overlay truth sweep data " +
		"nats nats-creds nats-token stream subject durable sequence-header drain nats-listen nats-keep nats-disk"},
	{"The problem", "n m alpha p complex-signals matrix-kind structured f4 mosaic seed seeds s-known noise-spread known-gains z-mean rows-per-sensor correlation storage dct2 bands " +
		"densities target points sampled-sensors"},
	{"Output", "output json csv plot report trace progress compare save-model results emit-x keep http http-token all inspect:matrix " +
		"matrix-out quick draw-only runs"},
	{"State", "state resume checkpoint rollback drop-checkpoint restart-at freeze"},
	section("signals", ""),
	section("sensors", ""),
	section("noise", "noise"),
	section("matrix", "start"),
	{"What the solver is given, where that is not the truth", "assume-density assume-signal-mean assume-signal-var assume-s-range " +
		"assume-noise-var assume-s-prior assume-s-mean assume-s-sd told-s-range"},
	section("faults", "commit max-chi2 max-chi max-faulty"),
	{"Algorithm", "algorithm max-iter tol damping no-scale-step mean-removal covariance variance precision initial-batch warm-up block persistent " +
		"online:memory iterations fixed-point"},
	{"Computing", "threads workers memory time-limit mpi reproducible ranks disk network latency spectrum-cache shard retry-failed redeliver idle probe " +
		"before cpus max-array-size tasks time addr open token max-upload"},
	{"", "help quiet"},
}

// GroupOf is the number of the group in the [Catalogue] of a command's flag, the last where it is in none; listed says whether it is in one.
func GroupOf(command, flag string) (group int, listed bool) {
	found := -1
	for g, group := range Catalogue {
		for name := range strings.FieldsSeq(group.Flags) {
			switch of, own, is := strings.Cut(name, ":"); {
			case is && own == flag && strings.Contains(command, of):
				return g, true
			case !is && name == flag:
				found = g
			}
		}
	}
	if found < 0 {
		return len(Catalogue) - 1, false
	}
	return found, true
}

// first are the flags that matter most, where a command has them.
const first = "output state matrix readings n m alpha p density gain-range noise-var prior offset phase groups signal-var reference input nats " +
	"report model plot seed matrix-kind csv json addr open data threads workers max-iter"

// Essential are the ten flags of a command that matter most, or all where it has no more.
func Essential(flags *pflag.FlagSet) (list []*pflag.Flag) {
	shown := func(f *pflag.Flag) bool { return f != nil && !f.Hidden && f.Name != "help" && f.Name != "quiet" }
	most := 10
	for name := range strings.FieldsSeq(first) {
		if f := flags.Lookup(name); shown(f) && len(list) < most {
			list = append(list, f)
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if shown(f) && len(list) < most && !strings.Contains(" "+first+" ", " "+f.Name+" ") {
			list = append(list, f)
		}
	})
	return list
}

// Hide leaves flags out of help. They still work.
func Hide(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if f := flags.Lookup(name); f != nil {
			f.Hidden = true
		}
	}
}
