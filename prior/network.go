package prior

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/activation"
)

// Activation is x = f(u) between the layers of a network, entry by entry. The zero value is the identity.
type Activation = activation.Function

// The activations. A leaky ReLU has another slope with [Leaky].
var (
	IdentityActivation = activation.Identity
	ReLU               = activation.ReLU
	HardTanh           = activation.HardTanh // u cut to -1 … 1
	Sigmoid            = activation.Sigmoid  // 1/(1+e^-u)
	SignActivation     = activation.Sign
)

// Leaky is the ReLU with a slope below zero, in [0, 1).
func Leaky(slope float64) Activation { return activation.Leaky(slope) }

// ActivationNamed is the activation of a name: identity, relu, leaky, leaky:SLOPE, tanh-hard, sigmoid or sign.
func ActivationNamed(name string) (Activation, error) { return activation.Parse(name) }

// Layer is f(Wh + b).
type Layer struct {
	Rows, Cols int
	Weights    []float64 // Rows×Cols, row by row
	Bias       []float64 // Rows; nil for none
	Activation Activation
}

// Network is the prior of signals that come out of a network: x = f(W h + b), and h likewise, down to latents whose entries are independent, of one prior or one each ([Varied]). Make it with
// [NewNetwork]. Offline solvers pass messages through all layers. What this type says of an entry by itself, as every [Prior] does, is its marginal
// before readings: u = Wh + b taken for Gaussian, with the variances of independent inputs.
type Network struct {
	layers  []Layer // from the latents to the signals
	latents Prior
	slack   float64
	open    bool     // the slack is learned
	margins []margin // N
}

// margin is what is known of an entry beforehand: u ~ N(ω, V), and what x = f(u) then is.
type margin struct{ omega, v, mean, variance float64 }

// NewNetwork is the network of layers, the first of which takes the latents, of n entries of the prior latents, and the last of which gives the signals. slack is the
// variance of independent noise on the signals' entries, for signals that are only near what the network gives; 0 for none.
// Layers that do nothing (W the identity, no bias, identity) are left out. The error names the layer and what was expected of it.
func NewNetwork(layers []Layer, latents Prior, slack float64) (Network, error) {
	if len(layers) == 0 {
		return Network{}, errors.New("a network has one layer or more, found none")
	}
	if !(slack >= 0) || math.IsInf(slack, 1) {
		return Network{}, fmt.Errorf("the slack is a variance, zero or positive, found %g", slack)
	}
	if ColumnsOf(latents) > 1 {
		return Network{}, errors.New("the latents of a network are real")
	}
	for i, l := range layers {
		if err := l.check(i + 1); err != nil {
			return Network{}, err
		}
		if i > 0 && l.Cols != layers[i-1].Rows {
			return Network{}, fmt.Errorf("W%d has %d columns, expected %d: what layer %d gives", i+1, l.Cols, layers[i-1].Rows, i)
		}
	}
	if v, ok := latents.(Varied); ok && v.Entries() != layers[0].Cols {
		return Network{}, fmt.Errorf("the latents' prior is for %d entries, expected %d: the columns of W1", v.Entries(), layers[0].Cols)
	}
	n := Network{latents: latents, slack: slack}
	for i, l := range layers {
		if !l.Nothing() || i == len(layers)-1 && len(n.layers) == 0 {
			n.layers = append(n.layers, l)
		}
	}
	n.setMargins()
	return n, nil
}

func (l *Layer) check(number int) error {
	switch {
	case l.Rows < 1 || l.Cols < 1 || len(l.Weights) != l.Rows*l.Cols:
		return fmt.Errorf("W%d: %d values do not make a %d×%d matrix", number, len(l.Weights), l.Rows, l.Cols)
	case l.Bias != nil && len(l.Bias) != l.Rows:
		return fmt.Errorf("b%d has %d values, expected %d: the rows of W%d", number, len(l.Bias), l.Rows, number)
	}
	some := false
	for j, w := range l.Weights {
		if math.IsNaN(w - w) {
			return fmt.Errorf("W%d[%d,%d] is %g, expected a number", number, j/l.Cols, j%l.Cols, w)
		}
		some = some || w != 0
	}
	if !some {
		return fmt.Errorf("all entries of W%d are zero: nothing would come out of the network", number)
	}
	for i, b := range l.Bias {
		if math.IsNaN(b - b) {
			return fmt.Errorf("b%d[%d] is %g, expected a number", number, i, b)
		}
	}
	return nil
}

