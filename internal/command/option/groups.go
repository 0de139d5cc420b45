package option

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/report"
	"github.com/calamp/calamp/prior"
)

// Groups is --groups, and --density, --signal-mean and --signal-var as files with a value for
// each entry of the signals.
type Groups struct {
	path  string
	files [len(entryFlags)]string // of entryFlags; empty: one value for all

	of     []int       // N, the group of each entry; nil where all entries have one prior
	stated [][]float64 // of the files, N values each
	found  []Group
}

// Group is a group of entries with what is known of them.
type Group struct {
	Entries    int     `json:"entries"`
	Density    float64 `json:"density"`
	SignalMean float64 `json:"signal_mean"`
	SignalVar  float64 `json:"signal_var"`
}

// entryFlags can be given for each entry.
var entryFlags = [...]string{"density", "signal-mean", "signal-var"}

// perEntry is a flag's value that may also be a file.
type perEntry struct {
	pflag.Value
	path *string
}

func (p *perEntry) String() string {
	if p.path != nil && *p.path != "" {
		return *p.path
	}
	return p.Value.String()
}

func (p *perEntry) Type() string { return p.Value.Type() }

func (p *perEntry) Set(text string) error {
	*p.path = ""
	if strings.HasSuffix(text, ".npy") || strings.HasSuffix(text, ".mat") {
		*p.path = text
		return nil
	}
	return p.Value.Set(text)
}

// Register adds --groups, after the model's flags, and lets those take files.
func (g *Groups) Register(flags *pflag.FlagSet) {
	flags.StringVar(&g.path, "groups", "", About("groups"))
	for j, name := range entryFlags {
		f := flags.Lookup(name)
		inner := &f.Value
		if a, ok := f.Value.(*auto); ok {
			inner = &a.Value
		}
		*inner = &perEntry{*inner, &g.files[j]}
		f.Usage += "; or a .npy of N values, or one for\neach of --groups"
	}
}

// On says whether entries differ.
func (g *Groups) On() bool {
	return g.path != "" || slices.ContainsFunc(g.files[:], func(f string) bool { return f != "" })
}

// Stated says whether the flag's value was a file.
func (g *Groups) Stated(name string) bool {
	j := slices.Index(entryFlags[:], name)
	return j >= 0 && g.files[j] != ""
}

// GroupsArePlain refuses groups of another prior.
func GroupsArePlain() error {
	return console.Usage("--groups, and a density, mean or variance for each entry, are for --prior %s, or the latents of network:FILE.npz", GaussBernoulli)
}

// Files are the files that are read.
func (g *Groups) Files() []string { return append(g.files[:], g.path) }

// Load reads the files, for signals of n entries, and makes the model's own parameters those of
// an entry on average.
func (g *Groups) Load(m *Model, n int) error {
	if !g.On() {
		return nil
	}
	g.of, g.stated = make([]int, n), make([][]float64, len(entryFlags))
	if g.path != "" {
		values, err := g.valuesOf(g.path, "--groups", n, n)
		if err != nil {
			return err
		}
		for i, v := range values {
			if v != math.Trunc(v) || !(v >= 0 && v < float64(n)) {
				return console.Usage("--groups %s: entry %d is of group %g, expected whole numbers from 0 on, fewer than the %d entries", g.path, i, v, n)
			}
			g.of[i] = int(v)
		}
	}
	count := slices.Max(g.of) + 1
	members := make([]int, count)
	for _, j := range g.of {
		members[j]++
	}
	if empty := slices.Index(members, 0); empty >= 0 {
		return console.Usage("--groups %s: group %d has no entries, and group %d has; expected groups 0 to K-1", g.path, empty, count-1)
	}
	averages := [...]*float64{&m.Density, &m.SignalMean, &m.SignalVar}
	ranges := [...]Range{Fraction, Finite, Square}
	for j, path := range g.files {
		if path == "" {
			continue
		}
		values, err := g.valuesOf(path, "--"+entryFlags[j], n, count)
		if err != nil {
			return err
		}
		total := 0.0
		for i, v := range values {
			if !ranges[j].holds(v) {
				return console.Usage("--%s %s: entry %d is %g, expected %s", entryFlags[j], path, i, v, ranges[j].expected)
			}
			if err := sized(v, ranges[j].square, ranges[j].expected); err != nil {
				return console.Usage("--%s %s: entry %d is %g, %w", entryFlags[j], path, i, v, err)
			}
			total += v
		}
		g.stated[j], *averages[j] = values, total/float64(n)
	}
	return nil
}

