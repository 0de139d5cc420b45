package amp

import "math"

// damper chooses the damping of every iteration, and looks at how the run behaves.
type damper interface {
	// begin makes it what another one was made as, for a new run.
	begin(as damper)

	// delta is the damping of iteration t, from 1.
	delta(t int) float64

	// reject is given the change and the misfit of a step, and says whether to take
	// it back.
	reject(change, misfit float64) bool

	// restart is for a run that begins anew, which needs more damping than the last
	// time; false when enough was tried. mayRestart says so beforehand, and stay
	// forbids it.
	restart() bool
	mayRestart() bool
	stay()

	// jumped is for when something else has moved the estimates.
	jumped()
}

// Damper chooses the damping of every iteration. A fixed one always answers the
// same and rejects nothing. The adaptive one starts undamped. It refuses a step
// after which both the change of the estimates and the residuals are growing,
// the sign of an iteration about to diverge; damps strongly after that, relaxes
// slowly, and never returns to as little as it had.
//
// The residuals are compared with what AMP expects of them (see
// [State.Misfit]), after Vila et al., "Adaptive damping and mean removal for
// the generalized approximate message passing algorithm" (2015); there the
// Bethe free energy decides, which at small noise jumps by itself when a
// single entry leaves zero.
type Damper struct {
	adaptive    bool
	beyondDrift bool // changes are those beyond what a free scale drifts, and is taken back (see [freeScale])
	now         float64

	last     float64 // change of the latest accepted step
	usual    float64 // misfit of accepted steps, a running mean
	refusals int     // in a row
	restarts int
	floor    float64 // least damping, raised when the iteration makes no headway

	// Sums of the logarithm of the change over the present window of accepted
	// steps, and over the one before; +Inf when there was none.
	steps            int
	window, previous float64
}

const (
	mostDamping = 0.95
	mostFloor   = 0.9

	// raise is the part of the way to 1 that a refusal, or no headway, raises
	// the floor.
	raise = 0.2

	// worse is the growth of the misfit over its running mean that is refused,
	// and follow how fast that mean follows: a misfit that grows by 5 % in
	// every step is refused sooner or later. A model that is a little wrong
	// has a misfit that grows more slowly, while the change still falls.
	worse  = 1.5
	follow = 0.1

	// After this many refusals in a row the step is taken all the same: the
	// state itself must be left.
	mostRefusals = 4

	// The damping of a run that is begun anew is at least half the way from
	// leastRestart to 1.
	mostRestarts = 2
	leastRestart = 0.4

	// relax is how fast the damping returns to its floor.
	relax = 0.95

	// When the change of a window of accepted steps is, in the geometric mean,
	// more than headway times that of the window before, the iteration swings,
	// and the floor is raised. What is just slow gets slower with damping, so
	// above slowed it must have made no headway at all.
	windowSteps = 15
	headway     = 0.8
	slowed      = 0.5
	none        = 0.97
	mostSwing   = 0.8
)

func (d *Damper) begin(as damper) { *d = *as.(*Damper) }

func (d *Damper) mayRestart() bool { return d.restarts < mostRestarts }

func (d *Damper) stay() { d.restarts = mostRestarts }

// newDamper is a fixed damping, or the adaptive one.
func newDamper(delta float64, fixed bool) *Damper {
	if fixed {
		return &Damper{now: delta}
	}
	return &Damper{adaptive: true, previous: math.Inf(1)}
}

// delta is the damping of iteration t, from 1. The first is never damped: there
// is no old estimate to keep.
func (d *Damper) delta(t int) float64 {
	if t == 1 {
		return 0
	}
	return d.now
}

// reject is given the change and the misfit of a step, and says whether to take
// it back.
func (d *Damper) reject(change, misfit float64) bool {
	if !d.adaptive {
		return false
	}
	sane := change <= blowUp // false for NaN
	growing := change >= d.last && misfit > worse*max(1, d.usual)
	if d.last > 0 && (!sane || growing) && d.refusals < mostRefusals {
		d.refusals++
		d.raiseFloor()
		d.now = max(d.floor, min(mostDamping, 0.5*(1+d.now)))
		return true
	}
	if d.usual == 0 || misfit < d.usual || d.refusals == mostRefusals {
		d.usual = misfit
	}
	d.usual += follow * (misfit - d.usual)
	d.refusals = 0
	d.last = change
	d.watch(change)
	d.now = max(d.floor, relax*d.now)
	return false
}

// restart is for a run that begins anew, which needs more damping from its
// first iterations on than the last time; false when enough was tried.
func (d *Damper) restart() bool {
	if !d.adaptive || d.restarts == mostRestarts {
		return false
	}
	floor := 1 - 0.5*(1-max(d.floor, leastRestart))
	*d = Damper{adaptive: true, now: floor, floor: floor, previous: math.Inf(1), restarts: d.restarts + 1}
	return true
}

// watch raises the floor when the change has stopped falling.
func (d *Damper) watch(change float64) {
	d.window += math.Log(change)
	if d.steps++; d.steps < windowSteps {
		return
	}
	least := headway
	if d.floor >= slowed {
		least = none
	}
	if d.window-d.previous > windowSteps*math.Log(least) && d.floor < mostSwing {
		d.raiseFloor()
		d.window = math.Inf(1) // says nothing of the new damping
	}
	d.steps, d.window, d.previous = 0, 0, d.window
}

// jumped is for when something else has moved the estimates: the window begins
// anew, to be compared with those after earlier jumps.
func (d *Damper) jumped() { d.steps, d.window = 0, 0 }

func (d *Damper) raiseFloor() { d.floor = min(mostFloor, d.floor+raise*(1-d.floor)) }
