package option

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/report"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Phases is --phase: what is known of the phases of complex gains.
type Phases struct {
	Kappa float64 // concentration about the nominal phases: 0 free, +Inf known

	// Learnable says that the flag may be auto, and Learned that it is: Kappa is then where learning begins.
	Learnable, Learned bool

	given bool
}

// unlearnedKappa is where learning begins: phases that may be anywhere, and are more often near the nominal ones.
const unlearnedKappa = 1

// WarmUpPhases is how many samples a stream with phases of which nothing is known begins with where that is not said.
const WarmUpPhases = 4

// Free reports whether nothing is known of phases.
func (p *Phases) Free() bool { return p.Kappa == 0 }

// Given reports whether the flag was.
func (p *Phases) Given() bool { return p.given }

const (
	phaseKnown = "known"
	phaseFree  = "free"
)

// Register adds the flag, after those of the model.
func (p *Phases) Register(flags *pflag.FlagSet) {
	amplitudes := flags.Lookup("s-range").Value
	if a, ok := amplitudes.(*auto); ok {
		amplitudes = a.Value
	}
	amplitudes.(*interval).point = true // an amplitude may be known
	value, words, usage, expected := "known|free|κ", "known free", About("phase"), "known, free, or a finite number above 0"
	if p.Learnable {
		value, words, usage = value+"|auto", words+" auto", usage+"; auto learns κ"
	} else {
		expected += ": how phases are spread is learned by calamp solve alone"
	}
	flags.Var(NumberOr{
		Stringer: p, Kind: value, Or: words, Within: Positive, Expected: expected,
		Word: func(word string) {
			p.given, p.Learned = true, word == AutoWord
			p.Kappa = map[string]float64{phaseKnown: math.Inf(1), phaseFree: 0, AutoWord: unlearnedKappa}[word]
		},
		Number: func(v float64) { p.given, p.Learned, p.Kappa = true, false, v },
	}, "phase", usage)
}

// String is the flag's value.
func (p *Phases) String() string {
	switch {
	case p.Learned:
		return AutoWord
	case math.IsInf(p.Kappa, 1):
		return phaseKnown
	case p.Kappa == 0:
		return phaseFree
	}
	return strconv.FormatFloat(p.Kappa, 'g', -1, 64)
}

// TakeResult takes over what was learned.
func (p *Phases) TakeResult(res *calamp.Result) {
	if channel.ColumnsOf(res.Channel) > 1 && p.Learned {
		p.Kappa = channel.PhasesOf(channel.CalibrationOf(res.Channel))
		p.Learned = !p.Free()
	}
}

// Concentration is the κ that was learned; nil where it was given.
func (p *Phases) Concentration() *float64 {
	if !p.Learned {
		return nil
	}
	return &p.Kappa
}

// Fields is what is known of phases, for the report; nothing where numbers are real.
func (p *Phases) Fields(isComplex bool) []report.Field {
	if !isComplex {
		return nil
	}
	words := map[string]string{phaseKnown: "known", phaseFree: "free", AutoWord: fmt.Sprintf("von Mises, κ = %.4g (learned)", p.Kappa)}[p.String()]
	if words == "" {
		words = "von Mises, κ = " + p.String()
	}
	return []report.Field{{Name: "Phases of s", Value: words}}
}

// alone is what to do where complex gains were said to belong together.
const alone = "each complex gain is found by itself: leave it out; with --phase κ phases are near the nominal ones"

// realOnly are flags that complex problems do not have, with what to do in their place.
var realOnly = []struct{ flag, hint string }{
	{"prior", "non-zero entries are complex normal: leave it out"},
	{"component", "non-zero entries are complex normal: leave it out"},
	{"basis", "give the product of W and the basis as --matrix"},
	{"saturation", "clipped complex readings are better missing (NaN)"},
	{"quantised", ""},
	{"sign", ""},
	{"counts", ""},
	{"compare", ""},
	{"structured", ""},
	{"signals", ""},
	{"f4", ""},
	{"offset", ""},
	{"mpi", ""},
	{"s-from", "phases of single sensors are the array s_phase"},
	{"s-tail", ""},
	{"gain-smooth", alone},
	{"gain-basis", alone},
}

// orComplex reports whether this value of a flag for real numbers is one for complex ones as well: signals that are drawn, in place of those of a
// file, and the prior that complex signals have.
func orComplex(flag, value string) bool {
	return flag == "signals" && strings.HasPrefix(value, "joint:") || flag == "prior" && value == GaussBernoulli
}

