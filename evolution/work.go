package evolution

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/crash"
)

// ErrWork is the error of a call that takes more values of integrands than [Options.Work] allows, or an average that takes more nodes
// than fit into memory.
var ErrWork = errors.New("too much work")

// work is what a call may take: until its context ends, and so many values of integrands. Loops of averages ask it, however deep they
// are in searches and integrals, which know nothing of it: so it ends them by a panic, which [ending] makes the call's error again.
// All methods can be called on nil, for which there is no bound.
type work struct {
	ctx   context.Context
	limit int64 // 0 for none
	done  atomic.Int64
}

func newWork(ctx context.Context, limit int64) *work { return &work{ctx: ctx, limit: limit} }

// ended is what work panics with.
type ended struct{ error }

// Unwrap returns why.
func (e ended) Unwrap() error { return e.error }

// spend is asked before that many values are computed.
func (w *work) spend(values int) {
	if w == nil {
		return
	}
	if err := w.ctx.Err(); err != nil {
		panic(ended{err})
	}
	if w.limit > 0 && w.done.Add(int64(values)) > w.limit {
		panic(ended{fmt.Errorf("%w: more than %d values of integrands", ErrWork, w.limit)})
	}
}

// wait takes a turn of which there is one, unless the context ends before.
func (w *work) wait(turn chan struct{}) {
	var over <-chan struct{}
	if w != nil {
		over = w.ctx.Done()
	}
	select {
	case turn <- struct{}{}:
	case <-over:
		panic(ended{w.ctx.Err()})
	}
}

// mostNodes is how many nodes of a gain's range are kept at a time: 50 MB on every processor, in six arrays. A range that takes more
// takes hours for one average.
const mostNodes = 1 << 20

// What is computed beside values of integrands, in units of these: a posterior of a gain that is nearly Gaussian, and a reading of adaptive
// panels, with a posterior of any shape (0.1 to 0.2 µs and 1 to 3 µs).
const posteriorValues, readingValues = 20, 200

// room is asked before memory is taken for nodes of a gain's range.
func room(nodes float64, g channel.GainPrior, p float64) {
	if !(nodes <= mostNodes) {
		panic(ended{fmt.Errorf("%w: gains between %g and %g, read with %g signals, take %.2g nodes an average, at most %d: a narrower range takes less, and fewer signals do",
			ErrWork, g.Lo, g.Hi, p, nodes, mostNodes)})
	}
}

// ending is deferred by every exported function that takes averages: it makes an end by work the function's error.
func ending(err *error) {
	v := recover()
	if v == nil {
		return
	}
	failure := crash.Of(v)
	if e, ok := errors.AsType[ended](failure); ok {
		*err = e.error
		return
	}
	panic(failure)
}