// Nothing reports whether the layer gives what it takes.
func (l *Layer) Nothing() bool {
	if l.Rows != l.Cols || !l.Activation.Linear() || l.biased() {
		return false
	}
	for j, w := range l.Weights {
		if unit := j%(l.Cols+1) == 0; unit && w != 1 || !unit && w != 0 {
			return false
		}
	}
	return true
}

func (l *Layer) biased() bool {
	for _, b := range l.Bias {
		if b != 0 {
			return true
		}
	}
	return false
}

// through is Wh + b of the layer, and its activation of that, for one input.
func (l *Layer) through(h []float64) []float64 {
	x := make([]float64, l.Rows)
	for i := range x {
		u := 0.0
		for j, w := range l.Weights[i*l.Cols : (i+1)*l.Cols] {
			u += w * h[j]
		}
		if l.Bias != nil {
			u += l.Bias[i]
		}
		x[i] = l.Activation.Of(u)
	}
	return x
}

// setMargins passes means and variances through the layers.
func (n *Network) setMargins() {
	width := n.layers[0].Cols
	mean, variance := make([]float64, width), make([]float64, width)
	for j := range mean {
		at := At(n.latents, j)
		mean[j], variance[j] = at.Mean(), at.Variance()
	}
	for i, l := range n.layers {
		next := make([]margin, l.Rows)
		slack := 0.0
		if i == len(n.layers)-1 {
			slack = n.slack
		}
		for r := range next {
			m := &next[r]
			for j, w := range l.Weights[r*l.Cols : (r+1)*l.Cols] {
				m.omega += w * mean[j]
				m.v += w * w * variance[j]
			}
			if l.Bias != nil {
				m.omega += l.Bias[r]
			}
			moments := l.Activation.Entry(0, math.Inf(1), m.omega, m.v, slack)
			m.mean, m.variance = moments.X, moments.XVar
		}
		mean, variance = make([]float64, l.Rows), make([]float64, l.Rows)
		for r, m := range next {
			mean[r], variance[r] = m.mean, m.variance
		}
		n.margins = next
	}
}

// Layers are those of the network, from the latents to the signals; not to be changed.
func (n Network) Layers() []Layer { return n.layers }

// Latents is the prior of the latents.
func (n Network) Latents() Prior { return n.latents }

// LatentEntries is how many entries the latents of a signal have.
func (n Network) LatentEntries() int { return n.layers[0].Cols }

// Slack is the variance of the noise on the signals' entries.
func (n Network) Slack() float64 { return n.slack }

// SlackLearned reports whether the slack is learned.
func (n Network) SlackLearned() bool { return n.open }

// WithSlack is the network with a slack (a variance, zero or positive), that is learned from there on where learned says so.
func (n Network) WithSlack(slack float64, learned bool) Network {
	n.slack, n.open = slack, learned
	n.setMargins()
	return n
}

// WithLatents is the network with another prior of the latents.
func (n Network) WithLatents(p Prior) Network {
	n.latents = p
	n.setMargins()
	return n
}

// Name implements [Named]: what its weights are by their SHA-256, and its latents.
func (n Network) Name() string {
	h := sha256.New()
	number := func(v float64) {
		h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	}
	text := "network"
	for _, l := range n.layers {
		text += fmt.Sprintf(" %d→%v %d", l.Cols, l.Activation, l.Rows)
		for _, list := range [][]float64{l.Weights, l.Bias} {
			for _, v := range list {
				number(v)
			}
		}
	}
	latents := fmt.Sprintf("%T", n.latents)
	if named, ok := n.latents.(Named); ok {
		latents = named.Name()
	}
	slack := fmt.Sprintf("%g", n.slack)
	if n.open {
		slack = "learned"
	}
	return fmt.Sprintf("%s weights=%x slack=%s, latents %s", text, h.Sum(nil), slack, latents)
}

