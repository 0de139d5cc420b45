package option

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// Parts is a problem in two files, in place of a .npz with both, and the basis in which
// its signals are looked for.
type Parts struct {
	Matrix   string // as dataset.OpenMatrix reads it
	Readings string
	Basis    Basis
}

// Register adds --matrix, --readings and --basis.
func (p *Parts) Register(flags *pflag.FlagSet, matrixUsage string) {
	flags.StringVar(&p.Matrix, "matrix", "", matrixUsage+": "+dataset.MatrixSpecs())
	flags.StringVar(&p.Readings, "readings", "", "the readings Y (.npy, .mat or .csv, or .npz with Y and the truth), in place of P.npz")
	p.Basis.Register(flags)
}

// Files are the files that are read.
func (p *Parts) Files() []string {
	return append(append(dataset.SpecFiles(p.Matrix), dataset.SpecFiles(p.Basis.Spec)...), p.Readings)
}

// Stdin is what standard input is called in messages.
const Stdin = "standard input"

// Problem is the one in these files, or else in the file of the first argument, of whose arrays W may take so many bytes; - is standard input.
// With --mpi it has this rank's rows of W, and all readings, which are to be the same on all ranks.
func (p *Parts) Problem(a *console.Console, args []string, names ArrayNames, budget int64, r *Ranks) (data *dataset.Problem, err error) {
	switch {
	case r.On() && len(args) == 0:
		data, err = dataset.OpenPartsShared(p.Matrix, p.Readings, budget, r, r.Reproducible)
	case r.On():
		data, err = dataset.LoadShared(args[0], r, r.Reproducible)
	case len(args) == 0:
		return dataset.OpenParts(p.Matrix, p.Readings, budget)
	case args[0] == "-":
		return dataset.ReadWithin(a.Stdin, Stdin, budget)
	default:
		return dataset.LoadNamed(args[0], budget, dataset.Names(names))
	}
	if err != nil {
		return nil, err
	}
	return data, r.Agree("the readings", dataset.HashReadings(data.Y))
}

// Basis is --basis: signals are a basis times what is solved for.
type Basis struct {
	Spec string // empty: there is none
	op   operator.Operator
}

// Register adds the flag.
func (b *Basis) Register(flags *pflag.FlagSet) {
	flags.StringVar(&b.Spec, "basis", "", About("basis"))
}

// Compose opens the basis, and returns the matrix of coefficients: w times the basis, or
// w where there is none.
func (b *Basis) Compose(w operator.Operator) (operator.Operator, error) {
	if b.Spec == "" {
		return w, nil
	}
	_, n := w.Dims()
	var err error
	if b.op, err = dataset.OpenBasis(b.Spec, n); err != nil {
		return nil, console.Usage("--basis %w", err)
	}
	if err := takeComposed(w, b.op); err != nil {
		return nil, console.Usage("--basis %s: %w", b.Spec, err)
	}
	composed, err := operator.Compose(w, b.op)
	if err != nil {
		return nil, console.Usage("--basis %s: %w", b.Spec, err)
	}
	return composed, nil
}

// takeComposed refuses a product that half of the machine's memory does not hold: that of a table is a table, of as many
// columns as the basis.
func takeComposed(w, basis operator.Operator) error {
	if _, table := w.(*operator.Dense); !table {
		return nil
	}
	m, _ := w.Dims()
	_, k := basis.Dims()
	if err := memory.Half().TakeTimes(m, k, 8); err != nil {
		return fmt.Errorf("W times the basis, %d×%d: %w", m, k, err)
	}
	return nil
}

// Operator is the basis that Compose opened; nil where there is none.
func (b *Basis) Operator() operator.Operator { return b.op }

// Signals are the signals of the coefficients x (K×P): N×P; x itself where there is no
// basis.
func (b *Basis) Signals(x *mat.Dense) (*mat.Dense, error) {
	if b.op == nil {
		return x, nil
	}
	n, _ := b.op.Dims()
	_, p := x.Dims()
	entries := mat.DenseCopyOf(x.T())
	signals := mat.NewDense(n, p, nil)
	if err := operator.Mul(signals.RawMatrix().Data, b.op, entries.RawMatrix().Data); err != nil {
		return nil, fmt.Errorf("the signals of the coefficients: %w", err)
	}
	return signals, nil
}

// Extra is what a result file holds beside the result: the signals.
func (b *Basis) Extra(x *mat.Dense) ([]dataset.Extra, error) {
	if b.op == nil {
		return nil, nil
	}
	signals, err := b.Signals(x)
	return []dataset.Extra{{Name: "signal", Matrix: signals}}, err
}

// Suit chooses scalar variances where nothing else is possible, and none were asked for.
// It returns what to say of that.
func (s *Solver) Suit(flags *pflag.FlagSet, w operator.Operator) (note string) {
	if operator.HasSquares(w) || Given(flags, "variance") || s.algorithm == solver.VAMP {
		return ""
	}
	if _, ok := operator.Orthogonal(w); ok && s.algorithm == solver.AutoAlgorithm && !(s.noScaleStep && s.Exactly()) {
		return "" // vector AMP needs none
	}
	s.variance = solver.Scalar
	return "scalar variances: the squared entries of W are not known"
}

// SpectrumCache is --spectrum-cache: a file that keeps the decomposition of W for later runs.
type SpectrumCache struct {
	Path   string
	failed error
}

// Register adds the flag.
func (s *SpectrumCache) Register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Path, "spectrum-cache", "", "keep the decomposition of W that vector AMP makes in this .npz, or, where it is there already,\ntake it from there")
}

// Use takes the decomposition of w from the file, or has it written there once it is made.
func (s *SpectrumCache) Use(w operator.Operator, ranks *Ranks) error {
	switch {
	case s.Path == "":
		return nil
	case s.Path == "-":
		return console.Usage("--spectrum-cache: expected the name of a file, found -")
	case ranks.On():
		return console.Usage("--spectrum-cache is for one process: leave out --mpi")
	}
	var g *operator.Gram
	if _, err := os.Stat(s.Path); err == nil {
		if g, err = dataset.LoadSpectrum(s.Path, w); err != nil {
			return console.Usage("--spectrum-cache %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return console.Usage("--spectrum-cache %s: %w", s.Path, console.Cause(err))
	}
	if !operator.Remember(w, g, func(g *operator.Gram) { s.failed = dataset.SaveSpectrum(s.Path, w, g) }) {
		return console.Usage("--spectrum-cache: there is nothing to keep, a W such as this is not decomposed")
	}
	return nil
}

// Err is the error with which the file could not be written.
func (s *SpectrumCache) Err() error { return s.failed }
