package amp

import (
	"context"
	"math"
	"runtime"
	"slices"

	"github.com/calamp/calamp/operator"
)

// Iteration is one step of message passing on a [State].
type Iteration interface {
	// Step does one iteration, keeping the fraction delta of the old state. The
	// error is that of a W which could not be read; the signals are then as they were.
	// Blocks of sensors heed State.interrupted.
	Step(delta float64) error

	// LogEvidence is the Bethe approximation of log p(Y|W): minus the Bethe free
	// energy of GAMP (Krzakala, Manoel, Tramel, Zdeborová, "Variational free
	// energies for compressed sensing", 2014; Rangan et al. 2016), with the output
	// part of this model. It is exact only in the large-size limit and at a fixed point.
	LogEvidence() float64

	// MeanV returns the mean variance of z, and the mean absolute covariance
	// between two signals' z at one sensor.
	MeanV() (v, off float64)

	// scaleSums adds Q and κ of the evidence along the scale.
	scaleSums(quadratic, volume float64) (q, v float64)

	// prepare is called before a run: it does what takes long and is done once. The error
	// is ctx's, or that of a W that cannot be read or decomposed.
	prepare(ctx context.Context) error

	// sweepsOver makes the sweeps over w that it needs, and use goes on with them.
	sweepsOver(w operator.Operator) (operator.Sweeps, error)
	use(s operator.Sweeps)

	state() *State
}

func (s *State) state() *State { return s }

// Solver runs an iteration, with its parts, until it settles. It is allocated once
// and can run often.
type Solver struct {
	State     *State
	Iteration Iteration
	Parts     []Part            // in the order in which they act
	Matrix    operator.Operator // what sweeps read: W, or W without its means

	Tol   float64 // as in solver.Settings: 0 is the default, negative never stops
	Reach float64 // with Tol 0: distance from the fixed point, in posterior standard deviations, that is near enough

	// Of the latest run.
	Iterations int
	Change     []float64 // P, last relative change of each signal
	Settled    []int     // P, consecutive iterations each signal met the tolerance
	Scale      float64   // product of all scale steps
	SweepScale float64   // product of those that the last sweep had seen
	Turn       float64   // sum of all phase steps, in radians
	SweepTurn  float64   // of those that the last sweep had seen

	limit        int    // of iterations
	latest       int    // iteration that was accepted last
	startDamping damper // that a run begins with
	damping      damper
	line         Line
	began        int       // iteration at which the run last began anew
	drift        float64   // of the global scale in the last step, taken back
	former       float64   // that of the step before
	counted      []float64 // P, moves of the latest iteration that count
	accepted     []float64 // Change of the latest accepted iteration
	approach     approach
}

// rows is the iteration of signals that belong together, nil where it is another; gaussian that of signals that are integrated out, and sites
// that of complex ones.
func (s *Solver) rows() *jointRows {
	switch e := s.Iteration.(type) {
	case *jointRows:
		return e
	case *jointVAMP:
		return e.jointRows
	}
	return nil
}

func (s *Solver) gaussian() *gaussian {
	g, _ := s.Iteration.(*gaussian)
	return g
}

func (s *Solver) sites() *complexSites {
	g, _ := s.Iteration.(*complexSites)
	return g
}

// Line is one accepted iteration.
type Line struct {
	Index   int     // from 1
	Change  float64 // largest relative change of a signal, damping accounted for
	Scale   float64 // factor of the scale step; 1 when none was taken
	Damping float64
}

// Outcome says how a run ended.
type Outcome uint8

const (
	AtLimit Outcome = iota // the iteration limit came first
	Converged
	Diverged // the last sane state is restored
	Cancelled
)

