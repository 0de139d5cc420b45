package amp

import (
	"math"

	"github.com/calamp/calamp/internal/cholesky"
)

// mixing helps a run with what its latest steps did (see [anderson]). One signal behind unknown gains swings as it settles, by combinations of entries of which readings hardly tell which are there: with all of the
// model given, ten scenes (200 entries, 140 sensors) took 74 to 200 iterations, and 50 to 73 with it.
type mixing struct {
	Idle
	steps       *anderson
	from, state [][]float64 // before the step, and what it made of that
}

// mixesFrom is the iteration from which on steps are mixed: damping has its say by then.
const mixesFrom = 10

// leastMixed is the part of a variance, or of a slope, that mixing leaves at least.
const leastMixed = 0.1

func (b *planner) mixing() (on bool, why string, err error) {
	return unless("asked", []reason{{!b.Mix, "not asked"}})
}

func (b *planner) makeMixing(s *Solver) (Part, error) {
	p := new(mixing)
	for _, v := range p.parts(s.State) {
		p.from, p.state = append(p.from, make([]float64, len(v))), append(p.state, make([]float64, len(v)))
	}
	p.steps = newAnderson(p.from...)
	return p, nil
}

// parts are what an iteration begins with: x̂ and what it was damped from, g, and the variances.
func (*mixing) parts(s *State) [][]float64 {
	return [][]float64{s.all.x, s.all.centre, s.all.g, s.all.c, s.all.dg}
}

// Begin implements [Part].
func (p *mixing) Begin(*Solver) { p.steps.forget() }

// Before implements [Part].
func (p *mixing) Before(s *Solver) {
	for i, v := range p.parts(s.State) {
		copy(p.from[i], v)
	}
}

// After implements [Part].
func (p *mixing) After(s *Solver, l *Line) Verdict {
	if l.Index < mixesFrom {
		return GoOn
	}
	parts := p.parts(s.State)
	for i, v := range parts {
		copy(p.state[i], v)
	}
	p.steps.step(p.state, 1, s.State.mixingProduct())
	for i, v := range parts {
		for j, x := range p.from[i] {
			if least := leastMixed * v[j]; i > 2 && math.Abs(x) < math.Abs(least) || x*v[j] < 0 && i > 2 {
				x = least
			}
			v[j] = x
		}
	}
	return GoOn
}

// mixingProduct is that of two moves of the parts, in units of variances, of which a move of a variance counts as one.
func (s *State) mixingProduct() func(a, b [][]float64) float64 {
	c, v, slope := Mean(s.C), Mean(s.V), Mean(s.DG)
	weights := []float64{1 / c, 1 / c, v, 1 / (c * c), 1 / (slope * slope)}
	return func(a, b [][]float64) (total float64) {
		for i, w := range weights {
			total += w * cholesky.Dot(a[i], b[i])
		}
		return total
	}
}