// scaled are the latents of signals c times as large; the same ones where the network holds the scale, or they do not know.
func (n Network) scaled(c float64) Prior {
	if p, ok := n.latents.(Scalable); ok && n.Scales() {
		return p.Scaled(c)
	}
	return n.latents
}

// Scaled implements [Scalable]. Of a network with a scale of its own signals are what they are.
func (n Network) Scaled(c float64) Prior {
	if n.open && n.Scales() {
		n.slack *= c * c
	}
	return n.WithLatents(n.scaled(c))
}

// NetworkPrior is the network itself, for those that have one within.
func (n Network) NetworkPrior() Network { return n }

// Scales reports whether signals scale as latents do: activations that do, no biases, and no slack or one that is learned.
func (n Network) Scales() bool {
	for _, l := range n.layers {
		if !l.Activation.Scales() || l.biased() {
			return false
		}
	}
	return n.slack == 0 || n.open
}

// Entries implements [Varied].
func (n Network) Entries() int { return len(n.margins) }

// At implements [Varied].
func (n Network) At(i int) Prior {
	return networkEntry{n.margins[i], n.layers[len(n.layers)-1].Activation, n.slack}
}

// Validate implements [Prior].
func (n Network) Validate() error {
	if n.layers == nil {
		return errors.New("a network is made by NewNetwork")
	}
	if err := n.latents.Validate(); err != nil {
		return fmt.Errorf("the latents of the network: %w", err)
	}
	if !(n.Variance() > 0) {
		return errors.New("signals that come out of this network do not vary: its latents or weights are too small")
	}
	return nil
}

// Mean implements [Prior].
func (n Network) Mean() (mean float64) {
	for _, m := range n.margins {
		mean += m.mean / float64(len(n.margins))
	}
	return mean
}

// Variance implements [Prior]: that of entries about their own means.
func (n Network) Variance() (variance float64) {
	for _, m := range n.margins {
		variance += m.variance / float64(len(n.margins))
	}
	return variance
}

// Square is E x² of an entry drawn at random.
func (n Network) Square() (square float64) {
	for _, m := range n.margins {
		square += (m.variance + m.mean*m.mean) / float64(len(n.margins))
	}
	return square
}

// Posterior implements [Prior], of whole signals: entries by themselves.
func (n Network) Posterior(mean, variance, lambda, sigma []float64) {
	entries := len(n.margins)
	for j := range lambda {
		n.At(j%entries).Posterior(mean[j:j+1], variance[j:j+1], lambda[j:j+1], sigma[j:j+1])
	}
}

// LogNorm implements [Prior]: of an entry drawn at random.
func (n Network) LogNorm(lambda, sigma float64) float64 {
	top, logs := math.Inf(-1), make([]float64, len(n.margins))
	for i := range logs {
		logs[i] = n.At(i).LogNorm(lambda, sigma)
		top = max(top, logs[i])
	}
	total := 0.0
	for _, l := range logs {
		total += math.Exp(l-top) / float64(len(logs))
	}
	return top + math.Log(total)
}

// Draw draws the latents of a signal, and the signal.
func (n Network) Draw(rng *rand.Rand) (latent, signal []float64, err error) {
	latent = make([]float64, n.LatentEntries())
	for j := range latent {
		p, ok := At(n.latents, j).(Sampler)
		if !ok {
			return nil, nil, fmt.Errorf("a %T cannot be drawn from", n.latents)
		}
		latent[j] = p.Sample(rng)
	}
	signal = latent
	for _, l := range n.layers {
		signal = l.through(signal)
	}
	if n.slack > 0 {
		for i := range signal {
			signal[i] += math.Sqrt(n.slack) * rng.NormFloat64()
		}
	}
	return latent, signal, nil
}

