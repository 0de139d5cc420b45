package amp

import "math"

// standstill ends runs that move without getting anywhere. In vector AMP, where W is
// ill-conditioned and there is much noise, some combinations of entries hardly matter to any
// reading, and creep, or turn in small circles. Where the model is learned, parameters creep that
// readings hardly determine, such as the variance of entries below the noise, or of a component
// of a mixture that overlaps with others. When the signals are, twice in a row, where
// they were a while ago to within a small part of their own error, further iterations
// would add nothing. The linear part of vector AMP must agree: its mean is then x̂, too.
type standstill struct {
	Idle
	vector *vamp     // nil for AMP
	model  bool      // a model that creeps counts as converged when the signals have
	from   []float64 // P×N, the estimates at the beginning of the window
	steps  int
	times  int // windows in a row
}

const (
	// standsFor is the length of a window in iterations, and standsWithin how far signals may
	// be from where they were, in their own posterior standard deviations.
	standsFor    = 50
	standsWithin = 5e-3

	// mostOpen is the part of the signals' variance that may be open for a run of AMP to stand still.
	mostOpen = 0.5

	// linearWithin is how far the linear part's mean may be from x̂ when a run ends, in the
	// same units; relative to the signal, linearRelative is near enough in any case.
	linearWithin   = 0.02
	linearRelative = 1e-6
)

func (b *planner) standstill() (on bool, why string, err error) {
	switch {
	case b.stream() && !b.vector():
		return false, "not needed without vector AMP", nil
	case b.Tol < 0:
		return false, noConvergence, nil
	case b.Tol > 0:
		return false, "asked: the tolerance is given", nil
	}
	return true, "", nil
}

func (b *planner) makeStandstill(s *Solver) (Part, error) {
	p := &standstill{model: b.plan.Has("learning"), from: make([]float64, len(s.State.X))}
	p.vector = s.vector()
	return p, nil
}

// Begin implements [Part].
func (p *standstill) Begin(s *Solver) { p.steps, p.times, s.State.Standing = 0, 0, false }

// After implements [Part].
func (p *standstill) After(s *Solver, _ *Line) Verdict {
	e := s.State
	if p.steps++; p.steps < standsFor {
		return GoOn
	}
	still := p.vector != nil || e.known()
	for k := range e.P {
		moved := distance(e.X[k*e.N:(k+1)*e.N], p.from[k*e.N:(k+1)*e.N])
		still = still && moved <= standsWithin*math.Sqrt(e.SumC[k])
	}
	copy(p.from, e.X)
	p.steps = 0
	if p.times++; !still {
		p.times = 0
	}
	for k := range e.Left {
		e.Left[k] = math.Inf(1)
		if p.times > 1 {
			e.Left[k] = 0
		}
	}
	e.Standing = p.model && p.times > 1
	return GoOn
}

// known reports whether readings have identified most of the signals: before, what stands still may only wait for its start.
func (s *State) known() bool {
	return !s.phasesOpen() && sum(s.SumC) <= mostOpen*float64(s.N*s.P)*s.model.Prior.Variance()
}

// AtFixedPoint implements [Part].
func (p *standstill) AtFixedPoint(s *Solver) Verdict {
	e := s.State
	if p.vector == nil {
		return GoOn
	}
	for k, off := range p.vector.off {
		if off > max(linearRelative*e.Norm[k], linearWithin*math.Sqrt(e.SumC[k])) {
			return Unfinished
		}
	}
	return GoOn
}

func distance(a, b []float64) float64 {
	total := 0.0
	for i, x := range a {
		total += (x - b[i]) * (x - b[i])
	}
	return math.Sqrt(total)
}
