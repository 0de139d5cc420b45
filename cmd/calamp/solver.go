package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/report"
)

// solver holds the flags that select the variant of the algorithm.
type solver struct {
	maxIter     int
	tol         float64
	tolGiven    bool
	damping     calamp.Damping
	noScaleStep bool
	means       string
	covariance  string
	variance    string
	precision   string
	threads     int
}

var defaultSolver = solver{maxIter: 1000, covariance: "diagonal", variance: "exact", means: "auto", precision: "auto"}

// dampingValue is --damping: auto, or the fixed fraction.
type dampingValue struct{ *calamp.Damping }

func (d dampingValue) String() string {
	if d.Damping == nil {
		return ""
	}
	return d.Damping.String()
}

func (d dampingValue) Type() string { return "auto|fraction" }

func (d dampingValue) Set(text string) error {
	var parsed calamp.Damping
	err := parsed.UnmarshalText([]byte(text))
	if delta, fixed := parsed.Fixed(); err != nil || fixed && !(delta >= 0 && delta < 1) {
		return errors.New("expected auto or a number in [0, 1)")
	}
	*d.Damping = parsed
	return nil
}

func (s *solver) register(flags *pflag.FlagSet) {
	flags.Var(count{&s.maxIter, 1}, "max-iter", "largest number of iterations")
	flags.Var(number{&s.tol, func(v float64) bool { return v >= 0 && v < 1 }, "a number in [0, 1)"},
		"tol", "relative change of a signal at which it has converged; 0 does exactly --max-iter iterations\n(default 1e-10, or what is small beside a signal's own error bar)")
	flags.Lookup("tol").DefValue = "0" // hides "(default 0)", which would be wrong
	flags.Var(dampingValue{&s.damping}, "damping", "fraction of the old estimate kept at each update")
	flags.BoolVar(&s.noScaleStep, "no-scale-step", false, "leave the global scale to the plain recursion")
	flags.Var(choice{&s.means, []string{"auto", "off"}}, "mean-removal", "take row and column means out of W where it has any, and restore them exactly;\nneeds --covariance diagonal and --variance exact, and is off for the published algorithm")
	flags.Var(choice{&s.covariance, []string{"diagonal", "full"}}, "covariance", "one variance a signal, or P×P covariances")
	flags.Var(choice{&s.variance, []string{"exact", "scalar"}}, "variance", "squared entries of W, or their mean")
	flags.Var(choice{&s.precision, []string{"auto", "f32", "f64"}}, "precision", "how a W of f8 is stored: auto begins in single precision where that saves time,\nand finishes in double precision; f4 stays f4")
	flags.Var(count{&s.threads, 0}, "threads", "goroutines, 0 for as many as are useful; results do not depend on it")
}

// complete checks what concerns several flags.
func (s *solver) complete(flags *pflag.FlagSet) error {
	s.tolGiven = given(flags, "tol")
	if s.covariance == "full" && s.variance == "scalar" {
		return usage("--covariance full needs --variance exact: scalar variances are for diagonal covariances")
	}
	return nil
}

// check refuses what these flags cannot do with p signals.
func (s *solver) check(m *model, p int) error {
	if s.covariance == "full" && len(m.Learned) > 0 {
		return usage("--covariance full: the model is learned with diagonal covariances only").
			withHint("learn it with --covariance diagonal, and give what was learned")
	}
	if s.covariance == "full" && m.Density < 1 && p > prior.MaxVectorSignals {
		return usage("--covariance full: with a sparse prior it sums over 2^P supports, and is limited to P ≤ %d, found P = %d", prior.MaxVectorSignals, p).
			withHint("use --covariance diagonal, whose answers are the same for large N")
	}
	return nil
}

// exactly says that all iterations were asked for, and no convergence.
func (s *solver) exactly() bool { return s.tolGiven && s.tol == 0 }

// published says that the flags are those of the published algorithm.
func (s *solver) published() bool {
	delta, fixed := s.damping.Fixed()
	return s.exactly() && s.noScaleStep && fixed && delta == 0
}

func (s *solver) options() *calamp.Options {
	o := &calamp.Options{
		MaxIter: s.maxIter, Tol: s.tol, Damping: s.damping, NoScaleStep: s.noScaleStep, Threads: s.threads,
		NoMeanRemoval: s.means == "off" || s.published(),
	}
	if s.exactly() {
		o.Tol = -1
	}
	if s.covariance == "full" {
		o.Covariance = calamp.Full
	}
	if s.variance == "scalar" {
		o.Variance = calamp.Scalar
	}
	switch s.precision {
	case "f32":
		o.Precision = calamp.SinglePrecision
	case "f64":
		o.Precision = calamp.DoublePrecision
	}
	return o
}

// optionsJSON is the solver's flags in JSON.
type optionsJSON struct {
	MaxIter    int      `json:"max_iter"`
	Tol        *float64 `json:"tol"` // null: the default rule
	Damping    string   `json:"damping"`
	ScaleStep  bool     `json:"scale_step"`
	Means      string   `json:"mean_removal"`
	Covariance string   `json:"covariance"`
	Variance   string   `json:"variance"`
	Precision  string   `json:"precision"`
	Threads    int      `json:"threads"`
}

func (s *solver) json() optionsJSON {
	o := optionsJSON{
		MaxIter: s.maxIter, Damping: s.damping.String(), ScaleStep: !s.noScaleStep, Means: s.means,
		Covariance: s.covariance, Variance: s.variance, Precision: s.precision, Threads: s.threads,
	}
	if s.tolGiven {
		o.Tol = &s.tol
	}
	return o
}

// fields is the same in words, for the report.
func (s *solver) fields() []report.Field {
	tol, scale := "automatic", "every few iterations"
	if s.exactly() {
		tol = "none: all iterations are done"
	} else if s.tolGiven {
		tol = fmt.Sprintf("%g", s.tol)
	}
	if s.noScaleStep {
		scale = "none"
	}
	return []report.Field{
		{Name: "Iterations, at most", Value: strconv.Itoa(s.maxIter)},
		{Name: "Tolerance", Value: tol},
		{Name: "Damping", Value: s.damping.String()},
		{Name: "Scale step", Value: scale},
		{Name: "Removal of the means of W", Value: s.means},
		{Name: "Covariance", Value: s.covariance},
		{Name: "Variance", Value: s.variance},
		{Name: "Precision of W", Value: s.precision},
	}
}
