package calamp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// Options selects the variant of the solver. The zero value, or nil, is the
// recommended one.
type Options struct {
	solver.Settings

	// Learn says what is learned of the channel from the readings. The default
	// is nothing: the problem's values are used as they are.
	Learn Learn

	// Outliers looks for single readings that nothing explains, and leaves them out. The
	// default is not to.
	Outliers Outliers

	// Joint says whether signals belong together: an entry is zero in all of them or in none, and its values in all signals are drawn from a
	// normal distribution whose covariance is learned. [solver.JointOn] takes that for granted.
	// Of signals that come out of a network it is the latents that are zero in all signals or in none; their values are independent.
	Joint solver.Joint

	// Anchor fixes the global scale by known calibrations. The default leaves it
	// to the priors.
	Anchor Anchor

	// Scale is what is known of the model's scale where the rest of it is learned. The default is nothing.
	Scale Scale

	// Retry solves a problem again in other ways where the first run did not converge, or blames a fifth of the
	// sensors: without looking for faults, by the other algorithm, by the evidence of Gaussian signals ([solver.Evidence]), and from
	// the best answer so far; a range of s, a noise variance and a prior that were given are then learned, too, and hold the scale. The likeliest result is
	// returned, and its Plan lists what was tried. It is for Algorithm auto.
	Retry bool

	// TimeLimit ends the run, or the last of the tries of Retry, after so long; the best answer until then is returned, which
	// has not converged unless an earlier try has. An iteration that is under way is left. The default, 0, is no limit. It is not for a W over several machines,
	// whose ranks would end at different iterations.
	TimeLimit time.Duration

	// Evidence computes the evidence of every iteration for the trace, which takes a
	// twentieth of a run; otherwise it is that of the last one, and NaN before. Progress is
	// given it in any case.
	Evidence bool

	// MatrixError is by how much entries of W are wrong, independently of each other, relative to the root mean square of their row: it
	// counts as noise that follows the signals. 0 takes W for right, unless Learn.MatrixError learns it.
	MatrixError float64

	// Directions are ways in which W may be wrong, which are tested at the fixed point: [Result.MatrixScores] says how surely it is.
	Directions []Direction

	// SensorDerivatives are the derivatives D_j of W by parameters θ_j that every sensor has of its own, its position or its delay: row µ is that
	// of W + Σ_j θ_µj D_j. W and they are tables or sparse matrices. θ is normal with mean zero; its standard deviation over the sensors is
	// learned, or that of SensorSpread (J). [Result.Theta] has them.
	SensorDerivatives []Direction
	SensorSpread      []float64

	// Progress, when set, is called after every iteration.
	Progress func(Iteration)

	// Observe, when set, is called after every iteration with the estimates as
	// they are then: x is P×N, signal by signal, s has M values. They are the
	// solver's own: read them, and keep none.
	Observe func(it Iteration, x, s []float64)

	from *Result // where a run begins; nil for the prior
	draw uint64  // of the start where phases are free; see [amp.Problem.StartDraw]

	untilOffsets bool     // see [amp.Problem.UntilOffsets]
	outlying     [][2]int // readings that are left out at first, where signals are integrated out
	searches     bool     // see [amp.Problem.Searches]
	mix          bool
	jointFound   bool // see [amp.Problem.JointFound]

	given given // what is learned though it was given
}

// start is where a run begins, signal by signal.
func (o *Options) start() *amp.Start {
	if o.from == nil {
		return nil
	}
	n, p := o.from.X.Dims()
	start := &amp.Start{X: make([]float64, 0, n*p), C: make([]float64, 0, n*p), S: o.from.complexOrRealS()}
	for k := range p {
		for i := range n {
			start.X, start.C = append(start.X, o.from.X.At(i, k)), append(start.C, o.from.XVar.At(i, k))
		}
	}
	return start
}

const defaultMaxIter = 1000

// Published returns the options of the algorithm as it was published: no
// damping, no scale step, no mean removal, and exactly iterations iterations, since its stop
// rule is not part of it.
func Published(iterations int) *Options {
	return &Options{Settings: solver.Settings{
		MaxIter: iterations, Tol: -1, Damping: solver.FixedDamping(0), NoScaleStep: true, NoMeanRemoval: true,
	}}
}

// Validate reports every field with an impossible value.
func (o *Options) Validate() error {
	var err error
	if o.TimeLimit < 0 {
		err = fmt.Errorf("the time limit must be positive, found %v", o.TimeLimit)
	}
	if !(o.MatrixError >= 0 && o.MatrixError < 1) {
		err = errors.Join(err, fmt.Errorf("the relative error of the entries of W must be in [0, 1), found %g", o.MatrixError))
	}
	if o.SensorSpread != nil && len(o.SensorSpread) != len(o.SensorDerivatives) {
		err = errors.Join(err, fmt.Errorf("%d spreads of parameters of sensors for %d derivatives, expected one for each", len(o.SensorSpread), len(o.SensorDerivatives)))
	}
	for j, spread := range o.SensorSpread {
		if !(spread > 0) || math.IsInf(spread, 1) {
			err = errors.Join(err, fmt.Errorf("the spread of parameter %d of the sensors must be positive and finite, found %g", j, spread))
		}
	}
	return errors.Join(o.Settings.Validate(), o.Anchor.Validate(), o.Scale.Validate(), o.Outliers.Validate(), err)
}

// joint is Joint, but that errors of W, parameters of sensors, and noise of the sensors' own, are for signals by themselves.
func (o *Options) joint(own bool) solver.Joint {
	if o.Joint == solver.AutoJoint && (o.MatrixError > 0 || o.Learn.MatrixError || len(o.SensorDerivatives) > 0 || own) {
		return solver.JointOff
	}
	return o.Joint
}

// errTimeLimit is why the context of a run with a time limit ends.
var errTimeLimit = errors.New("the time limit")

// within is a context that ends at the time limit.
func (o *Options) within(ctx context.Context, p *Problem) (context.Context, context.CancelFunc, error) {
	if o.TimeLimit <= 0 {
		return ctx, func() {}, nil
	}
	if operator.FarRows(p.W) {
		return nil, nil, errors.New("a time limit is not for a W over several machines: they would end at different iterations")
	}
	ctx, stop := context.WithTimeoutCause(ctx, o.TimeLimit, errTimeLimit)
	return ctx, stop, nil
}
