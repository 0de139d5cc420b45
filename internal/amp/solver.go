package amp

import (
	"context"
	"math"
	"runtime"

	"github.com/calamp/calamp/channel"
)

// Iteration is what diagonal and full-covariance engines have in common.
type Iteration interface {
	// Step does one iteration, keeping the fraction delta of the old state.
	Step(delta float64)
	// ScaleStep moves along the global scale by the factor it returns; width
	// is the evidence's.
	ScaleStep(gain channel.Gain) (c, width float64)
	// ScaleSD is the standard deviation of the scale's logarithm.
	ScaleSD(gain channel.Gain) float64
	// Save keeps the state, Restore returns to what was kept.
	Save()
	Restore()
}

// Solver runs an iteration until it settles: damping, scale steps and stop
// rule are the same offline and online. It is allocated once and can run often.
type Solver struct {
	Tol        float64 // as in calamp.Options: 0 is the default, negative never stops
	Reach      float64 // with Tol 0: distance from the fixed point, in posterior standard deviations, that is near enough
	Damping    Damper  // as it is at the start of a run
	Gain       channel.Gain
	ScaleSteps bool // take them; needs Gain

	// ScaleFree says that the global scale is a convention, so that what only
	// changes a signal's scale does not count as a change.
	ScaleFree bool

	// Learn, or nil, re-fits the model between iterations.
	Learn *Learning

	// Joint, or nil, helps where signals look alike.
	Joint *Joint

	// Each, or nil, is called after every accepted iteration. It returns true
	// when it has changed the problem, so that the run must settle anew.
	Each func(Line) (disturbed bool)

	// Of the latest run.
	Iterations int
	Change     []float64 // P, last relative change of each signal
	Settled    []int     // P, consecutive iterations each signal met the tolerance
	Scale      float64   // product of all scale steps
	SweepScale float64   // product of those that the last sweep had seen

	drift    float64 // of the global scale in the last step, taken back
	step     Iteration
	engine   *Engine
	counted  []float64 // P, moves of the latest iteration that count
	accepted []float64 // Change of the latest accepted iteration
	approach approach
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

// NewSolver runs step, whose state is in engine.
func NewSolver(step Iteration, engine *Engine) *Solver {
	return &Solver{
		Reach: DefaultReach,
		step:  step, engine: engine, approach: newApproach(engine.P),
		Change: make([]float64, engine.P), Settled: make([]int, engine.P),
		accepted: make([]float64, engine.P), counted: make([]float64, engine.P),
	}
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

// Schedule of the scale step: early estimates are too poor to place the scale.
const (
	firstScaleStep = 6
	scaleStepEvery = 5

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

	// scaleTolerance is the same for the global scale.
	scaleTolerance = 1e-3

	// defaultTol is the relative change that ends a run unless said otherwise.
	defaultTol = 1e-10

	// driftBelow is the change below which estimates no longer grow from nothing.
	driftBelow = 1e-2

	// lostPower is the power of the estimates, relative to what the model
	// expects, that no run comes back from.
	lostPower = 100

	// blowUp is a growth of the estimates between two iterations that no
	// convergent run shows.
	blowUp = 1e6
)

// Run iterates until every signal has settled, at most limit times, from the
// engine's present state. The error is ctx's, or that of a W that cannot be read.
func (s *Solver) Run(ctx context.Context, limit int) (Outcome, error) {
	damping := s.Damping
	clear(s.Settled)
	clear(s.Change)
	clear(s.accepted)
	s.approach.forget()
	s.Scale, s.SweepScale, s.Iterations = 1, 1, 0
	if s.Learn != nil {
		s.Learn.start(s.engine)
	}
	s.engine.begin(s.Tol >= 0)
	if s.Joint != nil {
		s.Joint.start()
		defer s.Joint.stop()
	}
	placed := !s.ScaleSteps // is the global scale where it belongs?
	nextScale := firstScaleStep
	for t := 1; t <= limit; t++ {
		if err := ctx.Err(); err != nil {
			return Cancelled, err
		}
		s.Iterations = t
		if s.Joint != nil {
			s.Joint.cool()
			s.Gain = s.Joint.gain()
		}
		s.step.Save()
		line := Line{Index: t, Scale: 1, Damping: damping.delta(t)}
		s.step.Step(line.Damping)
		if err := s.engine.Err; err != nil {
			s.step.Restore()
			return Cancelled, err
		}
		s.drift = 0
		line.Change = s.measureChange()
		if s.lost() && damping.restart() {
			s.engine.Reset()
			s.Scale = 1
			s.approach.forget()
			clear(s.Settled)
			nextScale = t + firstScaleStep
			continue
		}
		if damping.reject(line.Change, s.engine.Misfit()) {
			s.step.Restore()
			continue
		}
		if !s.finite(line.Change) {
			s.step.Restore()
			copy(s.Change, s.accepted)
			return Diverged, nil
		}
		s.holdScale(line.Change)
		line.Change = s.measureChange()
		copy(s.accepted, s.Change)
		s.SweepScale = s.Scale
		if s.ScaleSteps && t >= nextScale {
			nextScale = t + scaleStepEvery
			var width float64
			line.Scale, width = s.step.ScaleStep(s.Gain)
			s.Scale *= line.Scale
			shift := math.Abs(line.Scale - 1)
			placed = shift <= max(s.Tolerance(), scaleTolerance*width) || s.movesNothing(shift)
		}
		disturbed := s.Each != nil && s.Each(line)
		if s.Joint != nil && s.Joint.due(t) {
			s.moveJointly(line.Change)
			if damping.jumped(); !s.Joint.cold() {
				damping = s.Damping // what is hidden by added noise cannot swing
			}
		}
		if s.learn(t) || disturbed || s.Joint != nil && !s.Joint.last() {
			clear(s.Settled)
			s.approach.forget()
			continue
		}
		settled := s.settle() && placed
		switch {
		case s.engine.roundedNow() && (settled || s.engine.roundingMatters(line.Change)):
			s.engine.finish()
			clear(s.Settled)
		case settled:
			return Converged, nil
		}
	}
	return AtLimit, nil
}

// moveJointly is a step of Joint, with shifts where the iteration and the model
// have come to rest.
func (s *Solver) moveJointly(change float64) {
	s.Joint.step(s.Joint.last() && change < shiftBelow && (s.Learn == nil || s.Learn.moved < 1))
}

// learn re-fits the model when it is time, and reports whether it moved.
func (s *Solver) learn(t int) bool {
	if s.Learn == nil || t < firstRefit || t%refitEvery != 0 || s.Joint != nil && !s.Joint.cold() {
		return false
	}
	change := s.Learn.refit(s.engine, t)
	if gain, ok := channel.Unwrap(s.engine.Channel).(channel.Gain); ok {
		s.Gain = gain
	}
	return change > modelTolerance
}

// movesNothing reports whether a relative shift of the signals is lost in their
// error bars: where estimates are all but zero the scale has nothing to hold on to.
func (s *Solver) movesNothing(shift float64) bool {
	for k, norm := range s.engine.Norm {
		if shift*norm > posteriorTolerance*math.Sqrt(s.engine.SumC[k]) {
			return false
		}
	}
	return true
}

// holdScale takes back what a step changed of the global scale alone, when that is free.
// Early on, where the estimates grow from nothing, it is not.
func (s *Solver) holdScale(change float64) {
	s.drift = 0
	if !s.ScaleFree || change > driftBelow {
		return
	}
	e := s.engine
	var along, square float64
	for k, norm := range e.Norm {
		along += e.Along[k] * norm
		square += norm * norm
	}
	if square > 0 {
		s.drift = along / square
		e.rescale(1 - s.drift*(1-e.delta))
	}
}

// moved is the change of signal k in the last step that counts.
func (s *Solver) moved(k int) float64 {
	e := s.engine
	moved := e.Moved[k]
	if s.drift == 0 {
		return moved
	}
	norm := s.drift * e.Norm[k]
	return math.Sqrt(max(0, moved*moved-norm*(2*e.Along[k]-norm)))
}

// measureChange returns the largest relative change of a signal.
func (s *Solver) measureChange() float64 {
	worst := 0.0
	for k := range s.engine.Moved {
		s.Change[k] = s.moved(k) / max(s.engine.Norm[k], math.SmallestNonzeroFloat64)
		if !(s.Change[k] <= worst) { // keeps a NaN
			worst = s.Change[k]
		}
	}
	return worst
}

// Tolerance is the relative change below which a signal has converged.
func (s *Solver) Tolerance() float64 {
	if s.Tol == 0 {
		return defaultTol
	}
	return s.Tol
}

// settle counts for how long each signal has changed little, and reports
// whether all have for long enough.
func (s *Solver) settle() bool {
	all := true
	for k := range s.engine.Moved {
		moved := s.moved(k)
		s.counted[k] = moved
		limit := s.Tolerance() * s.engine.Norm[k]
		near := false
		if s.Tol == 0 {
			sd := math.Sqrt(s.engine.SumC[k])
			limit = max(limit, posteriorTolerance*sd)
			near = s.approach.left(k, moved) <= s.Reach*sd || s.Joint != nil && s.Joint.moved[k] <= s.Reach*sd
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

// lost reports whether the estimates have blown up without a way back: they have
// far more power than the model gives any signal. A model that is learned moves
// with them, a stream has a past that moved, too, and full covariances have
// more state than [Engine.Reset] knows.
func (s *Solver) lost() bool {
	e := s.engine
	if s.step != Iteration(e) || s.Learn != nil || e.PastTau != nil || e.PastField != nil {
		return false
	}
	power := 0.0
	for _, norm := range e.Norm {
		power += norm * norm
	}
	return power > lostPower*float64(len(e.X))*(e.Prior.Variance()+e.Prior.Mean()*e.Prior.Mean())
}

// finite reports whether the estimates can be returned.
func (s *Solver) finite(change float64) bool {
	return change <= blowUp && !hasNonFinite(s.engine.X) && !hasNonFinite(s.engine.C) && !hasNonFinite(s.engine.S)
}

func hasNonFinite(v []float64) bool {
	for _, x := range v {
		if math.IsNaN(x - x) {
			return true
		}
	}
	return false
}
