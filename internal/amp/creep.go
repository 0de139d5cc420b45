package amp

import (
	"slices"

	"gonum.org/v1/gonum/floats"
)

// creep ends what is left of a run when it only creeps along one direction: signals that come out of a network which hardly holds their scale creep along it, by a part of the
// way in every iteration that is the smaller the less holds it, and no step along the scale is known: what biases do to a signal is not proportional to it. With the changes d and d' of two
// windows after each other, d' = rd, what is left is d' r/(1-r) (A. C. Aitken, Proc. R. Soc. Edinburgh 46, 1926). Fixed points stay where they are. Not in the paper.
type creep struct {
	Idle
	linear        [][]float64 // what is moved: estimates and messages that are linear in them
	before, moved [][]float64 // of the latest window: at its begin, and the change of the one before
	known         bool        // moved is
}

const (
	// creepWindow is the length of a window in iterations, and creepAside how much of d', relative to its norm, may be aside of d: else more than one direction moves. With
	// windows of 5 to 20, and 0.03 to 0.3, 18 of 18 runs converge within 336 to 391 iterations on average; without, 7 do within 1000.
	creepWindow = 10
	creepAside  = 0.1

	// mostCreep is the largest r/(1-r).
	mostCreep = 100
)

func (b *planner) creep() (on bool, why string, err error) {
	return unless("what is left of a run that only creeps", []reason{
		{!b.networkHoldsScale() || b.layers.Together, "not needed: no network may hold the scale by little, with messages between its layers"},
		{b.stream(), oneByOne},
		{b.untouched() != "", b.untouched()},
	})
}

func (b *planner) makeCreep(s *Solver) (Part, error) {
	c := &creep{linear: append(slices.Clone(s.State.linear), s.State.network.Linear()...)}
	for _, v := range c.linear {
		c.before, c.moved = append(c.before, make([]float64, len(v))), append(c.moved, make([]float64, len(v)))
	}
	return c, nil
}

// Begin implements [Part].
func (c *creep) Begin(*Solver) { c.begin(false) }

// begin begins a window.
func (c *creep) begin(known bool) {
	c.known = known
	for i, v := range c.linear {
		copy(c.before[i], v)
	}
}

// After implements [Part].
func (c *creep) After(s *Solver, l *Line) Verdict {
	if l.Index%creepWindow != 0 {
		return GoOn
	}
	change := make([][]float64, len(c.linear))
	for i, v := range c.linear {
		change[i] = floats.SubTo(make([]float64, len(v)), v, c.before[i])
	}
	// The first are the estimates.
	along, square, latest := floats.Dot(change[0], c.moved[0]), floats.Dot(c.moved[0], c.moved[0]), floats.Dot(change[0], change[0])
	copies := c.known && along > 0 && along < square && latest*square-along*along < creepAside*creepAside*latest*square
	for i, v := range c.linear {
		copy(c.moved[i], change[i])
		if copies {
			floats.AddScaled(v, min(along/(square-along), mostCreep), change[i])
		}
	}
	c.begin(!copies)
	if !copies {
		return GoOn
	}
	s.damping.jumped()
	s.damping.begin(s.startDamping) // which a creep has raised
	return Disturbed
}
