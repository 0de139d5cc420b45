package amp

import (
	"math"

	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Precision is how the entries of a double-precision W are stored. What they are
// multiplied with, and all sums, are double-precision in any case.
type Precision uint8

const (
	// Mixed begins a run with the entries rounded to single precision, which
	// are read in half the time, and finishes it with the entries as they are.
	Mixed Precision = iota
	Double
	Single
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

// precision is what an engine has of a rounded W beside W: nothing, or all of this.
type precision struct {
	rounded        operator.Matrix // or nil
	lost           float64         // mean square of what rounding took, relative to that of W
	single, double operator.Sweep  // over the one and the other
	began          bool            // the present run began rounded
}

// Round returns w rounded to single precision, and the variance of the noise in
// z = Wx that what was rounded off is for signals with prior p. It is w itself
// where w cannot be rounded, or does not fit single precision.
func Round(w operator.Operator, p prior.Prior) (operator.Operator, float64) {
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

// round makes the copy of W to begin with, where that pays and there is room.
func (e *Engine) round() {
	d, ok := e.W.(operator.Rounder)
	both := 12 * int64(e.M) * int64(e.N) // bytes
	if e.Precision != Mixed || e.Centred != nil || !ok || d.Storage() != "f64" || e.M*e.N < leastRounded || both > int64(memory.Total())/2 {
		return
	}
	e.rounded, e.lost = d.Rounded()
	e.lost /= d.MeanSquare()
}

// prepareSweeps makes the sweeps over W, with q quadratic columns.
func (e *Engine) prepareSweeps(q int) (err error) {
	if e.Centred != nil {
		e.double, err = e.Centred.NewSweep(e.P, q, e.Threads)
	} else {
		e.double, err = e.W.NewSweep(e.P, q, e.Threads)
	}
	e.sweep = e.double
	if e.rounded != nil && err == nil {
		e.single, err = e.rounded.NewSweep(e.P, q, e.Threads)
	}
	return err
}

// begin chooses the precision in which a run starts: a run that does not look for
// convergence would not know when to change it.
func (e *Engine) begin(converges bool) {
	e.sweep, e.began = e.double, e.single != nil && converges
	if e.began {
		e.sweep = e.single
	}
}

// roundedNow reports whether W is rounded at present while it need not be.
func (e *Engine) roundedNow() bool { return e.single != nil && e.sweep == e.single }

// Storage is what the run read W as: "f32", "f64", or "f32+f64" for one after the
// other; empty for an operator that has no entries.
func (e *Engine) Storage() string {
	switch w, ok := e.W.(operator.Matrix); {
	case !ok:
		return ""
	case e.roundedNow():
		return "f32"
	case e.began:
		return "f32+f64"
	default:
		return w.Storage()
	}
}

// finish goes on with W as it is.
func (e *Engine) finish() { e.sweep = e.double }

// roundingMatters reports whether a run with relative change so small, or
// variances, must go on in double precision.
func (e *Engine) roundingMatters(change float64) bool {
	for k, norm := range e.Norm {
		if e.SumC[k] < roundedMargin*e.lost*norm*norm {
			return true
		}
	}
	return change <= roundedChange || math.IsNaN(change)
}
