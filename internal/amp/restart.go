package amp

import "github.com/calamp/calamp/prior"

const (
	// lostPower is the power of the estimates, relative to what the model
	// expects, that no run comes back from.
	lostPower = 100

	// blowUp is a growth of the estimates between two iterations that no
	// convergent run shows.
	blowUp = 1e6
)

// examination is what becomes of a step.
type examination uint8

const (
	accepted  examination = iota
	refused               // taken back: the damping was raised
	begunAnew             // the estimates were lost, and are those of the start
	blownUp               // no number can be trusted
)

// examine decides whether a step is taken. The damper looks at how the change and
// the residuals grow, and begins the run anew where the estimates are lost.
func (s *Solver) examine(l *Line) examination {
	switch {
	case s.damping.mayRestart() && s.lost() && s.damping.restart():
		s.State.Reset()
		s.Scale, s.began = 1, l.Index
		s.approach.forget()
		clear(s.Settled)
		return begunAnew
	case s.damping.reject(s.headway(l), s.State.Misfit()):
		return refused
	case !(l.Change <= blowUp) || !s.State.finite():
		return blownUp
	}
	return accepted
}

// headway is the change that the damper looks at.
func (s *Solver) headway(l *Line) float64 {
	d, is := s.damping.(*Damper)
	if !is || !d.beyondDrift || s.former == 0 {
		return l.Change
	}
	beyond := *l
	s.drift = s.former
	s.measure(&beyond)
	s.drift = 0
	s.measure(l)
	return beyond.Change
}

// lost reports whether the estimates have blown up without a way back: they have
// far more power than the model gives any signal.
func (s *Solver) lost() bool {
	power := 0.0
	for _, norm := range s.State.Norm {
		power += norm * norm
	}
	return power > lostPower*float64(len(s.State.X))*prior.Square(s.State.model.Prior)
}