// Run iterates until every signal has settled, at most limit times, from the
// present state. The error is ctx's, or that of a W that cannot be read.
func (s *Solver) Run(ctx context.Context, limit int) (Outcome, error) {
	s.limit = limit
	s.State.ctx = ctx
	defer func() { s.State.ctx = nil }()
	if err := s.Iteration.prepare(ctx); err != nil {
		return Cancelled, err
	}
	s.begin()
	defer s.end()
	for t := 1; t <= s.limit; t++ {
		if err := ctx.Err(); err != nil {
			return Cancelled, err
		}
		s.Iterations = t
		for _, p := range s.Parts {
			p.Before(s)
		}
		s.State.Save()
		line := &s.line
		*line = Line{Index: t, Scale: 1, Damping: s.damping.delta(t)}
		err := s.Iteration.Step(line.Damping)
		if err == nil {
			err = ctx.Err() // it is not whole, see State.interrupted
		}
		if err != nil {
			s.State.Restore()
			return Cancelled, err
		}
		s.former, s.drift = s.drift, 0
		s.measure(line)
		switch s.examine(line) {
		case begunAnew:
			continue
		case refused:
			s.State.Restore()
			continue
		case blownUp:
			s.State.Restore()
			copy(s.Change, s.accepted)
			return Diverged, nil
		}
		if s.settle(s.after(line)) {
			return Converged, nil
		}
	}
	return AtLimit, nil
}

func (s *Solver) begin() {
	s.damping.begin(s.startDamping)
	clear(s.Settled)
	clear(s.Change)
	clear(s.accepted)
	s.approach.forget()
	s.Scale, s.SweepScale, s.Iterations, s.latest, s.began, s.drift, s.former = 1, 1, 0, 0, 0, 0, 0
	s.Turn, s.SweepTurn = 0, 0
	for k := range s.State.Left {
		s.State.Left[k] = math.Inf(1)
	}
	for _, p := range s.Parts {
		p.Begin(s)
	}
}

func (s *Solver) end() {
	for _, p := range s.Parts {
		p.End(s)
	}
}

// after lets all parts act on an accepted step.
func (s *Solver) after(l *Line) Verdict {
	s.SweepScale, s.SweepTurn, s.latest = s.Scale, s.Turn, l.Index
	verdict := GoOn
	for _, p := range s.Parts {
		verdict = max(verdict, p.After(s, l))
	}
	copy(s.accepted, s.Change)
	return verdict
}

// Report makes error bars those that are reported: [State.Placement] is set, and parts mend what they know to be wrong. Nothing can be run
// from this state.
func (s *Solver) Report() {
	s.State.Placement = s.placeScale()
	for _, p := range s.Parts {
		p.Report(s)
	}
}

// Singular are the min(M, N) singular values of W, with its rows scaled to norm 1, where vector AMP
// has found them; nil elsewhere.
func (s *Solver) Singular() []float64 {
	v := s.vector()
	if v == nil || v.lmmse.norms == nil {
		return nil
	}
	return v.linear.singular()
}

// vector is the iteration where it is vector AMP, with or without what signals have in common.
func (s *Solver) vector() *vamp {
	switch v := s.Iteration.(type) {
	case *vamp:
		return v
	case *vampCommon:
		return v.vamp
	}
	return nil
}

// Uncertainty is the relative standard error of the precisions of vector AMP, where they are estimates.
func (s *Solver) Uncertainty() float64 {
	v := s.vector()
	if v == nil || v.lmmse.norms == nil {
		return 0
	}
	return v.linear.uncertainty()
}

// Part returns the part of type T that goes along, if any.
func PartOf[T Part](s *Solver) (part T, ok bool) {
	i := slices.IndexFunc(s.Parts, func(p Part) bool { _, is := p.(T); return is })
	if i < 0 {
		return part, false
	}
	return s.Parts[i].(T), true
}

// Threads is the number of goroutines for an iteration of work
// multiplications, when the user asked for requested (0: choose). Below about
// a million an iteration takes some tens of microseconds, no longer than a
// second core takes to come to help when it has slept.
func Threads(requested, work int) int {
	if requested > 0 {
		return requested
	}
	if work < 1<<20 {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}
