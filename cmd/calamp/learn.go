package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// auto is a model flag's value that may also be the word auto: learn it.
type auto struct {
	pflag.Value
	on bool
}

const autoWord = "auto"

func (a *auto) String() string {
	if a.on {
		return autoWord
	}
	if a.Value == nil {
		return ""
	}
	return a.Value.String()
}

func (a *auto) Type() string { return a.Value.Type() + "|" + autoWord }

func (a *auto) Set(text string) error {
	if a.on = text == autoWord; a.on {
		return nil
	}
	return a.Value.Set(text)
}

// signalFlags are those of the model that say something of signals and noise.
var signalFlags = []string{"density", "signal-mean", "signal-var", "noise-var"}

// registerLearnable adds the model flags; those of names also take auto.
func (m *model) registerLearnable(flags *pflag.FlagSet, names ...string) {
	m.register(flags)
	for _, name := range names {
		f := flags.Lookup(name)
		f.Value = &auto{Value: f.Value}
		f.Usage += "; auto learns it"
		f.DefValue = "" // it depends on the others
	}
}

// completeLearnable notes which flags were not given, and what is to be learned: what is
// auto. Who says nothing of signals and noise has them learned, and, who says nothing of
// s either, its range, where that has auto, too; unless the algorithm cannot.
func (m *model) completeLearnable(flags *pflag.FlagSet, can bool) {
	m.complete(flags)
	m.Learned = nil
	isAuto := func(name string) *auto {
		a, _ := flags.Lookup(name).Value.(*auto)
		return a
	}
	silent := func(names []string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return given(flags, name) })
	}
	nothing := silent(modelFlags)
	if can && silent(signalFlags) {
		for _, name := range modelFlags {
			if a := isAuto(name); a != nil && (name != "s-range" || nothing) {
				a.on = true
			}
		}
	}
	for _, name := range modelFlags {
		if a := isAuto(name); a != nil && a.on {
			m.Learned = append(m.Learned, name)
		}
	}
	m.Assumed = slices.DeleteFunc(m.Assumed, m.learns)
}

// checkRange leaves the range of s alone where it cannot be learned: one signal
// does not tell a spread of gains from noise.
func (m *model) checkRange(flags *pflag.FlagSet, p int) error {
	if p > 1 || !m.learns("s-range") {
		return nil
	}
	if given(flags, "s-range") {
		return usage("--s-range auto: one signal does not tell the gains' spread from noise").
			withHint("give --s-range a,b, or more signals from the same sensors")
	}
	flags.Lookup("s-range").Value.(*auto).on = false
	m.Learned = slices.DeleteFunc(m.Learned, func(name string) bool { return name == "s-range" })
	m.Assumed = append(m.Assumed, "s-range")
	return nil
}

func (m *model) learns(name string) bool { return slices.Contains(m.Learned, name) }

// intention says what is learned and what is assumed, in a line; empty where all was given.
func (m *model) intention(flags *pflag.FlagSet) string {
	var words []string
	if len(m.Learned) == len(modelFlags) {
		words = append(words, "nothing assumed of the model")
	} else if text := m.assumption(flags); text != "" {
		words = append(words, "assumed "+text)
	}
	if len(m.Learned) > 0 {
		words = append(words, "learning "+strings.Join(m.Learned, ", ")+" from the readings")
	}
	return strings.Join(words, "; ")
}

// known is the model with NaN where something is to be learned.
func (m *model) known() (prior.GaussBernoulli, channel.Gain) {
	unless := func(name string, v float64) float64 {
		if m.learns(name) {
			return math.NaN()
		}
		return v
	}
	g := prior.GaussBernoulli{
		Density:    unless("density", m.Density),
		SignalMean: unless("signal-mean", m.SignalMean),
		SignalVar:  unless("signal-var", m.SignalVar),
	}
	c := m.channel()
	c.Prior.Lo, c.NoiseVar = unless("s-range", c.Prior.Lo), unless("noise-var", c.NoiseVar)
	return g, c
}

// guess fills what is to be learned with rough values to start from.
func (m *model) guess(w operator.Operator, y *mat.Dense) error {
	g, c := m.known()
	g, c, err := calamp.Guess(w, y, g, c)
	if err != nil {
		return err
	}
	m.take(g, c)
	return nil
}

// take makes the model what was guessed or learned.
func (m *model) take(g prior.GaussBernoulli, c channel.Gain) {
	m.Density, m.SignalMean, m.SignalVar = g.Density, g.SignalMean, g.SignalVar
	m.SRange, m.NoiseVar = [2]float64{c.Prior.Lo, c.Prior.Hi}, c.NoiseVar
}

// takeResult takes what a run has learned.
func (m *model) takeResult(res *calamp.Result) {
	g, isLearned := res.Prior.(prior.LearnedGaussBernoulli)
	if !isLearned {
		g.GaussBernoulli = m.prior()
	}
	if c, ok := channel.Unwrap(res.Channel).(channel.Gain); ok {
		m.take(g.GaussBernoulli, c)
	}
}

// signal is the prior p, with what is to be learned of it.
func (m *model) signal(p prior.Prior) prior.Prior {
	g, ok := p.(prior.GaussBernoulli)
	if !ok {
		return p
	}
	free := prior.LearnedGaussBernoulli{GaussBernoulli: g}
	for name, p := range map[string]prior.Parameters{"density": prior.Density, "signal-mean": prior.SignalMean, "signal-var": prior.SignalVar} {
		if m.learns(name) {
			free.Learn |= p
		}
	}
	if free.Learn == 0 {
		return g
	}
	return free
}

func (m *model) learning() calamp.Learn {
	return calamp.Learn{Noise: m.learns("noise-var"), Range: m.learns("s-range")}
}

// String is the model in a line, for the log of a test.
func (m *model) String() string {
	return (&signalPrior{Family: gaussBernoulli}).words(m) + ", " + m.channelWords()
}

// channelWords says what is known of the sensors.
func (m *model) channelWords() string {
	return fmt.Sprintf("s in [%s, %s], noise variance %s", short(m.SRange[0]), short(m.SRange[1]), short(m.NoiseVar))
}

// anchor is --anchor: mean=VALUE or sensor=ROW:VALUE.
type anchor struct{ *calamp.Anchor }

func (a anchor) String() string { return "" }

func (a anchor) Type() string { return "mean=V|sensor=ROW:V" }

func (a anchor) Set(text string) error {
	kind, rest, _ := strings.Cut(text, "=")
	switch kind {
	case "mean":
		v, err := strconv.ParseFloat(rest, 64)
		if err != nil || !positive(v) || math.IsInf(v, 1) {
			return errors.New("expected mean= with a finite number above 0")
		}
		if a.Mean != 0 {
			return errors.New("the mean is anchored already")
		}
		a.Mean = v
	case "sensor":
		row, value, _ := strings.Cut(rest, ":")
		mu, err := strconv.Atoi(row)
		v, errV := strconv.ParseFloat(value, 64)
		if err != nil || errV != nil || mu < 0 || !positive(v) || math.IsInf(v, 1) {
			return errors.New("expected sensor=ROW:VALUE, a row of W from 0 and its s, a finite number above 0")
		}
		if _, twice := a.Sensors[mu]; twice {
			return fmt.Errorf("sensor %d is anchored already", mu)
		}
		if a.Sensors == nil {
			a.Sensors = map[int]float64{}
		}
		a.Sensors[mu] = v
	default:
		return errors.New("expected mean=VALUE or sensor=ROW:VALUE")
	}
	return a.Validate()
}
