package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

const (
	// Early estimates are too poor to place the scale.
	firstScaleStep = 6
	scaleStepEvery = 5

	// scaleTolerance is how far from where it belongs the scale may be when a run
	// ends, relative to the width of its evidence.
	scaleTolerance = 1e-3

	// jitter is how many times the rounding of a slope the steps of a converged scale may come from. Streams of fifty samples at a
	// noise of 10⁻¹⁴ have it up to ten times, some hundredths of a width, and waited for a smaller one by chance.
	jitter = 12
)

// scaleStep moves all estimates along the global scale to the maximum of the
// evidence, every few iterations (see [scaleEvidence]).
//
// In a stream the step is taken jointly over all samples absorbed so far: a factor
// c that brings this sample's x̂ and ω to the maximum of the evidence belongs to the
// earlier samples' as well, since one scale is common to all. Their ω enter the
// posterior of s through B alone, and the scale's evidence through Q and S. So c
// multiplies x̂, ω and the inherited B, and c² the inherited Q and S. Rescaling the
// present sample alone would freeze the scale error of the first samples into B
// for ever. Not in the paper.
type scaleStep struct {
	Idle
	next   int
	placed bool // is the global scale where it belongs?
	off    bool // from some iteration on: the scale is free
	atPeak bool // and stays there when the result is reported

	leastNoise bool // is in the place of what was given, and residuals are none of it
}

func (p *scaleStep) Begin(*Solver) { p.next, p.placed, p.off = 0, false, false }

func (p *scaleStep) After(s *Solver, l *Line) Verdict {
	if p.off {
		return GoOn
	}
	if l.Index >= max(p.next, s.began+firstScaleStep) {
		p.next = l.Index + scaleStepEvery
		e := alongScale(s.Iteration)
		var width float64
		l.Scale, width = e.argmax()
		s.State.rescale(l.Scale)
		s.Scale *= l.Scale
		shift := math.Abs(l.Scale - 1)
		p.placed = shift <= max(s.Tolerance(), scaleTolerance*width, jitter*e.rounding()*width*width) || s.movesNothing(shift)
	}
	if !p.placed {
		return Unfinished
	}
	return GoOn
}

// movesNothing reports whether a relative shift of the signals is lost in their
// error bars: where estimates are all but zero the scale has nothing to hold on to.
func (s *Solver) movesNothing(shift float64) bool {
	for k, norm := range s.State.Norm {
		if shift*norm > posteriorTolerance*math.Sqrt(s.State.SumC[k]) {
			return false
		}
	}
	return true
}

// driftBelow is the change below which estimates no longer grow from nothing.
const driftBelow = 1e-2

// freeScale takes back what a step changed of the global scale alone, where that is
// a convention. Early on, where the estimates grow from nothing, it is none. What is learned of the prior's scale goes along: estimates would else be
// held away from where the prior pulls them, and it would learn from fields that say so. It does not where gains have a distribution with a middle, which
// pulls back: without a prior that stays, random-convolution 0 of bench/field drifts on by 10⁻⁵ in every step, and takes 252 for 127.
type freeScale struct{ Idle }

func (freeScale) After(s *Solver, l *Line) Verdict {
	s.drift = 0
	if l.Change <= driftBelow {
		var along, square float64
		for k, norm := range s.State.Norm {
			along += s.State.Along[k] * norm
			square += norm * norm
		}
		if square > 0 {
			s.drift = along / square
			c := 1 - s.drift*(1-l.Damping)
			s.State.rescale(c)
			s.State.rescaleSlab(c)
		}
	}
	s.measure(l)
	return GoOn
}

// rescaleSlab multiplies entries that are not zero by c in the prior, where their mean and variance are both learned, gains are as likely anywhere in their range, and the scale is said
// by the mean rather than by the spread.
func (s *State) rescaleSlab(c float64) {
	const scale = prior.SignalMean | prior.SignalVar
	p, ok := s.model.Prior.(prior.Slabbed)
	if _, _, middle := channel.NormalOf(s.calibration); !ok || middle || p.Learned()&scale != scale {
		return
	}
	mean, variance := p.Slab()
	if mean*mean < variance {
		return
	}
	s.Adopt(Model{p.WithSlab(c*mean, c*c*variance), s.model.Channel})
}
