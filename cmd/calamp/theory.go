package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/figure"
)

// theory is what the commands that predict have in common: the model, and a
// table that is printed, written and drawn.
type theory struct {
	*app
	truth model
	// told is what the solver believes, where it is told something else.
	told       model
	mismatched bool
	knownGains bool

	alpha     float64
	p         int
	csv, json bool
	out, plot string
}

func newTheory(a *app) theory { return theory{app: a, truth: defaultModel, told: defaultModel} }

func (t *theory) registerSize(flags *pflag.FlagSet, signals string) {
	flags.Var(number{&t.alpha, positive, "a finite number above 0"}, "alpha", "sensors for each entry, α = M/N")
	flags.Var(count{&t.p, 1}, "p", signals)
	for _, name := range []string{"alpha", "p"} {
		flags.Lookup(name).DefValue = "0" // they have no default
	}
}

func positive(v float64) bool { return v > 0 }

func (t *theory) registerOutputs(flags *pflag.FlagSet) {
	flags.BoolVar(&t.csv, "csv", false, "print CSV in place of the table")
	flags.BoolVar(&t.json, "json", false, "print one JSON object in place of the table")
	flags.StringVarP(&t.out, "output", "o", "", "write the same CSV to this file")
	flags.StringVar(&t.plot, "plot", "", "draw to this .svg, .png or .pdf")
}

const assume = "assume-"

// registerTold adds the model flags once more, for what the solver is told.
func (t *theory) registerTold(flags *pflag.FlagSet) {
	second := pflag.NewFlagSet("", pflag.ContinueOnError)
	second.SortFlags = false
	t.told.register(second)
	second.VisitAll(func(f *pflag.Flag) {
		f.Usage = "what the solver is told in place of --" + f.Name
		f.Name, f.DefValue = assume+f.Name, ""
		flags.AddFlag(f)
	})
}

// complete notes what was not given, and gives the solver the truth where it is
// told nothing else.
func (t *theory) complete(flags *pflag.FlagSet) error {
	t.truth.complete(flags)
	for _, name := range modelFlags {
		told := flags.Lookup(assume + name)
		switch {
		case told == nil:
		case told.Changed:
			t.mismatched = true
		default:
			if err := told.Value.Set(flags.Lookup(name).Value.String()); err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	if t.knownGains && (given(flags, "s-range") || given(flags, assume+"s-range")) {
		return usage("--known-gains says that s is known: it leaves no range to give")
	}
	return nil
}

// checkSize wants what has no default.
func (t *theory) checkSize() error {
	switch {
	case t.alpha == 0:
		return usage("--alpha is needed: sensors for each entry of a signal, α = M/N")
	case t.p == 0:
		return usage("--p is needed: the number of signals")
	}
	return nil
}

// checkOutputs finds before the work what would go wrong after it.
func (t *theory) checkOutputs(inputs ...string) error {
	all := outputs{{"-o", t.out}, {"--plot", t.plot}}
	if t.csv {
		all = slices.Insert(all, 0, output{"--csv", "-"})
	}
	if t.plot != "" && plotFormat(t.plot) == "" {
		return usage("--plot %s: expected a name that ends in .%s", t.plot, strings.Join(figure.Formats, ", ."))
	}
	return all.check(t.json, inputs...)
}

// plotFormat is the format that a file's name asks for; empty for none of ours.
func plotFormat(path string) string {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if !slices.Contains(figure.Formats, format) {
		return ""
	}
	return format
}

// noteAssumptions tells which flags were left to their defaults.
func (t *theory) noteAssumptions(flags *pflag.FlagSet) {
	if text := t.truth.assumption(flags); text != "" {
		t.note("assumed %s", text)
	}
}

func (t *theory) gain(m *model) channel.GainPrior {
	if t.knownGains {
		return evolution.Known(1)
	}
	return m.gainPrior()
}

func (t *theory) belief(m *model) evolution.Belief {
	return evolution.Belief{Signal: m.prior(), Gain: t.gain(m), NoiseVar: m.NoiseVar}
}

// matched is the problem of a solver who knows the model.
func (t *theory) matched() evolution.Model {
	return evolution.Model{Signal: t.truth.prior(), Gain: t.gain(&t.truth), NoiseVar: t.truth.NoiseVar, Alpha: t.alpha, P: t.p}
}

func (t *theory) mismatch() evolution.Mismatch {
	return evolution.Mismatch{Teacher: t.belief(&t.truth), Student: t.belief(&t.told), Alpha: t.alpha, P: t.p}
}

// toldModel is what the solver was told, for JSON; nil when it knows.
func (t *theory) toldModel() *model {
	if !t.mismatched {
		return nil
	}
	told := t.told
	told.Assumed = []string{}
	return &told
}

// writeAll puts out the CSV, the plot and the table; more is text after the table.
func (t *theory) writeAll(list table, fig func() figure.Figure, object any, more string) error {
	if t.out != "" {
		if err := t.app.write(t.out, list.csv); err != nil {
			return err
		}
	}
	if t.plot != "" {
		if err := t.app.write(t.plot, func(w io.Writer) error { return fig().Write(w, plotFormat(t.plot)) }); err != nil {
			return err
		}
	}
	switch {
	case t.json:
		return t.printJSON(object)
	case t.csv:
		return list.csv(t.stdout)
	case t.out == "-":
		return nil
	}
	if err := list.text(t.stdout); err != nil {
		return err
	}
	_, err := fmt.Fprint(t.stdout, more)
	return err
}

// written names the files, for JSON.
func (t *theory) written() []string {
	files := []string{}
	for _, path := range []string{t.out, t.plot} {
		if path != "" && path != "-" {
			files = append(files, path)
		}
	}
	return files
}

// interrupted is the end of a run that was stopped, or err.
func interrupted(ctx context.Context, err error, done string) error {
	if ctx.Err() == nil {
		return err
	}
	return &exit{code: exitInterrupted, err: fmt.Errorf("interrupted: %s", done)}
}

// table is a list of numbers with named columns; what is not finite is left
// empty.
type table struct {
	header []string
	rows   [][]float64
}

func (t table) csv(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write(t.header)
	for _, row := range t.rows {
		c.Write(cells(row, -1, ""))
	}
	c.Flush() // keeps the first error of the writes before
	return c.Error()
}

func (t table) text(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.header, "\t"))
	for _, row := range t.rows {
		fmt.Fprintln(tw, strings.Join(cells(row, 7, "-"), "\t"))
	}
	return tw.Flush()
}

func cells(row []float64, digits int, none string) []string {
	words := make([]string, len(row))
	for i, v := range row {
		words[i] = none
		if known(v) != nil {
			words[i] = strconv.FormatFloat(v, 'g', digits, 64)
		}
	}
	return words
}

// finite says whether all numbers can be written.
func finite(numbers ...evolution.Number) bool {
	for _, n := range numbers {
		if known(n.Value) == nil || math.IsNaN(n.Err) {
			return false
		}
	}
	return true
}
