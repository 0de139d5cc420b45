// Package theory is the commands that predict, without any readings: calamp se,
// free-energy and threshold.
package theory

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/figure"
)

// theory is what the commands that predict have in common: the model, and a
// table that is printed, written and drawn.
type theory struct {
	*console.Console
	truth  option.Model
	groups option.Groups     // of the entries, where they differ
	kinds  []evolution.Group // read from it
	// stated is the solver's model, where it is given another one.
	stated     option.Model
	mismatched bool
	knownGains bool
	codes      option.Codes // of readings
	zMean      float64      // of z
	offset     float64      // standard deviation of the sensors' offsets; 0 where they have none
	complex    bool         // signals, W and gains are, with what phases says
	phases     option.Phases

	belong      option.Joint // the flag
	joint       bool         // signals belong together
	correlation float64

	network networkSpec // what entries are like, or the network that signals come out of

	// spectrum is what is said of W's singular values, and vector what was read from it.
	spectrum string
	vector   evolution.Spectrum

	alpha     float64
	p         int
	rows      int // of W that a sensor has; 0 is 1
	csv, json bool
	out, plot string
}

func newTheory(a *console.Console) theory {
	return theory{Console: a, truth: option.DefaultModel, stated: option.DefaultModel}
}

func (t *theory) registerSize(flags *pflag.FlagSet, signals string) {
	option.Alpha(flags, &t.alpha, option.Ratio, option.AlphaUsage)
	option.Signals(flags, &t.p, signals)
}

func (t *theory) registerOutputs(flags *pflag.FlagSet) {
	flags.BoolVar(&t.csv, "csv", false, "print CSV in place of the table")
	option.JSON(flags, &t.json, "the table")
	option.Output(flags, &t.out, "write the same CSV to this file")
	option.Plot(flags, &t.plot, "draw")
}

const assume = "assume-"

// registerStated adds the model flags once more, for the solver's model.
func (t *theory) registerStated(flags *pflag.FlagSet) {
	second := pflag.NewFlagSet("", pflag.ContinueOnError)
	second.SortFlags = false
	t.stated.Register(second)
	second.VisitAll(func(f *pflag.Flag) {
		f.Usage = "what the solver is given in place of --" + f.Name
		f.Name, f.DefValue = assume+f.Name, ""
		flags.AddFlag(f)
	})
}

