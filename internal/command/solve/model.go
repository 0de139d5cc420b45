package solve

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
)

// saveModel writes the file of --save-model.
func (s *solve) saveModel(flags *pflag.FlagSet, w operator.Operator, res *calamp.Result, source string) error {
	square, centred, err := rowSquare(w, res)
	if err != nil {
		return err
	}
	found := &option.Found{
		Flags: flags, Args: facts.Stated(flags, s.Args, func(name string) bool { return option.ParameterOf(name) != nil }),
		Model: &s.model, Prior: &s.prior, Groups: &s.groups, Offset: &s.offset, Phases: &s.phases,
		Result: res, Source: source, RowSquare: square, Centred: centred,
	}
	return found.Save(s.learned)
}

// rowSquare is the mean squared norm of the rows of W, about its row and column means r and c where a run takes these out:
// ‖W - r1ᵀ - 1cᵀ + m‖² = ‖W‖² - N Σr² - M Σc² + MNm².
func rowSquare(w operator.Operator, res *calamp.Result) (square float64, centred bool, err error) {
	m, n := w.Dims()
	square = w.MeanSquare() * float64(n)
	if !res.Plan.Has("mean removal") {
		return square, false, nil
	}
	means, err := operator.MeansOf(w, 0)
	if err != nil {
		return 0, false, err
	}
	mean := 0.0
	for _, r := range means.Rows {
		square -= float64(n) / float64(m) * r * r
		mean += r / float64(m)
	}
	for _, c := range means.Columns {
		square -= c * c
	}
	return square + float64(n)*mean*mean, true, nil
}

const aboutModel = `Check a model file, and say in words what it holds: what is known of signals, sensors,
noise and matrix, once, for calamp solve, online, simulate, se, free-energy, threshold,
check-calibration, plan and serve, each with --model FILE.toml, and for Python and MATLAB,
model="FILE.toml". Flags of a command go before what the file says; what is in neither is
learned. calamp solve --save-model FILE.toml writes one.

  about = "the camera on the bench"
  [signals]
  density = 0.15              # a number, a text, or a list of numbers
  prior = "nonnegative"
  [sensors]
  gain_range = [0.7, 1.4]
  [noise]
  noise_var = "noise.npy"     # files lie beside this one
  [matrix]
  matrix = "masks.npy"

Keys are the names of the flags, with _ for -. docs/model.md lists them.`

// ModelCommand is calamp model. It checks a file as calamp solve would.
func ModelCommand(a *console.Console) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "model FILE.toml",
		Short: "Check a file that says what is known, and say it in words",
		Long:  aboutModel,
		Example: `  calamp model instrument.toml
  calamp solve P.npz --model instrument.toml --noise-var 1e-4`,
		Args:              console.Arguments(1, 1, "one file"),
		ValidArgsFunction: option.CompleteFiles("toml"),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := option.LoadModel(args[0])
			if err != nil {
				return err
			}
			s := newSolve(a)
			flags := s.command().Flags()
			option.AddSpellings(flags)
			size, err := s.check(m, flags)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if asJSON {
				return a.PrintJSON(m.JSON())
			}
			return a.Print(s.words(m, size))
		},
	}
	option.JSON(cmd.Flags(), &asJSON, "the words")
	return cmd
}

// check does with a model what a run does before it reads readings, and returns M and N; 0 where no matrix is named.
func (s *solve) check(m *option.ModelFile, flags *pflag.FlagSet) (size [2]int, err error) {
	if _, err := m.Apply(flags, false); err != nil {
		return size, err
	}
	if err := s.completeModel(flags, nil); err != nil {
		return size, err
	}
	files := append(slices.Concat(s.groups.Files(), s.belong.Files()), s.model.Noise.File, s.model.KnowledgeFile(), s.sensors.File)
	for _, spec := range slices.Concat(s.doubt.derivatives, s.doubt.sensors) {
		files = append(files, dataset.SpecFiles(spec)...)
	}
	for _, file := range files {
		if _, err := os.Stat(file); file != "" && err != nil {
			return size, console.Usage("%s: %w", file, console.Cause(err))
		}
	}
	if s.parts.Matrix == "" {
		return size, nil
	}
	w, file, err := dataset.OpenMatrix(s.parts.Matrix, int64(s.memory))
	if err != nil {
		return size, err
	}
	if file != nil {
		defer file.Close()
	}
	size[0], size[1] = w.Dims()
	isComplex := operator.IsComplex(w)
	if err := s.phases.CheckComplex(flags, &s.model, isComplex); isComplex && err != nil {
		return size, err
	}
	composed, err := s.parts.Basis.Compose(w)
	if err != nil {
		return size, err
	}
	_, n := composed.Dims()
	if err := errors.Join(s.groups.Load(&s.model, n), s.model.LoadKnowledge(flags, nil, size[0])); err != nil {
		return size, err
	}
	if s.model.Noise.File == "" {
		return size, nil
	}
	a, err := dataset.LoadArray(s.model.Noise.File, "noise_var")
	if err == nil && len(a.Shape) > 0 && a.Shape[0] != size[0] {
		err = console.Usage("noise_var: %s has %d rows, expected %d, one for each sensor", s.model.Noise.File, a.Shape[0], size[0])
	}
	return size, err
}

// words is a model in words.
func (s *solve) words(m *option.ModelFile, size [2]int) string {
	var text console.Summary
	if m.About != "" {
		text.Line("about", "%s", m.About)
	}
	text.Line("signals", "%s", m.Signals(&s.prior, size[1]))
	text.Line("sensors", "%s", m.Sensors(size[0]))
	text.Line("noise", "%s", m.Noise())
	if s.parts.Matrix != "" {
		text.Line("matrix", "%s, %d×%d", s.parts.Matrix, size[0], size[1])
	}
	if doubt := m.Matrix(); doubt != "" {
		text.Line("matrix", "%s", doubt)
	}
	text.Line("faults", "broken sensors: %s; single wrong readings: %s", m.Value("faulty", "looked for"), m.Value("outliers", "looked for"))
	if open := m.Open(&s.prior); len(open) > 0 {
		text.Line("learned", "%s", strings.Join(open, ", "))
	}
	return text.String()
}
