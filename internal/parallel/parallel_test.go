package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestEveryPartRunsOnce(t *testing.T) {
	var callers sync.WaitGroup
	for caller := range 3 { // at the same time: two of them find the team busy
		callers.Go(func() {
			counts := make([]atomic.Int32, 100)
			for round := range 2000 {
				n := 1 + (round*7+caller)%len(counts)
				Run(n, 1+round%4, func(i int) { counts[i].Add(1) })
				for i := range counts {
					want := int32(0)
					if i < n {
						want = 1
					}
					if got := counts[i].Swap(0); got != want {
						t.Errorf("round %d: part %d of %d ran %d times", round, i, n, got)
						return
					}
				}
				if round%500 == 0 {
					time.Sleep(2 * awake) // helpers park, and must wake again
				}
			}
		})
	}
	callers.Wait()
}

func TestHelpersPark(t *testing.T) {
	Run(8, 2, func(int) {})
	deadline := time.Now().Add(10 * time.Second)
	for shared.parked.Load() < int64(shared.helpers) {
		if time.Now().After(deadline) {
			t.Fatal("helpers still awake long after the last job")
		}
		runtime.Gosched()
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	var total atomic.Int64
	part := func(i int) { total.Add(int64(i)) }
	Run(8, 2, part)
	if allocs := testing.AllocsPerRun(100, func() { Run(8, 2, part) }); allocs != 0 {
		t.Errorf("%g allocations", allocs)
	}
}

func BenchmarkHandOver(b *testing.B) {
	part := func(int) {}
	for b.Loop() {
		Run(2, 2, part)
	}
}
