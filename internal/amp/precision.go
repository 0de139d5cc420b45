package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

const (
	// leastSingle is the number of entries of W below which sweeps take too little time
	// for their precision to matter.
	leastSingle = 1 << 15

	// singleMargin is by how much the latest step must exceed the errors that single
	// precision makes in it. An iteration that converges slowly amplifies them a
	// hundred times, and rests, or not, on what it then takes for its steps.
	singleMargin = 1e4

	// squaresMargin is the same for the errors of V and Σ, which stay in one direction.
	squaresMargin = 1e2

	// endMargin is by how much the distance from the fixed point at which a run ends must exceed
	// the errors of its last sweeps, if these are to be in single precision. With the
	// distance of streams it does, with that of other runs it does not.
	endMargin = 1e3

	// coarseMargin is how far rounded entries may move the fixed point, as a part of how near to it a run is to come: the squares of
	// both add up.
	coarseMargin = 0.3

	// singleRange is how far from 1 the mean squares of W and of the signals may be. g goes
	// with the inverse of z, and squares with their squares.
	singleRange = 1e8
)

// precision has most sweeps in single-precision arithmetic, over a W of single-precision
// entries. Products are linear, so that only the difference to the latest sweep in double
// precision, of x̂₀ and g₀, is computed so:
//
//	W x̂ = W x̂₀ + W (x̂ - x̂₀),    Wᵀg = Wᵀg₀ + Wᵀ(g - g₀).
//
// Errors are relative to the difference, and vanish as the iteration converges; those of V
// and Σ, where a sweep multiplies with squares, are relative to these. A sweep is in double
// precision where the difference has become too large beside the latest step or the variance
// of z, and in the last iterations of a run that is to come very near to its fixed point. A sweep in double precision, too,
// is over the rounded entries, where what was rounded off is nothing beside the noise: they are half as much to read, and near already.
type precision struct {
	Idle
	lent    operator.Sweeps // over the W of single-precision entries
	lost    float64         // mean square of what was rounded off of its entries
	demand  *onDemand       // nil where all sweeps multiply with squares, or none
	x, r    []float64       // x̂₀ and Wᵀg₀, as the entries
	z, g    []float64       // W x̂₀ and g₀, as the readings
	away    []float64       // x̂ - x̂₀
	errors  []float64       // P, root of the sum of squares of what single precision makes of it
	now     bool            // whether the present sweep is in single precision
	coarse  bool            // whether it is over rounded entries if it is in double precision
	off     bool            // for the rest of the run
	stored  string          // how W is stored
	singles int             // sweeps of the latest run in single precision
	doubles int             // and in double precision
	fine    int             // of these over W as it is
}

func newPrecision(s *State, demand *onDemand, lent operator.Sweeps, stored string, lost float64) *precision {
	p := &precision{lent: lent, stored: stored, lost: lost, demand: demand, errors: make([]float64, s.P)}
	for _, v := range []*[]float64{&p.x, &p.r, &p.away} {
		*v = make([]float64, len(s.all.x))
	}
	for _, v := range []*[]float64{&p.z, &p.g} {
		*v = make([]float64, len(s.all.g))
	}
	return p
}

// Begin implements [Part].
func (p *precision) Begin(*Solver) {
	for _, v := range [][]float64{p.x, p.r, p.z, p.g} {
		clear(v)
	}
	p.now, p.coarse, p.off = false, false, false
	p.singles, p.doubles, p.fine = 0, 0, 0
}

// End implements [Part].
func (p *precision) End(*Solver) { p.now = false }

// Before implements [Part].
func (p *precision) Before(s *Solver) {
	refused := s.latest != s.Iterations-1
	if change := s.line.Change; refused && p.now && math.IsNaN(change-change) {
		p.off = true // numbers may have left the range of single precision
	}
	p.now = !p.off && !refused && p.resolves(s.State, s.Iterations == 1) && (!s.nearEnd() || p.enough(s))
	p.coarse = p.drowned(s)
	switch {
	case p.now:
		p.singles++
	case p.coarse:
		p.doubles++
	default:
		p.doubles++
		p.fine++
	}
}

