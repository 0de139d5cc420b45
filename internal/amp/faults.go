package amp

import "github.com/calamp/calamp/channel"

// faults re-estimates, after every iteration, what is not given of the broken
// sensors: their rate and the variance of their readings.
type faults struct {
	Idle
	given channel.Faulty
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
	f, ok := s.model.Channel.(channel.Faulty) // whose two parameters these are
	if !ok {
		return
	}
	f.Rate, f.Var = p.given.Rate, p.given.Var
	s.Adopt(Model{s.model.Prior, f.Learned(broken, s.Y, s.P)})
}
