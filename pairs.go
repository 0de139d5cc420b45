package calamp

import (
	"errors"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/solver"
)

// paired are the options of a problem whose sensors of complex gain are read two at a time: signals are integrated out, since message passing has a gain of its own for every row.
func (p *Problem) paired(opt *Options) (*Options, error) {
	if p == nil || p.Channel == nil {
		return opt, nil
	}
	gain, complex := channel.InOrder(p.Channel).(channel.ComplexGain)
	if !complex || gain.Prior.Pairs == nil {
		return opt, nil
	}
	_, anchored := opt.Anchor.PhaseSensor()
	switch {
	case anchored:
		return nil, errors.New("two sensors a row of complex gain, and an anchor of a phase: pairs leave no phase of rows open, and phases of sensors are those beside sensor 0")
	case p.Phases != nil:
		return nil, errors.New("two sensors a row of complex gain, and nominal phases of rows: those of sensors cannot be given")
	case opt.Algorithm != solver.AutoAlgorithm && opt.Algorithm != solver.Evidence:
		return nil, errors.New("two sensors a row of complex gain: signals are integrated out, which message passing does not")
	}
	own := *opt
	own.Algorithm, own.Learn.PhasesOrFree = solver.Evidence, false
	return &own, nil
}