// drowned reports whether what was rounded off of W drowns in the noise, for a run that need not come nearer to its fixed
// point than Reach: it is noise of the variance lost·Σ(x̂²+C).
func (p *precision) drowned(s *Solver) bool {
	if s.Tol != 0 {
		return false
	}
	least := coarseMargin * s.Reach
	least *= least * channel.NoiseOf(s.State.model.Channel)
	for k, norm := range s.State.Norm {
		if !(p.lost*(norm*norm+s.State.SumC[k]) <= least) {
			return false
		}
	}
	return true
}

// AtRest implements [Part].
func (p *precision) AtRest(s *Solver) Verdict {
	if p.now && !p.enough(s) {
		return Anew
	}
	return GoOn
}

// enough reports whether nobody can tell the latest difference in single precision from one in
// double, beside how near a run is to come to its fixed point.
func (p *precision) enough(s *Solver) bool {
	if s.Tol != 0 || s.Iterations == s.limit {
		return false
	}
	for k, off := range p.errors {
		if sd := math.Sqrt(s.State.SumC[k]); !(endMargin*(off+operator.SingleError*sd) <= s.Reach*sd) {
			return false
		}
	}
	return true
}

// resolves sets x̂ - x̂₀, and reports whether it is so small that single precision
// resolves what a sweep is to find.
func (p *precision) resolves(s *State, first bool) bool {
	for i, x := range s.all.x {
		p.away[i] = x - p.x[i]
	}
	for k := range p.errors {
		p.errors[k] = math.Inf(1)
	}
	if first {
		return true
	}
	for k := range s.P {
		away := 0.0
		for _, d := range p.away[k*s.N : (k+1)*s.N] {
			away += d * d
		}
		off, sd := operator.SingleError*math.Sqrt(away), math.Sqrt(s.SumC[k])
		p.errors[k] = off
		least := singleMargin * off
		if !p.demand.spares() {
			least += squaresMargin * operator.SingleError * sd
		}
		if !(least <= s.Moved[k]) || !(squaresMargin*off <= sd) {
			return false
		}
	}
	return true
}

// single reports whether the present sweep is in single precision.
func (p *precision) single() bool { return p != nil && p.now }

// sweepsOf chooses the sweeps, and what they multiply.
func (p *precision) sweepsOf(double operator.Sweeps, x []float64) (exact, linear operator.Sweep, of []float64) {
	switch {
	case p.single():
		return p.lent.Single.Exact, p.lent.Single.Linear, p.away
	case p != nil && p.coarse:
		return p.lent.Exact, p.lent.Linear, x
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

// factors turns g of the readings from first on into what the sweep is to multiply, and
// keeps that of one in double precision.
func (p *precision) factors(g []float64, first int) {
	switch {
	case p == nil:
	case !p.now:
		copy(p.g[first:], g)
	default:
		for j, g0 := range p.g[first : first+len(g)] {
			g[j] -= g0
		}
	}
}

// end follows a sweep over x, which found r.
func (p *precision) end(r, x []float64) {
	switch {
	case p == nil:
	case !p.now:
		copy(p.x, x)
		copy(p.r, r)
	default:
		for i, r0 := range p.r {
			r[i] += r0
		}
	}
}

// Storage is what the latest run read W as: "f32", "f64", or "f32+f64" for both; empty for
// an operator that has no entries.
func (s *Solver) Storage() string {
	p, ok := PartOf[*precision](s)
	if w, table := s.State.W.(operator.Stored); table && (!ok || p.stored == w.Storage()) {
		return w.Storage()
	}
	if !ok {
		return ""
	}
	return between(p.singles+p.doubles-p.fine, p.fine)
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
func rounded(w operator.Operator, p prior.Prior, threads int) (operator.Operator, float64) {
	d, ok := w.(operator.Rounder)
	if !ok {
		return w, 0
	}
	single, lost := d.Rounded(threads)
	if single == nil {
		return w, 0
	}
	_, n := w.Dims()
	return single, lost * float64(n) * (p.Variance() + p.Mean()*p.Mean())
}
