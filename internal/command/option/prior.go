package option

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/report"
	"github.com/calamp/calamp/prior"
)

// SignalPrior is --prior: the family that --density, --signal-mean and
// --signal-var are parameters of, or the components of a mixture.
type SignalPrior struct {
	Family     string            `json:"prior"`
	Components []prior.Component `json:"components,omitempty"`

	// Learned says that the components are only where learning starts; then they are what was found.
	Learned bool `json:"components_learned,omitempty"`

	// Slack is the variance by which signals are off a network, given or learned, with its standard deviation where it was learned.
	Slack   *float64 `json:"slack,omitempty"`
	SlackSD *float64 `json:"slack_sd,omitempty"`

	slack                 float64 // --slack
	slackGiven, slackOpen bool    // open: auto
	learns                bool    // the command has auto

	guess bool // where learning starts was not given either

	network *network // of --prior network:FILE; nil for the others
}

const (
	GaussBernoulli = "gauss-bernoulli"
	NonNegative    = "nonnegative"
	Laplace        = "laplace"
	mixtureFamily  = "mixture"
)

// Families are the values of --prior that are words.
var Families = []string{GaussBernoulli, NonNegative, Laplace, mixtureFamily}

// Register adds the flags; family is the default.
func (s *SignalPrior) Register(flags *pflag.FlagSet, family string) {
	s.Family = family
	flags.Var(signalFamily{Choice(&s.Family, Families...).(choice)}, "prior", About("prior"))
	flags.Var((*components)(&s.Components), "component", About("component"))
	flags.Var(slackFlag{s}, "slack", About("slack"))
}

// RegisterLearnable adds the flag of a command that learns.
func (s *SignalPrior) RegisterLearnable(flags *pflag.FlagSet) {
	flags.BoolVar(&s.Learned, "learn-components", false, About("learn-components"))
	s.learns = true
	flags.Lookup("slack").Usage += "; auto learns it"
}

// components is --component, which can be repeated.
type components []prior.Component

func (c *components) String() string { return "" }

func (c *components) Type() string { return "weight,mean,var" }

