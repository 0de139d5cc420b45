package amp

import (
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/solver"
)

// mostFamilies is how often a run may change its mind on how gains are distributed.
const mostFamilies = 3

// family learns, where the distribution of s is learned, of which kind it is: it begins as a uniform one,
// in which early estimates are held best, and at the first fixed point of the run the sensors show which holds.
type family struct {
	Idle
	asked solver.SPrior
	count int // of changes
	at    int // iteration of the latest look
}

// Begin implements [Part].
func (p *family) Begin(*Solver) { p.count, p.at = 0, 0 }

// After implements [Part]: a run that does not converge is looked at all the same.
func (p *family) After(s *Solver, l *Line) Verdict {
	if p.count > 0 || l.Index < testedAt || l.Index%testEvery != 0 {
		return GoOn
	}
	return p.look(s)
}

// AtFixedPoint implements [Part].
func (p *family) AtFixedPoint(s *Solver) Verdict { return p.look(s) }

func (p *family) look(s *Solver) Verdict {
	e := s.State
	now := e.calibration.(channel.Families)
	if p.count == mostFamilies || p.at == s.Iterations {
		return GoOn
	}
	p.at = s.Iterations
	var next channel.Families
	switch omit := e.strangers(); p.asked {
	case solver.NormalS:
		next = now.As(channel.NormalFamily, e.Stats, omit)
	case solver.LogNormalS:
		next = now.As(channel.LogNormalFamily, e.Stats, omit)
	default:
		next = now.Likeliest(e.Stats, omit)
	}
	if next.Family() == now.Family() {
		return GoOn
	}
	p.count++
	c := 1.0
	if e.ScaleLearned { // what stands for the gains stays where it was
		c = channel.Middle(now) / channel.Middle(next)
	}
	e.rescale(c)
	e.adoptCalibration(next.Scaled(c))
	s.damping.jumped()
	s.damping.stay()
	return Disturbed
}
