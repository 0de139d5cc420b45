package calamp

import (
	"errors"

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

	// Anchor fixes the global scale by known calibrations. The default leaves it
	// to the priors.
	Anchor Anchor

	// Evidence computes the evidence of every iteration for the trace, which takes a
	// twentieth of a run; otherwise it is that of the last one, and NaN before. Progress is
	// told it in any case.
	Evidence bool

	// Progress, when set, is called after every iteration.
	Progress func(Iteration)

	// Observe, when set, is called after every iteration with the estimates as
	// they are then: x is P×N, signal by signal, s has M values. They are the
	// solver's own: read them, and keep none.
	Observe func(it Iteration, x, s []float64)
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
	return errors.Join(o.Settings.Validate(), o.Anchor.Validate(), o.Outliers.Validate())
}
