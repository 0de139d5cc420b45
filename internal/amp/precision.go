package amp

import (
	"math"

	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

const (
	// leastSingle is the number of entries of W below which sweeps take too little time
	// for their precision to matter.
	leastSingle = 1 << 15

	// singleMargin is by how much single precision must be finer than what it is to
	// resolve: the error of z, the variance of z (the square of this), and the latest step.
	singleMargin = 100

	// singleRange is how far from 1 the mean squares of W and of the signals may be. g goes
	// with the inverse of z, and squares with their squares.
	singleRange = 1e8
)

// precision has most sweeps in single-precision arithmetic, over a W of single-precision
// entries. Products are linear, so that only the difference to the latest sweep in double
// precision, of x̂₀, is computed so:
//
//	z = (W x̂₀) + W (x̂ - x̂₀).
//
// Errors are relative to the difference, and vanish as the iteration converges. Those of
// r = Wᵀg are relative to the fields' distance from x̂, which is some posterior standard
// deviations, and those of V and Σ to these. A sweep is in double precision where
// the difference has become too large beside the variance of z, or the step to the next
// x̂ too small beside either error, and in the last iterations of a run.
type precision struct {
	Idle
	lent    operator.Sweeps // over the W of single-precision entries
	x, z    []float64       // x̂₀ as the entries, W x̂₀ as the readings
	away    []float64       // x̂ - x̂₀
	now     bool            // whether the present sweep is in single precision
	off     bool            // for the rest of the run
	last    int             // iteration that was accepted last
	stored  string          // how W is stored
	singles int             // sweeps of the latest run in single precision
	doubles int             // and in double precision
}

func newPrecision(s *State, lent operator.Sweeps, stored string) *precision {
	return &precision{
		lent: lent, stored: stored, x: make([]float64, len(s.all.x)), z: make([]float64, len(s.all.v)),
		away: make([]float64, len(s.all.x)),
	}
}

// Begin implements [Part].
func (p *precision) Begin(*Solver) {
	clear(p.x)
	clear(p.z)
	p.now, p.off, p.last, p.singles, p.doubles = false, false, 0, 0, 0
}

// End implements [Part].
func (p *precision) End(*Solver) { p.now = false }

// Before implements [Part].
func (p *precision) Before(s *Solver) {
	refused := p.last != s.Iterations-1
	if change := s.line.Change; refused && p.now && math.IsNaN(change-change) {
		p.off = true // numbers may have left the range of single precision
	}
	p.now = !p.off && !refused && !s.nearEnd() && p.resolves(s.State, s.Iterations == 1)
	if p.now {
		p.singles++
	} else {
		p.doubles++
	}
}

// After implements [Part].
func (p *precision) After(_ *Solver, l *Line) Verdict {
	p.last = l.Index
	return GoOn
}

// AtRest implements [Part].
func (p *precision) AtRest(*Solver) Verdict {
	if p.now {
		return Anew
	}
	return GoOn
}

// resolves sets x̂ - x̂₀, and reports whether it is so small that single precision
// resolves what a sweep is to find.
func (p *precision) resolves(s *State, first bool) bool {
	for i, x := range s.all.x {
		p.away[i] = x - p.x[i]
	}
	if first {
		return true
	}
	for k := range s.P {
		away := 0.0
		for _, d := range p.away[k*s.N : (k+1)*s.N] {
			away += d * d
		}
		const least = singleMargin * operator.SingleError
		ofZ, sd := least*math.Sqrt(away), math.Sqrt(s.SumC[k])
		if !(ofZ <= sd) || !(ofZ+least*sd <= s.Moved[k]) {
			return false
		}
	}
	return true
}

// single reports whether the present sweep is in single precision.
func (p *precision) single() bool { return p != nil && p.now }

// sweepsOf chooses the sweeps, and what they multiply.
func (p *precision) sweepsOf(double operator.Sweeps, x []float64) (exact, linear operator.Sweep, of []float64) {
	if p.single() {
		return p.lent.Single.Exact, p.lent.Single.Linear, p.away
	}
	return double.Exact, double.Linear, x
}

// products turns what a sweep found for the readings from first on into z, and keeps that of
// one in double precision.
func (p *precision) products(z []float64, first int) {
	switch {
	case p == nil:
	case !p.now:
		copy(p.z[first:], z)
	default:
		for j, z0 := range p.z[first : first+len(z)] {
			z[j] += z0
		}
	}
}

// end follows a sweep over x.
func (p *precision) end(x []float64) {
	if p != nil && !p.now {
		copy(p.x, x)
	}
}

// Storage is what the latest run read W as: "f32", "f64", or "f32+f64" for both; empty for
// an operator that has no entries.
func (s *Solver) Storage() string {
	p, ok := PartOf[*precision](s)
	if w, isMatrix := s.State.W.(operator.Matrix); isMatrix && (!ok || p.singles == 0 || p.stored == w.Storage()) {
		return w.Storage()
	}
	if !ok {
		return ""
	}
	return between(p.singles, p.doubles)
}

// Arithmetic is the precision of the latest run's products with W, in the same words.
func (s *Solver) Arithmetic() string {
	if p, ok := PartOf[*precision](s); ok {
		return between(p.singles, p.doubles)
	}
	return "f64"
}

func between(singles, doubles int) string {
	switch {
	case singles == 0:
		return "f64"
	case doubles == 0:
		return "f32"
	}
	return "f32+f64"
}

// rounded returns w rounded to single precision, and the variance of the noise in
// z = Wx that what was rounded off is for signals with prior p. It is w itself
// where w is no double-precision matrix in memory, or does not fit single precision.
func rounded(w operator.Operator, p prior.Prior) (operator.Operator, float64) {
	d, ok := w.(operator.Rounder)
	if !ok {
		return w, 0
	}
	single, lost := d.Rounded()
	if single == nil {
		return w, 0
	}
	_, n := w.Dims()
	return single, lost * float64(n) * (p.Variance() + p.Mean()*p.Mean())
}
