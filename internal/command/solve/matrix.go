package solve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
)

// doubt is what a matrix may be wrong in: --derivatives and --image of calamp solve, which tests them, and what calamp fit-matrix fits.
type doubt struct {
	derivatives []string
	sensors     []string // --sensor-derivatives
	image       string
	random      string  // --matrix-error
	size        float64 // what it says, 0 for auto

	fits      bool // calamp fit-matrix
	start     []float64
	matrixOut string
	resume    bool

	given      operator.Operator // W before it is multiplied with a basis
	directions []calamp.Direction
	ofSensors  []calamp.Direction
	found      *calamp.MatrixFit
}

// FitCommand is calamp fit-matrix.
func FitCommand(a *console.Console) *cobra.Command {
	s := newSolve(a)
	s.doubt.fits = true
	cmd := s.command()
	cmd.Use = "fit-matrix P.npz --derivatives D.npy"
	cmd.Short = "Recover signals, calibration, and what is not known of the matrix"
	cmd.Long = `Recover signals and calibration, and a few parameters theta of the matrix,

  W(theta) = W + theta_0 D_0 + theta_1 D_1 + …

from the readings of a problem file: a shift, a spacing, a dispersion. --derivatives gives D, J×M×N, or
J files. Everything of calamp solve goes along; what it learns it learns for every theta that is tried, and the
noise in any case, since a wrong W looks like noise. theta is where the evidence of the readings has its maximum,
theta_sd and theta_cov are of its curvature there.

The result has theta, theta_sd (J) and theta_cov (J×J) beside all that calamp solve writes, with W(theta) for W.
theta is to start where W(theta) resembles the true one: for a shift, by less than what patterns are wide.
Ctrl-C writes what there is. --resume goes on from there, and after a crash from the last run that ended.`
	cmd.Example = `  calamp fit-matrix P.npz --derivatives D.npy -o R.npz --report R.html --matrix-out W1.npy
  calamp fit-matrix P.npz --derivatives dx.npy --derivatives dy.npy -o R.npz --start 0.1,0`
	flags := cmd.Flags()
	flags.Float64SliceVar(&s.doubt.start, "start", nil, "where theta begins, one number for each derivative (default zeros)")
	flags.StringVar(&s.doubt.matrixOut, "matrix-out", "", "write W(theta), before it is multiplied with a --basis, to this .npy, .npz or .mat")
	flags.BoolVar(&s.doubt.resume, "resume", false, "go on from the likeliest theta of a former call with the same -o that was ended")
	option.Hide(flags, "compare", "mpi", "reproducible")
	return cmd
}

func (d *doubt) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&d.derivatives, "derivatives", nil, option.About("derivatives"))
	flags.StringVar(&d.random, "matrix-error", "", option.About("matrix-error"))
	if !d.fits {
		flags.StringArrayVar(&d.sensors, "sensor-derivatives", nil, option.About("sensor-derivatives"))
		flags.StringVar(&d.image, "image", "", option.About("image"))
	}
}

// check refuses what does not go together.
func (s *solve) checkDoubt() error {
	d := &s.doubt
	if d.random != "" && d.random != option.AutoWord {
		var err error
		if d.size, err = strconv.ParseFloat(d.random, 64); err != nil || !(d.size > 0 && d.size < 1) {
			return console.Usage("--matrix-error %q: expected a number between 0 and 1, or %s", d.random, option.AutoWord)
		}
	}
	switch {
	case s.ranks.On() && d.random != "":
		return console.Usage("--matrix-error is for one process: leave out --mpi")
	case s.ranks.On() && len(d.sensors) > 0:
		return console.Usage("--sensor-derivatives is for one process: leave out --mpi")
	case s.ranks.On() && (d.fits || len(d.derivatives) > 0 || d.image != ""):
		return console.Usage("what W may be wrong in is for one process: leave out --mpi")
	case !d.fits:
		return nil
	case len(d.derivatives) == 0:
		return console.Usage("fit-matrix needs --derivatives: the derivatives of W by its parameters, J×M×N")
	case s.others:
		return console.Usage("--compare is for calamp solve: leave it out, or give it --matrix with what --matrix-out wrote")
	case d.resume && s.stateFile() == "":
		return console.Usage("--resume needs a file for -o: what was found so far stands beside it")
	case d.matrixOut == "-":
		return console.Usage("--matrix-out: expected the name of a file, found -")
	}
	return nil
}

// loadDoubt reads the derivatives, and finds the image, of the W as given.
func (s *solve) loadDoubt(data *dataset.Problem) (err error) {
	d := &s.doubt
	d.given = data.W
	m, n := data.W.Dims()
	if d.directions, err = dataset.LoadDerivatives(d.derivatives, m, n); err != nil {
		return console.Usage("--derivatives %w", err)
	}
	if d.ofSensors, err = dataset.LoadDerivatives(d.sensors, m, n); err != nil {
		return console.Usage("--sensor-derivatives %w", err)
	}
	if d.fits {
		if len(d.start) == 0 {
			d.start = make([]float64, len(d.directions))
		}
		if len(d.start) != len(d.directions) {
			return console.Usage("--start has %s for %s: expected one for each", console.Plural(len(d.start), "number"), console.Plural(len(d.directions), "derivative"))
		}
		if s.doubt.resume {
			return s.takeState(data)
		}
	}
	return nil
}

