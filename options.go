package calamp

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Options selects the variant of the solver. The zero value, or nil, is the
// recommended one.
type Options struct {
	// MaxIter is the largest number of iterations. The default is 1000.
	MaxIter int

	// Tol is the relative change of a signal between iterations, ‖Δx̂‖/‖x̂‖ with
	// damping accounted for, below which it has converged; the run ends when
	// every signal has. The default, 0, stops at 1e-10, or earlier where the
	// pace at which changes shrink says that less than 1e-5 of the signal's own posterior
	// standard deviation is left to go, or the change is below 1e-6 of it. A negative
	// value never stops early: exactly MaxIter iterations are done.
	Tol float64

	// Damping of the updates. The default is adaptive.
	Damping Damping

	// NoScaleStep leaves the global scale of signals and calibration to the
	// plain recursion, which finds it slowly, or drifts when the noise is tiny.
	NoScaleStep bool

	// NoMeanRemoval leaves the means of the rows and columns of W where they are.
	// Otherwise means that independent entries would not have, as masks of 0 and
	// 1 have them, are taken out and restored exactly by one or two further
	// entries of the signals (see [operator.Centred]); without that the
	// iteration diverges. It is done with diagonal covariances, exact variances
	// and a W whose entries can be seen, and Result.MeansRemoved tells.
	NoMeanRemoval bool

	// Covariance keeps a variance for each signal (Diagonal, the default), or
	// the P×P covariances of Algorithm 1 of the paper (Full), whose
	// off-diagonals vanish as N grows.
	Covariance Covariance

	// Variance uses the squared entries of W (Exact, the default), or their
	// mean (Scalar): half the work, for W with independent entries of
	// one variance.
	Variance Variance

	// Precision is how the entries of a double-precision W are stored while
	// solving. A W that is in single precision stays so: nothing is lost.
	Precision Precision

	// Threads is the number of goroutines; results do not depend on it. The
	// default is GOMAXPROCS for large problems, one for small ones.
	Threads int

	// Learn says what is learned of the channel from the readings. The default
	// is nothing: the problem's values are used as they are.
	Learn Learn

	// Anchor fixes the global scale by known calibrations. The default leaves it
	// to the priors.
	Anchor Anchor

	// Progress, when set, is called after every iteration.
	Progress func(Iteration)

	// Observe, when set, is called after every iteration with the estimates as
	// they are then: x is P×N, signal by signal, s has M values. They are the
	// solver's own: read them, and keep none.
	Observe func(it Iteration, x, s []float64)
}

const defaultMaxIter = 1000

// Published returns the options of the algorithm as it was published: no
// damping, no scale step, no mean removal, and exactly iterations iterations, since its stop
// rule is not part of it.
func Published(iterations int) *Options {
	return &Options{MaxIter: iterations, Tol: -1, Damping: FixedDamping(0), NoScaleStep: true, NoMeanRemoval: true}
}

// Validate reports every field with an impossible value.
func (o *Options) Validate() error {
	var errs []error
	if o.MaxIter < 0 {
		errs = append(errs, fmt.Errorf("the iteration limit must be positive, found %d", o.MaxIter))
	}
	if math.IsNaN(o.Tol) || o.Tol >= 1 {
		errs = append(errs, fmt.Errorf("the tolerance is a relative change below 1, found %g", o.Tol))
	}
	if d, fixed := o.Damping.Fixed(); fixed && !(d >= 0 && d < 1) {
		errs = append(errs, fmt.Errorf("damping must be in [0, 1), found %g", d))
	}
	if o.Covariance > Full {
		errs = append(errs, fmt.Errorf("unknown covariance %d", o.Covariance))
	}
	if o.Variance > Scalar {
		errs = append(errs, fmt.Errorf("unknown variance %d", o.Variance))
	}
	if o.Precision > SinglePrecision {
		errs = append(errs, fmt.Errorf("unknown precision %d", o.Precision))
	}
	if o.Covariance == Full && o.Variance == Scalar {
		errs = append(errs, errors.New("full covariances need exact variances: scalar is for diagonal ones"))
	}
	if o.Threads < 0 {
		errs = append(errs, fmt.Errorf("the number of threads must be positive, found %d", o.Threads))
	}
	if err := o.Anchor.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Damping is how much of the old is kept at each update: of g and ∂g, of the
// variances, and of the estimate that fields start from, r ← (1-δ) r_new + δ
// r_old (Rangan, Schniter, Fletcher, "On the convergence of approximate message
// passing with arbitrary matrices", 2014). The zero value is adaptive: δ follows
// how well the iteration behaves. Fixed points do not depend on it.
type Damping struct {
	fixed bool
	delta float64
}

// FixedDamping keeps the fraction delta, in [0, 1), of the old estimate; 0 is
// the undamped iteration.
func FixedDamping(delta float64) Damping { return Damping{fixed: true, delta: delta} }

// Fixed returns δ and true, or 0 and false when the damping is adaptive.
func (d Damping) Fixed() (delta float64, fixed bool) { return d.delta, d.fixed }

// String is "auto" or the fixed fraction.
func (d Damping) String() string {
	if !d.fixed {
		return "auto"
	}
	return strconv.FormatFloat(d.delta, 'g', -1, 64)
}

// UnmarshalText reads what String writes.
func (d *Damping) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*d = Damping{}
		return nil
	}
	delta, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("damping is auto or a number in [0, 1), found %q", text)
	}
	*d = FixedDamping(delta)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Damping) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Covariance selects between variances and P×P covariances.
type Covariance uint8

const (
	Diagonal Covariance = iota // one variance a signal
	Full                       // P×P covariances
)

// Variance selects between squared entries of W and their mean.
type Variance uint8

const (
	Exact  Variance = iota // squared entries
	Scalar                 // their mean
)

// Precision selects the storage of the entries of a double-precision W; sums are
// in double precision in any case.
type Precision uint8

const (
	// AutoPrecision begins with the entries rounded to single precision, which
	// a large W is read faster in, and finishes with the entries as they are, so
	// that the result is that of DoublePrecision to the tolerance. A negative
	// Tol, a W that is small or not in memory, or too little memory for the
	// second copy make it DoublePrecision.
	AutoPrecision Precision = iota
	DoublePrecision
	// SinglePrecision rounds, and adds to the noise variance what that is worth
	// for signals as the prior has them, about 1e-16 for entries N(0, 1/N):
	// without it the iteration would be unstable where the noise is less.
	SinglePrecision
)

var precisionNames = [...]string{AutoPrecision: "auto", DoublePrecision: "f64", SinglePrecision: "f32"}

// String is the name used by the command's --precision.
func (p Precision) String() string {
	if int(p) < len(precisionNames) {
		return precisionNames[p]
	}
	return strconv.Itoa(int(p))
}

// MarshalText implements encoding.TextMarshaler.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String writes.
func (p *Precision) UnmarshalText(text []byte) error {
	for known, name := range precisionNames {
		if string(text) == name {
			*p = Precision(known)
			return nil
		}
	}
	return fmt.Errorf("precision is auto, f32 or f64, found %q", text)
}
