package amp

import "math"

const (
	// SettledFor is how many iterations in a row a signal must change little:
	// one small change can be the turning point of an oscillation.
	SettledFor = 3

	// posteriorTolerance is the change, in posterior standard deviations, that
	// no user can tell from none, however slowly the iteration converges.
	posteriorTolerance = 1e-6

	// DefaultReach is the distance that no user can tell from none, for an
	// iteration whose pace shows how far it has to go; single entries may be
	// ten times as far away.
	DefaultReach = 1e-5

	// defaultTol is the relative change that ends a run unless said otherwise.
	defaultTol = 1e-10
)

// settle reports whether the run may end: every signal has changed little for long
// enough, and no part has anything left to do.
func (s *Solver) settle(verdict Verdict) bool {
	if verdict == Disturbed {
		clear(s.Settled)
		s.approach.forget()
		return false
	}
	settled := s.count() && verdict == GoOn
	if settled {
		for _, p := range s.Parts {
			verdict = max(verdict, p.AtFixedPoint(s))
		}
		settled = verdict == GoOn
	}
	if verdict >= Anew {
		clear(s.Settled)
	}
	if verdict == Disturbed {
		s.approach.forget()
	}
	return settled
}

// count counts for how long each signal has changed little, and reports whether
// all have for long enough.
func (s *Solver) count() bool {
	all := true
	for k := range s.State.Moved {
		moved := s.moved(k)
		s.counted[k] = moved
		limit := s.Tolerance() * s.State.Norm[k]
		near := false
		if s.Tol == 0 {
			sd := math.Sqrt(s.State.SumC[k])
			limit = max(limit, posteriorTolerance*sd)
			near = s.approach.left(k, moved) <= s.Reach*sd || s.State.Left[k] <= s.Reach*sd
		}
		if moved <= limit || near {
			s.Settled[k]++
		} else {
			s.Settled[k] = 0
		}
		all = all && s.Settled[k] >= SettledFor
	}
	s.approach.add(s.counted)
	return all
}

// moved is the change of signal k in the last step that counts: without what was
// only a change of a scale that is free.
func (s *Solver) moved(k int) float64 {
	moved := s.State.Moved[k]
	if s.drift == 0 {
		return moved
	}
	norm := s.drift * s.State.Norm[k]
	return math.Sqrt(max(0, moved*moved-norm*(2*s.State.Along[k]-norm)))
}

// measure sets the relative change of every signal, and the largest of them.
func (s *Solver) measure(l *Line) {
	l.Change = 0
	for k := range s.State.Moved {
		s.Change[k] = s.moved(k) / max(s.State.Norm[k], math.SmallestNonzeroFloat64)
		if !(s.Change[k] <= l.Change) { // keeps a NaN
			l.Change = s.Change[k]
		}
	}
}

// Tolerance is the relative change below which a signal has converged.
func (s *Solver) Tolerance() float64 {
	if s.Tol == 0 {
		return defaultTol
	}
	return s.Tol
}

// approach knows how the latest iterations moved the signals, and how far from the
// end of their way they are: moves that shrink by q each leave m/(1-q) to go.
type approach struct {
	moves [paceOver][]float64 // of the latest iterations, in a ring
	count int
}

// paceOver is the number of iterations over which q is measured: moves differ
// from one iteration to the next.
const paceOver = 4

func newApproach(signals int) approach {
	var a approach
	for i := range a.moves {
		a.moves[i] = make([]float64, signals)
	}
	return a
}

// forget is for when the problem has changed.
func (a *approach) forget() { a.count = 0 }

// left estimates how far signal k still is from its fixed point, when this
// iteration moves it by moved: +Inf where it does not come nearer.
func (a *approach) left(k int, moved float64) float64 {
	if a.count < paceOver {
		return math.Inf(1)
	}
	q := math.Sqrt(math.Sqrt(moved / a.moves[a.count%paceOver][k]))
	if !(q < 1) {
		return math.Inf(1)
	}
	return moved / (1 - q)
}

// add keeps the moves of an iteration.
func (a *approach) add(moved []float64) {
	copy(a.moves[a.count%paceOver], moved)
	a.count++
}
