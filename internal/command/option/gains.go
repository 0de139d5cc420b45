package option

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/solver"
)

// gainFlags are the flags that tell a distribution of gains with its parameters.
var gainFlags = []string{"s-prior", "s-mean", "s-sd"}

// registerGains adds the flags of the distribution of s.
func (m *Model) registerGains(flags *pflag.FlagSet) {
	flags.Var(Text(&m.asked, OneOf(solver.AutoS, solver.UniformS, solver.NormalS, solver.LogNormalS)), "s-prior", About("s-prior"))
	flags.Var(Number(&m.SMean, Positive), "s-mean", About("s-mean"))
	flags.Var(Number(&m.SSD, Positive), "s-sd", About("s-sd"))
}

// CompleteStated is for a second model beside m's truth, whose flags have a prefix: it takes the truth's
// distribution of s unless one was given, and reports whether it was.
func (m *Model) CompleteStated(truth *Model, flags *pflag.FlagSet, prefix string) (stated bool, err error) {
	given := func(name string) bool { f := flags.Lookup(prefix + name); return f != nil && f.Changed }
	if stated = slices.ContainsFunc(gainFlags, given); !stated && !given("s-range") {
		m.asked, m.SMean, m.SSD, m.SPrior = truth.asked, truth.SMean, truth.SSD, truth.SPrior
	}
	m.rangeGiven = given("s-range") || !stated && truth.rangeGiven
	return stated, errors.Join(m.settleGains(), m.CheckStated())
}

// completeGains takes in what was said of the distribution of s.
func (m *Model) completeGains(flags *pflag.FlagSet) error {
	m.rangeGiven = Given(flags, "s-range")
	if a, ok := flags.Lookup("s-range").Value.(*auto); ok && a.on && m.SMean > 0 {
		return console.Usage("--s-mean and --s-sd give the distribution of s, and --s-range auto learns it: give one")
	}
	return m.settleGains()
}

func (m *Model) settleGains() error {
	switch {
	case (m.SMean > 0) != (m.SSD > 0):
		return console.Usage("--s-mean and --s-sd go together: both or none")
	case m.SMean == 0:
		return nil
	case m.asked == solver.UniformS:
		return console.Usage("--s-prior uniform has no mean and standard deviation: its range is --s-range")
	case m.asked == solver.LogNormalS:
		m.SPrior = solver.LogNormalS.String()
	default:
		m.SPrior = solver.NormalS.String()
	}
	p := m.GainPrior()
	m.SRange = [2]float64{p.Lo, p.Hi}
	if err := p.Validate(); err != nil {
		return console.Usage("--s-mean, --s-sd: %w", err)
	}
	if mass := p.Mass(); !(mass > leastMass) {
		return console.Usage("--s-range %g,%g leaves nothing of a distribution of s with --s-mean %g and --s-sd %g", p.Lo, p.Hi, m.SMean, m.SSD)
	}
	return nil
}

// leastMass is what a range may leave of a distribution that was given.
const leastMass = 1e-6

// KnowledgeFile is that of --s-from; empty for none.
func (m *Model) KnowledgeFile() string { return m.from }

// LoadKnowledge takes in what is known of each of so many sensors: what the problem holds, or the file of --s-from.
// Then nothing is learned of the distribution of s.
func (m *Model) LoadKnowledge(flags *pflag.FlagSet, known *channel.Knowledge, sensors int) (err error) {
	if m.from != "" {
		if known != nil {
			return console.Usage("--s-from and the arrays s_prior_mean and s_prior_sd of the problem both say what is known of the sensors, give one")
		}
		if known, err = dataset.LoadKnowledge(m.from, sensors); err != nil {
			return console.Usage("--s-from %w", err)
		}
	}
	switch {
	case known == nil:
		return nil
	case m.StatedGains():
		return console.Usage("--s-mean and --s-sd give the prior of all sensors, and the problem or --s-from that of each: give one")
	case m.asked != solver.AutoS:
		return console.Usage("--s-prior %v: every sensor is known by itself, by the problem or --s-from", m.asked)
	case Given(flags, "s-range") && m.Learns("s-range"):
		return console.Usage("--s-range auto: every sensor is known by itself, by the problem or --s-from")
	}
	for mu := range known.Mean {
		if known.Knows(mu) {
			m.KnownSensors++
		}
	}
	m.known = known
	if a, ok := flags.Lookup("s-range").Value.(*auto); ok {
		a.on = false
	}
	m.forget("s-range")
	p := m.GainPrior()
	m.SRange = [2]float64{p.Lo, p.Hi}
	return nil
}

// CheckReadings refuses a result of --s-from that was found from these very readings: they would count twice.
func (m *Model) CheckReadings(y *mat.Dense) error {
	if m.from == "" {
		return nil
	}
	source, err := dataset.LoadProvenance(m.from)
	if err != nil {
		return console.Usage("--s-from %w", err)
	}
	if source != nil && source.Y == dataset.HashReadings(y) {
		return console.Usage("--s-from %s: this result was found from the same readings, which would count twice; give one of other readings", m.from)
	}
	return nil
}

// StatedGains reports whether a distribution of s was given with its parameters.
func (m *Model) StatedGains() bool { return m.SSD > 0 }

// CheckStated refuses a kind of distribution without its parameters, for commands that learn nothing.
func (m *Model) CheckStated() error {
	if (m.asked == solver.NormalS || m.asked == solver.LogNormalS) && !m.StatedGains() {
		return console.Usage("--s-prior %v needs --s-mean and --s-sd here", m.asked)
	}
	return nil
}

// GainPrior is what is known of a sensor's s.
func (m *Model) GainPrior() channel.GainPrior {
	if m.known != nil {
		p := channel.About(m.known)
		if m.rangeGiven {
			p.Lo, p.Hi = m.SRange[0], m.SRange[1]
		}
		return p
	}
	if !m.StatedGains() {
		return channel.Uniform(m.SRange[0], m.SRange[1])
	}
	p := channel.NormalAbout(m.SMean, m.SSD)
	if m.SPrior == solver.LogNormalS.String() {
		p = channel.LogNormalAbout(m.SMean, m.SSD)
	}
	if m.rangeGiven {
		p.Lo, p.Hi = m.SRange[0], m.SRange[1]
	}
	return p
}

// takeGains makes the distribution of s what was learned.
func (m *Model) takeGains(p channel.GainPrior) {
	m.SRange, m.rangeGiven = [2]float64{p.Lo, p.Hi}, true
	m.SMean, m.SSD, _ = channel.NormalOf(p)
	switch p.Family() {
	case channel.NormalFamily:
		m.SPrior = solver.NormalS.String()
	case channel.LogNormalFamily:
		m.SPrior = solver.LogNormalS.String()
	default:
		m.SPrior = ""
	}
}

// gainWords is the distribution of s within its range, where it is none that fills it.
func (m *Model) gainWords() string {
	switch {
	case m.belong != nil:
		return "together, within "
	case m.known != nil:
		return fmt.Sprintf("each of %d sensors known by itself, within ", m.KnownSensors)
	case !m.StatedGains():
		return ""
	case m.SPrior == solver.LogNormalS.String():
		return fmt.Sprintf("log-normal, %s ×/÷ exp %s, within ", console.Short(m.SMean), console.Short(m.SSD))
	}
	return fmt.Sprintf("normal, %s ± %s, within ", console.Short(m.SMean), console.Short(m.SSD))
}