// CheckComplex refuses flags that do not go with complex numbers, and those that only go with them.
func (p *Phases) CheckComplex(flags *pflag.FlagSet, m *Model, isComplex bool) error {
	if !isComplex {
		if p.given {
			return console.Usage("--phase is for complex problems, and the readings are real").
				WithHint("phases without amplitudes, or with them, are readings of type c8 or c16: Y = amplitude * exp(1j * phase)")
		}
		if m.SRange[0] == m.SRange[1] {
			return console.Usage("--s-range \"%g,%g\": expected a,b with 0 < a < b", m.SRange[0], m.SRange[1])
		}
		return nil
	}
	for _, f := range realOnly {
		if flags.Lookup(f.flag) != nil && Given(flags, f.flag) && !orComplex(f.flag, flags.Lookup(f.flag).Value.String()) {
			err := console.Usage("--%s is for real numbers, and the problem is complex", f.flag)
			if f.hint == "" {
				return err
			}
			return err.WithHint("%s", f.hint)
		}
	}
	if p.Learnable && !p.given { // omitted means learned
		p.Kappa, p.Learned = unlearnedKappa, true
	}
	switch {
	case m.Noise.File != "" || m.Noise.PerSensor:
		return console.Usage("--noise-var %s: complex problems have one noise variance for all readings", flags.Lookup("noise-var").Value).
			WithHint("where those of sensors are known, divide the rows of W and the readings of each by its standard deviation, and leave it out")
	case m.SignalMean != 0 && Given(flags, "signal-mean"):
		return console.Usage("--signal-mean %g: complex signals have mean 0, since no phase is preferred", m.SignalMean)
	case m.SRange[0] == m.SRange[1] && math.IsInf(p.Kappa, 1):
		return console.Usage("--s-range %g,%g and --phase known: amplitudes and phases are known, there is nothing to calibrate", m.SRange[0], m.SRange[1])
	}
	return m.forgetMean(flags)
}

// CheckProblem is [Phases.CheckComplex] for a problem with these groups of entries, and this knowledge of single sensors.
func (p *Phases) CheckProblem(flags *pflag.FlagSet, m *Model, g *Groups, known *channel.Knowledge, isComplex bool) error {
	return cmp.Or(p.CheckComplex(flags, m, isComplex), RefuseComplex(isComplex && g.On(), "a density or variance for each entry"),
		RefuseComplex(isComplex && known != nil, "what is known of single sensors (s_prior_mean, s_prior_sd)"))
}

// forgetMean takes the mean of complex signals for what it is, 0.
func (m *Model) forgetMean(flags *pflag.FlagSet) error {
	const name = "signal-mean"
	if m.Learns(name) && Given(flags, name) {
		return console.Usage("--%s %s: complex signals have mean 0, since no phase is preferred", name, AutoWord)
	}
	m.forget(name)
	return nil
}

// ComplexPrior is what is known of complex signals.
func (m *Model) ComplexPrior() prior.ComplexGaussBernoulli {
	return prior.ComplexGaussBernoulli{Density: m.Density, SignalVar: m.SignalVar}
}

// ComplexSignal is that prior, with what is to be learned of it.
func (m *Model) ComplexSignal() prior.Prior {
	return m.ComplexPrior().Learning(m.free())
}

// KnownComplex is the model of a complex problem with NaN where something is to be learned.
func (m *Model) KnownComplex(p *Phases) (prior.Prior, channel.ComplexGain) {
	g, c := m.Known()
	known := *m
	known.Density, known.SignalVar, known.NoiseVar = g.Density, g.SignalVar, c.NoiseVar
	return known.ComplexSignal(), known.ComplexChannel(p)
}

// GuessComplex fills what is to be learned of a complex problem with rough values to start from.
func (m *Model) GuessComplex(w operator.Operator, y *mat.Dense, p *Phases) error {
	g, c := m.Known()
	known := m.ComplexChannel(p)
	known.Prior.Lo, known.NoiseVar = c.Prior.Lo, c.NoiseVar
	signal, gain, err := calamp.GuessComplex(w, y, prior.ComplexGaussBernoulli{Density: g.Density, SignalVar: g.SignalVar}, known)
	if err != nil {
		return err
	}
	m.Density, m.SignalVar, m.NoiseVar = signal.Density, signal.SignalVar, gain.NoiseVar
	m.takeGains(gain.Prior.Amplitude())
	return nil
}

// ComplexGain is what is known of the complex s of sensors.
func (m *Model) ComplexGain(p *Phases) channel.ComplexPrior {
	return channel.ComplexPrior{Concentration: p.Kappa}.WithAmplitude(m.GainPrior())
}

// ComplexChannel is what turns complex signals into readings.
func (m *Model) ComplexChannel(p *Phases) channel.ComplexGain {
	return channel.ComplexGain{Prior: m.ComplexGain(p), NoiseVar: m.NoiseVar}
}

// Scale makes the model that of stated for signals and gains that are so many times as large.
func (m *Model) Scale(stated *Model, factor float64) {
	m.SignalVar, m.NoiseVar = stated.SignalVar*factor*factor, stated.NoiseVar*factor*factor
	m.SRange = [2]float64{stated.SRange[0] * factor, stated.SRange[1] * factor}
}

// RefuseComplex is the error of what is for real numbers.
func RefuseComplex(isComplex bool, what string) error {
	if !isComplex {
		return nil
	}
	return console.Usage("the numbers are complex, and %s is for real ones", what).WithHint("calamp simulate, solve, online and inspect take complex ones")
}
