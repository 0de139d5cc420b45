// Package simulate is the commands that draw problems from a model: calamp
// simulate, and calamp check-calibration, which solves them and compares.
package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/sandals"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/teacher"
)

// simulate is one call of calamp simulate.
type simulate struct {
	*console.Console
	model   option.Model
	prior   option.SignalPrior
	groups  option.Groups
	n, m, p int
	alpha   float64
	offset  float64
	matrix  teacher.Ensemble
	seed    uint64
	signals string
	single  bool
	out     string
	json    bool

	spread float64 // of the noise variances, in decades
	rows   int     // of W that a sensor has
	known  float64 // relative error of what is known of every sensor's s; 0 for nothing

	complex    bool // --complex
	phases     option.Phases
	codes      option.Codes
	given      string // --matrix: W, in place of a random one
	structured bool   // a random W that is no table
	basis      option.Basis
}

// Command is calamp simulate.
func Command(a *console.Console) *cobra.Command {
	s := &simulate{Console: a, model: option.DefaultModel, seed: 1}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Make a problem with known truth",
		Long: `Make a problem: W with independent N(0, 1/N) entries, or another --matrix-kind
with entries of mean square 1/N, signals and calibration drawn from the model,
and their readings Y. The truth, X0, s0 and with --offset o0, is in
the file too. The same seed makes the same file, byte for byte.

With --structured a transform or a sparse matrix is not written as a table, but as what
--matrix hadamard:P.npz, dct:P.npz or sparse:P.npz of calamp solve reads from the same
file; --readings P.npz reads the rest. Rows of transforms get random signs and a
random permutation. With --matrix W is the one that is named there.
With --basis coefficients are drawn from the model, and the signals X0 are the basis
times these.`,
		Example: `  calamp simulate --n 1000 --alpha 0.8 --p 4 --seed 1 -o P.npz
  calamp simulate --signals X.npy --alpha 0.6 --s-range 0.5,1.5 -o P.npz
  calamp simulate --matrix-kind hadamard --structured --n 65536 --alpha 0.5 --p 4 -o P.npz
  calamp simulate --matrix sparse:W.npz --p 4 -o P.npz`,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Flags()) },
	}
	flags := cmd.Flags()
	s.registerSize(flags)
	option.MatrixKind(flags, &s.matrix, "kind of W: "+teacher.Ensembles()+";\nv is a number, as in condition:10")
	flags.BoolVar(&s.structured, "structured", false, "do not write W as a table; for the kinds "+teacher.StructuredEnsembles())
	flags.StringVar(&s.given, "matrix", "", "take this W, in place of a random one: "+dataset.MatrixSpecs())
	s.basis.Register(flags)
	flags.Var(option.Number(&s.known, option.Positive), "s-known", "every sensor's s is known beforehand with this relative error: s_prior_mean and s_prior_sd")
	option.Seed(flags, &s.seed, "seed of all that is random")
	flags.StringVar(&s.signals, "signals", "", "take the signals from this .npy (N×P), the first --p columns of it; sandals: the images of calamp demo;\njoint:ρ,c: an entry is there in all signals or in none, with probability ρ, and has correlation c between signals")
	flags.BoolVar(&s.single, "f4", false, "store W in single precision; the readings are made with what is stored")
	flags.Var(option.Number(&s.offset, option.NotNegative), "offset", "standard deviation of the sensors' offsets, y = z/s + o, in the units of the readings")
	s.codes.Register(flags)
	option.Output(flags, &s.out, "write the problem to this .npz or .mat; - for standard output")
	s.model.RegisterWithNoise(flags)
	s.model.RegisterNoiseAt(flags)
	s.model.RegisterRows(flags)
	option.RowsPerSensor(flags, &s.rows, ", one after the other; --alpha and --m count rows")
	flags.Var(option.Number(&s.spread, option.NotNegative), "noise-spread", "noise variances of sensors, log-uniform over so many decades about --noise-var; they are in the\nfile as noise_var0")
	s.prior.Register(flags, option.GaussBernoulli)
	s.groups.Register(flags)
	s.registerComplex(flags)
	option.JSON(flags, &s.json, "the summary")
	return cmd
}

func (s *simulate) registerSize(flags *pflag.FlagSet) {
	option.Entries(flags, &s.n)
	option.Alpha(flags, &s.alpha, option.Ratio, option.AlphaUsage)
	option.Sensors(flags, &s.m)
	option.Signals(flags, &s.p, "signals, P")
}