// Sample implements [Sampler]: an entry drawn at random, by itself. [Network.Draw] draws whole signals.
func (n Network) Sample(rng *rand.Rand) float64 {
	return n.At(rng.IntN(len(n.margins))).(networkEntry).Sample(rng)
}

// networkEntry is an entry of a [Network] by itself.
type networkEntry struct {
	margin
	f     Activation
	slack float64
}

func (e networkEntry) Validate() error   { return nil }
func (e networkEntry) Mean() float64     { return e.mean }
func (e networkEntry) Variance() float64 { return e.variance }

func (e networkEntry) Posterior(mean, variance, lambda, sigma []float64) {
	for i, l := range lambda {
		m := e.f.Entry(l, sigma[i], e.omega, e.v, e.slack)
		mean[i], variance[i] = m.X, m.XVar
	}
}

func (e networkEntry) LogNorm(lambda, sigma float64) float64 {
	if math.IsInf(sigma, 1) {
		return 0
	}
	return e.f.Entry(lambda, sigma, e.omega, e.v, e.slack).LogMass
}

func (e networkEntry) Sample(rng *rand.Rand) float64 {
	return e.f.Of(e.omega+math.Sqrt(e.v)*rng.NormFloat64()) + math.Sqrt(e.slack)*rng.NormFloat64()
}

// learner is the prior of the latents where something of it is learned; nil elsewhere.
func (n Network) learner() Learner { return LearnerOf(n.latents) }

// Learns says whether anything is learned: of the latents, or the slack.
func (n Network) Learns() bool { return n.learner() != nil || n.open }

// Values implements [Parametric]: those of the latents that are learned, and behind them a slack that is.
func (n Network) Values() (values []float64) {
	if p := n.learner(); p != nil {
		values = p.Values()
	}
	if n.open {
		values = append(values, n.slack)
	}
	return values
}

// WithValues implements [Parametric].
func (n Network) WithValues(v []float64) (Prior, error) {
	own := n
	if n.open {
		if len(v) == 0 || !(v[len(v)-1] >= 0) {
			return nil, fmt.Errorf("expected the slack, a variance, behind the parameters of the latents, found %v", v)
		}
		own.slack, v = v[len(v)-1], v[:len(v)-1]
	}
	latents := own.latents
	if p := n.learner(); p != nil {
		var err error
		if latents, err = p.WithValues(v); err != nil {
			return nil, err
		}
	}
	return own.WithLatents(latents), nil
}

// LearnsScale implements [Learner]: with biases, or activations of a range of their own, the network holds the scale.
func (n Network) LearnsScale() bool {
	p := n.learner()
	return p != nil && n.Scales() && p.LearnsScale()
}

// Balanced implements [Learner]: the latents are those that give signals of this mean square.
func (n Network) Balanced(square float64) Learner {
	learner := n.learner()
	if learner == nil {
		return n
	}
	if ratio := square / n.Square(); ratio > 0.5 && ratio < 2 || !(ratio > 0) || math.IsInf(ratio, 1) {
		return n
	}
	own := Square(n.latents)
	if n.Scales() {
		return n.WithLatents(learner.Balanced(own * square / n.Square()))
	}
	// The mean square of signals grows with that of latents, if not for ever.
	const reach = 20 // factors of e
	lo, hi := -float64(reach), float64(reach)
	best := n
	for range 40 {
		mid := 0.5 * (lo + hi)
		best = n.WithLatents(learner.Balanced(own * math.Exp(mid)))
		if best.Square() < square {
			lo = mid
		} else {
			hi = mid
		}
	}
	if math.Abs(lo) > reach-1e-3 { // signals of this size cannot come out of it
		return n
	}
	return best
}

// Refit implements [Learner]. The fields are those of the latents, as the solvers have them.
func (n Network) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	learner := n.learner()
	if learner == nil {
		return n, 0
	}
	p, change := learner.Refit(lambda, sigma, step)
	return n.WithLatents(p), change
}

