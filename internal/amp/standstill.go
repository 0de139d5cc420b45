package amp

import (
	"math"
	"math/cmplx"
)

// standstill ends runs that move without getting anywhere. In vector AMP, where W is
// ill-conditioned and there is much noise, some combinations of entries hardly matter to any
// reading, and creep, or turn in small circles. Where the model is learned, parameters creep that
// readings hardly determine, such as the variance of entries below the noise, or of a component
// of a mixture that overlaps with others. When the signals are, twice in a row, where
// they were a while ago to within a small part of their own error, further iterations
// would add nothing. The linear part of vector AMP must agree: its mean is then x̂, too.
//
// Runs may also hover: where columns of W are correlated, single entries change places in a few signals for ever. The run ends where four
// windows have moved neither the signals nor the gains, taken together, by more than a part of their error that is nothing beside it.
type standstill struct {
	Idle
	vector *vamp     // nil for AMP
	model  bool      // a model that creeps counts as converged when the signals have
	window int       // in iterations
	from   []float64 // P×N, the estimates at the beginning of the window
	steps  int
	times  int // windows in a row

	moved   float64   // in the last window
	about   []float64 // P×N, where the run hovers, nil where it does not yet
	gains   []complex128
	hovered int // windows in a row
}

const (
	// standsFor is the length of a window in iterations, and standsWithin how far signals may
	// be from where they were, in their own posterior standard deviations.
	standsFor    = 50
	standsWithin = 5e-3

	// mostOpen is the part of the signals' variance that is open where readings have identified most of them, and waiting that from which on a run of AMP
	// has yet to start. Runs that wait have 0.97 to 1.03 of it open; counts of three photons leave 0.69 to 0.89 open for good (docs/log/validation.md).
	mostOpen = 0.5
	waiting  = 0.95

	// linearWithin is how far the linear part's mean may be from x̂ when a run ends, in the
	// same units; relative to the signal, linearRelative is near enough in any case.
	linearWithin   = 0.02
	linearRelative = 1e-6

	// hoversWithin is the same for all signals, and for all gains, over hoversFor windows. A distance of a tenth of the standard deviation adds
	// a hundredth to the mean square of errors. Of four halves of a radar's echoes none met the tolerance in 600 iterations; from the 300th to the last gains moved by 0.01 to 0.04
	// of theirs, and signals went to and fro by 0.06.
	hoversWithin = 0.1
	hoversFor    = 4

	// searchesFor is the length of a window where phases are free and a run is one of several: what it hovers about is where another one begins, which then takes its time. From 250 to 350 or 450
	// iterations of such runs for two and four degrees of radar phases stayed to a ten thousandth of a radian.
	searchesFor = 25
)

func (b *planner) standstill() (on bool, why string, err error) {
	return unless("", []reason{
		{b.stream() && !b.vector(), "not needed without vector AMP"},
		{b.Tol < 0, noConvergence},
		{b.Tol > 0, "asked: the tolerance is given"},
	})
}

func (b *planner) makeStandstill(s *Solver) (Part, error) {
	p := &standstill{model: b.plan.Has("learning"), from: make([]float64, len(s.State.X)), window: standsFor}
	if c, complex := complexPriorOf(b.Model); complex && c.Free() && b.Searches && b.Start == nil {
		p.window = searchesFor
	}
	p.vector = s.vector()
	return p, nil
}

// Begin implements [Part].
func (p *standstill) Begin(s *Solver) {
	p.steps, p.times, p.about, p.hovered, p.moved, s.State.Standing = 0, 0, nil, 0, 0, false
}

// After implements [Part].
func (p *standstill) After(s *Solver, _ *Line) Verdict {
	e := s.State
	if p.steps++; p.steps < p.window {
		return GoOn
	}
	still := p.vector != nil || e.within(waiting)
	for k := range e.P {
		moved := distance(e.X[k*e.N:(k+1)*e.N], p.from[k*e.N:(k+1)*e.N])
		still = still && moved <= standsWithin*math.Sqrt(e.SumC[k])
	}
	moved := distance(e.X, p.from)
	converging := p.vector == nil && moved < 0.5*p.moved
	p.moved = moved
	copy(p.from, e.X)
	p.steps = 0
	if p.times++; !still {
		p.times = 0
	}
	ends := p.times*p.window > standsFor || p.hovers(e, converging)
	for k := range e.Left {
		e.Left[k] = math.Inf(1)
		if ends {
			e.Left[k] = 0
		}
	}
	e.Standing = p.model && ends
	return GoOn
}

// Hovered reports whether a run ended where single entries change places for ever.
func (s *Solver) Hovered() bool {
	p, is := PartOf[*standstill](s)
	return is && p.hovered >= hoversFor
}

// hovers reports whether a run has hovered for long enough; windows in which it converges do not count.
func (p *standstill) hovers(e *State, converging bool) bool {
	if !e.known() {
		return false
	}
	if p.about != nil && distance(e.X, p.about) <= hoversWithin*math.Sqrt(sum(e.SumC)) && e.gainsMoved(p.gains) <= hoversWithin {
		if !converging {
			p.hovered++
		}
		return p.hovered >= hoversFor
	}
	p.about, p.gains, p.hovered = append(p.about[:0], e.X...), e.gainsInto(p.gains[:0]), 0
	return false
}

// gainsInto appends s of all sensors.
func (s *sensorState) gainsInto(to []complex128) []complex128 {
	for mu, size := range s.S {
		phase := 0.0
		if s.columns == 2 {
			phase = s.Phase[mu]
		}
		to = append(to, cmplx.Rect(size, phase))
	}
	return to
}

// gainsMoved is how far gains are from those, in their standard deviations: the root mean square.
func (s *sensorState) gainsMoved(from []complex128) float64 {
	total, count := 0.0, 0.0
	for mu, now := range s.gainsInto(nil) {
		if v := s.SVar[mu]; v > 0 && !s.OutOfOrder(mu) {
			d := cmplx.Abs(now - from[mu])
			total, count = total+d*d/v, count+1
		}
	}
	return math.Sqrt(total / max(1, count))
}

// known reports whether readings have identified most of the signals.
func (s *State) known() bool { return s.within(mostOpen) }

// within reports whether no more than that part of the signals' variance is open.
func (s *State) within(open float64) bool {
	return !s.phasesOpen() && sum(s.SumC) <= open*float64(s.N*s.P)*s.model.Prior.Variance()
}

// AtFixedPoint implements [Part].
func (p *standstill) AtFixedPoint(s *Solver) Verdict {
	e := s.State
	if p.vector == nil {
		return GoOn
	}
	for k, off := range p.vector.off {
		within := linearWithin
		if p.hovered >= hoversFor {
			within = hoversWithin * math.Sqrt(float64(e.P)) // of all signals together
		}
		if off > max(linearRelative*e.Norm[k], within*math.Sqrt(e.SumC[k])) {
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