// registerComplex adds --complex and --phase, after the model's flags.
func (s *simulate) registerComplex(flags *pflag.FlagSet) {
	flags.BoolVar(&s.complex, "complex", false, "complex signals, W with independent entries CN(0, 1/N) (or --matrix-kind condition:v), readings and\ngains, whose amplitudes are in --s-range")
	s.phases.Register(flags)
}

func (s *simulate) run(flags *pflag.FlagSet) error {
	if s.given != "" {
		s.model.OwnRows()
	}
	if err := cmp.Or(
		s.model.Complete(flags), s.model.CheckStated(), s.prior.Complete(flags, &s.model, false), option.CheckArchive("-o", s.out),
	); err != nil {
		return err
	}
	if s.out == "" {
		return console.Usage("no file to write the problem to").WithHint("add -o P.npz")
	}
	inputs := append(dataset.SpecFiles(s.given), s.signals, s.model.Noise.File, s.codes.File())
	if err := cmp.Or(
		(console.Outputs{console.File("-o", s.out)}).Check(s.json, slices.Concat(inputs, s.groups.Files(), dataset.SpecFiles(s.basis.Spec))...),
		s.checkComplex(flags), s.model.TakePhotons(flags, false), s.model.CheckNoiseAt(s.complex), option.CheckExclusions(flags, "quantised", "sign", "counts"), s.codes.TakeNoise(flags, &s.model),
	); err != nil {
		return err
	}
	w, err := s.openGiven(flags)
	if err != nil {
		return err
	}
	if operator.IsComplex(w) && !s.complex {
		return console.Usage("--matrix %s is complex, and the problem is real", s.given).WithHint("add --complex")
	}
	t, err := s.teacher()
	if err != nil {
		return err
	}
	s.model.NoteAssumption(s.Console, flags)
	draw := s.draw
	if s.complex {
		draw = s.drawComplex
	}
	problem, err := draw(t, w)
	if err != nil {
		return err
	}
	if err := errors.Join(s.codes.Load(t.M, t.P), s.codes.Convert(problem.Y, 0, s.seed)); err != nil {
		return err
	}
	if s.known > 0 {
		problem.Known = teacher.Known(problem.Truth.S, s.known, s.seed)
	}
	if err := dataset.Save(s.out, problem); err != nil {
		return err
	}
	return s.print(problem)
}

