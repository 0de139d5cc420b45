// Package solver says how to solve: the settings that offline runs, streams and
// sweeps share, and the plan of what a run does with them. It has names and
// their spelling, and does not depend on algorithms.
package solver

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Settings select the variant of the solver. The zero value is the recommended one.
type Settings struct {
	// MaxIter is the largest number of iterations. The default is 1000 for an offline
	// problem, and 500 for each sample of a stream.
	MaxIter int `toml:"max_iter" json:"max_iter,omitempty"`

	// Tol is the relative change of a signal between iterations, ‖Δx̂‖/‖x̂‖ with
	// damping accounted for, below which it has converged; the run ends when
	// every signal has. The default, 0, stops at 1e-10, or earlier where the
	// pace at which changes shrink says that less than 1e-5 of the signal's own
	// posterior standard deviation is left to go, or the change is below 1e-6 of it. (In
	// a stream that has learned something of its sensors, 1e-3 left to go are near enough.) A
	// negative value never stops early: exactly MaxIter iterations are done.
	Tol float64 `toml:"tol" json:"tol,omitempty"`

	// Damping of the updates. The default is adaptive.
	Damping Damping `toml:"damping" json:"damping,omitzero"`

	// NoScaleStep leaves the global scale of signals and calibration to the
	// plain recursion, which finds it slowly, or drifts when the noise is tiny;
	// in a stream it freezes the scale error of the first samples into the posterior.
	NoScaleStep bool `toml:"no_scale_step" json:"no_scale_step,omitempty"`

	// SPrior is what is known of the distribution of s within a range that was given.
	// The default, AutoS, tests when a run first converges whether the gains fill
	// the range, and learns a normal distribution within it where they do not.
	SPrior SPrior `toml:"-" json:"-"`

	// ScaleAtPeak reports signals and s at the global scale that maximises its evidence,
	// where the iteration has put it. The default reports them at the mean of the
	// scale's density, which at small noise is up to half its width away; a run of
	// exactly MaxIter iterations (Tol < 0) is reported as it is.
	ScaleAtPeak bool `toml:"-" json:"-"`

	// Variance uses the squared entries of W, or their mean (Scalar), for W with
	// independent entries of one variance. Exact multiplies with the squares in every
	// iteration, which is half of its work or more. OnDemand, the default, does so every
	// few iterations and in the last ones; in the others the variances of z and of the
	// fields have the ratios of the latest such iteration, and their present mean. It
	// converges where Exact does. Runs of exactly MaxIter iterations, those
	// without scale steps and those with full covariances are Exact all the same.
	Variance Variance `toml:"variance" json:"variance,omitzero"`

	// NoMeanRemoval leaves the means of the rows and columns of W where they are.
	// Otherwise means that independent entries would not have, as masks of 0 and
	// 1 have them, are taken out and restored exactly by one or two further
	// entries of the signals (see operator.Centred); without that the
	// iteration diverges. It is done with diagonal covariances, exact variances
	// and a W whose entries can be seen.
	NoMeanRemoval bool `toml:"no_mean_removal" json:"no_mean_removal,omitempty"`

	// Precision is how the entries of W are stored and multiplied while solving. A W
	// that is in single precision is stored so: nothing is lost.
	Precision Precision `toml:"precision" json:"precision,omitzero"`

	// Algorithm is what is iterated: AMP, which takes the entries of W for independent,
	// or vector AMP, for any W. The default chooses by what W is.
	Algorithm Algorithm `toml:"algorithm" json:"algorithm,omitzero"`

	// Covariance keeps a variance for each signal (Diagonal, the default), or
	// the P×P covariances of Algorithm 1 of the paper (Full), whose
	// off-diagonals vanish as N grows. Streams are Diagonal.
	Covariance Covariance `toml:"-" json:"-"`

	// Threads is the number of goroutines; results do not depend on it, down to the
	// last bit. The default is GOMAXPROCS for large problems, one for small ones.
	Threads int `toml:"-" json:"-"`

	// RAM, in bytes, is what the machine has: a copy of W, or a workspace of its
	// size, may take half of it, and what would take more is done without. The
	// default, 0, is no limit. Nothing else depends on the machine: a problem
	// solved with the same settings gives the same bytes everywhere.
	RAM int64 `toml:"-" json:"-"`
}