// Length is how many entries the files are for.
func (g *Groups) Length() (int, error) {
	path := g.path
	for _, file := range g.files {
		if path == "" {
			path = file
		}
	}
	a, err := dataset.LoadArray(path, "")
	if err != nil {
		return 0, err
	}
	return len(a.Data), nil
}

// valuesOf reads n numbers, or one for each of the groups that there are.
func (g *Groups) valuesOf(path, flag string, n, groups int) ([]float64, error) {
	a, err := dataset.LoadArray(path, "")
	if err != nil {
		return nil, err
	}
	for i, v := range a.Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, console.Usage("%s %s: value %d is %g, expected a finite number", flag, path, i, v)
		}
	}
	if len(a.Data) == groups && groups > 1 && groups < n {
		values := make([]float64, n)
		for i, j := range g.of {
			values[i] = a.Data[j]
		}
		return values, nil
	}
	if len(a.Data) != n || len(a.Shape) > 1 && slices.Max(a.Shape) != n {
		return nil, console.Usage("%s %s: found the shape %v, expected (%d), a value for each entry of a signal, or for each group", flag, path, a.Shape, n)
	}
	return a.Data, nil
}

// evenOdds is the density that the learning of groups starts from: some groups have nothing but entries that are not
// zero, and from a density that all of them together may have these take a thousand iterations.
const evenOdds = 0.5

// Signal is the prior of a run, for the one that the model has of all entries: of each group,
// with what is to be learned of it.
func (g *Groups) Signal(m *Model, p prior.Prior) (prior.Prior, error) {
	if !g.On() {
		return p, nil
	}
	all := gaussBernoulliOf(p)
	if m.Learns("density") && all.Density < evenOdds { // not where it is not guessed yet
		if m.Learns("signal-var") {
			all.SignalVar *= all.Density / evenOdds
		}
		all.Density = evenOdds
	}
	type key struct {
		group int
		kind  prior.GaussBernoulli
	}
	place, of := map[key]int{}, make([]int, len(g.of))
	var kinds []prior.GaussBernoulli
	var shared []int
	for i, group := range g.of {
		kind := all
		for j, to := range [...]*float64{&kind.Density, &kind.SignalMean, &kind.SignalVar} {
			if g.stated[j] != nil {
				*to = g.stated[j][i]
			}
		}
		k := key{group: group}
		if g.stated[0] != nil || g.stated[1] != nil || g.stated[2] != nil {
			k.kind = withoutNaN(kind)
		}
		at, ok := place[k]
		if !ok {
			at = len(kinds)
			place[k], kinds, shared = at, append(kinds, kind), append(shared, group)
		}
		of[i] = at
	}
	groups, err := prior.ByGroup(of, kinds)
	if err != nil {
		return nil, err
	}
	if groups.Learn = m.free(); groups.Learn != 0 {
		groups.Shared = shared
	}
	return groups, nil
}

// Known is the prior of groups of which everything is given.
func (g *Groups) Known(m *Model) (prior.Groups, error) {
	p, err := g.Signal(m, m.Prior())
	if err != nil {
		return prior.Groups{}, err
	}
	groups := p.(interface{ GroupsPrior() prior.Groups }).GroupsPrior() // which Signal makes
	return groups, groups.Validate()
}

