package serve

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// turns see to it that not more is computed at a time than there are cores, also where pages ask more quickly than there are answers.
// What a slider waits for goes first: what can wait begins when no question waits.
type turns struct {
	cores chan struct{}

	mu    sync.Mutex
	asked int           // questions that wait, or are computed
	quiet chan struct{} // closed while there are none
	open  int           // of all that was begun and has not ended
}

// mostOpen is how many questions may wait or be computed: of the connections that there may be (web.mostConnections) a quarter, so that
// the others are served.
const mostOpen = 64

var errBusy = errors.New("too many questions at a time: ask again")

func newTurns() *turns {
	t := &turns{cores: make(chan struct{}, max(1, runtime.GOMAXPROCS(0))), quiet: make(chan struct{})}
	close(t.quiet)
	return t
}

// enter lets one more ask, until leave.
func (t *turns) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open >= mostOpen {
		return errBusy
	}
	t.open++
	return nil
}

func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
}

// now calls f in its turn, unless the context ends before.
func (t *turns) now(ctx context.Context, f func()) error {
	t.mu.Lock()
	if t.asked++; t.asked == 1 {
		t.quiet = make(chan struct{})
	}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asked--; t.asked == 0 {
			close(t.quiet)
		}
	}()
	return t.on(ctx, f)
}

// later calls f when no question waits.
func (t *turns) later(ctx context.Context, f func()) error {
	t.mu.Lock()
	quiet := t.quiet
	t.mu.Unlock()
	select {
	case <-quiet:
	case <-ctx.Done():
		return ctx.Err()
	}
	return t.on(ctx, f)
}

// on calls f on a core.
func (t *turns) on(ctx context.Context, f func()) error {
	select {
	case t.cores <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.cores }()
	if err := ctx.Err(); err != nil { // both may be so
		return err
	}
	f()
	return nil
}