// Validate reports every field with an impossible value.
func (s *Settings) Validate() error {
	var errs []error
	if s.MaxIter < 0 {
		errs = append(errs, fmt.Errorf("the iteration limit must be positive, found %d", s.MaxIter))
	}
	if math.IsNaN(s.Tol) || s.Tol >= 1 {
		errs = append(errs, fmt.Errorf("the tolerance is a relative change below 1, found %g", s.Tol))
	}
	if d, fixed := s.Damping.Fixed(); fixed && !(d >= 0 && d < 1) {
		errs = append(errs, fmt.Errorf("damping must be in [0, 1), found %g", d))
	}
	if int(s.Algorithm) >= len(algorithms) {
		errs = append(errs, fmt.Errorf("unknown algorithm %d", s.Algorithm))
	}
	if int(s.Covariance) >= len(covariances) {
		errs = append(errs, fmt.Errorf("unknown covariance %d", s.Covariance))
	}
	if int(s.Variance) >= len(variances) {
		errs = append(errs, fmt.Errorf("unknown variance %d", s.Variance))
	}
	if int(s.SPrior) >= len(sPriors) {
		errs = append(errs, fmt.Errorf("unknown distribution of s %d", s.SPrior))
	}
	if int(s.Precision) >= len(precisions) {
		errs = append(errs, fmt.Errorf("unknown precision %d", s.Precision))
	}
	if s.Threads < 0 {
		errs = append(errs, fmt.Errorf("the number of threads must be positive, found %d", s.Threads))
	}
	if s.RAM < 0 {
		errs = append(errs, fmt.Errorf("the memory is a number of bytes, 0 for no limit, found %d", s.RAM))
	}
	return errors.Join(errs...)
}

// Fits reports whether a copy may take so many bytes.
func (s *Settings) Fits(bytes int64) bool { return s.RAM == 0 || bytes <= s.RAM/2 }

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

// Readings, and what describes them (gains, offsets, a signal's entries), are 0 or of sizes between these; variances are between
// their squares. Fourth powers occur, as the curvature of a likelihood in a variance: these are 1e240 at most, and double precision, which ends
// at 2^1024 = 1.8e308, has room for sums over readings, and for noise that is far smaller than they.
const LeastSize, MostSize = 1e-60, 1e60

// Algorithm selects what is iterated.
type Algorithm uint8

const (
	// AutoAlgorithm is VAMP where W is far from independent entries and can be
	// decomposed, and AMP otherwise. The plan says why.
	AutoAlgorithm Algorithm = iota

	// AMP is cal-AMP, as in the paper: it needs a W whose entries are as good as
	// independent, and two products with W an iteration.
	AMP

	// VAMP is vector AMP: it needs singular vectors of W that are as good as random,
	// whatever the singular values are. It decomposes WWᵀ beforehand, or, where that is too
	// much, takes conjugate gradients in every iteration.
	VAMP

	// Evidence takes signals for Gaussian, with a variance of each entry that is learned, and integrates
	// them out: for any W, slower, and with larger errors than the other two where these succeed. Its evidence never falls.
	Evidence
)

var algorithms = []string{AutoAlgorithm: "auto", AMP: "amp", VAMP: "vamp", Evidence: "evidence"}

// String is the name used by the command's --algorithm.
func (a Algorithm) String() string { return nameOf(algorithms, a) }

// MarshalText implements encoding.TextMarshaler.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what String writes.
func (a *Algorithm) UnmarshalText(text []byte) error {
	return named(a, algorithms, "the algorithm", text)
}

// Covariance selects between variances and P×P covariances.
type Covariance uint8