// tests are the directions that are tested at the fixed point, of W times the basis. Those that a basis implies are left out where sensors have
// several rows, with which no direction goes along yet.
func (s *solve) tests(shared bool) ([]calamp.Direction, error) {
	d := &s.doubt
	if d.fits || s.ranks.On() {
		return nil, nil
	}
	list, err := s.inBasis("--derivatives", d.directions)
	if err != nil {
		return nil, err
	}
	text, implied := d.image, ""
	if text == "" {
		text, _ = strings.CutPrefix(s.parts.Basis.Spec, "dct2:")
		if text == s.parts.Basis.Spec || shared {
			return list, nil
		}
		implied = " of --basis"
	}
	height, width, ok := dataset.ImageSize(text)
	var images []calamp.Direction
	if err = errors.New("expected a height and a width, as in 28x28"); ok {
		images, err = calamp.ImageDirections(d.given, s.parts.Basis.Operator(), height, width)
	}
	list = append(list, images...)
	if err != nil && implied == "" {
		return nil, console.Usage("--image %s: %w", text, err)
	}
	return list, nil
}

// inBasis are directions of W times the basis.
func (s *solve) inBasis(flag string, directions []calamp.Direction) (list []calamp.Direction, err error) {
	for _, direction := range directions {
		if s.parts.Basis.Spec != "" {
			if direction.D, err = operator.Compose(direction.D, s.parts.Basis.Operator()); err != nil {
				return nil, console.Usage("%s: %w", flag, err)
			}
		}
		list = append(list, direction)
	}
	return list, nil
}

// solveProblem is the run, or the fit.
func (s *solve) solveProblem(ctx context.Context, data *dataset.Problem, p *calamp.Problem, opt *calamp.Options) (*calamp.Result, error) {
	if !s.doubt.fits {
		return runSolver(ctx, s.Console, "solving", p, opt)
	}
	return s.fitMatrix(ctx, data, p, opt)
}

func (s *solve) fitMatrix(ctx context.Context, data *dataset.Problem, p *calamp.Problem, opt *calamp.Options) (res *calamp.Result, err error) {
	defer crash.Catch(&err)
	d := &s.doubt
	linear, err := calamp.LinearMatrix(d.given, d.directions...)
	if err != nil {
		return nil, err
	}
	family := linear
	if basis := s.parts.Basis.Operator(); basis != nil {
		family = func(theta []float64) (operator.Operator, error) {
			w, err := linear(theta)
			if err != nil {
				return nil, err
			}
			return operator.Compose(w, basis)
		}
	}
	fit := &calamp.FitOptions{Options: *opt, Start: d.start}
	bar := s.Progress()
	defer bar.Done()
	bar.Show("fitting the matrix, run 1", 0)
	j := len(d.start)
	usual := float64(6 + j + j*(j+3)/2)
	var runs []calamp.MatrixRun
	fit.Tell = func(run calamp.MatrixRun) {
		runs = append(runs, run)
		what := ""
		if run.Around {
			what = ", around the maximum"
		}
		bar.Show(fmt.Sprintf("fitting the matrix, run %d%s: theta %.5g, log evidence %.6g", run.Number, what, run.Theta, run.LogEvidence), min(0.95, float64(run.Number)/usual))
		s.saveState(data, runs)
	}
	d.found, err = calamp.FitMatrix(ctx, family, p, fit)
	if d.found == nil {
		return nil, err
	}
	data.W = d.found.W
	if err == nil {
		s.dropState()
	}
	return d.found.Result, err
}

// A fit that is under way leaves its runs beside the result.

type fitState struct {
	Readings string             `json:"readings"` // hash of Y
	Runs     []calamp.MatrixRun `json:"runs"`
}

func (s *solve) stateFile() string {
	if s.out == "" || s.out == "-" || strings.HasPrefix(s.out, "/dev/") {
		return ""
	}
	return s.out + ".fit.json"
}

// saveState is called after every run. That it cannot be written shows when the result is.
func (s *solve) saveState(data *dataset.Problem, runs []calamp.MatrixRun) {
	if path := s.stateFile(); path != "" {
		_ = dataset.WriteFile(path, func(w io.Writer) error {
			return json.NewEncoder(w).Encode(fitState{dataset.HashReadings(data.Y), runs})
		})
	}
}

func (s *solve) dropState() {
	if path := s.stateFile(); path != "" {
		os.Remove(path) // it is in no one's way
	}
}

