package operator

import (
	"fmt"
	"runtime"
)

// Mul sets dst to W x for P signals. x is P×N, signal by signal, and dst is M×P,
// sensor by sensor, as in a [Sweep] of w. It works for any operator. It returns an
// error when W cannot be read; what dst holds then has no meaning. It panics when the
// lengths of dst and x are not those of the same number of signals.
func Mul(dst []float64, w Operator, x []float64) error {
	p := signals("Mul", w, dst, x)
	sweep, err := w.NewSweep(p, 0, runtime.GOMAXPROCS(0))
	if err != nil {
		return err
	}
	return sweep.Run(make([]float64, len(x)), nil, x, nil, func(first int, z, _, g, _ []float64) {
		copy(dst[first*p:], z)
		clear(g)
	})
}

// MulTrans sets dst to Wᵀ g for P signals: g is M×P, sensor by sensor, and dst is
// P×N, signal by signal. In all else it is like [Mul].
func MulTrans(dst []float64, w Operator, g []float64) error {
	p := signals("MulTrans", w, g, dst)
	sweep, err := w.NewSweep(p, 0, runtime.GOMAXPROCS(0))
	if err != nil {
		return err
	}
	return sweep.Run(dst, nil, make([]float64, len(dst)), nil, func(first int, _, _, block, _ []float64) {
		copy(block, g[first*p:])
	})
}

// signals is how many signals the sensors' side and the signals' side hold.
func signals(name string, w Operator, sensors, entries []float64) int {
	m, n := w.Dims()
	p := len(entries) / n
	if p == 0 || len(entries) != p*n || len(sensors) != p*m {
		panic(fmt.Sprintf("calamp: %s with a %d×%d matrix called with %d values for the signals and %d for the sensors",
			name, m, n, len(entries), len(sensors)))
	}
	return p
}
