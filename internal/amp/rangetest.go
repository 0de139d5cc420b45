package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/solver"
)

const (
	// testedAt is the iteration from which on a run that has not converged is tested all
	// the same, every testEvery iterations: a range that is wrong may be what keeps it from
	// resting.
	testedAt  = 100
	testEvery = 50

	// learnAtMost is for how many iterations the distribution of s is learned.
	learnAtMost = 200

	// Contradicted is the logarithm of a likelihood ratio above which a given range is
	// rejected. Gains that fill it exceed that once in two thousand runs
	// (see [channel.GainPrior.Contradiction]).
	Contradicted = 10

	// leastDoubt is the least probability that a range which was given merely contains the
	// gains: blurred gains that are spread in some way may look as if they filled it. Where
	// each is known well the bounds hold the scale as well as their distribution does.
	leastDoubt = 0.02

	// NearRange is how far outside the range, relative to its width, gains may be for the
	// range to be too narrow, rather than the sensors broken.
	NearRange = 0.5
)

// RangeTest looks, at the first fixed point of a run whether the gains fill the range that
// was given, and learns their distribution where they do not: "independent and uniform
// between a and b" puts the common scale where the largest gain touches its end, and
// who only knows that gains lie somewhere in there does not mean that.
type RangeTest struct {
	Idle
	Given    channel.Bounded
	Rejected bool    // the distribution of s is learned
	LogRatio float64 // how much likelier another distribution is, once tested
	odds     float64 // and others on average, both logarithms

	since    int  // iteration at which it was rejected
	learned  bool // and is no longer learned
	insist   bool // on learning, whatever the test says
	asked    solver.SPrior
	tested   bool // at a fixed point
	learning Learning
}

// Begin implements [Part].
func (p *RangeTest) Begin(*Solver) {
	p.tested, p.Rejected, p.learned, p.LogRatio = false, false, false, 0
}

// After implements [Part]. With a distribution that is learned the scale is a
// convention until the end (see [Solver.Report]).
func (p *RangeTest) After(s *Solver, l *Line) Verdict {
	switch {
	case p.Rejected && !p.learned:
		return p.learn(s, l)
	case p.Rejected:
		return GoOn
	}
	if p.tested || l.Index < testedAt || l.Index%testEvery != 0 || s.State.phasesOpen() {
		return GoOn
	}
	if r, ok := PartOf[*release](s); ok && r.count == 0 && r.try(s) {
		return Disturbed // the test waits for what that changes
	}
	return p.test(s)
}

// learn moves the distribution of s, and takes back what a step changed of the scale alone.
// Where that goes on for too long, since the one keeps moving the other a little, the run
// ends with the distribution as it then is, and the scale where that holds it.
func (p *RangeTest) learn(s *Solver, l *Line) Verdict {
	if p.learned = l.Index >= p.since+learnAtMost; p.learned {
		if step, ok := PartOf[*scaleStep](s); ok {
			step.off, step.placed = false, false
		}
		return Disturbed
	}
	if s.State.scaleOfNetwork() { // which is no convention
		return p.learning.After(s, l)
	}
	return max(freeScale{}.After(s, l), p.learning.After(s, l))
}

// AtFixedPoint implements [Part].
func (p *RangeTest) AtFixedPoint(s *Solver) Verdict {
	if r, ok := PartOf[*release](s); p.tested || p.Rejected || ok && r.at == s.Iterations {
		return GoOn
	}
	p.tested = true
	return p.test(s)
}

func (p *RangeTest) test(s *Solver) Verdict {
	e := s.State
	strange := e.strangers()
	if p.LogRatio, p.odds = p.Given.Contradiction(e.Stats, strange); !p.insist && !(p.LogRatio > Contradicted) {
		return GoOn
	}
	p.Rejected, p.since = true, s.Iterations
	if step, ok := PartOf[*scaleStep](s); ok {
		step.off = true
	}
	e.adoptCalibration(Within(p.Given, p.asked, e.Stats, strange))
	p.learning = Learning{Calibration: true}
	p.learning.Begin(s)
	s.damping.jumped()
	s.damping.stay() // as for every model that is learned
	return Disturbed
}

// Within is the distribution that is learned in the place of a given range: of the kind that is asked
// for, or the likelier. An outlying sensor is one that the given range holds, and the rest of what was learned does not.
func Within(given channel.Bounded, asked solver.SPrior, stats []float64, omit []bool) channel.Learnable {
	next := given.Within(stats, omit)
	if kinds, ok := next.(channel.Families); ok && kinds.Family() != channel.UniformFamily {
		switch asked {
		case solver.LogNormalS:
			next = kinds.As(channel.LogNormalFamily, stats, omit)
		case solver.AutoS:
			if other := kinds.Likeliest(stats, omit); other.Family() == channel.LogNormalFamily {
				next = other
			}
		}
	}
	return next
}

// Doubt is the probability that a given range which was not rejected merely contains the gains,
// where the one was beforehand as likely as the other, from the second result of
// [channel.Bounded.Contradiction]. Then the bounds, and what the signals say, are all that holds
// the scale.
func Doubt(odds float64) float64 { return max(leastDoubt, 1/(1+math.Exp(-odds))) }

// strangers says which sensors say nothing of the others' gains: broken ones. But one
// whose readings some gain near the range explains may have been called broken because
// the range is too narrow.
func (s *State) strangers() []bool {
	lo, hi := s.calibration.Range()
	margin := NearRange * (hi - lo)
	omit := s.outOfOrder()
	for mu, broken := range omit {
		if broken && s.Consistent(mu) {
			fit := s.calibration.Fit(s.Of(s.Stats, mu))
			omit[mu] = fit < lo-margin || fit > hi+margin
		}
	}
	return omit
}