// takeState starts from the likeliest θ of a former call.
func (s *solve) takeState(data *dataset.Problem) error {
	path := s.stateFile()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.Note("--resume: there is no %s, the fit begins at its start", path)
		return nil
	}
	if err != nil {
		return console.Usage("--resume %s: %w", path, console.Cause(err))
	}
	var state fitState
	if err := json.Unmarshal(text, &state); err != nil || len(state.Runs) == 0 {
		return console.Usage("--resume %s: this is no state of a fit", path)
	}
	best := state.Runs[0]
	for _, run := range state.Runs {
		if run.LogEvidence > best.LogEvidence {
			best = run
		}
	}
	if len(best.Theta) != len(s.doubt.start) || state.Readings != dataset.HashReadings(data.Y) {
		return console.Usage("--resume %s: that is a fit of other readings, or of other derivatives", path)
	}
	s.doubt.start = best.Theta
	s.Note("goes on from theta = %.6g, the likeliest of %s", best.Theta, console.Plural(len(state.Runs), "run"))
	return nil
}

// saveMatrix writes W(θ) before the basis.
func (s *solve) saveMatrix() error {
	linear, err := calamp.LinearMatrix(s.doubt.given, s.doubt.directions...)
	if err != nil {
		return err
	}
	w, err := linear(s.doubt.found.Theta)
	if err != nil {
		return err
	}
	return dataset.SaveMatrix(s.doubt.matrixOut, w)
}

// extra is what a result file holds of the fit, or of the tests.
func (d *doubt) extra(res *calamp.Result) (list []dataset.Extra) {
	if d.found != nil {
		list = append(list, dataset.Extra{Name: "theta", Vector: d.found.Theta})
		if d.found.ThetaCov != nil {
			list = append(list, dataset.Extra{Name: "theta_sd", Vector: d.found.ThetaSD}, dataset.Extra{Name: "theta_cov", Matrix: mat.DenseCopyOf(d.found.ThetaCov)})
		}
	}
	if res.Theta != nil {
		list = append(list, dataset.Extra{Name: "theta", Matrix: res.Theta}, dataset.Extra{Name: "theta_sd", Matrix: res.ThetaSD}, dataset.Extra{Name: "theta_spread", Vector: res.SensorSpread})
	}
	if res.MatrixScores != nil {
		scores := make([]float64, len(res.MatrixScores))
		for j, s := range res.MatrixScores {
			scores[j] = s.Score
		}
		list = append(list, dataset.Extra{Name: "matrix_score", Vector: scores})
	}
	return list
}

// json is what --json says of it: of the random error of W, of what was tested, and of what was fitted.
func (d *doubt) json(res *calamp.Result) console.Object {
	o := console.Object{"matrix_error?", res.MatrixError, "matrix_error_sd?", res.MatrixErrorSD, "matrix_scores?", res.MatrixScores, "theta_spread?", res.SensorSpread}
	if d.found == nil {
		return o
	}
	var rows [][]float64
	if cov := d.found.ThetaCov; cov != nil {
		for i := range d.found.Theta {
			rows = append(rows, mat.Row(nil, i, cov))
		}
	}
	return append(o, "theta?", d.found.Theta, "theta_sd?", d.found.ThetaSD, "theta_cov?", rows, "fit_runs?", d.found.Runs)
}

// lines say it.
func (d *doubt) lines(text *console.Summary, res *calamp.Result) {
	if f := d.found; f != nil {
		for j, theta := range f.Theta {
			sd := "not known"
			if f.ThetaSD != nil {
				sd = console.Short(f.ThetaSD[j])
			}
			text.Line("theta "+strconv.Itoa(j), "%.7g ± %s (%s)", theta, sd, d.directions[j].Name)
		}
		text.Line("runs", "%d of the fit", len(f.Runs))
	}
	for j, spread := range res.SensorSpread {
		text.Line("theta "+strconv.Itoa(j), "of every sensor, spread over them by %s, known to ±%s in the middle (%s)", console.Short(spread), console.Short(medianOf(mat.Col(nil, j, res.ThetaSD))), d.ofSensors[j].Name)
	}
	if res.MatrixErrorSD > 0 {
		text.Line("W", "entries wrong at random by %s ± %s of their row's size", console.Percent(res.MatrixError), console.Percent(res.MatrixErrorSD*res.MatrixError))
	}
	if len(res.MatrixScores) > 0 {
		most := res.MatrixScores[0]
		for _, s := range res.MatrixScores {
			if math.Abs(s.Score) > math.Abs(most.Score) {
				most = s
			}
		}
		text.Line("W", "of %s tested the readings doubt it most along %s, by %.1f standard errors", console.Plural(len(res.MatrixScores), "direction"), most.Name, math.Abs(most.Score))
	}
}

// medianOf sorts v.
func medianOf(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// fitted is what the provenance says of a fit.
type fitted struct {
	Theta   []float64 `json:"theta,omitempty"`
	ThetaSD []float64 `json:"theta_sd,omitempty"`
}

func (d *doubt) fitted() fitted {
	if d.found == nil {
		return fitted{}
	}
	return fitted{d.found.Theta, d.found.ThetaSD}
}

func (d *doubt) names() (list []string) {
	for _, direction := range d.directions {
		list = append(list, direction.Name)
	}
	return list
}

// name is the command's.
func (s *solve) name() string {
	if s.doubt.fits {
		return "fit-matrix"
	}
	return "solve"
}
