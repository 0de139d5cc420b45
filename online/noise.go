package online

import (
	"fmt"
	"math"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

// A noise variance that was given is kept until samples contradict it: then a fork learns it
// (see [Hypothesis]), and where that fork takes the stream over, the noise is learned from
// there on. Else a stream whose noise grows would reject every sample for ever.

// mayFree reports whether the noise variance was given and could be learned.
func (c *solvers) mayFree() bool {
	g := c.asGiven.solver.State.Model().Channel
	_, noisy := g.(channel.Noisy)
	_, own := channel.DetectorOf(g)
	return noisy && !own && !c.opt.LearnNoise && c.opt.NoiseVar == nil
}

// frees reports whether the noise of a state was given, and is learned all the same.
func (c *solvers) frees(s *State) bool {
	return s.Model != nil && s.Model.NoiseInformation > 0 && c.mayFree()
}

// choose makes samples be solved as given, or with the noise learned. Where that cannot be
// made they are solved as given.
func (c *solvers) choose(learnNoise bool) {
	if learnNoise && c.freed == nil {
		if c.freed, _ = c.newEngine(true); c.freed != nil {
			c.freed.learner.start.NoiseVar = math.NaN() // the sample says where to start
		}
	}
	if learnNoise && c.freed != nil {
		c.run(c.freed)
		return
	}
	c.run(c.asGiven)
}

// grown reports whether the noise is found larger than it was given, and by enough to
// have contradicted samples: less noise contradicts none.
func (c *Calibrator) grown() bool {
	m := c.state.Model
	return m != nil && m.NoiseVar > changedBy*c.givenModel().NoiseVar
}

// givenModel is the model as it was given, as far as it was.
func (c *solvers) givenModel() *Model {
	return modelOf(c.asGiven.solver.State.Model())
}

// modelOf is the noise of a model, and the parameters of its prior where that has any.
func modelOf(of amp.Model) *Model {
	m := &Model{NoiseVar: channel.NoiseOf(of.Channel)}
	if p, ok := of.Prior.(prior.Parametric); ok {
		m.Values = p.Values()
	}
	return m
}

// doubtsNoise is the warning that the noise variance that was given does not hold.
func (c *Calibrator) doubtsNoise(p *Posterior) {
	if c.frees(&c.state) && p.Model != nil {
		columns := float64(c.parts)
		given := columns * c.givenModel().NoiseVar * p.Factor * p.Factor
		p.Warnings = append(p.Warnings, calamp.Warning{
			Code:    calamp.NoiseContradicted,
			Message: fmt.Sprintf("the given noise variance, %.3g, does not explain the readings: it is learned as %.3g", given, columns*p.Model.NoiseVar),
		})
	}
}