// complete notes what was not given, and gives the solver the truth where it is
// given nothing else.
func (t *theory) complete(flags *pflag.FlagSet) error {
	if err := errors.Join(t.truth.Complete(flags), t.truth.CheckStated()); err != nil {
		return err
	}
	for _, name := range option.ModelFlags {
		stated := flags.Lookup(assume + name)
		switch {
		case stated == nil:
		case stated.Changed:
			t.mismatched = true
			if name == "noise-var" {
				t.stated.NoiseVar = t.truth.InRows(t.stated.NoiseVar)
			}
		case t.groups.Stated(name): // as a file, which the solver has, too
		default:
			if err := stated.Value.Set(flags.Lookup(name).Value.String()); err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	changed, err := t.stated.CompleteStated(&t.truth, flags, assume)
	if err != nil {
		return err
	}
	t.mismatched = t.mismatched || changed
	if t.groups.On() && t.mismatched {
		return console.Usage("--groups, and a density, mean or variance for each entry, are for a solver that knows them: not with --%s…", assume)
	}
	if t.knownGains && (option.Given(flags, "s-range") || option.Given(flags, assume+"s-range")) {
		return console.Usage("--known-gains says that s is known: it leaves no range to give")
	}
	return nil
}

// registerOffset adds --offset.
func (t *theory) registerOffset(flags *pflag.FlagSet) {
	flags.Var(option.Number(&t.offset, option.Positive), "offset", "sensors have offsets, y = z/s + o, with this standard deviation in the units of the readings")
}

// apart are what theory is not written for together.
var apart = map[string]string{
	"offset":   "mismatched known spectrum rows network joint readings",
	"complex":  "rows network joint readings groups",
	"network":  "groups mismatched spectrum readings joint",
	"entries":  "offset complex groups mismatched spectrum readings joint",
	"joint":    "mismatched groups spectrum rows readings",
	"readings": "mismatched known spectrum",
	"spectrum": "mismatched",
}

// checkTogether refuses what theory is not written for.
func (t *theory) checkTogether() error {
	all := []struct {
		key, words string
		on         bool
	}{
		{"entries", "--prior " + t.network.text, t.network.entries(t.truth.Prior()) != nil},
		{"offset", "--offset", t.offset > 0},
		{"complex", "--complex", t.complex},
		{"network", "--prior network:…", t.network.layers != nil},
		{"joint", "--joint", t.joint},
		{"readings", "codes, signs, counts or noise at the reading", t.reads()},
		{"spectrum", "--spectrum", !t.vector.Independent()},
		{"rows", "--rows-per-sensor", t.rows > 1},
		{"known", "--known-gains", t.knownGains},
		{"groups", "--groups", t.groups.On()},
		{"mismatched", "another model of the solver's (--" + assume + "…)", t.mismatched},
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.on && b.on && slices.Contains(strings.Fields(apart[a.key]), b.key) {
				return console.Usage("theory is not written for %s together with %s: leave one of the two out", a.words, b.words)
			}
		}
	}
	if t.network.text == option.Laplace && t.truth.SignalMean != 0 {
		return console.Usage("--signal-mean is no parameter of --prior laplace")
	}
	if t.offset > 0 && t.p > 0 && t.p < leastOffsetSignals {
		return console.Usage("--offset needs --p of %d or more: with fewer signals offsets cannot be separated from gains and signals", leastOffsetSignals)
	}
	return nil
}

// leastOffsetSignals is what solvers ask for.
const leastOffsetSignals = 3

// registerComplex adds --complex and --phase, after the model's flags.
func (t *theory) registerComplex(flags *pflag.FlagSet) {
	flags.BoolVar(&t.complex, "complex", false, "complex signals, W, noise and gains, whose amplitudes are in --s-range")
	t.phases.Register(flags)
}

// checkComplex refuses what is for real numbers, and the reverse.
func (t *theory) checkComplex(flags *pflag.FlagSet) error {
	if err := t.phases.CheckComplex(flags, &t.truth, t.complex); err != nil || !t.complex {
		return err
	}
	if t.mismatched {
		return option.RefuseComplex(true, "a solver that is given another model")
	}
	lacking := []string{"fixed-point", "known-gains", "overlay", "tol"}
	switch {
	case flags.Lookup("warm-up") != nil: // se online
		lacking = lacking[:len(lacking)-1]
	case flags.Lookup("iterations") == nil: // threshold
		lacking = append(lacking, "spectrum")
	}
	for _, name := range lacking {
		if flags.Lookup(name) != nil && option.Given(flags, name) {
			return option.RefuseComplex(true, "--"+name)
		}
	}
	return nil
}

// complexModel is the problem that the flags describe.
func (t *theory) complexModel() evolution.ComplexModel {
	return evolution.ComplexModel{Signal: t.truth.ComplexPrior(), Gain: t.truth.ComplexGain(&t.phases), NoiseVar: t.truth.NoiseVar, Alpha: t.alpha, P: t.p}
}

// checkSize requires what has no default.
func (t *theory) checkSize() error {
	switch {
	case t.alpha == 0:
		return console.Usage("--alpha is needed: sensors for each entry of a signal, α = M/N")
	case t.p == 0:
		return console.Usage("--p is needed: the number of signals")
	}
	return nil
}

// checkOutputs finds before the work what would go wrong after it.
func (t *theory) checkOutputs(inputs ...string) error {
	all := console.Outputs{console.File("-o", t.out), console.File("--plot", t.plot)}
	if t.csv {
		all = slices.Insert(all, 0, console.File("--csv", "-"))
	}
	if err := option.CheckPlot("--plot", t.plot); err != nil {
		return err
	}
	return all.Check(t.json, inputs...)
}

// loadGroups reads the groups of the entries, if there are any.
func (t *theory) loadGroups() error {
	if !t.groups.On() {
		return nil
	}
	n, err := t.groups.Length()
	if err != nil {
		return err
	}
	if err := t.groups.Load(&t.truth, n); err != nil {
		return err
	}
	known, err := t.groups.Known(&t.truth)
	if err != nil {
		return err
	}
	t.kinds = evolution.GroupsOf(known)
	return nil
}

func (t *theory) gain(m *option.Model) channel.GainPrior {
	if t.knownGains {
		return evolution.Known(1)
	}
	return m.GainPrior()
}

func (t *theory) belief(m *option.Model) evolution.Belief {
	return evolution.Belief{Signal: m.Prior(), Gain: t.gain(m), NoiseVar: m.NoiseVar}
}

// matched is the problem of a solver whose model is the true one.
func (t *theory) matched() evolution.Model {
	return evolution.Model{Signal: t.truth.Prior(), Groups: t.kinds, Gain: t.gain(&t.truth), NoiseVar: t.before(), Alpha: t.alpha, P: t.readings(), OffsetSD: t.offset, Network: t.network.layers, Entries: t.network.entries(t.truth.Prior()), Readings: t.sensors()}
}

func (t *theory) mismatch() evolution.Mismatch {
	return evolution.Mismatch{Teacher: t.belief(&t.truth), Student: t.belief(&t.stated), Alpha: t.alpha, P: t.readings()}
}

// statedModel is the model that the solver was given, for JSON; nil when it is the true one.
func (t *theory) statedModel() *option.Model {
	if !t.mismatched {
		return nil
	}
	stated := t.stated
	stated.Assumed = []string{}
	return &stated
}

// writeAll puts out the CSV, the plot and the table; more is text after the table.
func (t *theory) writeAll(list console.Table, fig func() figure.Figure, object any, more string) error {
	if t.out != "" {
		if err := t.Console.Write(t.out, list.CSV); err != nil {
			return err
		}
	}
	if t.plot != "" {
		if err := t.Console.Write(t.plot, func(w io.Writer) error { return fig().Write(w, option.PlotFormat(t.plot)) }); err != nil {
			return err
		}
	}
	switch {
	case t.json:
		return t.PrintJSON(object)
	case t.csv:
		return list.CSV(t.Stdout)
	case t.out == "-":
		return nil
	}
	if err := list.Text(t.Stdout); err != nil {
		return err
	}
	return t.Print(more)
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

// finite says whether all numbers can be written.
func finite(numbers ...evolution.Number) bool {
	for _, n := range numbers {
		if console.Known(n.Value) == nil || math.IsNaN(n.Err) {
			return false
		}
	}
	return true
}
