package amp

import "github.com/calamp/calamp/channel"

// cooling adds noise to the channel of signals that W hardly distinguishes, and takes it away
// slowly, from as much as hides all in which the signals differ, so that no entry is
// decided upon before the gains can follow. A model that is learned is learned
// after that, and all is done once more. Not in the paper. One of four problems of TestJointWhereSignalsHaveMuchInCommon needs it: without, its error is 0.94 in place of 2e-4.
type cooling struct {
	Idle
	begins float64 // variance of the noise in the beginning
	rounds int     // how often it will be added again

	model channel.Channel // the channel without it
	since int             // iterations since it ended
	left  int             // rounds of the present run that are left
}

const (
	// coolingRate is the factor of the added noise in an iteration, coolest what it
	// falls to, relative to where it begins, before it is dropped. A model that is learned
	// has learnFor iterations to settle before it begins again.
	coolingRate = 0.95
	coolest     = 1e-4
	learnFor    = 60
)

func (c *cooling) Begin(s *Solver) {
	c.left, c.since = c.rounds, 0
	c.heat(s.State)
}

// End takes away what is left of the added noise.
func (c *cooling) End(s *Solver) { c.stop(s.State) }

func (c *cooling) heat(s *State) {
	c.model, s.Added, s.Provisional = s.model.Channel, c.begins, true
}

// Before takes away a little of the added noise, and in the end all of it. Until then
// no sensor is called broken: that is decided by what the noise hides.
func (c *cooling) Before(s *Solver) {
	switch c.since++; {
	case s.State.Added > 0:
		s.State.Added *= coolingRate
		c.since = 0
	case c.left > 0 && c.since > learnFor:
		c.left--
		c.heat(s.State)
	default:
		return
	}
	if s.State.Added < coolest*c.begins {
		c.stop(s.State)
		s.State.Provisional = c.left > 0
		return
	}
	working := channel.InOrder(c.model).(channel.Noisy)
	s.State.Adopt(Model{s.State.model.Prior, working.WithNoise(working.Noise() + s.State.Added)})
}

func (c *cooling) stop(s *State) {
	if s.Added > 0 {
		s.Added = 0
		s.Adopt(Model{s.model.Prior, c.model})
	}
}

// After keeps a run from ending before the channel is the problem's, and stays so.
func (c *cooling) After(s *Solver, _ *Line) Verdict {
	if s.State.Provisional {
		return Disturbed
	}
	return GoOn
}