// openGiven opens the matrix of --matrix, whose size is that of the problem; nil without.
func (s *simulate) openGiven(flags *pflag.FlagSet) (operator.Operator, error) {
	if s.given == "" {
		return nil, nil
	}
	for _, name := range []string{"n", "m", "alpha", "matrix-kind", "structured", "f4"} {
		if option.Given(flags, name) {
			return nil, console.Usage("--matrix and --%s both say what W is, give one", name)
		}
	}
	w, _, err := dataset.OpenMatrix(s.given, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	s.m, s.n = w.Dims()
	return w, nil
}

// draw makes the problem, of the matrix w if there is one.
func (s *simulate) draw(t teacher.Teacher, w operator.Operator) (*dataset.Problem, error) {
	wrong := func(err error) error { return &console.Exit{Code: console.WrongUsage, Err: err} }
	var err error
	switch {
	case s.structured && s.single:
		return nil, console.Usage("--f4 is for tables: leave out --f4 or --structured")
	case s.structured:
		if w, err = t.Matrix.Structured(t.M, t.N, s.seed); err != nil {
			return nil, wrong(err)
		}
	case w == nil: // a table
		instance, err := t.Draw(s.seed)
		if err != nil {
			return nil, wrong(err)
		}
		if s.single {
			if err := storeSingle(instance); err != nil {
				return nil, err
			}
		}
		if s.basis.Spec == "" {
			return &dataset.Problem{W: instance.W, Y: instance.Y, Sensors: t.Sensors(), Truth: instance.Truth}, nil
		}
		w = instance.W
	}
	composed, err := s.basis.Compose(w)
	if err != nil {
		return nil, err
	}
	y, truth, err := t.Readings(composed, s.seed)
	if err != nil {
		return nil, wrong(err)
	}
	truth.X, err = s.basis.Signals(truth.X)
	return &dataset.Problem{W: w, Y: y, Sensors: t.Sensors(), Truth: truth}, err
}

// solving is how the problem is solved, where W is not in the file as a table; empty
// where it is.
func (s *simulate) solving() string {
	kind, _, _ := strings.Cut(s.matrix.String(), ":")
	switch {
	case s.given != "":
		kind = s.given
	case s.structured:
		kind += ":" + s.out
	default:
		return ""
	}
	text := fmt.Sprintf("calamp solve --matrix %s --readings %s", kind, s.out)
	if s.basis.Spec != "" {
		text += " --basis " + s.basis.Spec
	}
	return text
}

// teacher is the ensemble that the flags describe.
func (s *simulate) teacher() (t teacher.Teacher, err error) {
	t = teacher.Teacher{N: s.n, P: s.p, Matrix: s.matrix, Signal: s.model.Prior(), Gain: s.model.GainPrior(), NoiseVar: s.model.NoiseVar, Offset: s.offset}
	if own := s.model.Channel().Own; s.model.AtReading() {
		t.NoiseVar, t.Own = 0, own
	}
	if s.prior.Family != "" {
		t.Entries = s.prior.Of(&s.model)
	}
	if t.N == 0 {
		t.N = s.prior.Entries()
	}
	if s.signals != "" {
		if t.X, err = s.readOrDraw(); err != nil {
			return t, err
		}
		if t.N, t.P = t.X.Dims(); s.complex {
			t.P /= 2
		}
	}
	if s.groups.On() {
		if !s.prior.Grouped() {
			return t, option.GroupsArePlain()
		}
		if err := s.groups.Load(&s.model, s.prior.GroupEntries(t.N)); err != nil {
			return t, err
		}
		groups, err := s.groups.Known(&s.model)
		if err != nil {
			return t, err
		}
		t.Entries = groups
		if s.prior.Entries() > 0 {
			t.Entries = s.prior.Over(groups)
		}
	}
	switch {
	case t.N == 0:
		return t, console.Usage("--n is needed: the number of entries of a signal")
	case t.P == 0:
		return t, console.Usage("--p is needed: the number of signals")
	case s.prior.CheckEntries(t.N) != nil:
		return t, console.Usage("%w", s.prior.CheckEntries(t.N))
	case s.m == 0 && s.alpha == 0:
		return t, console.Usage("--alpha or --m is needed: the number of sensors")
	case s.m > 0 && s.alpha > 0:
		return t, console.Usage("--alpha and --m both say how many sensors there are, give one")
	}
	if s.structured || s.given != "" {
		t.M = s.m
		if s.m == 0 {
			t.M = int(max(1, math.Round(min(s.alpha*float64(t.N), math.MaxInt32))))
		}
	} else if err := setSensors(&t, s.m, s.alpha); err != nil {
		return t, err
	}
	if t.Rows = max(1, s.rows); s.m == 0 {
		t.M = max(1, t.M/t.Rows) * t.Rows // a whole number of sensors
	}
	switch {
	case t.Rows > 1 && s.complex:
		return t, console.Usage("--rows-per-sensor is of real problems: leave out --complex")
	case t.M%t.Rows != 0:
		return t, console.Usage("--m %d is not a whole number of sensors with %d rows each", t.M, t.Rows)
	}
	return t, s.spreadNoise(&t)
}

// spreadNoise gives sensors noise of their own, where that is asked for.
func (s *simulate) spreadNoise(t *teacher.Teacher) error {
	if err := s.model.LoadNoise(t.M, t.P); err != nil {
		return err
	}
	t.Noise = s.model.Noise.Each
	if s.spread == 0 {
		return nil
	}
	if s.model.AtReading() {
		return console.Usage("--noise-spread is of noise before the division by s: leave out --noise-at reading")
	}
	if t.Noise != nil {
		return console.Usage("--noise-spread and --noise-var %s both say how noise differs between sensors, give one", s.model.Noise.File)
	}
	t.Noise = t.SpreadNoise(s.spread, s.seed)
	s.model.Noise.Lo, s.model.Noise.Hi = slices.Min(t.Noise), slices.Max(t.Noise)
	return nil
}

// mostEntries bounds W as a table: 32 GiB of it.
const mostEntries = 1 << 32

// setSensors sets M, which is α N when not given.
func setSensors(t *teacher.Teacher, m int, alpha float64) error {
	sensors := float64(m)
	if m == 0 {
		sensors = max(1, math.Round(alpha*float64(t.N)))
	}
	if largest := float64(max(t.N, t.P)) * max(sensors, float64(t.P)); largest > mostEntries {
		return console.Usage("M = %.4g, N = %d, P = %d: too large, an array would have %.3g entries", sensors, t.N, t.P, largest)
	}
	t.M = int(sensors)
	return nil
}

// readSignals is what --signals names, in C order.
func readSignals(name string) (values []float64, shape []int, err error) {
	if name == "sandals" {
		x, err := sandals.Load(sandals.Count)
		if err != nil {
			return nil, nil, err
		}
		return x.RawMatrix().Data, []int{sandals.Size, sandals.Count}, nil
	}
	array, err := dataset.LoadArray(name, "")
	if err != nil {
		return nil, nil, err
	}
	return array.Data, array.Shape, nil
}

// loadSignals reads signals, one a column; n and p are 0 where not given.
func loadSignals(path string, n, p int) (*mat.Dense, error) {
	values, stored, err := readSignals(path)
	if err != nil {
		return nil, err
	}
	shape := stored
	if len(shape) == 1 {
		shape = []int{shape[0], 1}
	}
	if len(shape) != 2 || len(values) == 0 {
		return nil, console.Usage("--signals %s has shape %v, expected N×P, one signal a column", path, stored).
			WithHint("in Python, images.reshape(P, -1).T makes signals of P images")
	}
	rows, columns := shape[0], shape[1]
	switch {
	case n > 0 && n != rows && n == columns:
		return nil, console.Usage("--signals %s is %d×%d and --n is %d: it looks transposed, expected N×P", path, rows, columns, n)
	case n > 0 && n != rows:
		return nil, console.Usage("--signals %s is %d×%d, but --n is %d", path, rows, columns, n)
	case p > columns:
		return nil, console.Usage("--signals %s has %d columns, but --p is %d", path, columns, p)
	}
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, console.Usage("--signals %s: row %d, column %d is %g, expected a finite number", path, i/columns, i%columns, v)
		}
	}
	x := mat.NewDense(rows, columns, values)
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
		return s.PrintJSON(console.Object{
			"", facts.SizeOf(p), "seed", s.seed, "matrix_kind", s.matrix.String(), "", s.prior, "model", s.model,
			"w_storage", facts.StorageOf(p.W), "written",
			[]string{s.out},
		})
	}
	if s.out == "-" {
		return nil
	}
	var text console.Summary
	text.Line("problem", "%v", facts.SizeOf(p))
	text.Line("written", "%s", s.out)
	if how := s.solving(); how != "" {
		text.Line("solve it by", "%s", how)
	}
	return s.Print(text.String())
}

