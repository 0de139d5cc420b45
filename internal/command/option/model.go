package option

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/report"
	"github.com/calamp/calamp/operator"
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

// NoteAssumption says what of the model was not given, where anything was not.
func (m *Model) NoteAssumption(a *console.Console, flags *pflag.FlagSet) {
	if text := m.Assumption(flags); text != "" {
		a.Note("assumed %s", text)
	}
}

// NoteIntention says what is learned and assumed of the model, and how the solver is suited to W.
func (m *Model) NoteIntention(a *console.Console, flags *pflag.FlagSet, s *Solver, w operator.Operator) {
	for _, text := range []string{m.Intention(flags), s.Suit(flags, w)} {
		if text != "" {
			a.Note("%s", text)
		}
	}
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

// SignalFlags are those of the model that say something of signals and noise.
var SignalFlags = []string{"density", "signal-mean", "signal-var", "noise-var"}

// RegisterLearnable adds the model flags; those of names also take auto.
func (m *Model) RegisterLearnable(flags *pflag.FlagSet, names ...string) {
	m.RegisterWithNoise(flags)
	flags.StringVar(&m.from, "s-from", "", About("s-from"))
	for _, name := range names {
		f := flags.Lookup(name)
		f.Value = &auto{Value: f.Value}
		f.Usage += "; auto learns it"
		f.DefValue = "" // it depends on the others
	}
}

// CompleteLearnable notes which flags were not given, and what is to be learned: each quantity that was not given, by
// itself, and what is auto; unless the algorithm cannot, where the defaults stand for what was not given.
func (m *Model) CompleteLearnable(flags *pflag.FlagSet, can bool) error {
	err := m.Complete(flags)
	m.Learned = nil
	for _, name := range ModelFlags {
		a, _ := flags.Lookup(name).Value.(*auto)
		if a == nil {
			continue
		}
		stated := Given(flags, name) || name == "s-range" && m.StatedGains()
		a.on = a.on || can && !stated
		if a.on || name == "noise-var" && m.Noise.PerSensor {
			m.Learned = append(m.Learned, name)
		}
	}
	m.Assumed = slices.DeleteFunc(m.Assumed, m.Learns)
	return err
}

// forget makes a flag's value neither one that is learned nor one that was assumed.
func (m *Model) forget(name string) {
	is := func(other string) bool { return other == name }
	m.Learned, m.Assumed = slices.DeleteFunc(m.Learned, is), slices.DeleteFunc(m.Assumed, is)
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
		if m.open(name) {
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
	stated := m.NoiseVar
	g, c, err := calamp.Guess(w, y, g, c)
	if err != nil {
		return err
	}
	m.Take(g, c)
	switch {
	case m.AtReading() && m.open("noise-var"):
		m.guessOwn(m.NoiseVar, stated, typicalReading(y))
	case m.AtReading():
		m.NoiseVar = stated
	}
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
	g := m.Prior()
	entries := res.Prior
	if n, ok := prior.NetworkOf(entries); ok {
		entries = n.Latents()
	}
	switch p := entries.(type) { // made by Signal, below, or by a further try
	case prior.Slabbed:
		mean, variance := p.Slab()
		if p.Learned() == 0 {
			break
		}
		g.Density, g.SignalVar = p.NonZero(), variance
		if p.Parameters()&prior.SignalMean != 0 {
			g.SignalMean = mean
		}
	case prior.Mixture:
		if p.Learn {
			g = p.AsOne()
		}
	}
	if c := channel.CalibrationOf(res.Channel); c != nil {
		gain := channel.Uniform(c.Range())
		if known, ok := c.(channel.Gains); ok {
			gain = known.Gains()
		}
		columns := float64(channel.ColumnsOf(res.Channel))
		m.Take(g, channel.Gain{Prior: gain, NoiseVar: columns * channel.NoiseOf(res.Channel)})
	}
	if own, ok := channel.DetectorOf(res.Channel); ok {
		m.NoiseVar, m.NoisePhoton, m.photons.gain = own.Read, own.Photon, own.Photon
	} else if each := res.NoiseVar; each != nil {
		m.Noise.Lo, m.Noise.Hi = slices.Min(each), slices.Max(each)
	}
}

// Signal is the prior p, with what is to be learned of it: that of a family whose parameters --density and its like are.
func (m *Model) Signal(p prior.Prior) prior.Prior {
	if slabbed, ok := p.(prior.Slabbed); ok {
		return slabbed.Learning(m.free())
	}
	return p
}

// free is which parameters of the signals are to be learned.
func (m *Model) free() (learn prior.Parameters) {
	for name, p := range map[string]prior.Parameters{"density": prior.Density, "signal-mean": prior.SignalMean, "signal-var": prior.SignalVar} {
		if m.open(name) {
			learn |= p
		}
	}
	return learn
}

// open says whether a run learns a number: what is to be learned, and what holds the scale.
func (m *Model) open(name string) bool { return m.Learns(name) || name == m.holds }

// HoldScale leaves a number that was given, where it is the only one that has a scale, to hold the scale of what is learned: with the
// signals' scale and the range of s free it says nothing else. varied is a prior that has more than one such number of its own. Where W is doubtful a noise variance does not: next to
// the errors of W it may be nothing, and the scale is its power ½.
func (m *Model) HoldScale(anchor *Anchor, varied, doubtful bool) (scale calamp.Scale) {
	free := m.Learns("s-range")
	if !free || anchor.Anchor.Set() || varied || m.Noise.File != "" {
		return scale
	}
	var stated []string
	if !m.Learns("signal-var") {
		stated, scale.SignalVar = append(stated, "signal-var"), m.SignalVar
	}
	if !m.Learns("signal-mean") && m.SignalMean != 0 {
		stated, scale.SignalMean = append(stated, "signal-mean"), m.SignalMean
	}
	if !m.Learns("noise-var") && m.NoiseVar > 0 && !m.AtReading() && !doubtful {
		stated, scale.NoiseVar = append(stated, "noise-var"), m.NoiseVar
	}
	if len(stated) != 1 {
		return calamp.Scale{}
	}
	m.holds = stated[0]
	return scale
}

// Learning is what the solver is to learn of the channel.
func (m *Model) Learning() calamp.Learn {
	return calamp.Learn{Noise: m.open("noise-var"), SensorNoise: m.Noise.PerSensor, Range: m.Learns("s-range")}
}

// String is the model in a line, for the log of a test.
func (m *Model) String() string {
	return (&SignalPrior{Family: GaussBernoulli}).Words(m) + ", " + m.ChannelWords()
}

// ChannelWords says what is known of the sensors.
func (m *Model) ChannelWords() string {
	return fmt.Sprintf("s %s[%s, %s], noise variance %s", cmp.Or(m.gainWords(), "in "), console.Short(m.SRange[0]), console.Short(m.SRange[1]), m.noiseWords())
}
