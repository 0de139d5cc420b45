package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/report"
)

// signalPrior is --prior: the family that --density, --signal-mean and
// --signal-var are parameters of, or the components of a mixture.
type signalPrior struct {
	Family     string            `json:"prior"`
	Components []prior.Component `json:"components,omitempty"`
}

const (
	gaussBernoulli = "gauss-bernoulli"
	nonNegative    = "nonnegative"
)

func (s *signalPrior) register(flags *pflag.FlagSet, family string) {
	s.Family = family
	flags.Var(choice{&s.Family, []string{gaussBernoulli, nonNegative, "laplace", "mixture"}},
		"prior", "what non-zero entries are like: Gaussian, a Gaussian cut to x ≥ 0, two-sided exponential,\nor the Gaussians of --component")
	flags.Var((*components)(&s.Components), "component", "a Gaussian of --prior mixture: its weight, mean and variance; repeat for others. What the weights\nleave is the probability of zero")
}

// components is --component, which can be repeated.
type components []prior.Component

func (c *components) String() string { return "" }

func (c *components) Type() string { return "weight,mean,var" }

func (c *components) Set(text string) error {
	words := strings.Split(text, ",")
	var v [3]float64
	if len(words) != len(v) {
		return errors.New("expected weight,mean,variance")
	}
	for i, word := range words {
		var err error
		if v[i], err = strconv.ParseFloat(strings.TrimSpace(word), 64); err != nil {
			return errors.New("expected weight,mean,variance")
		}
	}
	next := append(*c, prior.Component{Weight: v[0], Mean: v[1], Var: v[2]})
	if err := (prior.Mixture{Components: next}).Validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

// complete refuses flags that are no parameters of the family, and forgets that
// their defaults were assumed.
func (s *signalPrior) complete(flags *pflag.FlagSet, m *model) error {
	switch mixture := s.Family == "mixture"; {
	case mixture && len(s.Components) == 0:
		return usage("--prior mixture needs its --component weight,mean,variance, once for each")
	case !mixture && len(s.Components) > 0:
		return usage("--component is for --prior mixture")
	}
	if !s.plain() && slices.ContainsFunc(m.Learned, func(name string) bool { return name != "noise-var" && name != "s-range" }) {
		return usage("--prior %s has no parameters that are learned: give their values in place of auto", s.Family)
	}
	foreign := map[string]string{"mixture": "density signal-mean signal-var", "laplace": "signal-mean"}
	for _, name := range strings.Fields(foreign[s.Family]) {
		if given(flags, name) {
			return usage("--%s is no parameter of --prior %s", name, s.Family)
		}
		m.Assumed = slices.DeleteFunc(m.Assumed, func(assumed string) bool { return assumed == name })
	}
	return nil
}

// of is the prior with the model's parameters.
func (s *signalPrior) of(m *model) prior.Sampler {
	switch s.Family {
	case nonNegative:
		return prior.NonNegative(m.prior())
	case "laplace":
		return prior.Laplace{Density: m.Density, SignalVar: m.SignalVar}
	case "mixture":
		return prior.Mixture{Components: s.Components}
	}
	return m.prior()
}

// words says what non-zero entries are like.
func (s *signalPrior) words(m *model) string {
	switch s.Family {
	case "laplace":
		return fmt.Sprintf("a density of %g, non-zero entries two-sided exponential of variance %g", m.Density, m.SignalVar)
	case "mixture":
		return "a mixture of " + plural(len(s.Components), "Gaussian")
	case nonNegative:
		return fmt.Sprintf("a density of %g, non-zero entries N(%g, %g) cut to x ≥ 0", m.Density, m.SignalMean, m.SignalVar)
	}
	return fmt.Sprintf("a density of %g, non-zero entries of mean %g and variance %g", m.Density, m.SignalMean, m.SignalVar)
}

// plain reports the family that everything else is derived for.
func (s *signalPrior) plain() bool { return s.Family == gaussBernoulli }

// fields is the prior in words, for the report.
func (s *signalPrior) fields() []report.Field {
	if s.plain() {
		return nil
	}
	fields := []report.Field{{Name: "Prior of the signals", Value: s.Family}}
	for _, c := range s.Components {
		fields = append(fields, report.Field{Name: "Component", Value: fmt.Sprintf("%s × N(%s, %s)", short(c.Weight), short(c.Mean), short(c.Var))})
	}
	return fields
}
