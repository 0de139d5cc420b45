package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/report"
)

// model is what is known beforehand of signals, calibration and noise. All
// commands have its flags.
type model struct {
	Density    float64    `json:"density,omitempty"` // 0: all of a curve
	SignalMean float64    `json:"signal_mean"`
	SignalVar  float64    `json:"signal_var"`
	SRange     [2]float64 `json:"s_range"`
	NoiseVar   float64    `json:"noise_var"`

	Assumed []string `json:"assumed"`           // the flags that were not given
	Learned []string `json:"learned,omitempty"` // what the readings told: the values are those found
}

// defaultModel is assumed where nothing is said; the commands say so.
var defaultModel = model{Density: 0.2, SignalMean: 0, SignalVar: 1, SRange: [2]float64{0.95, 1.05}, NoiseVar: 1e-6}

var modelFlags = []string{"density", "signal-mean", "signal-var", "s-range", "noise-var"}

// register adds the model flags; the values of m are the defaults.
func (m *model) register(flags *pflag.FlagSet) {
	flags.Var(number{&m.Density, func(v float64) bool { return v > 0 && v <= 1 }, "a number in (0, 1]"},
		"density", "expected fraction of non-zero signal entries, ρ")
	flags.Var(number{&m.SignalMean, func(v float64) bool { return !math.IsNaN(v) }, "a finite number"},
		"signal-mean", "mean of the non-zero entries")
	flags.Var(number{&m.SignalVar, func(v float64) bool { return v > 0 }, "a finite number above 0"},
		"signal-var", "variance of the non-zero entries")
	flags.Var(interval{&m.SRange[0], &m.SRange[1]},
		"s-range", "range of the calibration s, y = z/s; its prior is uniform")
	flags.Var(number{&m.NoiseVar, func(v float64) bool { return v >= 0 }, "a finite number, not below 0"},
		"noise-var", "noise variance Δ, before the division by s")
}

// complete notes which flags were not given.
func (m *model) complete(flags *pflag.FlagSet) {
	m.Assumed = []string{}
	for _, name := range modelFlags {
		if !given(flags, name) {
			m.Assumed = append(m.Assumed, name)
		}
	}
}

// assumption is the part of the model that was not given, as flags; empty when
// all of it was.
func (m *model) assumption(flags *pflag.FlagSet) string {
	var words []string
	for _, name := range m.Assumed {
		words = append(words, fmt.Sprintf("--%s %s", name, flags.Lookup(name).Value))
	}
	return strings.Join(words, " ")
}

func (m *model) prior() prior.GaussBernoulli {
	return prior.GaussBernoulli{Density: m.Density, SignalMean: m.SignalMean, SignalVar: m.SignalVar}
}

func (m *model) gainPrior() channel.GainPrior { return channel.Uniform(m.SRange[0], m.SRange[1]) }

func (m *model) channel() channel.Gain {
	return channel.Gain{Prior: m.gainPrior(), NoiseVar: m.NoiseVar}
}

// fields is the model in words, for the report.
func (m *model) fields() []report.Field {
	note := func(name string) string {
		if slices.Contains(m.Assumed, name) {
			return " (assumed)"
		}
		if m.learns(name) {
			return " (learned)"
		}
		return ""
	}
	return []report.Field{
		{Name: "Density ρ", Value: short(m.Density) + note("density")},
		{Name: "Mean of non-zero entries", Value: short(m.SignalMean) + note("signal-mean")},
		{Name: "Variance of non-zero entries", Value: short(m.SignalVar) + note("signal-var")},
		{Name: "Range of s", Value: fmt.Sprintf("[%s, %s]", short(m.SRange[0]), short(m.SRange[1])) + note("s-range")},
		{Name: "Noise variance Δ", Value: short(m.NoiseVar) + note("noise-var")},
	}
}

// short is a number with the digits that people look at.
func short(v float64) string { return fmt.Sprintf("%.4g", v) }
