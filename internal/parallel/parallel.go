// Package parallel runs the parts of one iteration on several cores: it knows how many
// parts there are, and nothing of what they compute. Handing work to a parked goroutine
// takes tens of microseconds, as long as a whole iteration of a small problem. So helpers
// stay awake for a while after each job, and the caller starts at once, without waiting
// for helpers that have not joined yet (docs/log/performance.md).
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/calamp/calamp/internal/crash"
)

const (
	// awake is how long a helper looks for the next job before it parks. It is longer
	// than an iteration takes from one parallel part to the next.
	awake = 100 * time.Microsecond

	// patience is how many times a helper looks for a job before it lets another
	// goroutine run and reads the clock.
	patience = 200
)

// team is the process's helpers. It does one job at a time. A job that comes while
// another one runs is done by its caller alone: when many problems are solved side by
// side, each then has one core.
type team struct {
	busy sync.Mutex // held during a job

	// The job. Parts are handed out by counting left down, so that a helper
	// that comes late, even for an earlier job, finds either nothing or a part
	// of the present one.
	part  func(i int)
	left  atomic.Int64 // parts not handed out yet; 0 or less when there are none
	seats atomic.Int64 // how many helpers may still join
	done  atomic.Int64

	failed atomic.Pointer[crash.Error] // the first panic of a part

	number  atomic.Uint64 // of jobs so far
	parked  atomic.Int64
	wake    chan struct{}
	helpers int
}

var shared = team{wake: make(chan struct{}, 1024)}

// Run calls part(0) … part(n-1), each once and in no order, on at most threads
// goroutines, and returns when all are done. It allocates nothing if part does
// not. When a part panics, the others are done all the same, and Run panics.
func Run(n, threads int, part func(i int)) {
	threads = min(threads, n, runtime.GOMAXPROCS(0))
	if threads <= 1 || !shared.busy.TryLock() {
		for i := range n {
			part(i)
		}
		return
	}
	defer shared.busy.Unlock()
	shared.run(n, threads-1, part)
}

func (t *team) run(n, helpers int, part func(int)) {
	for ; t.helpers < min(helpers, cap(t.wake)); t.helpers++ {
		go t.help(t.number.Load())
	}
	t.part = part
	t.done.Store(0)
	t.seats.Store(int64(helpers))
	t.left.Store(int64(n))
	t.number.Add(1)
	for range min(t.parked.Load(), int64(helpers)) {
		select {
		case t.wake <- struct{}{}:
		default: // enough have been called
		}
	}
	t.work()
	for spins := 1; t.done.Load() < int64(n); spins++ {
		if spins%patience == 0 {
			runtime.Gosched()
		}
	}
	if bug := t.failed.Swap(nil); bug != nil {
		panic(bug)
	}
}

// work does parts until none is left.
func (t *team) work() {
	for i := t.left.Add(-1); i >= 0; i = t.left.Add(-1) {
		t.do(int(i))
		t.done.Add(1)
	}
}

// do does one part. Its panic is kept for the caller: in a helper it would end the
// process, and in the caller it would leave helpers behind in parts under way.
func (t *team) do(i int) {
	defer func() {
		if v := recover(); v != nil {
			t.failed.CompareAndSwap(nil, crash.Of(v))
		}
	}()
	t.part(i)
}

// help is the loop of a helper: it looks for a job newer than number seen, takes part
// in it, and parks when none comes for a while.
func (t *team) help(seen uint64) {
	idle := time.Now()
	for spins := 1; ; spins++ {
		if number := t.number.Load(); number != seen {
			seen = number
			if t.seats.Add(-1) >= 0 {
				t.work()
			}
			idle = time.Now()
		}
		if spins%patience != 0 {
			continue
		}
		if time.Since(idle) > awake {
			t.park(seen)
			idle = time.Now()
		} else {
			runtime.Gosched()
		}
	}
}

// park sleeps until a job newer than seen may be there.
func (t *team) park(seen uint64) {
	t.parked.Add(1)
	defer t.parked.Add(-1)
	if t.number.Load() == seen {
		<-t.wake
	}
}
