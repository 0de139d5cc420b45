package online

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

// Model is what a stream has taught of its signals and its noise.
type Model struct {
	Signal   prior.GaussBernoulli
	NoiseVar float64

	NoiseInformation float64 // inverse variance of NoiseVar, with forgetting; 0 when it is not learned
}

// Validate reports what is no model.
func (m *Model) Validate() error {
	if err := m.Signal.Validate(); err != nil {
		return err
	}
	if !(m.NoiseVar >= 0) || math.IsInf(m.NoiseVar, 1) {
		return fmt.Errorf("noise variance must be finite and not negative, found %g", m.NoiseVar)
	}
	if !(m.NoiseInformation >= 0) || math.IsInf(m.NoiseInformation, 1) {
		return fmt.Errorf("information on the noise must be finite and not negative, found %g", m.NoiseInformation)
	}
	return nil
}

// learner learns the model along a stream.
type learner struct {
	amp.Learning
	start Model // NaN where the first sample says where to start
}

// newLearner returns what learns p's parameters and the noise, or nil where nothing is to be
// learned, and the model without NaN. Only a model that the state can hold is learned.
func newLearner(p prior.Prior, g channel.Gain, opt *Options) (*learner, prior.Prior, channel.Gain, error) {
	free, learned := p.(prior.LearnedGaussBernoulli)
	if _, other := p.(prior.Learner); other && !learned {
		return nil, p, g, fmt.Errorf("a stream learns the parameters of a prior.LearnedGaussBernoulli, and no others: found a %T", p)
	}
	if !learned && !opt.LearnNoise {
		return nil, p, g, nil
	}
	if known, ok := p.(prior.GaussBernoulli); ok {
		free.GaussBernoulli = known
	} else if !learned {
		return nil, p, g, fmt.Errorf("a stream learns the noise beside a Gauss–Bernoulli prior, and no other: found a %T", p)
	}
	l := &learner{start: Model{Signal: free.GaussBernoulli, NoiseVar: g.NoiseVar}}
	l.Noise = opt.LearnNoise
	something := func(v *float64, learned bool) {
		if learned && math.IsNaN(*v) {
			*v = 1
		}
	}
	something(&free.Density, free.Learn&prior.Density != 0)
	something(&free.SignalMean, free.Learn&prior.SignalMean != 0)
	something(&free.SignalVar, free.Learn&prior.SignalVar != 0)
	something(&g.NoiseVar, opt.LearnNoise)
	return l, free, g, nil
}

// startModel takes up the model where the samples learned from have brought it.
// The k-th of them moves the prior by the fraction 2/(k+1) of the way to what it says
// itself: an average in which what the first ones got wrong fades. With
// forgetting it is no less than what is forgotten.
func (c *Calibrator) startModel() error {
	l := c.learner
	if l == nil {
		return nil
	}
	l.PastInformation = 0
	if m := c.state.Model; m != nil {
		c.setModel(*m)
		l.PastInformation = c.opt.nominalRetention() * m.NoiseInformation
	} else {
		guess, err := l.guess(c)
		if err != nil {
			return err
		}
		c.setModel(guess)
	}
	c.solver.Learn = &l.Learning
	if c.opt.Freeze {
		c.solver.Learn = nil
	}
	l.Step = max(2/float64(c.state.Samples+2), 1-c.opt.nominalRetention())
	return nil
}

// guess is where learning starts: what was given, or the moments of the sample.
func (l *learner) guess(c *Calibrator) (Model, error) {
	g := c.gain
	g.NoiseVar = l.start.NoiseVar
	signal, g, err := calamp.Guess(c.engine.W, mat.NewDense(c.m, 1, c.y), l.start.Signal, g)
	return Model{Signal: signal, NoiseVar: g.NoiseVar}, err
}

func (c *Calibrator) setModel(m Model) {
	free := c.engine.Prior.(prior.LearnedGaussBernoulli)
	free.GaussBernoulli = m.Signal
	c.engine.Prior = free
	c.gain.NoiseVar = m.NoiseVar
	c.engine.Channel, c.solver.Gain = c.gain, c.gain
}

// learned is the model as the present sample has moved it; nil where none is learned.
func (c *Calibrator) learned() *Model {
	if c.learner == nil {
		return nil
	}
	m := &Model{Signal: c.engine.Prior.(prior.LearnedGaussBernoulli).GaussBernoulli, NoiseVar: c.gain.NoiseVar}
	if c.learner.Noise {
		m.NoiseInformation = c.learner.PastInformation + c.learner.Information
	}
	return m
}
