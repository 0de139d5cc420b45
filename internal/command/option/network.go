package option

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
)

// networkPrefix begins the --prior of signals that come out of a network.
const networkPrefix = "network:"

// signalFamily is a flag's value that is one of a few words, or network:FILE.
type signalFamily struct{ choice }

func (f signalFamily) Type() string { return f.choice.Type() + "|network:FILE" }

func (f signalFamily) Set(text string) error {
	if path, is := strings.CutPrefix(text, networkPrefix); is {
		if path == "" {
			return errors.New("expected network:FILE.npz")
		}
		*f.value = text
		return nil
	}
	if err := f.choice.Set(text); err != nil {
		return fmt.Errorf("%w or network:FILE.npz", err)
	}
	return nil
}

// slackFlag is --slack: a variance, or auto where the command learns.
type slackFlag struct{ of *SignalPrior }

func (f slackFlag) String() string {
	switch {
	case f.of == nil || !f.of.slackGiven:
		return ""
	case f.of.slackOpen:
		return AutoWord
	}
	return strconv.FormatFloat(f.of.slack, 'g', -1, 64)
}

func (f slackFlag) Type() string {
	if f.of.learns {
		return "number|auto"
	}
	return "number"
}

func (f slackFlag) Set(text string) error {
	s := f.of
	if text == AutoWord && s.learns {
		s.slackGiven, s.slackOpen, s.slack = true, true, 0
		return nil
	}
	if err := Number(&s.slack, SquareOr0).Set(text); err != nil {
		return err
	}
	s.slackGiven, s.slackOpen = true, false
	return nil
}

// network is what signals come out of: layers, with latents of the model's density, mean and variance.
type network struct {
	path   string
	layers []prior.Layer
	slack  float64
}

// loadNetwork reads the file of --prior network:FILE.
func (s *SignalPrior) loadNetwork() error {
	path, is := strings.CutPrefix(s.Family, networkPrefix)
	if !is {
		if s.slackGiven {
			return console.Usage("--slack is by how much signals are off a network: it needs --prior network:FILE.npz")
		}
		return nil
	}
	n := &network{path: path}
	var err error
	if n.layers, n.slack, err = dataset.LoadNetwork(path); err != nil {
		return err
	}
	if s.slackGiven && !s.slackOpen {
		n.slack = s.slack
	}
	if _, err := prior.NewNetwork(n.layers, prior.Gaussian(0, 1), n.slack); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.network = n
	return nil
}

// CheckEntries reports a network that does not give signals of n entries.
func (s *SignalPrior) CheckEntries(n int) error {
	if s.network == nil {
		return nil
	}
	if last := s.network.layers[len(s.network.layers)-1]; last.Rows != n {
		return fmt.Errorf("%s: W%d has %d rows, expected %d: signals have as many entries as W has columns", s.network.path, len(s.network.layers), last.Rows, n)
	}
	return nil
}

// Entries is how many entries signals have where that is known of them; 0 elsewhere.
func (s *SignalPrior) Entries() int {
	if s.network == nil {
		return 0
	}
	return s.network.layers[len(s.network.layers)-1].Rows
}

func (n *network) with(latents prior.Prior) prior.Network {
	made, err := prior.NewNetwork(n.layers, latents, n.slack)
	if err != nil {
		panic(err) // it was made before, of other latents
	}
	return made
}

// Over is the network with these latents.
func (s *SignalPrior) Over(latents prior.Prior) prior.Network { return s.network.with(latents) }

// OfLatents is the prior of signals out of the network, given that of its latents, whose parameters a stream may have to guess.
func (s *SignalPrior) OfLatents(latents prior.Prior) prior.Prior {
	made := s.network.with(latents)
	if s.slackOpen {
		made = made.WithSlack(made.Slack(), true)
	}
	return made
}

// takeSlack takes the slack of a run.
func (s *SignalPrior) takeSlack(res *calamp.Result) {
	n, ok := prior.NetworkOf(res.Prior)
	if !ok {
		return
	}
	s.network.slack = n.Slack()
	if s.slackGiven || n.Slack() > 0 {
		s.Slack = &s.network.slack
	}
	if s.slackOpen {
		s.SlackSD = &res.SlackSD
	}
}

// slackWords says how far signals are off the network; empty for not at all.
func (s *SignalPrior) slackWords() string {
	switch {
	case s.SlackSD != nil:
		return fmt.Sprintf("; off it by slack of variance %s ± %s", console.Short(s.network.slack), console.Brief(*s.SlackSD))
	case s.network.slack > 0:
		return "; off it by slack of variance " + console.Short(s.network.slack)
	}
	return ""
}

// networkAt is the value of --prior with another name for the file of its network.
func networkAt(text string, rename func(file string) string) string {
	if path, is := strings.CutPrefix(text, networkPrefix); is {
		return networkPrefix + rename(path)
	}
	return text
}

// of is the network with latents of the model's parameters.
func (n *network) of(m *Model) prior.Network { return n.with(m.Prior()) }

// latents are those of a run. What was guessed of the signals' size is that of what comes out: latents are those that give it.
func (s *SignalPrior) latents(m *Model) prior.Prior {
	n := s.network
	square := m.Density * (m.SignalVar + m.SignalMean*m.SignalMean)
	if m.open("signal-mean") {
		m.SignalMean = 0 // of signals it may be that of an activation
	}
	if m.open("signal-var") {
		m.SignalVar = n.variance(m.Prior(), square)
	}
	return m.Signal(m.Prior())
}

// variance is that of latents which give signals of the mean square, or 1 where none does.
func (n *network) variance(g prior.GaussBernoulli, square float64) float64 {
	const reach = 40 // factors of e
	lo, hi := -float64(reach), float64(reach)
	network := n.with(g)
	for hi-lo > 1e-3 {
		mid := 0.5 * (lo + hi)
		if g.SignalVar = math.Exp(mid); network.WithLatents(g).Square() < square {
			lo = mid
		} else {
			hi = mid
		}
	}
	if math.Abs(lo) > reach-1 {
		return 1
	}
	return math.Exp(lo)
}

// words says what the network is.
func (n *network) words() string {
	return fmt.Sprintf("signals out of %s: %s; latents", n.path, ShapeWords(n.layers))
}

// ShapeWords says what layers are: 20 → relu 400 → sigmoid 784.
func ShapeWords(layers []prior.Layer) string {
	text := fmt.Sprint(layers[0].Cols)
	for _, l := range layers {
		text += fmt.Sprintf(" → %v %d", l.Activation, l.Rows)
	}
	return text
}
