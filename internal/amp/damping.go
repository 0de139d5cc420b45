package amp

// Damper chooses the damping of every iteration. A fixed one always answers the
// same and rejects nothing. The adaptive one starts undamped, refuses a step
// after which the estimates jump (the sign of an iteration about to
// diverge), damps strongly after that, and relaxes slowly.
type Damper struct {
	adaptive bool
	now      float64

	last      float64 // change of the latest accepted step
	refusals  int     // in a row
	best      float64 // smallest change so far
	sinceBest int     // accepted steps since then
	floor     float64 // least damping, raised when the iteration makes no headway
}

const (
	leastDamping = 0
	mostDamping  = 0.95

	// jump is the growth of the change from one step to the next that is
	// refused. Leaving a plateau of state evolution the change grows too, but
	// more slowly.
	jump = 3

	// After this many refusals in a row the step is taken all the same: the
	// state itself must be left.
	mostRefusals = 4

	// relax is how fast the damping returns to its floor.
	relax = 0.95

	// patience is how many steps without a new smallest change raise the floor.
	patience = 40
)

// NewDamper is a fixed damping, or the adaptive one.
func NewDamper(delta float64, fixed bool) Damper {
	if fixed {
		return Damper{now: delta}
	}
	return Damper{adaptive: true, now: leastDamping, floor: leastDamping}
}

// delta is the damping of iteration t, from 1. The first is never damped: there
// is no old estimate to keep.
func (d *Damper) delta(t int) float64 {
	if t == 1 {
		return 0
	}
	return d.now
}

// reject is told the change of a step and says whether to take it back.
func (d *Damper) reject(change float64) bool {
	if !d.adaptive {
		return false
	}
	sane := change <= blowUp // false for NaN
	if d.last > 0 && (!sane || change > jump*d.last && change > 1e-3) && d.refusals < mostRefusals {
		d.refusals++
		d.now = min(mostDamping, 0.5*(1+d.now))
		return true
	}
	d.refusals = 0
	d.last = change
	if d.best == 0 || change < d.best {
		d.best, d.sinceBest = change, 0
	} else if d.sinceBest++; d.sinceBest >= patience {
		d.floor, d.sinceBest = min(0.5, d.floor+0.15), 0
		d.best = change
	}
	d.now = max(d.floor, relax*d.now)
	return false
}
