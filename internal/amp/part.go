package amp

// Part is something that goes along with an iteration: it looks at every step, may
// move the estimates or the model, and says whether the run must settle anew.
// [Idle] has all its methods, and does nothing.
type Part interface {
	// Begin is called before the first iteration of a run, and End after the last.
	Begin(s *Solver)
	End(s *Solver)

	// Before is called before an iteration, After when its step was accepted.
	Before(s *Solver)
	After(s *Solver, l *Line) Verdict

	// AtFixedPoint is called when every signal has settled, before the run ends.
	AtFixedPoint(s *Solver) Verdict

	// Report is called once after a run whose result will be reported: error bars
	// that the iteration knows to be wrong are mended here.
	Report(s *Solver)
}

// Verdict is what a part says of a run. The strongest of all parts counts.
type Verdict uint8

const (
	GoOn       Verdict = iota // as far as this part is concerned, the run may end
	Unfinished                // the run may not end yet
	Anew                      // what was changed is small: signals must settle anew
	Disturbed                 // the problem has changed: the pace of the way so far means nothing
)

// Idle is a [Part] that does nothing, for others to embed.
type Idle struct{}

// Begin implements [Part].
func (Idle) Begin(*Solver) {}

// End implements [Part].
func (Idle) End(*Solver) {}

// Before implements [Part].
func (Idle) Before(*Solver) {}

// After implements [Part].
func (Idle) After(*Solver, *Line) Verdict { return GoOn }

// AtFixedPoint implements [Part].
func (Idle) AtFixedPoint(*Solver) Verdict { return GoOn }

// Report implements [Part].
func (Idle) Report(*Solver) {}