// withoutNaN makes parameters that are to be learned comparable.
func withoutNaN(g prior.GaussBernoulli) prior.GaussBernoulli {
	for _, v := range []*float64{&g.Density, &g.SignalMean, &g.SignalVar} {
		if math.IsNaN(*v) {
			*v = 0
		}
	}
	return g
}

// gaussBernoulliOf is the Gauss–Bernoulli prior of which p is, whatever is learned of it.
func gaussBernoulliOf(p prior.Prior) prior.GaussBernoulli {
	g, _ := p.(interface {
		GaussBernoulliPrior() prior.GaussBernoulli
	})
	return g.GaussBernoulliPrior()
}

// TakeResult takes what a run has learned of the groups, and makes the model's own parameters
// those of an entry on average.
func (g *Groups) TakeResult(m *Model, p prior.Prior) {
	if n, ok := prior.NetworkOf(p); ok {
		p = n.Latents()
	}
	v, ok := p.(prior.Varied)
	if !ok || !g.On() {
		return
	}
	g.found = make([]Group, slices.Max(g.of)+1)
	n := float64(len(g.of))
	m.Density, m.SignalMean, m.SignalVar = 0, 0, 0
	for i, j := range g.of {
		kind := gaussBernoulliOf(v.At(i))
		to := &g.found[j]
		to.Entries++
		to.Density += kind.Density
		to.SignalMean += kind.SignalMean
		to.SignalVar += kind.SignalVar
		m.Density, m.SignalMean, m.SignalVar = m.Density+kind.Density/n, m.SignalMean+kind.SignalMean/n, m.SignalVar+kind.SignalVar/n
	}
	for j := range g.found {
		to := &g.found[j]
		count := float64(to.Entries)
		to.Density, to.SignalMean, to.SignalVar = to.Density/count, to.SignalMean/count, to.SignalVar/count
	}
}

// Learned is the prior that a run has learned, as one that is known; other where all entries have one prior.
func (g *Groups) Learned(p prior.Prior, other prior.Prior) prior.Prior {
	n, deep := prior.NetworkOf(p)
	if deep {
		p = n.Latents()
	}
	groups, ok := p.(interface{ GroupsPrior() prior.Groups })
	switch {
	case !ok:
		return other
	case deep:
		return n.WithLatents(groups.GroupsPrior())
	}
	return groups.GroupsPrior()
}

// Found are the groups with what was learned of them, for JSON; nil where there are none.
func (g *Groups) Found() []Group { return g.found }

// Extra is what a result file holds of them: group_density, group_mean and group_var.
func (g *Groups) Extra() (arrays []dataset.Extra) {
	if g.found == nil {
		return nil
	}
	values := [len(entryFlags)][]float64{}
	for _, group := range g.found {
		for j, v := range []float64{group.Density, group.SignalMean, group.SignalVar} {
			values[j] = append(values[j], v)
		}
	}
	for j, name := range []string{"group_density", "group_mean", "group_var"} {
		arrays = append(arrays, dataset.Extra{Name: name, Vector: values[j]})
	}
	return arrays
}

// mostShown is how many groups are listed.
const mostShown = 32

// Words are the groups for people, a line each; the first mostShown.
func (g *Groups) Words() (lines []string) {
	for j, group := range g.found {
		if j == mostShown {
			return append(lines, fmt.Sprintf("and %d more", len(g.found)-j))
		}
		lines = append(lines, fmt.Sprintf("%d: %s, density %s, mean %s, variance %s", j, console.Plural(group.Entries, "entry"),
			console.Short(group.Density), console.Short(group.SignalMean), console.Short(group.SignalVar)))
	}
	return lines
}

// Fields are the groups for the report.
func (g *Groups) Fields() (fields []report.Field) {
	for _, line := range g.Words() {
		fields = append(fields, report.Field{Name: "Group", Value: line})
	}
	return fields
}
