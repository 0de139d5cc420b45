package sweep

import (
	"math"

	"github.com/calamp/calamp/internal/memory"
)

// baseMemory is what a process takes that has nothing to solve.
const baseMemory Size = 28e6

// Memory is about what a process takes that runs one such point at a time: the matrix, as
// it was drawn and as solvers copy it, the arrays of the iteration, and what of
// these was not collected yet.
func (p Point) Memory() Size {
	if p.Algorithm == Rehearsal && p.Rehearse.Eat != 0 && p.Seed == p.Rehearse.Eat {
		return math.MaxInt64
	}
	if !p.Algorithm.synthetic() {
		return baseMemory
	}
	const copies = 3.5 // of the matrix in double precision: measured, n = 1000 to 3000, one run after the other
	n, m, signals := float64(p.N), float64(p.sensors()), float64(p.P)
	signals *= float64(p.columns())
	arrays := 30 * (n + m) * signals
	if p.Covariance == "full" {
		arrays = 12 * (n + m) * signals * (signals + 2)
	}
	return Size(min(float64(baseMemory)+8*(copies*n*m*float64(p.columns())+arrays), 1e18))
}

// memory is what a point may have: by default all that the machine has, since
// what is free at the moment must not decide what becomes of a point.
func (l Limits) memory() Size {
	if l.Memory > 0 {
		return l.Memory
	}
	return memory.Total()
}