const (
	Diagonal Covariance = iota // one variance a signal
	Full                       // P×P covariances

	// Exchangeable is one variance and one covariance for all pairs of signals, which is exact for signals of one kind; for channels
	// with offsets, and chosen there for few signals.
	Exchangeable
)

var covariances = []string{Diagonal: "diagonal", Full: "full", Exchangeable: "exchangeable"}

// String is the name used by the command's --covariance.
func (c Covariance) String() string { return nameOf(covariances, c) }

// MarshalText implements encoding.TextMarshaler.
func (c Covariance) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what String writes.
func (c *Covariance) UnmarshalText(text []byte) error {
	return named(c, covariances, "covariance", text)
}

// Variance selects between squared entries of W, in some iterations or in all, and their
// mean.
type Variance uint8

const (
	OnDemand Variance = iota // squared entries in some iterations, and in the last
	Exact                    // in every iteration
	Scalar                   // their mean
)

var variances = []string{OnDemand: "on-demand", Exact: "exact", Scalar: "scalar"}

// String is the name used by the command's --variance.
func (v Variance) String() string { return nameOf(variances, v) }

// MarshalText implements encoding.TextMarshaler.
func (v Variance) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what String writes.
func (v *Variance) UnmarshalText(text []byte) error { return named(v, variances, "variance", text) }

// SPrior selects the distribution of the calibration s within its range.
type SPrior uint8

const (
	AutoS      SPrior = iota // uniform, unless the readings contradict that
	UniformS                 // independent and uniform, as in the paper
	NormalS                  // normal, with a mean and a variance that are learned
	LogNormalS               // log-normal, with a median and a variance of log s that are learned
)

var sPriors = []string{AutoS: "auto", UniformS: "uniform", NormalS: "normal", LogNormalS: "lognormal"}

// String is the name used by the command's --s-prior.
func (p SPrior) String() string { return nameOf(sPriors, p) }

// MarshalText implements encoding.TextMarshaler.
func (p SPrior) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String writes.
func (p *SPrior) UnmarshalText(text []byte) error {
	return named(p, sPriors, "the distribution of s", text)
}

// Precision selects the storage of the entries of a double-precision W, and the arithmetic.
type Precision uint8

const (
	// AutoPrecision has most iterations in single-precision arithmetic, over entries
	// rounded to single precision, as differences to the latest iteration in double
	// precision; those where rounding could be seen, and the last, are in double
	// precision, so that the result is that of DoublePrecision to the tolerance. A
	// negative Tol, no scale steps, full covariances, a W that is small, or too little
	// memory for the second copy make it DoublePrecision. So does a W of f8 that is
	// not in memory.
	AutoPrecision Precision = iota
	// DoublePrecision neither rounds entries of W nor has single-precision arithmetic.
	DoublePrecision
	// SinglePrecision rounds, and adds to the noise variance what that is worth
	// for signals as the prior has them, about 1e-16 for entries N(0, 1/N):
	// without it the iteration would be unstable where the noise is less.
	SinglePrecision
)

var precisions = []string{AutoPrecision: "auto", DoublePrecision: "f64", SinglePrecision: "f32"}

// String is the name used by the command's --precision.
func (p Precision) String() string { return nameOf(precisions, p) }

// MarshalText implements encoding.TextMarshaler.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String writes.
func (p *Precision) UnmarshalText(text []byte) error { return named(p, precisions, "precision", text) }

func nameOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return strconv.Itoa(int(v))
}

// named sets v to what has the given name.
func named[T ~uint8](v *T, names []string, what string, text []byte) error {
	for i, name := range names {
		if string(text) == name {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("%s is %s, found %q", what, oneOf(names), text)
}

// oneOf is "a or b", or "a, b or c".
func oneOf(names []string) string {
	text := names[0]
	for i, name := range names[1:] {
		separator := ", "
		if i == len(names)-2 {
			separator = " or "
		}
		text += separator + name
	}
	return text
}
