package evolution

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/calamp/calamp/internal/crash"
)

// parallel calls f(0) … f(n-1) on all processors, in no particular order. When one of
// them panics, parallel panics after the others.
func parallel(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	var failed atomic.Pointer[crash.Error] // the first panic
	call := func(i int) {
		defer func() {
			if v := recover(); v != nil {
				failed.CompareAndSwap(nil, crash.Of(v))
			}
		}()
		f(i)
	}
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				call(i)
			}
		})
	}
	wg.Wait()
	if bug := failed.Load(); bug != nil {
		panic(bug)
	}
}

// newHermite is the rule for a standard normal.
func newHermite(n int) lineRule {
	r := lineRule{make([]float64, n), make([]float64, n)}
	quad.Hermite{}.FixedLocations(r.x, r.w, math.Inf(-1), math.Inf(1))
	for i := range r.x {
		r.x[i] *= math.Sqrt2
		r.w[i] /= math.Sqrt(math.Pi)
	}
	return r
}
