package amp

import "github.com/calamp/calamp/channel"

// faults re-estimates, after every iteration, what is not given of the broken
// sensors: their rate and the variance of their readings.
type faults struct {
	Idle
	given channel.Contaminated
}

func (p *faults) Begin(s *Solver) { p.relearn(s.State, nil) }

func (p *faults) After(s *Solver, _ *Line) Verdict {
	p.relearn(s.State, s.State.Broken)
	return GoOn
}

// relearn takes the probability of each sensor to be broken; nil before the first
// iteration. While noise is added to the channel no sensor is called broken: that is
// decided by what the noise hides.
func (p *faults) relearn(s *State, broken []float64) {
	now, ok := s.model.Channel.(channel.Contaminated)
	if !ok {
		return
	}
	f := p.given.WithInOrder(now.InOrder()).(channel.Contaminated)
	s.Adopt(Model{s.model.Prior, f.Learned(broken, s.Y, s.Each)})
}
