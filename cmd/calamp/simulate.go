package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/dataset"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/teacher"
)

// simulate is one call of calamp simulate.
type simulate struct {
	*app
	model   model
	prior   signalPrior
	n, m, p int
	alpha   float64
	matrix  teacher.Ensemble
	seed    uint64
	signals string
	single  bool
	out     string
	json    bool
}

func (a *app) simulateCommand() *cobra.Command {
	s := &simulate{app: a, model: defaultModel, seed: 1}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Make a problem with known truth",
		Long: `Make a problem: W with independent N(0, 1/N) entries, or another --matrix-kind
with entries of mean square 1/N, signals and calibration drawn from the model,
and their readings Y. The truth, X0 and s0, is in the file
too. The same seed makes the same file, byte for byte.`,
		Example: `  calamp simulate --n 1000 --alpha 0.8 --p 4 --seed 1 -o P.npz
  calamp simulate --signals X.npy --alpha 0.6 --s-range 0.5,1.5 -o P.npz`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Flags()) },
	}
	flags := cmd.Flags()
	s.registerSize(flags)
	flags.Var(ensembleValue{&s.matrix}, "matrix-kind", "kind of W: "+teacher.Ensembles()+";\nv is a number, as in condition:10")
	flags.Uint64Var(&s.seed, "seed", s.seed, "seed of all that is random")
	flags.StringVar(&s.signals, "signals", "", "take the signals from this .npy (N×P), the first --p columns of it")
	flags.BoolVar(&s.single, "f4", false, "store W in single precision; the readings are made with what is stored")
	flags.StringVarP(&s.out, "output", "o", "", "write the problem to this .npz; - for standard output")
	s.model.register(flags)
	s.prior.register(flags, gaussBernoulli)
	flags.BoolVar(&s.json, "json", false, "print one JSON object in place of the summary")
	return cmd
}

// ensembleValue is --matrix-kind.
type ensembleValue struct{ *teacher.Ensemble }

func (e ensembleValue) String() string {
	if e.Ensemble == nil {
		return ""
	}
	return e.Ensemble.String()
}

func (e ensembleValue) Type() string { return "kind" }

func (e ensembleValue) Set(text string) error { return e.UnmarshalText([]byte(text)) }

func (s *simulate) registerSize(flags *pflag.FlagSet) {
	flags.Var(count{&s.n, 1}, "n", "entries of a signal, N")
	flags.Var(number{&s.alpha, func(v float64) bool { return v > 0 }, "a finite number above 0"}, "alpha", "sensors for each entry, α = M/N")
	flags.Var(count{&s.m, 1}, "m", "sensors, M, in place of --alpha")
	flags.Var(count{&s.p, 1}, "p", "signals, P")
	for _, name := range []string{"n", "alpha", "m", "p"} {
		flags.Lookup(name).DefValue = "0" // they have no default
	}
}

func (s *simulate) run(flags *pflag.FlagSet) error {
	s.model.complete(flags)
	if err := s.prior.complete(flags, &s.model); err != nil {
		return err
	}
	if s.out == "" {
		return usage("no file to write the problem to").withHint("add -o P.npz")
	}
	if err := (outputs{{"-o", s.out}}).check(s.json, s.signals); err != nil {
		return err
	}
	t, err := s.teacher(flags)
	if err != nil {
		return err
	}
	if text := s.model.assumption(flags); text != "" {
		s.note("assumed %s", text)
	}
	instance, err := t.Draw(s.seed)
	if err != nil {
		return &exit{code: exitUsage, err: err}
	}
	if s.single {
		if err := storeSingle(instance); err != nil {
			return err
		}
	}
	problem := &dataset.Problem{W: instance.W, Y: instance.Y, Truth: instance.Truth}
	if err := dataset.Save(s.out, problem); err != nil {
		return err
	}
	return s.print(problem)
}