func (c *components) Set(text string) error {
	const expected = "weight,mean,variance"
	words := strings.Split(text, ",")
	var v [3]float64
	if len(words) != len(v) {
		return errors.New("expected " + expected)
	}
	for i, within := range [...]Range{Finite, Finite, {holds: Finite.holds, square: true}} {
		var err error
		if v[i], err = within.parse(strings.TrimSpace(words[i]), expected); err != nil {
			return err
		}
	}
	next := append(*c, prior.Component{Weight: v[0], Mean: v[1], Var: v[2]})
	if err := (prior.Mixture{Components: next}).Validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

// Complete refuses flags that are no parameters of the family, and forgets that
// their defaults were assumed, or that they were to be learned. Where the command learns, a mixture without components learns those of its own.
func (s *SignalPrior) Complete(flags *pflag.FlagSet, m *Model, learns bool) error {
	if err := s.loadNetwork(); err != nil {
		return err
	}
	if s.slackOpen && !learns {
		return console.Usage("--slack auto: these iterations learn nothing; give its variance")
	}
	switch mixture := s.Family == mixtureFamily; {
	case mixture && len(s.Components) == 0 && !learns:
		return console.Usage("--prior mixture needs its --component weight,mean,variance, once for each")
	case !mixture && len(s.Components) > 0:
		return console.Usage("--component is for --prior mixture")
	case !mixture && s.Learned:
		return console.Usage("--learn-components is for --prior mixture")
	case mixture && len(s.Components) == 0:
		s.Learned, s.guess = true, true
	}
	for _, name := range foreignTo(s.Family) {
		if Given(flags, name) {
			return console.Usage("--%s is no parameter of --prior %s", name, s.Family)
		}
		m.forget(name)
	}
	return nil
}

// foreignTo are the flags of the model that are no parameters of a family.
func foreignTo(family string) []string {
	return strings.Fields(map[string]string{mixtureFamily: "density signal-mean signal-var", Laplace: "signal-mean"}[family])
}

// Signal is the prior of a run whose model has been guessed, with what is to be learned of it, by group.
func (s *SignalPrior) Signal(m *Model, g *Groups) (prior.Prior, error) {
	if s.network == nil {
		return g.Signal(m, s.signal(m))
	}
	latents, err := g.Signal(m, s.latents(m))
	if err != nil {
		return nil, err
	}
	return s.OfLatents(latents), nil
}

func (s *SignalPrior) signal(m *Model) prior.Prior {
	if s.guess {
		s.Components = s.compressible(m)
	}
	p := s.Of(m)
	return m.Signal(p)
}

// compressible are the components that learning starts from where none were given: half of what is not zero is a fourth as large as the
// rest, all of it of the power that was guessed.
func (s *SignalPrior) compressible(m *Model) []prior.Component {
	square := m.SignalVar + m.SignalMean*m.SignalMean
	const ratio = 16
	small := 2 * square / (1 + ratio)
	return []prior.Component{{Weight: 0.5 * m.Density, Var: small}, {Weight: 0.5 * m.Density, Var: ratio * small}}
}

// Fixed says that the prior has numbers with a scale beside those of the model's flags.
func (s *SignalPrior) Fixed() bool {
	return s.Family == mixtureFamily && !s.Learned || s.network != nil
}

// TakeResult takes what a run has learned.
func (s *SignalPrior) TakeResult(res *calamp.Result) {
	s.takeSlack(res)
	if m, ok := res.Prior.(prior.Mixture); ok && m.Learn { // made by Signal, above, or found better than what was asked for
		s.Family, s.Components, s.Learned = "mixture", m.Components, true
	}
}

// Of is the prior with the model's parameters.
func (s *SignalPrior) Of(m *Model) prior.Sampler {
	if s.network != nil {
		return s.network.of(m)
	}
	switch s.Family {
	case NonNegative:
		return s.OfEntries(m.Prior()).(prior.NonNegative)
	case Laplace:
		return prior.Laplace{Density: m.Density, SignalVar: m.SignalVar}
	case mixtureFamily:
		return prior.Mixture{Components: s.Components, Learn: s.Learned}
	}
	return m.Prior()
}

// OfEntries is the family of which g has the parameters: cut to x ≥ 0 where entries cannot be negative.
func (s *SignalPrior) OfEntries(g prior.GaussBernoulli) prior.Prior {
	if s.Family == NonNegative {
		return prior.NonNegative(g)
	}
	return g
}

// Words says what signals are like.
func (s *SignalPrior) Words(m *Model) string {
	density, mean, variance := console.Short(m.Density), console.Short(m.SignalMean), console.Short(m.SignalVar)
	if s.network != nil {
		return s.network.words() + fmt.Sprintf(" of density %s, mean %s and variance %s", density, mean, variance) + s.slackWords()
	}
	switch s.Family {
	case Laplace:
		return fmt.Sprintf("density %s, non-zero entries two-sided exponential of variance %s", density, variance)
	case mixtureFamily:
		return "components " + strings.Join(s.componentWords(), ", ")
	case NonNegative:
		return fmt.Sprintf("density %s, non-zero entries N(%s, %s) cut to x ≥ 0", density, mean, variance)
	}
	return fmt.Sprintf("density %s, non-zero entries of mean %s and variance %s", density, mean, variance)
}

// LearnedNames is what is learned of it, beside the model's flags.
func (s *SignalPrior) LearnedNames() []string {
	switch {
	case s.Learned:
		return []string{"components"}
	case s.slackOpen:
		return []string{"slack"}
	}
	return nil
}

// Plain reports the family that everything else is derived for.
func (s *SignalPrior) Plain() bool { return s.Family == GaussBernoulli }

// Grouped reports whether entries can differ by group: those of signals, or of latents.
func (s *SignalPrior) Grouped() bool { return s.Plain() || s.network != nil }

// GroupEntries is how many of them there are, of signals of n entries.
func (s *SignalPrior) GroupEntries(n int) int {
	if s.network != nil {
		return s.network.layers[0].Cols
	}
	return n
}

// Fields is the prior in words, for the report.
func (s *SignalPrior) Fields() []report.Field {
	if s.Plain() {
		return nil
	}
	fields := []report.Field{{Name: "Prior of the signals", Value: s.Family}}
	for _, text := range s.componentWords() {
		fields = append(fields, report.Field{Name: "Component", Value: text})
	}
	return fields
}

func (s *SignalPrior) componentWords() (words []string) {
	for _, c := range s.Components {
		words = append(words, fmt.Sprintf("%s × N(%s, %s)", console.Short(c.Weight), console.Short(c.Mean), console.Short(c.Var)))
	}
	return words
}
