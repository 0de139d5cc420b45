package option

import (
	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Solver holds the flags that select the variant of the algorithm.
type Solver struct {
	MaxIter     int
	tol         float64
	tolGiven    bool
	damping     solver.Damping
	noScaleStep bool
	means       string
	sPrior      solver.SPrior
	algorithm   solver.Algorithm
	covariance  solver.Covariance
	variance    solver.Variance
	precision   solver.Precision
	threads     int
}

// NewSolver holds the defaults.
func NewSolver() Solver { return Solver{MaxIter: 1000, means: "auto"} }

// Register adds the flags.
func (s *Solver) Register(flags *pflag.FlagSet) {
	flags.Var(Count(&s.MaxIter, 1), "max-iter", "largest number of iterations")
	flags.Var(Number(&s.tol, below1),
		"tol", "relative change of a signal at which it has converged; 0 does exactly --max-iter iterations\n(default 1e-10, or what is small beside a signal's own error bar)")
	flags.Var(Text(&s.damping, dampingWords), "damping", "fraction of the old estimate kept at each update")
	flags.BoolVar(&s.noScaleStep, "no-scale-step", false, "leave the global scale to the plain recursion")
	flags.Var(Choice(&s.means, "auto", "off"), "mean-removal", "take row and column means out of W where it has any, and restore them exactly;\nneeds --covariance diagonal and no scalar variances, and is off for the published algorithm")
	flags.Var(Text(&s.algorithm, OneOf(solver.AutoAlgorithm, solver.AMP, solver.VAMP, solver.Evidence)), "algorithm", "amp, for a W like one of independent entries, vamp, for any spectrum, evidence, for any W\nof a few thousand rows, with larger errors, or auto: by what W is, then by which converges")
	flags.Var(Text(&s.covariance, OneOf(solver.Diagonal, solver.Full, solver.Exchangeable)), "covariance", "one variance a signal, P×P covariances, or with --offset one covariance for all pairs\nof signals (exchangeable, which diagonal is there with fewer than ten)")
	flags.Var(Text(&s.variance, OneOf(solver.OnDemand, solver.Exact, solver.Scalar)), "variance", "squared entries of W in every iteration (exact) or where the result needs them (on-demand),\nor their mean")
	flags.Var(Text(&s.precision, OneOf(solver.AutoPrecision, solver.SinglePrecision, solver.DoublePrecision)), "precision", "how W is stored and multiplied: auto in single precision where that saves time and cannot\nbe seen in the result, f64 never, f32 rounds a W of f8 for good")
	flags.Var(Count(&s.threads, 0), "threads", "goroutines, 0 for as many as are useful; results do not depend on it")
}

// Complete checks what concerns several flags.
func (s *Solver) Complete(flags *pflag.FlagSet) error {
	s.tolGiven = Given(flags, "tol")
	if !Given(flags, "s-mean") { // given with its parameters: nothing is tested
		if err := s.sPrior.UnmarshalText([]byte(flags.Lookup("s-prior").Value.String())); err != nil {
			return err
		}
	}
	if s.Full() && s.variance == solver.Scalar {
		return console.Usage("--covariance full needs exact variances: scalar variances are for diagonal covariances")
	}
	return nil
}

// Check refuses what these flags cannot do with p signals.
func (s *Solver) Check(m *Model, p int) error {
	if s.Full() && len(m.Learned) > 0 {
		return console.Usage("--covariance full: the model is learned with diagonal covariances only").
			WithHint("learn it with --covariance diagonal, and give what was learned")
	}
	if s.Full() && m.Density < 1 && p > prior.MaxVectorSignals {
		return console.Usage("--covariance full: with a sparse prior it sums over 2^P supports, and is limited to P ≤ %d, found P = %d", prior.MaxVectorSignals, p).
			WithHint("use --covariance diagonal, whose answers are the same for large N")
	}
	return nil
}

// Full says that P×P covariances were asked for.
func (s *Solver) Full() bool { return s.covariance == solver.Full }

// Exactly says that all iterations were asked for, and no convergence.
func (s *Solver) Exactly() bool { return s.tolGiven && s.tol == 0 }

// Retries says that a run that fails may be followed by others: where the user did not ask for the algorithm as it is.
func (s *Solver) Retries() bool {
	_, fixed := s.damping.Fixed()
	return !s.Exactly() && !s.noScaleStep && !fixed && s.algorithm == solver.AutoAlgorithm
}

// published says that the flags are those of the published algorithm.
func (s *Solver) published() bool {
	delta, fixed := s.damping.Fixed()
	return s.Exactly() && s.noScaleStep && fixed && delta == 0
}

// Learns says that what is not given of the model can be learned: not with full covariances, and bare iterations are exactly as specified.
func (s *Solver) Learns() bool {
	_, fixed := s.damping.Fixed()
	return !s.Full() && !(s.Exactly() && s.noScaleStep && fixed)
}

// Options are those of the library.
func (s *Solver) Options() *calamp.Options {
	o := &calamp.Options{Settings: solver.Settings{MaxIter: s.MaxIter, Tol: s.tol, Damping: s.damping, NoScaleStep: s.noScaleStep, SPrior: s.sPrior, Threads: s.threads, Algorithm: s.algorithm, Covariance: s.covariance, Variance: s.variance, Precision: s.precision, NoMeanRemoval: s.means == "off" || s.published(), RAM: int64(memory.Total())}}
	if s.Exactly() {
		o.Tol = -1
	}
	return o
}

// JSON is the flags for output; a tol of null is the default rule.
func (s *Solver) JSON() console.Object {
	var tol *float64
	if s.tolGiven {
		tol = &s.tol
	}
	return console.Object{
		"max_iter", s.MaxIter, "tol", tol, "damping", s.damping.String(), "scale_step", !s.noScaleStep, "s_prior", s.sPrior.String(), "mean_removal", s.means,
		"algorithm", s.algorithm.String(), "covariance", s.covariance.String(), "variance", s.variance.String(), "precision", s.precision.String(), "threads", s.threads,
	}
}

var dampingWords = Wording[solver.Damping]{
	Kind: "auto|fraction", Words: []string{"auto"}, Expected: "auto or a number in [0, 1)",
	Valid: func(d solver.Damping) bool {
		delta, fixed := d.Fixed()
		return !fixed || delta >= 0 && delta < 1
	},
}