// checkComplex refuses what is not for complex numbers, or only for them.
func (s *simulate) checkComplex(flags *pflag.FlagSet) error {
	return s.phases.CheckComplex(flags, &s.model, s.complex)
}

// complexTeacher is the complex ensemble of the size of t.
func (s *simulate) complexTeacher(t teacher.Teacher) teacher.Complex {
	return teacher.Complex{
		N: t.N, M: t.M, P: t.P, Signal: s.model.ComplexPrior(), Gain: s.model.ComplexGain(&s.phases), NoiseVar: s.model.NoiseVar, X: t.X, Matrix: s.matrix,
	}
}

// drawComplex makes a complex problem of the size of t.
func (s *simulate) drawComplex(t teacher.Teacher, w operator.Operator) (*dataset.Problem, error) {
	var in *teacher.ComplexInstance
	var err error
	if w == nil {
		in, err = s.complexTeacher(t).Draw(s.seed)
	} else {
		in, err = s.complexTeacher(t).Readings(w, s.seed)
	}
	if err != nil {
		return nil, &console.Exit{Code: console.WrongUsage, Err: err}
	}
	return &dataset.Problem{W: in.W, Y: in.Y, Truth: in.Truth, Complex: true}, nil
}

// jointWord is how --signals asks for signals that belong together: joint:ρ,c.
const jointWord = "joint:"

// readOrDraw are the signals that --signals names.
func (s *simulate) readOrDraw() (*mat.Dense, error) {
	text, joint := strings.CutPrefix(s.signals, jointWord)
	if !joint {
		return loadSignals(s.signals, s.n, s.p)
	}
	first, second, ok := strings.Cut(text, ",")
	density, failed := strconv.ParseFloat(first, 64)
	correlation, also := strconv.ParseFloat(second, 64)
	switch {
	case !ok || failed != nil || also != nil || !(density > 0 && density <= 1) || !(correlation >= 0 && correlation <= 1):
		return nil, console.Usage("--signals %s: expected joint:ρ,c with a density in (0, 1] and a correlation in [0, 1], such as joint:0.2,0.9", s.signals)
	case s.n == 0:
		return nil, console.Usage("--n is needed: the number of entries of a signal")
	case s.p == 0:
		return nil, console.Usage("--p is needed: the number of signals")
	}
	if s.complex {
		return teacher.ComplexJointSignals(s.n, s.p, density, s.model.SignalVar, correlation, s.seed), nil
	}
	return teacher.JointSignals(s.n, s.p, density, s.model.SignalVar, correlation, s.seed), nil
}