// teacher is the ensemble that the flags describe.
func (s *simulate) teacher(flags *pflag.FlagSet) (t teacher.Teacher, err error) {
	t = teacher.Teacher{N: s.n, P: s.p, Matrix: s.matrix, Signal: s.model.prior(), Gain: s.model.gainPrior(), NoiseVar: s.model.NoiseVar}
	if s.prior.Family != "" {
		t.Entries = s.prior.of(&s.model)
	}
	if s.signals != "" {
		if t.X, err = loadSignals(s.signals, s.n, s.p); err != nil {
			return t, err
		}
		t.N, t.P = t.X.Dims()
	}
	switch {
	case t.N == 0:
		return t, usage("--n is needed: the number of entries of a signal")
	case t.P == 0:
		return t, usage("--p is needed: the number of signals")
	case s.m == 0 && s.alpha == 0:
		return t, usage("--alpha or --m is needed: the number of sensors")
	case s.m > 0 && s.alpha > 0:
		return t, usage("--alpha and --m both say how many sensors there are, give one")
	}
	return t, setSensors(&t, s.m, s.alpha)
}

// mostEntries bounds W: 32 GiB of it.
const mostEntries = 1 << 32

// setSensors sets M, which is α N when not given.
func setSensors(t *teacher.Teacher, m int, alpha float64) error {
	sensors := float64(m)
	if m == 0 {
		sensors = max(1, math.Round(alpha*float64(t.N)))
	}
	if largest := float64(max(t.N, t.P)) * max(sensors, float64(t.P)); largest > mostEntries {
		return usage("M = %.4g, N = %d, P = %d: too large, an array would have %.3g entries", sensors, t.N, t.P, largest)
	}
	t.M = int(sensors)
	return nil
}

// loadSignals reads signals, one a column; n and p are 0 where not given.
func loadSignals(path string, n, p int) (*mat.Dense, error) {
	array, err := dataset.LoadArray(path, "")
	if err != nil {
		return nil, err
	}
	shape := array.Shape
	if len(shape) == 1 {
		shape = []int{shape[0], 1}
	}
	if len(shape) != 2 || len(array.Data) == 0 {
		return nil, usage("--signals %s has shape %v, expected N×P, one signal a column", path, array.Shape).
			withHint("in Python, images.reshape(P, -1).T makes signals of P images")
	}
	rows, columns := shape[0], shape[1]
	switch {
	case n > 0 && n != rows && n == columns:
		return nil, usage("--signals %s is %d×%d and --n is %d: it looks transposed, expected N×P", path, rows, columns, n)
	case n > 0 && n != rows:
		return nil, usage("--signals %s is %d×%d, but --n is %d", path, rows, columns, n)
	case p > columns:
		return nil, usage("--signals %s has %d columns, but --p is %d", path, columns, p)
	}
	for i, v := range array.Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, usage("--signals %s: row %d, column %d is %g, expected a finite number", path, i/columns, i%columns, v)
		}
	}
	x := mat.NewDense(rows, columns, array.Data)
	if p > 0 && p < columns {
		x = mat.DenseCopyOf(x.Slice(0, rows, 0, p))
	}
	return x, nil
}

// storeSingle rounds W to single precision, and corrects the readings for what
// that changed.
func storeSingle(in *teacher.Instance) error {
	m, n := in.W.Dims()
	rounded := make([]float32, m*n)
	lost := mat.NewDense(m, n, nil) // rounded - W
	row := make([]float64, n)
	for mu := range m {
		if err := in.W.RowInto(row, mu); err != nil {
			return err
		}
		for i, w := range row {
			rounded[mu*n+i] = float32(w)
			lost.Set(mu, i, float64(float32(w))-w)
		}
	}
	single, err := operator.NewDense32(m, n, rounded)
	if err != nil {
		return err
	}
	var dz mat.Dense
	dz.Mul(lost, in.Truth.X)
	in.Y.Apply(func(mu, k int, y float64) float64 { return y + dz.At(mu, k)/in.Truth.S[mu] }, in.Y)
	in.W = single
	return nil
}

func (s *simulate) print(p *dataset.Problem) error {
	if s.json {
		return s.printJSON(struct {
			size
			Seed   uint64 `json:"seed"`
			Matrix string `json:"matrix_kind"`
			signalPrior
			Model   model    `json:"model"`
			Storage string   `json:"w_storage"`
			Written []string `json:"written"`
		}{sizeOf(p), s.seed, s.matrix.String(), s.prior, s.model, p.W.Storage(), []string{s.out}})
	}
	if s.out == "-" {
		return nil
	}
	var text summary
	text.line("problem", "%v", sizeOf(p))
	text.line("written", "%s", s.out)
	_, err := fmt.Fprint(s.stdout, text.String())
	return err
}
