package option

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// SignalFlags are those of the model that say something of signals and noise.
var SignalFlags = []string{"density", "signal-mean", "signal-var", "noise-var"}

// RegisterLearnable adds the model flags; those of names also take auto.
func (m *Model) RegisterLearnable(flags *pflag.FlagSet, names ...string) {
	m.RegisterWithNoise(flags)
	flags.StringVar(&m.from, "s-from", "", "what is known of every sensor's s: a former result, whose common scale counts with its uncertainty,\nor a .npz with s_prior_mean and s_prior_sd (M each), which P.npz can hold as well")
	for _, name := range names {
		f := flags.Lookup(name)
		f.Value = &auto{Value: f.Value}
		f.Usage += "; auto learns it"
		f.DefValue = "" // it depends on the others
	}
}

// CompleteLearnable notes which flags were not given, and what is to be learned: what is
// auto. Who says nothing of signals and noise has them learned, and, who says nothing of
// s either, its range, where that has auto, too; unless the algorithm cannot.
func (m *Model) CompleteLearnable(flags *pflag.FlagSet, can bool) error {
	err := m.Complete(flags)
	m.Learned = nil
	isAuto := func(name string) *auto {
		a, _ := flags.Lookup(name).Value.(*auto)
		return a
	}
	silent := func(names []string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return Given(flags, name) })
	}
	nothing := silent(ModelFlags) && !m.ToldGains()
	if can && silent(SignalFlags) {
		for _, name := range ModelFlags {
			if a := isAuto(name); a != nil && (name != "s-range" || nothing) {
				a.on = true
			}
		}
	}
	for _, name := range ModelFlags {
		if a := isAuto(name); a != nil && (a.on || name == "noise-var" && m.Noise.PerSensor) {
			m.Learned = append(m.Learned, name)
		}
	}
	m.Assumed = slices.DeleteFunc(m.Assumed, m.Learns)
	return err
}

// CheckRange leaves the range of s alone where it cannot be learned: one signal
// does not tell a spread of gains from noise.
func (m *Model) CheckRange(flags *pflag.FlagSet, p int) error {
	if p > 1 || !m.Learns("s-range") {
		return nil
	}
	if Given(flags, "s-range") {
		return console.Usage("--s-range auto: one signal does not tell the gains' spread from noise").
			WithHint("give --s-range a,b, or more signals from the same sensors")
	}
	flags.Lookup("s-range").Value.(*auto).on = false
	m.Learned = slices.DeleteFunc(m.Learned, func(name string) bool { return name == "s-range" })
	m.Assumed = append(m.Assumed, "s-range")
	return nil
}

// Learns says whether the flag's value is to be learned.
func (m *Model) Learns(name string) bool { return slices.Contains(m.Learned, name) }

// Intention says what is learned and what is assumed, in a line; empty where all was given.
func (m *Model) Intention(flags *pflag.FlagSet) string {
	var words []string
	if len(m.Learned) == len(ModelFlags) {
		words = append(words, "nothing assumed of the model")
	} else if text := m.Assumption(flags); text != "" {
		words = append(words, "assumed "+text)
	}
	if len(m.Learned) > 0 {
		words = append(words, "learning "+strings.Join(m.Learned, ", ")+" from the readings")
	}
	return strings.Join(words, "; ")
}

// Known is the model with NaN where something is to be learned.
func (m *Model) Known() (prior.GaussBernoulli, channel.Gain) {
	unless := func(name string, v float64) float64 {
		if m.Learns(name) {
			return math.NaN()
		}
		return v
	}
	g := prior.GaussBernoulli{
		Density:    unless("density", m.Density),
		SignalMean: unless("signal-mean", m.SignalMean),
		SignalVar:  unless("signal-var", m.SignalVar),
	}
	c := m.Channel()
	c.Prior.Lo, c.NoiseVar = unless("s-range", c.Prior.Lo), unless("noise-var", c.NoiseVar)
	return g, c
}

// Guess fills what is to be learned with rough values to start from.
func (m *Model) Guess(w operator.Operator, y *mat.Dense) error {
	g, c := m.Known()
	g, c, err := calamp.Guess(w, y, g, c)
	if err != nil {
		return err
	}
	m.Take(g, c)
	return nil
}

// Take makes the model what was guessed or learned.
func (m *Model) Take(g prior.GaussBernoulli, c channel.Gain) {
	m.Density, m.SignalMean, m.SignalVar = g.Density, g.SignalMean, g.SignalVar
	m.NoiseVar = c.NoiseVar
	m.takeGains(c.Prior)
}

// TakeResult takes what a run has learned.
func (m *Model) TakeResult(res *calamp.Result) {
	g, isLearned := res.Prior.(prior.LearnedGaussBernoulli) // made by Signal, below
	if !isLearned {
		g.GaussBernoulli = m.Prior()
	}
	if p, ok := res.Prior.(prior.LearnedComplexGaussBernoulli); ok {
		g.Density, g.SignalVar = p.Density, p.SignalVar
	}
	if c := channel.CalibrationOf(res.Channel); c != nil {
		gain := channel.Uniform(c.Range())
		if known, ok := c.(channel.Gains); ok {
			gain = known.Gains()
		}
		columns := float64(channel.ColumnsOf(res.Channel))
		m.Take(g.GaussBernoulli, channel.Gain{Prior: gain, NoiseVar: columns * channel.NoiseOf(res.Channel)})
	}
	if each := res.NoiseVar; each != nil {
		m.Noise.Lo, m.Noise.Hi = slices.Min(each), slices.Max(each)
	}
}

// Signal is the prior p, with what is to be learned of it.
func (m *Model) Signal(p prior.Prior) prior.Prior {
	g, ok := p.(prior.GaussBernoulli) // the one that --density and its like describe
	if !ok {
		return p
	}
	free := prior.LearnedGaussBernoulli{GaussBernoulli: g, Learn: m.free()}
	if free.Learn == 0 {
		return g
	}
	return free
}

// free is which parameters of the signals are to be learned.
func (m *Model) free() (learn prior.Parameters) {
	for name, p := range map[string]prior.Parameters{"density": prior.Density, "signal-mean": prior.SignalMean, "signal-var": prior.SignalVar} {
		if m.Learns(name) {
			learn |= p
		}
	}
	return learn
}

// Learning is what the solver is to learn of the channel.
func (m *Model) Learning() calamp.Learn {
	return calamp.Learn{Noise: m.Learns("noise-var"), SensorNoise: m.Noise.PerSensor, Range: m.Learns("s-range")}
}

// String is the model in a line, for the log of a test.
func (m *Model) String() string {
	return (&SignalPrior{Family: GaussBernoulli}).Words(m) + ", " + m.ChannelWords()
}

// ChannelWords says what is known of the sensors.
func (m *Model) ChannelWords() string {
	return fmt.Sprintf("s in %s[%s, %s], noise variance %s", m.gainWords(), console.Short(m.SRange[0]), console.Short(m.SRange[1]), m.noiseWords())
}
