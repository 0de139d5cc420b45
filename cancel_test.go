package calamp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// cancelling is a channel during whose first block of an iteration the run is cancelled.
type cancelling struct {
	channel.Gain
	cancel context.CancelFunc
	blocks *atomic.Int64 // since then
	after  *atomic.Int64 // blocks before
}

func (c cancelling) Output(b *channel.Block) {
	if c.after.Add(-1) < 0 {
		c.cancel()
		c.blocks.Add(1)
	}
	c.Gain.Output(b)
}

// TestCancelledWithinAnIteration: a run ends with the block of sensors at hand, however long the iteration; what is returned is
// the iteration before.
func TestCancelledWithinAnIteration(t *testing.T) {
	signal := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}
	in, err := teacher.Teacher{N: 300, M: 2000, P: 3, Signal: signal, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, algorithm := range []solver.Algorithm{solver.AMP, solver.VAMP} {
		ctx, cancel := context.WithCancel(t.Context())
		var blocks, after atomic.Int64
		after.Store(70) // some iterations
		p := &calamp.Problem{
			W: in.W, Y: in.Y, Prior: signal,
			Channel: cancelling{channel.Gain{Prior: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}, cancel, &blocks, &after},
		}
		r, err := calamp.Solve(ctx, p, &calamp.Options{Settings: solver.Settings{Algorithm: algorithm, Threads: 1}})
		if err == nil || r == nil || r.Status != calamp.Cancelled {
			t.Fatalf("%v: %v", algorithm, err)
		}
		if n := blocks.Load(); n != 1 {
			t.Errorf("%v: %d blocks of sensors after the run was cancelled", algorithm, n)
		}
		cancel()
	}
}

// A run that is ended before its first iteration has a result, too, with the probabilities of outliers that it did not look at yet.
func TestCancelledBeforeTheFirstIteration(t *testing.T) {
	p, _ := draw(t, small(), 1)
	for _, algorithm := range []solver.Algorithm{solver.AMP, solver.VAMP} { // which is ended while W is factorised
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := calamp.Solve(ctx, p, &calamp.Options{Outliers: calamp.Outliers{Look: true}, Settings: solver.Settings{Algorithm: algorithm}})
		if !errors.Is(err, context.Canceled) || r == nil || r.Status != calamp.Cancelled || r.Outlier == nil {
			t.Errorf("%v: error %v, result %+v", algorithm, err, r)
		}
	}
}
