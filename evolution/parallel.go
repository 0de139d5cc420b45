package evolution

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/integrate/quad"
)

// parallel calls f(0) … f(n-1) on all processors, in no particular order.
func parallel(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				f(i)
			}
		})
	}
	wg.Wait()
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
