package amp

import (
	"math"

	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

const (
	// leastRounded is the number of entries below which rounding gains nothing:
	// in either precision they stay in the processor's cache.
	leastRounded = 1 << 19

	// roundedChange is the relative change at which a run is finished in double
	// precision: rounding moves signals by 3e-8.
	roundedChange = 1e-6

	// roundedMargin is how far above what rounding is worth a signal's variance
	// must be. Below it, rounding acts as noise that the iteration does not know
	// of, and makes it unstable.
	roundedMargin = 1e4
)

// precision begins a run with the entries of W rounded to single precision, which
// are read in half the time, and finishes it with the entries as they are. What they
// are multiplied with, and all sums, are double-precision in any case.
type precision struct {
	Idle
	single, double operator.Sweeps // over the one and the other
	lost           float64         // mean square of what rounding took, relative to that of W
	rounded        bool            // at present
}

// newPrecision is for W and its rounded copy.
func newPrecision(it Iteration, double operator.Sweeps, single operator.Matrix, lost float64) (*precision, error) {
	over, err := it.sweepsOver(single)
	return &precision{single: over, double: double, lost: lost / it.state().W.MeanSquare()}, err
}

func (p *precision) Begin(s *Solver) {
	p.rounded = true
	s.Iteration.use(p.single)
}

func (p *precision) After(s *Solver, l *Line) Verdict {
	if p.rounded && p.matters(s.State, l.Change) {
		return p.finish(s)
	}
	return GoOn
}

func (p *precision) AtRest(s *Solver) Verdict {
	if p.rounded {
		return p.finish(s)
	}
	return GoOn
}

// finish goes on with W as it is.
func (p *precision) finish(s *Solver) Verdict {
	p.rounded = false
	s.Iteration.use(p.double)
	return Anew
}

// matters reports whether a run with relative change so small, or variances, must go
// on in double precision.
func (p *precision) matters(s *State, change float64) bool {
	for k, norm := range s.Norm {
		if s.SumC[k] < roundedMargin*p.lost*norm*norm {
			return true
		}
	}
	return change <= roundedChange || math.IsNaN(change)
}

// Storage is what the latest run read W as: "f32", "f64", or "f32+f64" for one after the
// other; empty for an operator that has no entries.
func (s *Solver) Storage() string {
	if p, ok := PartOf[*precision](s); ok {
		if p.rounded {
			return "f32"
		}
		return "f32+f64"
	}
	if w, ok := s.State.W.(operator.Matrix); ok {
		return w.Storage()
	}
	return ""
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
