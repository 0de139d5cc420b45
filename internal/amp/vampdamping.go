package amp

import "math"

// vectorDamper is the adaptive damping of vector AMP, which neither blows up nor needs steps to
// be taken back where W is decomposed: it may swing. Where the largest change in a
// window of iterations is not half of that in the window before, the damping is raised.
type vectorDamper struct {
	now              float64
	steps            int
	window, previous float64 // largest change; of the window before, +Inf where there was none
	restarts         int
}

// As measured on matrices of condition 10 to 1e6 and correlated ones: less damping leaves
// more in limit cycles, more takes longer everywhere else. What no damping cures, mixing with
// earlier steps does (see [anderson]).
const (
	vectorDamping     = 0.3
	vectorWindow      = 30
	vectorHeadway     = 0.5
	vectorRaise       = 0.6 // of 1-δ stays
	vectorMostDamping = 0.6
	vectorRestart     = 0.8
)

func newVectorDamper() *vectorDamper {
	return &vectorDamper{now: vectorDamping, previous: math.Inf(1)}
}

func (d *vectorDamper) begin(as damper) {
	*d = vectorDamper{now: vectorDamping, previous: math.Inf(1), restarts: as.(*vectorDamper).restarts}
}

func (d *vectorDamper) delta(t int) float64 {
	if t == 1 {
		return 0
	}
	return d.now
}

func (d *vectorDamper) reject(change, _ float64) bool {
	d.window = max(d.window, change)
	if d.steps++; d.steps < vectorWindow {
		return false
	}
	if d.window > vectorHeadway*d.previous {
		d.now = min(vectorMostDamping, 1-vectorRaise*(1-d.now))
	}
	d.steps, d.window, d.previous = 0, 0, d.window
	return false
}

func (d *vectorDamper) restart() bool {
	if d.restarts == mostRestarts {
		return false
	}
	*d = vectorDamper{now: vectorRestart, previous: math.Inf(1), restarts: d.restarts + 1}
	return true
}

func (d *vectorDamper) mayRestart() bool { return d.restarts < mostRestarts }

func (d *vectorDamper) stay() { d.restarts = mostRestarts }

func (d *vectorDamper) jumped() { d.steps, d.window = 0, 0 }
