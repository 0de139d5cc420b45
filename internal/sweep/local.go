package sweep

import (
	"context"
	"runtime"
	"sync"

	"github.com/calamp/calamp/internal/memory"
)

// Local runs points on the cores of this machine.
type Local struct {
	Runner
	Workers int // points at a time; default GOMAXPROCS over the threads of each

	// Each is called with every row, one at a time.
	Each func(Row) error
}

// Run runs the points, in the order of [InTurn]. When ctx ends, those under way
// are finished, and the error is ctx's. An error of Each ends the run likewise.
func (l *Local) Run(ctx context.Context, points []Point) error {
	queue := make(chan Point)
	stopped, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var busy sync.WaitGroup
	var one sync.Mutex
	for range l.workers(points) {
		busy.Go(func() {
			for p := range queue {
				row, _ := l.Runner.Run(context.WithoutCancel(ctx), p)
				one.Lock()
				if err := l.Each(row); err != nil {
					stop(err)
				}
				one.Unlock()
			}
		})
	}
	feed(stopped, queue, InTurn(points))
	busy.Wait()
	return context.Cause(stopped)
}

func feed(ctx context.Context, queue chan<- Point, points []Point) {
	defer close(queue)
	for _, p := range points {
		if ctx.Err() != nil {
			return
		}
		select {
		case queue <- p:
		case <-ctx.Done():
			return
		}
	}
}

// workers is how many points are run at a time: no more than fit into memory.
func (l *Local) workers(points []Point) int {
	n := l.Workers
	if n <= 0 {
		n = max(1, runtime.GOMAXPROCS(0)/max(1, l.Limits.Threads))
	}
	n = min(n, max(1, len(points)))
	have, largest := memory.Available(), Size(1)
	for _, p := range points {
		if need := p.Memory(); need <= l.Limits.memory() { // others are refused
			largest = max(largest, need)
		}
	}
	return int(max(1, min(Size(n), have/largest)))
}

// Cost is about the arithmetic of a point, in no unit: costs of one algorithm
// can be compared.
func (p Point) Cost() float64 {
	signals := float64(p.P)
	switch p.Algorithm {
	case Offline, Published, Online:
		if p.Covariance == "full" {
			signals *= (signals + 3) / 2
		}
		if p.Complex() {
			signals *= 4
		}
		return float64(p.sensors()) * (float64(p.N)*signals + 2000)
	case SEOnline:
		return signals
	case Rehearsal:
		return float64(p.Rehearse.Work) / 1e6
	}
	return 1
}
