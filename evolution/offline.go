package evolution

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Options say how state evolution is to be run. The zero value is the default.
type Options struct {
	// Tol is the relative accuracy of every average; the default is 1e-8, and smaller
	// values than 1e-12 count as 1e-12. How errors grow along a trajectory is
	// accounted for in the error of each number.
	Tol float64

	// Iterations of a trajectory (default 50), or the most that a fixed point
	// may take (default 10000).
	Iterations int

	// Informed starts a fixed point from the truth instead of from nothing: it
	// ends at the fixed point of smallest error.
	Informed bool

	// Table, when set, gives what readings are worth in place of integrals; it must be of the model's P and gains.
	Table *Table

	// Work is the most values of integrands that a call may take, some ten nanoseconds each; with more it ends with [ErrWork].
	// 0 is any number.
	Work int64

	// Progress, when set, is called after every iteration of a trajectory with
	// the number done.
	Progress func(iterations int)
}

const (
	defaultTol   = 1e-8
	leastTol     = 1e-12
	defaultSteps = 50
	defaultLimit = 10000
)

func (o *Options) tol() float64 {
	if o == nil || o.Tol == 0 {
		return defaultTol
	}
	return max(o.Tol, leastTol)
}

func (o *Options) iterations(standard int) int {
	if o == nil || o.Iterations == 0 {
		return standard
	}
	return o.Iterations
}

// heeding is the work of a call.
func (o *Options) heeding(ctx context.Context) *work {
	if o == nil {
		return newWork(ctx, 0)
	}
	return newWork(ctx, o.Work)
}

func (o *Options) progress(done int) {
	if o != nil && o.Progress != nil {
		o.Progress(done)
	}
}

func (o *Options) validate() error {
	if o == nil {
		return nil
	}
	if !(o.Tol >= 0) || o.Tol > 0.1 {
		return fmt.Errorf("the tolerance must be in [0, 0.1], found %g", o.Tol)
	}
	if o.Iterations < 0 {
		return fmt.Errorf("the number of iterations must not be negative, found %d", o.Iterations)
	}
	return nil
}

// Step is one iteration: m̂ and the error on s follow from the error on x before it,
// and the error on x after it from m̂.
type Step struct {
	MSEX Number // mean square error on an entry of X after the iteration
	MHat Number // m̂ = E g², per signal
	MSES Number // mean square error on s, with the estimates before
	MSEO Number // mean square error on the sensors' offsets, with the estimates before; 0 where they have none
}

// Trajectory is the sequence of the iterations 1, 2, … of cal-AMP, started from the
// prior's mean and variance.
type Trajectory struct{ Steps []Step }

// Offline follows Bayes-optimal offline cal-AMP iteration by iteration (paper,
// "Bayes optimal State Evolution", with diagonal overlaps). A cancelled run
// returns the steps made and ctx.Err().
func Offline(ctx context.Context, m Model, opt *Options) (out *Trajectory, err error) {
	defer ending(&err)
	if m.OffsetSD != 0 {
		t, _, err := offsetOffline(ctx, m, opt, opt.iterations(defaultSteps), -1)
		return t, err
	}
	e, err := newEvolution(m, opt)
	if err != nil {
		return nil, err
	}
	e.work = opt.heeding(ctx)
	if m.Network != nil {
		e.layers = newNetworkState(m)
	}
	out = &Trajectory{}
	v := Number{Value: m.Variance()}
	for range opt.iterations(defaultSteps) {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		s := e.step(v)
		out.Steps = append(out.Steps, s)
		v = s.MSEX
		opt.progress(len(out.Steps))
	}
	return out, nil
}

// evolution is the map of one iteration, V → V′.
type evolution struct {
	Model
	work *work
	tol  float64
	q0   float64 // E x²
	// table is in place of the output side's integrals, or nil.
	table *Table

	readings *readingSensors // that are no z plus noise, divided by s; nil elsewhere

	sensors *offsetSensors // with offsets, over whom is averaged in the diagonal ansatz; nil without

	fromTruth bool // messages between layers begin there

	layers *networkState // of a trajectory: messages between layers go along, and are not converged; nil elsewhere

	// The last step, from which the next one estimates how an error of V changes m̂.
	lastV, lastMHat float64
}

func newEvolution(m Model, opt *Options) (*evolution, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := opt.validate(); err != nil {
		return nil, err
	}
	if m.OffsetSD != 0 {
		return nil, errors.New("this prediction is for sensors without offsets, and of W with independent entries")
	}
	e := &evolution{Model: m, tol: opt.tol(), q0: m.SecondMoment()}
	if m.Readings != nil {
		e.readings = newReadingSensors(m, 0)
		return e, nil
	}
	if opt != nil && opt.Table != nil {
		e.table = opt.Table
		return e, e.table.fits(m)
	}
	return e, nil
}

// leastDelta is above the smallest number whose inverse is finite.
const leastDelta = 1e-300

// step applies the map, and adds to its error what that of v brings.
func (e *evolution) step(v Number) Step {
	s, slope := e.at(v.Value)
	s = carry(v, s, slope, e.steepness(v.Value, s.MHat.Value))
	e.lastV, e.lastMHat = v.Value, s.MHat.Value
	return s
}

// steepness is |∂log m̂/∂log V| from the last two steps. It is 1 where s is known, and larger
// while s is being learned.
func (e *evolution) steepness(v, mHat float64) float64 {
	if e.lastV > 0 && e.lastV != v {
		return max(1, math.Abs(math.Log(e.lastMHat/mHat)/math.Log(e.lastV/v)))
	}
	return 1
}

// carry adds to the quadrature's errors of a step what the error of V brings; slope
// is |∂log V′/∂log m̂|, and output |∂log m̂/∂log V|.
func carry(v Number, s Step, slope, output float64) Step {
	relative := 0.0
	if v.Err > 0 {
		relative = min(output, 10) * v.Relative()
	}
	s.MHat.Err += relative * s.MHat.Value
	s.MSES.Err += 1.5 * relative * s.MSES.Value
	s.MSEX.Err += slope * s.MHat.Relative() * s.MSEX.Value
	return s
}

// at is the map: from the error V to m̂, the error on s, and V′, with the errors
// of the quadrature alone; and |∂log V′/∂log m̂|, from dV/dÂ = -E C².
func (e *evolution) at(v float64) (s Step, slope float64) {
	out := e.output(v)
	a := e.Alpha * out.chiHat.Value
	in := e.entry(1 / a)
	return Step{MSEX: Number(in.Variance), MHat: out.chiHat, MSES: out.mseS}, a * in.Square.Value / in.Variance.Value
}

// output computes the output side at the error V. The averages of the gain channel
// are in units where T₀ = q₀+Δ = 1; m̂ is brought back to the signals' units.
func (e *evolution) output(v float64) averages {
	if e.sensors != nil {
		a := e.sensors.averages(e.P, power{e.q0, e.q0}, uncertainty{v: v}, e.NoiseVar, e.work)
		return averages{chiHat: a.mean(e.P), mseS: a.mseS}
	}
	if e.readings != nil {
		return e.readings.averages(e.P, e.q0, v, e.work)
	}
	t0 := e.q0 + e.NoiseVar
	delta := max(leastDelta, min(1, (v+e.NoiseVar)/t0)) // at 0, where an error went that shrinks for ever, nothing is finite
	var out averages
	if e.table != nil {
		out = e.table.at(delta, e.work)
	} else {
		out = bayesAverages(e.P, e.Gain, delta, e.tol, e.work)
	}
	out.chiHat.Value /= t0
	out.chiHat.Err /= t0
	return out
}
