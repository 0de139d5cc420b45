package amp

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/joint"
	"github.com/calamp/calamp/internal/layers"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Signals that come out of a network are the diagonal iteration with another node in place of the prior: it takes fields of all signals, and has messages of its own to
// and from the latents, which start, are damped, saved, restored, rescaled and begun anew with the run.
//
// Joint rows are the other such node. They share no interface: what goes between an iteration and joint rows are covariances of one shape and P sizes, and
// here P×N variances; an interface of both would be two.

// networked reports whether signals come out of a network.
func (b *planner) networked() bool {
	_, ok := prior.NetworkOf(b.Model.Prior)
	return ok
}

// networkHoldsScale reports whether signals come out of a network of a scale of its own: with biases, or activations that have one. Then what
// the signals say of a factor is far from quadratic in it, and the iteration finds the scale by itself.
func (b *planner) networkHoldsScale() bool {
	n, ok := prior.NetworkOf(b.Model.Prior)
	return ok && !n.Scales()
}

// network decides whether a node of layers stands for the prior.
func (b *planner) network() (on bool, why string, err error) {
	n, ok := prior.NetworkOf(b.Model.Prior)
	if !ok {
		return false, "not needed: entries of signals are independent", nil
	}
	switch {
	case b.full() || b.exchangeable():
		err = fmt.Errorf("signals that come out of a network have variances of their own: leave %v covariances out", b.Covariance)
	case b.Algorithm == solver.Evidence:
		err = errors.New("signals that come out of a network are not Gaussian: their evidence cannot be integrated in closed form")
	case b.Joint == solver.JointOn:
		b.layers.Rows, err = true, b.latentsPossible(n)
	}
	latents := "as given"
	if b.learner() {
		latents = "learned"
	}
	if b.layers.Rows {
		latents += ", each in all signals or in none, with a covariance that is learned"
	}
	if err != nil {
		return false, "", err
	}
	words, err := b.layerAlgorithms(n)
	return err == nil, fmt.Sprintf("%d of layers, %d latents a signal, %s%s", len(n.Layers()), n.LatentEntries(), latents, words), err
}

// latentsPossible says why latents cannot be joint rows, if they cannot.
func (b *planner) latentsPossible(n prior.Network) error {
	_, sparse := n.Latents().(interface {
		GaussBernoulliPrior() prior.GaussBernoulli
	})
	return refusal([]reason{
		{b.stream(), "joint latents are for offline problems: streams solve their samples one by one"},
		{!sparse, "joint latents have one Gauss–Bernoulli prior"},
		{b.P < 2, "joint latents: there is one signal, and nothing that it could have in common with others; expected 2 or more"},
	})
}

// firstLatentRows is the iteration from which on the covariance of latents is learned. Before signals have left their start their fields err in the same way, and rows take that for a
// correlation: from the first iteration on 7 of 36 runs ended with other rows, after 6 and 10 iterations 5 and 2, after 20 one, and after 60 rows have been chosen without the covariance, 4
// (N = 300 out of 60 latents, 5 and 20 signals, correlations of 0.5 and 0.9, α = 0.12 to 0.2).
const firstLatentRows = 20

// jointLatents moves the hyperparameters of latents that are joint rows with the estimates, as [jointRows.After] does.
type jointLatents struct {
	Idle
	learns joint.Learns
}

func (b *planner) jointLatents() (on bool, why string, err error) {
	return unless("their covariance across signals", []reason{{!b.layers.Rows, "not needed: no latents are joint rows"}})
}

func (b *planner) makeJointLatents(*Solver) (Part, error) {
	n, _ := prior.NetworkOf(b.Model.Prior)
	p := &jointLatents{}
	if b.learner() {
		p.learns = learnsOf(n.Latents())
	}
	return p, nil
}

// Begin implements [Part]: with the covariance of its latents the scale of signals that scale with them is learned.
func (p *jointLatents) Begin(s *Solver) { s.State.ScaleLearned = s.State.networkScales }

// After implements [Part].
func (p *jointLatents) After(s *Solver, l *Line) Verdict {
	if l.Index < firstLatentRows {
		return Disturbed
	}
	rows := s.State.jointLatents()
	change := rows.Refit(p.learns, refitJoint)
	s.State.Adopt(Model{withLatents(s.State.model.Prior, entryOf(&rows.Prior)), s.State.model.Channel})
	if change > modelTolerance {
		return Disturbed
	}
	return GoOn
}

// withLatents is the prior of a network with other Gauss–Bernoulli latents, of which the same is learned.
func withLatents(p prior.Prior, g prior.GaussBernoulli) prior.Prior {
	n, _ := prior.NetworkOf(p)
	if l, is := n.Latents().(prior.Slabbed); is {
		return n.WithLatents(g.Learning(l.Learned()))
	}
	return n.WithLatents(g)
}

// jointLatents are the latents that are joint rows; nil elsewhere.
func (s *modelState) jointLatents() *joint.Rows {
	if s.network == nil {
		return nil
	}
	return s.network.Joint
}

// mostTogether is the most latents that layers are taken together with: their slopes and covariance take N N₂² multiplications a signal and iteration, here a
// tenth of a second for a thousand entries, and messages between layers N N₂.
const mostTogether = 500

