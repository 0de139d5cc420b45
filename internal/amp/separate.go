package amp

import (
	"errors"
	"fmt"

	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// separate reports whether signals have matrices of their own ([operator.Each]), or the samples of a stream ([operator.Choice]).
func (b *planner) separate() bool {
	_, of := operator.Separate(b.W)
	return of != nil || operator.ChoiceOf(b.W) != nil
}

// separateInstead is why a part is left out that takes all signals to have one matrix.
const separateInstead = "not possible, or not needed, where signals have matrices of their own"

// separateLeaves are these parts. Covariances between signals, and moves of all of them at once, come from one W for all: with another W
// for each, what is wrong in one signal is not wrong in the others.
var separateLeaves = map[string]bool{
	"joint rows": true, "joint test": true, "joint moves": true, "row shifts": true, "widening": true,
}

// separatePossible says what does not go along with matrices of the signals' own, or that they are of another number of signals.
func (b *planner) separatePossible() error {
	with := against([]reason{
		{b.stream() && operator.ChoiceOf(b.W) == nil, "a stream"},
		{b.full() || b.exchangeable(), "covariances between signals"},
		{b.Joint == solver.JointOn, "signals that belong together (joint)"},
		{b.follows(), "errors of W (matrix error)"},
		{b.evidence(), "signals that are integrated out (evidence)"},
	})
	if with == "" {
		return operator.ForSignals(b.W, b.P/prior.ColumnsOf(b.Model.Prior))
	}
	return fmt.Errorf("signals with matrices of their own do not go along with %s yet: leave one of the two out", with)
}

// errSeparate is why vector AMP is not for such a W, unless all rows are orthogonal.
var errSeparate = errors.New("vector AMP is not there yet for signals with matrices of their own, whose rows are not orthogonal: they need AMP")