const (
	// slackReach bounds the factor of one update of the slack, as that of the noise is: messages follow it only some iterations later.
	slackReach = 4

	// leastSlack is the least slack that is learned, relative to the signals' variance: below, rounding is what is left of the residuals.
	leastSlack = 1e-14
)

// StartSlack is where a slack that is learned begins: no smaller than this part of the signals' variance, since messages that are too sure of a network
// blow up before anything is learned.
func (n Network) StartSlack(part float64) Network {
	if n.open {
		n = n.WithSlack(max(n.slack, part*n.Variance()), true)
	}
	return n
}

// RefitSlack moves a slack τ that is learned towards the stationarity of the evidence of the fields N(λ, Σ) on entries whose posterior is x̂, C: with
// g = (x̂-λ)/Σ and -∂g = (1-C/Σ)/Σ, whatever τ is, by a step of Fisher's scoring
//
//	τ ← τ + Σ (g²+∂g) / rΣ (∂g)²,   where the variance of τ is 2/Σ (∂g)²
//
// (f(u) + slack has the evidence N(λ; f, Σ+τ), so that these are its derivatives by λ and ½ (g²+∂g) that by τ). Fields follow: with N entries of signals and
// M readings Σ = (Δ + mean C)/α grows with τ by up to 1/α, α = M/N, and the slope of the score is r = 1 + 1/α times that at fixed fields; without it
// the steps overshoot where α < 1/2. change is in standard errors.
func (n Network) RefitSlack(x, c, lambda, sigma []float64, alpha float64) (next Network, change float64) {
	if !n.open {
		return n, 0
	}
	score, information := slackScore(x, c, lambda, sigma)
	if !(information > 0) {
		return n, 0
	}
	sd := math.Sqrt(2 / information)
	least := leastSlack * n.Variance()
	to := n.slack + score/(information*(1+1/alpha))
	to = min(max(to, n.slack/slackReach, least), max(slackReach*n.slack, n.slack+sd))
	change = math.Abs(to-n.slack) / sd
	return n.WithSlack(to, true), change
}

// slackScore is Σ (g²+∂g) and Σ (∂g)².
func slackScore(x, c, lambda, sigma []float64) (score, information float64) {
	for i, s := range sigma {
		if math.IsInf(s, 1) || !(s > 0) {
			continue
		}
		g, slope := (x[i]-lambda[i])/s, (1-c[i]/s)/s
		score += g*g - slope
		information += slope * slope
	}
	return score, information
}

// SlackWanted is the slack that fields on entries ask for beyond the one they were computed with, by the step of [Network.RefitSlack], and by how many
// standard errors. Signals that do not come out of the network ask for slack even where the noise was learned from them: through W it is not white.
func SlackWanted(x, c, lambda, sigma []float64, alpha float64) (more, z float64) {
	score, information := slackScore(x, c, lambda, sigma)
	return score / (information * (1 + 1/alpha)), score / math.Sqrt(2*information)
}

// SlackSD is how well fields N(λ, Σ), of entries whose posterior is x̂, C, determine the slack: its standard deviation, +Inf where they say nothing.
func SlackSD(x, c, lambda, sigma []float64) float64 {
	_, information := slackScore(x, c, lambda, sigma)
	return math.Sqrt(2 / information)
}

// NetworkOf is the network that signals come out of, whether its latents are learned or not; false for another prior.
func NetworkOf(p Prior) (n Network, ok bool) {
	have, ok := p.(interface{ NetworkPrior() Network })
	if ok {
		n = have.NetworkPrior()
	}
	return n, ok
}

// Work is about how many multiplications the messages of a signal through all layers take.
func (n Network) Work() (work float64) {
	for _, l := range n.layers {
		work += 4*float64(l.Rows)*float64(l.Cols) + float64(l.Rows)*l.Activation.Work()
	}
	return work
}