// layerAlgorithms chooses by what the matrices of layers are, as for W: AMP for independent entries. Where one has structure, as trained ones have, all layers
// are taken together, if each signal has readings for its latents to be determined by. More of them are by vector AMP, which takes all
// outputs of a layer for equally well known: those of a trained one with biases or a sigmoid are not, and the run blows up.
func (b *planner) layerAlgorithms(n prior.Network) (words string, err error) {
	list := n.Layers()
	b.layers.Vector = make([]bool, len(list))
	for i, l := range list {
		if l.Nothing() || min(l.Rows, l.Cols) > mostRows {
			continue
		}
		f, err := operator.NewDense(l.Rows, l.Cols, l.Weights)
		if err != nil {
			return "", fmt.Errorf("W%d: %w", i+1, err)
		}
		s, err := operator.StructureOf(f, Threads(b.Threads, l.Rows*l.Cols))
		if err != nil || likeIndependentEntries(s) {
			continue // AMP needs nothing of it
		}
		spread := fmt.Sprintf("(spread of its squared singular values %.2g, of independent entries 1)", s.Spread)
		if n.LatentEntries() <= min(b.m, mostTogether) && haveSlopes(list) {
			b.layers.Together = true
			return fmt.Sprintf("; layers together, since W%d has structure %s", i+1, spread), nil
		}
		if b.layers.Vector[i] = s.Filled >= leastFilled; b.layers.Vector[i] {
			words += fmt.Sprintf("; W%d by vector AMP %s", i+1, spread)
		}
	}
	return words, nil
}

// haveSlopes reports whether outputs of all layers have slopes by their inputs.
func haveSlopes(list []prior.Layer) bool {
	for _, l := range list {
		if l.Activation.Varying(1) == 0 {
			return false
		}
	}
	return true
}

// networkLeaves are the lines of the plan that take entries for independent, and ask the prior for one at a time.
var networkLeaves = map[string]bool{
	"joint rows": true, "joint test": true, "covariances": true, "joint moves": true, "row shifts": true, "amplitudes": true, "mixture": true,
}

// takeNetwork makes the node of the model's network.
func (s *State) takeNetwork(how layers.How) error {
	n, _ := prior.NetworkOf(s.model.Prior)
	node, err := layers.New(n, s.P, s.Threads, how)
	if err != nil {
		return err
	}
	s.network = node
	s.keep(node.Kept()...)
	if s.networkScales = n.Scales(); s.networkScales {
		s.linear = append(s.linear, node.Linear()...)
	}
	s.Reset()
	return nil
}

// adoptLatents tells the node what is known of its latents and its slack.
func (s *modelState) adoptLatents() {
	if s.network != nil {
		n, _ := prior.NetworkOf(s.model.Prior)
		s.network.SetModel(n.Latents(), n.Slack())
	}
}

func (s *modelState) startNetwork() {
	if s.network != nil {
		s.network.Start()
	}
}

// scaleOfNetwork reports whether signals come out of a network of a scale of its own: those of another scale are none of its.
func (s *modelState) scaleOfNetwork() bool { return s.network != nil && !s.networkScales }

// inputNetwork is the input of all signals.
func (d *diagonal) inputNetwork() error {
	signals := d.P * d.N
	d.fields(0, signals)
	x, c := d.newX[:signals], d.newC[:signals]
	if err := d.network.Update(x, c, d.Lambda, d.Sigma, d.delta); err != nil {
		return err
	}
	for k := range d.P {
		d.takeUp(k, x[k*d.N:(k+1)*d.N], c[k*d.N:(k+1)*d.N], d.delta)
	}
	return nil
}

// pullNetwork sets Σ x̂(λ-x̂)/Σ of signals that scale with their latents. What the prior says of the scale is Σ (x̂(λ-x̂) - C)/Σ, and at a fixed point the same sum over
// the latents. Of entries that the network knows from each other λ-x̂ is as large as the noise of the field, and only at a fixed point these differences cancel: what
// is short of it would be ten thousand times what there is to be said. Those of the latents are what their prior does to them.
func (s *State) pullNetwork() {
	if s.network == nil || !s.networkScales {
		return
	}
	s.nextPull = 0
	lambda, sigma := s.network.Fields()
	h, c := s.network.Latent()
	for j, l := range lambda {
		if !math.IsInf(sigma[j], 1) {
			s.nextPull += (h[j]*(l-h[j]) - c[j]) / sigma[j]
		}
	}
	for j, c := range s.C {
		s.nextPull += c / s.Sigma[j]
	}
}

// priorFields are those that the prior is learned from: on its latents, where signals come out of a network.
func (s *State) priorFields() (lambda, sigma []float64) {
	if s.network != nil {
		return s.network.Fields()
	}
	return s.equalFields()
}

// rate is α: readings for each entry of the signals.
func (s *extent) rate() float64 { return float64(s.M*s.Each) / float64(s.N*s.P) }

// SlackWanted is how much more slack signals that come out of a network ask for, and by how many standard errors.
func (s *State) SlackWanted() (more, z float64) {
	return prior.SlackWanted(s.X, s.C, s.Lambda, s.Sigma, s.rate())
}

// Latent is the posterior of the latents of a network, mean and variance (P×N₂, signal by signal); nil elsewhere.
func (s *Solver) Latent() (mean, variance []float64) {
	if s.State.network == nil {
		return nil, nil
	}
	return s.State.network.Latent()
}
