package option

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/report"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Model is what is known beforehand of signals, calibration and noise. All
// commands have its flags.
type Model struct {
	Density    float64    `json:"density,omitempty"` // 0: all of a curve
	SignalMean float64    `json:"signal_mean"`
	SignalVar  float64    `json:"signal_var"`
	SRange     [2]float64 `json:"s_range"`
	NoiseVar   float64    `json:"noise_var"`

	// NoiseAt is where noise is added, atSignal or atReading.
	NoiseAt string `json:"noise_at,omitempty"`

	// NoisePhoton is what a photon adds to a reading; 0 where photons make no noise.
	NoisePhoton float64 `json:"noise_photon,omitempty"`

	// Noise that differs between sensors or readings: then NoiseVar is its mean.
	Noise Noise `json:"noise,omitzero"`

	// The distribution of s within its range, where that is given or was learned to be another than
	// the uniform one: "normal", with its mean and standard deviation, or "lognormal", with the median
	// and the standard deviation of log s.
	SPrior string  `json:"s_prior,omitempty"`
	SMean  float64 `json:"s_mean,omitempty"`
	SSD    float64 `json:"s_sd,omitempty"`

	// KnownSensors is how many sensors are known by themselves.
	KnownSensors int `json:"known_sensors,omitempty"`

	known      *channel.Knowledge
	photons    photons
	belong     *Together // nil where gains are each by themselves
	holds      string    // the flag of the one number that was given and has a scale, where the scale is otherwise free
	from       string    // the file of --s-from
	asked      solver.SPrior
	rangeGiven bool // or learned, beside a mean
	rowSquare  float64

	Assumed []string `json:"assumed"`           // the flags that were not given
	Learned []string `json:"learned,omitempty"` // from the readings: the values are those found
}

// DefaultModel is assumed where nothing is said; the commands say so.
var DefaultModel = Model{Density: 0.2, SignalMean: 0, SignalVar: 1, SRange: [2]float64{0.95, 1.05}, NoiseVar: 1e-6}

// ModelFlags are the names of the flags that describe a model.
var ModelFlags = []string{"density", "signal-mean", "signal-var", "s-range", "noise-var"}

// Register adds the model flags; the values of m are the defaults.
func (m *Model) Register(flags *pflag.FlagSet) {
	flags.Var(Number(&m.Density, Fraction), "density", About("density"))
	flags.Var(Number(&m.SignalMean, Finite), "signal-mean", About("signal-mean"))
	flags.Var(Number(&m.SignalVar, Square), "signal-var", About("signal-var"))
	flags.Var(&interval{lo: &m.SRange[0], hi: &m.SRange[1]}, "s-range", About("s-range"))
	flags.Var(Number(&m.NoiseVar, SquareOr0), "noise-var", About("noise-var"))
	m.registerGains(flags)
}

// Complete notes which flags were not given, and checks those of the distribution of s.
func (m *Model) Complete(flags *pflag.FlagSet) error {
	m.Assumed = []string{}
	for _, name := range ModelFlags {
		if !Given(flags, name) && !(name == "s-range" && Given(flags, "s-mean")) {
			m.Assumed = append(m.Assumed, name)
		}
	}
	if Given(flags, "noise-var") && m.Noise.File == "" && !m.AtReading() {
		m.NoiseVar = m.InRows(m.NoiseVar)
	}
	return m.completeGains(flags)
}

// RegisterRows adds --row-square, for commands whose W has rows of norm 1.
func (m *Model) RegisterRows(flags *pflag.FlagSet) {
	m.rowSquare = 1
	flags.Var(Number(&m.rowSquare, Square), "row-square", About("row-square"))
}

// OwnRows says that W is a given one, in whose units the noise is.
func (m *Model) OwnRows() { m.rowSquare = 0 }

// InRows is a noise variance for a W with rows of norm 1.
func (m *Model) InRows(variance float64) float64 {
	if m.rowSquare == 0 {
		return variance
	}
	return variance / m.rowSquare
}

// Assumption is the part of the model that was not given, as flags; empty when
// all of it was.
func (m *Model) Assumption(flags *pflag.FlagSet) string {
	var words []string
	for _, name := range m.Assumed {
		words = append(words, fmt.Sprintf("--%s %s", name, flags.Lookup(name).Value))
	}
	return strings.Join(words, " ")
}

// Prior is what is known of a signal's entry.
func (m *Model) Prior() prior.GaussBernoulli {
	return prior.GaussBernoulli{Density: m.Density, SignalMean: m.SignalMean, SignalVar: m.SignalVar}
}

// Channel is what turns signals into readings.
func (m *Model) Channel() channel.Gain {
	if m.AtReading() {
		return channel.Gain{Prior: m.GainPrior(), Own: m.own()}
	}
	return channel.Gain{Prior: m.GainPrior(), NoiseVar: m.NoiseVar}
}

// Fields is the model in words, for the report.
func (m *Model) Fields() []report.Field {
	note := func(name string) string {
		if slices.Contains(m.Assumed, name) {
			return " (assumed)"
		}
		if m.Learns(name) {
			return " (learned)"
		}
		return ""
	}
	return []report.Field{
		{Name: "Density ρ", Value: console.Short(m.Density) + note("density")},
		{Name: "Mean of non-zero entries", Value: console.Short(m.SignalMean) + note("signal-mean")},
		{Name: "Variance of non-zero entries", Value: console.Short(m.SignalVar) + note("signal-var")},
		{Name: "Range of s", Value: m.gainWords() + fmt.Sprintf("[%s, %s]", console.Short(m.SRange[0]), console.Short(m.SRange[1])) + note("s-range")},
		{Name: "Noise variance Δ", Value: m.noiseWords() + note("noise-var")},
	}
}
