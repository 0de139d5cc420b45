package amp

import (
	"math"

	"gonum.org/v1/gonum/floats"

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
	// hundred times, and must not take them for its steps. With 10⁴ runs take as many iterations, and a third more sweeps in double precision.
	singleMargin = 1e3

	// squaresMargin is the same for the errors of V and Σ, which stay in one direction.
	squaresMargin = 1e2

	// endMargin is by how much the distance from the fixed point at which a run ends must exceed
	// the errors of its last sweeps, if these are to be in single precision. With the
	// distance of streams it does, with that of other runs it does not.
	endMargin = 1e3

	// coarseMargin is how far rounded entries may move the fixed point, as a part of how near to it a run is to come: the squares of
	// both add up.
	coarseMargin = 0.3

	// byteMargin is by how much the latest step must exceed the errors that entries of eight bits make in it. They last until the next
	// sweep with the squares of W, a few iterations. With 1 in place of 30 runs behind independent entries take as many iterations; on
	// the stress matrices (docs/log/validation.md) they take 1 % more with 20.
	byteMargin = 30

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
//
// The same once more: where W is large, sweeps between two with its squares are differences to the latest of the others, and go over
// entries of eight bits, a quarter as much to read.
type precision struct {
	Idle
	lent    operator.Sweeps // over the W of single-precision entries
	lost    float64         // mean square of what was rounded off of its entries
	demand  *onDemand       // nil where all sweeps multiply with squares, or none
	double  earlier         // the latest sweep in double precision
	single  earlier         // the latest one in single precision, but for those over bytes; empty without these
	latest  *earlier        // the later one of the two
	from    *earlier        // the one that the present sweep is a difference to; nil in double precision
	away    []float64       // x̂ minus that of from
	errors  []float64       // P, root of the sum of squares of what single precision makes of it
	now     bool            // whether the present sweep is in single precision
	coarse  bool            // whether it is over rounded entries if it is in double precision
	off     bool            // for the rest of the run
	stored  string          // how W is stored
	singles int             // sweeps of the latest run in single precision
	doubles int             // and in double precision
	fine    int             // of these over W as it is

	bytes    operator.Sweep // over entries of eight bits; nil where there are none
	bytesOff float64        // the part of them that was rounded off
	inBytes  bool           // whether the present sweep is that
	viaBytes int            // how many of the latest run were
}

// earlier is an earlier sweep.
type earlier struct {
	x, r []float64 // x̂ and Wᵀg, as the entries
	z, g []float64 // Wx̂ and g, as the readings
}

func newEarlier(s *State) earlier {
	entries, readings := len(s.all.x), len(s.all.g)
	return earlier{x: make([]float64, entries), r: make([]float64, entries), z: make([]float64, readings), g: make([]float64, readings)}
}

func newPrecision(s *State, demand *onDemand, lent operator.Sweeps, stored string, lost float64) *precision {
	return &precision{
		lent: lent, stored: stored, lost: lost, demand: demand,
		double: newEarlier(s), away: make([]float64, len(s.all.x)), errors: make([]float64, s.P),
	}
}

// away is how far signal k has moved since.
func (e *earlier) away(s *State, k int) float64 {
	return floats.Distance(s.all.x[k*s.N:(k+1)*s.N], e.x[k*s.N:(k+1)*s.N], 2)
}

// useBytes has sweeps over bytes, if w has such.
func (p *precision) useBytes(s *State, w operator.Operator) error {
	sweep, off, err := operator.ByteSweep(w, p.demand.rows, p.demand.columns, s.P, s.Threads)
	if off < 1 { // else nothing is left of some row or column
		p.bytes, p.bytesOff, p.single = sweep, off, newEarlier(s)
	}
	return err
}

// Begin implements [Part].
func (p *precision) Begin(*Solver) {
	for _, v := range [][]float64{p.double.x, p.double.r, p.double.z, p.double.g} {
		clear(v)
	}
	p.latest, p.from = &p.double, nil
	p.now, p.inBytes, p.coarse, p.off = false, false, false, false
	p.singles, p.doubles, p.fine, p.viaBytes = 0, 0, 0, 0
}

// End implements [Part].
func (p *precision) End(*Solver) { p.now = false }

// Before implements [Part].
func (p *precision) Before(s *Solver) {
	refused := s.latest != s.Iterations-1
	if change := s.line.Change; refused && p.now && math.IsNaN(change-change) {
		p.off = true // numbers may have left the range of single precision
	}
	p.now = !p.off && !refused && p.resolves(s) && (!s.nearEnd() || p.enough(s))
	p.coarse = p.drowned(s)
	p.from, p.inBytes = nil, false
	switch {
	case p.now:
		p.from = &p.double
		if p.inBytes = p.bytesResolve(s.State); p.inBytes {
			p.from = p.latest
			p.viaBytes++
		}
		for i, x := range s.State.all.x {
			p.away[i] = x - p.from.x[i]
		}
		p.singles++
	case p.coarse:
		p.doubles++
	default:
		p.doubles++
		p.fine++
	}
}

// bytesResolve reports whether a sweep over entries of eight bits resolves what it is to find. No run ends with one: those
// in which it may have squares.
func (p *precision) bytesResolve(s *State) bool {
	if p.bytes == nil || !p.demand.spares() {
		return false
	}
	for k := range s.P {
		if !(byteMargin*p.bytesOff*p.latest.away(s, k) <= s.Moved[k]) {
			return false
		}
	}
	return true
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

// AtFixedPoint implements [Part].
func (p *precision) AtFixedPoint(s *Solver) Verdict {
	if p.now && !p.enough(s) {
		return Anew
	}
	return GoOn
}

// enough reports whether the latest difference in single precision cannot be distinguished from one in
// double, beside how near a run is to come to its fixed point.
func (p *precision) enough(s *Solver) bool {
	for k, off := range p.errors {
		if !s.negligible(off, math.Sqrt(s.State.SumC[k])) {
			return false
		}
	}
	return true
}

// negligible reports whether an error off of a signal does not matter beside its posterior standard deviation sd, both roots of sums of squares.
func (s *Solver) negligible(off, sd float64) bool {
	return s.Tol == 0 && s.Iterations < s.limit && endMargin*(off+operator.SingleError*sd) <= s.Reach*sd
}

// resolves reports whether x̂ - x̂₀ is so small that single precision
// resolves what a sweep is to find, or that its errors are negligible.
func (p *precision) resolves(s *Solver) bool {
	for k := range p.errors {
		p.errors[k] = math.Inf(1)
	}
	if s.Iterations == 1 {
		return true
	}
	for k := range s.State.P {
		off, sd := operator.SingleError*p.double.away(s.State, k), math.Sqrt(s.State.SumC[k])
		p.errors[k] = off
		least := singleMargin * off
		if !p.demand.spares() {
			least += squaresMargin * operator.SingleError * sd
		}
		if !(least <= s.State.Moved[k]) && !s.negligible(off, sd) || !(squaresMargin*off <= sd) {
			return false
		}
	}
	return true
}

// sweepsOf chooses the sweeps, and what they multiply.
func (p *precision) sweepsOf(double operator.Sweeps, x []float64) (exact, linear operator.Sweep, of []float64) {
	switch {
	case p == nil || !p.now && !p.coarse:
		return double.Exact, double.Linear, x
	case p.inBytes:
		return nil, p.bytes, p.away
	case p.now:
		return p.lent.Single.Exact, p.lent.Single.Linear, p.away
	}
	return p.lent.Exact, p.lent.Linear, x
}

// kept is where later sweeps find the present one; nil where they do not ask for it.
func (p *precision) kept() *earlier {
	switch {
	case !p.now:
		return &p.double
	case p.bytes != nil && !p.inBytes:
		return &p.single
	}
	return nil
}

// products turns what a sweep found for the readings from first on into z, and keeps that.
func (p *precision) products(z []float64, first int) {
	if p == nil {
		return
	}
	if p.from != nil {
		floats.Add(z, p.from.z[first:first+len(z)])
	}
	if e := p.kept(); e != nil {
		copy(e.z[first:], z)
	}
}

// factors turns g of the readings from first on into what the sweep is to multiply, and
// keeps it.
func (p *precision) factors(g []float64, first int) {
	if p == nil {
		return
	}
	if e := p.kept(); e != nil {
		copy(e.g[first:], g)
	}
	if p.from != nil {
		floats.Sub(g, p.from.g[first:first+len(g)])
	}
}

// end follows a sweep over x, which found r.
func (p *precision) end(r, x []float64) {
	if p == nil {
		return
	}
	if p.from != nil {
		floats.Add(r, p.from.r)
	}
	if e := p.kept(); e != nil {
		copy(e.x, x)
		copy(e.r, r)
		p.latest = e
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
