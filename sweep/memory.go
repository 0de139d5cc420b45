package sweep

import (
	"math"

	"github.com/calamp/calamp/internal/memory"
)

// Memory is about what the point needs: the matrix, and the arrays of the
// iteration.
func (p Point) Memory() Size {
	if p.Algorithm == Rehearsal && p.Rehearse.Eat != 0 && p.Seed == p.Rehearse.Eat {
		return math.MaxInt64
	}
	const base = 16e6
	if !p.Algorithm.synthetic() {
		return base
	}
	n, m, signals := float64(p.N), float64(p.sensors()), float64(p.P)
	arrays := 30 * (n + m) * signals
	if p.Covariance == "full" {
		arrays = 12 * (n + m) * signals * (signals + 2)
	}
	return Size(min(base+8*(n*m+arrays), 1e18))
}

// memory is what a point may have: by default all that the machine has, since
// what is free at the moment must not decide what becomes of a point.
func (l Limits) memory() Size {
	if l.Memory > 0 {
		return l.Memory
	}
	return memory.Total()
}
