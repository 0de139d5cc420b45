package calamp_test

import (
	"context"
	"errors"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// waves are M patterns on side × side pixels, sums of plane waves of all directions up to the sharpest that pixels hold, so that a pattern
// is known between pixels, too.
type waves struct {
	m, side int
	waves   [][][4]float64 // M, of each pattern: wave vector (2), phase, amplitude
}

func newWaves(m, side, count int, rng *rand.Rand) *waves {
	w := &waves{m: m, side: side}
	for range m {
		var pattern [][4]float64
		for range count {
			pattern = append(pattern, [4]float64{
				math.Pi * (2*rng.Float64() - 1), math.Pi * (2*rng.Float64() - 1), 2 * math.Pi * rng.Float64(),
				math.Sqrt(2 / float64(count) / float64(side*side)),
			})
		}
		w.waves = append(w.waves, pattern)
	}
	return w
}

// at are the patterns shifted by theta[0] to the right, theta[1] down, and turned by theta[2] (as far as given): side² columns.
func (w *waves) at(theta []float64) (operator.Operator, error) {
	var t [3]float64
	copy(t[:], theta)
	sin, cos := math.Sincos(t[2])
	n := w.side * w.side
	values, middle := make([]float64, w.m*n), 0.5*float64(w.side-1)
	across, down := make([]complex128, w.side), make([]complex128, w.side)
	for mu, pattern := range w.waves {
		for _, k := range pattern {
			right, below := cos*k[0]-sin*k[1], sin*k[0]+cos*k[1] // wave vector against the pixels
			for i := range w.side {
				across[i] = cmplx.Rect(k[3], right*(float64(i)-middle)-k[0]*t[0]-k[1]*t[1]+k[2])
				down[i] = cmplx.Rect(1, below*(float64(i)-middle))
			}
			for i := range n {
				values[mu*n+i] += real(across[i%w.side] * down[i/w.side])
			}
		}
	}
	return operator.NewDense(w.m, n, values)
}

// scenes are p sparse signals seen through w by sensors with gains, with the truth.
func scenes(w operator.Operator, p int, density, noise float64, rng *rand.Rand) (*mat.Dense, calamp.Truth) {
	m, n := w.Dims()
	x := mat.NewDense(n, p, nil)
	entries := make([]float64, n*p)
	for k := range p {
		for i := range n {
			if rng.Float64() < density {
				entries[k*n+i] = rng.NormFloat64()
				x.Set(i, k, entries[k*n+i])
			}
		}
	}
	y, s := mat.NewDense(m, p, nil), make([]float64, m)
	if err := operator.Mul(y.RawMatrix().Data, w, entries); err != nil {
		panic(err)
	}
	for mu := range m {
		s[mu] = 0.8 + 0.4*rng.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+math.Sqrt(noise)*rng.NormFloat64())/s[mu])
		}
	}
	return y, calamp.Truth{X: x, S: s}
}

// freeModel is the model of readings of which nothing is known.
func freeModel(w operator.Operator, y *mat.Dense) *calamp.Problem {
	nan := math.NaN()
	signal, gain, err := calamp.Guess(w, y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan, Hi: nan}, NoiseVar: nan})
	if err != nil {
		panic(err)
	}
	return &calamp.Problem{W: w, Y: y, Prior: signal.Learning(prior.Density | prior.SignalMean | prior.SignalVar), Channel: gain}
}

func allLearned() calamp.Options {
	return calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}, Settings: solver.Settings{Threads: 1}}
}

func givenModel(w operator.Operator, y *mat.Dense, density, noise float64) *calamp.Problem {
	return &calamp.Problem{W: w, Y: y, Prior: prior.GaussBernoulli{Density: density, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: noise}}
}

// smallFit is a problem that is quickly fitted: patterns on 14 × 14 pixels, and its family.
func smallFit(theta []float64, seed uint64) (*calamp.Problem, calamp.Truth, calamp.MatrixFamily) {
	rng := rand.New(rand.NewPCG(seed, 44))
	family := calamp.MatrixFamily(newWaves(157, 14, 8, rng).at)
	right, _ := family(theta)
	given, _ := family(make([]float64, len(theta)))
	y, truth := scenes(right, 6, 0.12, 1e-6, rng)
	return freeModel(given, y), truth, family
}

// The slope of the evidence along θ is what runs beside each other say it is.
func TestMatrixScoreIsTheSlope(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 45))
	base, _ := wrongAtRandom(120, 150, 0, rng)
	along, _ := wrongAtRandom(120, 150, 0, rng)
	direction := calamp.Direction{Name: "D", D: along}
	family, err := calamp.LinearMatrix(base, direction)
	if err != nil {
		t.Fatal(err)
	}
	y, _ := scenes(base, 5, 0.12, 1e-2, rng)
	at := func(theta float64) *calamp.Result {
		w, err := family([]float64{theta})
		if err != nil {
			t.Fatal(err)
		}
		opt := calamp.Options{Settings: solver.Settings{Tol: 1e-9, MaxIter: 3000}, Directions: []calamp.Direction{direction}}
		return solve(t, givenModel(w, y, 0.12, 1e-2), &opt)
	}
	const theta, h = 0.02, 0.002
	slope := (at(theta+h).LogEvidence - at(theta-h).LogEvidence) / (2 * h)
	score := at(theta).MatrixScores[0]
	if got := score.Score / score.SD; math.Abs(got-slope) > 0.02*math.Abs(slope)+0.01/score.SD {
		t.Errorf("slope %g, by differences of the evidence %g", got, slope)
	}
}

func TestFitMatrix(t *testing.T) {
	tests.Long(t)
	for _, truth := range [][]float64{{0.04}, {0.04, -0.03}} {
		p, signals, family := smallFit(truth, 1)
		reported := 0
		fit, err := calamp.FitMatrix(context.Background(), family, p, &calamp.FitOptions{
			Options: allLearned(), Start: make([]float64, len(truth)), Tell: func(calamp.MatrixRun) { reported++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range truth {
			if z := (fit.Theta[j] - v) / fit.ThetaSD[j]; math.Abs(z) > 3.5 || !(fit.ThetaSD[j] < 1e-3) {
				t.Errorf("theta %d is %g ± %g, and was %g", j, fit.Theta[j], fit.ThetaSD[j], v)
			}
		}
		if fit.Status != calamp.Converged || fit.Score(signals).XMSEScaled > 1e-5 || reported != len(fit.Runs) {
			t.Errorf("%v, error %g, reported %d runs of %d", fit.Status, fit.Score(signals).XMSEScaled, reported, len(fit.Runs))
		}
	}
}

// Patterns without fine detail have a W of condition 10⁴, of which messages do not converge: signals are integrated out then.
func TestFitMatrixOfCoarsePatterns(t *testing.T) {
	tests.Long(t)
	rng := rand.New(rand.NewPCG(1, 46))
	patterns := newWaves(97, 11, 8, rng)
	for _, pattern := range patterns.waves {
		for i := range pattern {
			pattern[i][0], pattern[i][1] = 0.6*pattern[i][0], 0.6*pattern[i][1]
		}
	}
	right, _ := patterns.at([]float64{0.04})
	given, _ := patterns.at(nil)
	y, truth := scenes(right, 6, 0.12, 1e-6, rng)
	opt := allLearned()
	opt.Retry, opt.MaxIter = true, 300 // as the command does, which gives up messages after more
	fit, err := calamp.FitMatrix(t.Context(), patterns.at, freeModel(given, y), &calamp.FitOptions{Options: opt, Start: []float64{0}})
	if err != nil {
		t.Fatal(err)
	}
	integrated := 0
	for _, r := range fit.Runs {
		t.Logf("%+v", r)
		if r.Around && r.Status == calamp.Converged {
			integrated++
		}
	}
	if z := (fit.Theta[0] - 0.04) / fit.ThetaSD[0]; fit.Status != calamp.Converged || math.Abs(z) > 3.5 || !(fit.ThetaSD[0] < 2e-3) || integrated < 2 {
		t.Errorf("%v, theta %g ± %g, error %g", fit.Status, fit.Theta[0], fit.ThetaSD[0], fit.Score(truth).XMSEScaled)
	}
}

func TestFitMatrixCutShort(t *testing.T) {
	p, _, family := smallFit([]float64{0.04}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fit, err := calamp.FitMatrix(ctx, family, p, &calamp.FitOptions{Options: allLearned(), Start: []float64{0}, Tell: func(r calamp.MatrixRun) {
		if r.Number == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || fit == nil || fit.Status != calamp.Cancelled || len(fit.Runs) != 3 || math.Abs(fit.Theta[0]-0.04) > 0.03 {
		t.Errorf("%v, %+v", err, fit)
	}
}

func TestFitMatrixErrors(t *testing.T) {
	p, _, family := smallFit([]float64{0.04}, 1)
	twice := func(theta []float64) (operator.Operator, error) { return family([]float64{theta[0] + theta[1]}) }
	fixed := func([]float64) (operator.Operator, error) { return p.W, nil }
	none := func([]float64) (operator.Operator, error) { return nil, nil }
	for _, c := range []struct {
		name   string
		family calamp.MatrixFamily
		opt    calamp.FitOptions
		want   string
	}{
		{"no start", family, calamp.FitOptions{}, "needs a start"},
		{"no number", family, calamp.FitOptions{Start: []float64{math.NaN()}}, "theta 0 starts at NaN"},
		{"twice the same", twice, calamp.FitOptions{Options: allLearned(), Start: []float64{0, 0}}, "two of them do the same"},
		{"nothing", fixed, calamp.FitOptions{Start: []float64{0}, Names: []string{"the tilt"}}, "the tilt: W does not change"},
		{"no matrix", none, calamp.FitOptions{Start: []float64{0}}, "there is none"},
		{"joint", family, calamp.FitOptions{Start: []float64{0}, Options: calamp.Options{Joint: solver.JointOn}}, "signals by themselves"},
		{"few runs", family, calamp.FitOptions{Options: allLearned(), Start: []float64{0}, MostRuns: 2}, "no maximum of the evidence in 2 runs"},
	} {
		if _, err := calamp.FitMatrix(context.Background(), c.family, p, &c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A shift of all rows by a twentieth of a pixel is named, with nothing known but the shape of the images: by a run of message passing, and by the command's further tries, which
// end with signals that are integrated out.
func TestShiftIsNamed(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		shift float64
		retry bool
	}{{0, false}, {0, true}, {0.05, false}, {0.05, true}} {
		shift := c.shift
		p, _, _ := smallFit([]float64{0, shift}, 2)
		opt := allLearned()
		opt.Retry = c.retry
		var err error
		if opt.Directions, err = calamp.ImageDirections(p.W, nil, 14, 14); err != nil {
			t.Fatal(err)
		}
		res := solve(t, p, &opt)
		i := slices.IndexFunc(res.Warnings, func(w calamp.Warning) bool { return w.Code == calamp.MatrixDoubtful })
		switch {
		case shift == 0 && i >= 0:
			t.Errorf("the right W is doubted: %s", res.Warnings[i].Message)
		case shift > 0 && (i < 0 || !strings.Contains(res.Warnings[i].Message, "a shift of the rows down, in pixels (by")):
			t.Errorf("a shift down by %g is not named: %v", shift, res.MatrixScores)
		}
	}
	if _, err := calamp.ImageDirections(planned{}, nil, 3, 5); err == nil {
		t.Error("images of 15 pixels for 196 columns")
	}
}

// planned is a W of a size alone.
type planned struct{ operator.Operator }

func (planned) Dims() (m, n int) { return 157, 196 }

// With random errors of W counted, a run with the noise given ends where it does not without, and learns their size. With the noise learned, too,
// both are found together, as well as the readings tell, where each by itself took hundreds of iterations and ended before.
func TestMatrixErrorIsLearned(t *testing.T) {
	for _, noise := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 46))
		const eta = 0.02
		right, given := wrongAtRandom(200, 250, eta, rng)
		y, truth := scenes(right, 8, 0.12, 1e-6, rng)
		opt := calamp.Options{Learn: calamp.Learn{MatrixError: true, Noise: noise}}
		res := solve(t, givenModel(given, y, 0.12, 1e-6), &opt)
		z := math.Log(res.MatrixError/eta) / res.MatrixErrorSD
		if res.Status != calamp.Converged || res.Iterations > 100 || math.Abs(z) > 2.5 || !noise && res.MatrixErrorSD > 0.05 || res.MatrixErrorSD > 0.2 {
			t.Errorf("noise learned %v: %v after %d iterations, error of W %g ± %g, was %g", noise, res.Status, res.Iterations, res.MatrixError, res.MatrixErrorSD*res.MatrixError, eta)
		}
		if c := coverage95(res, truth); c < 0.88 {
			t.Errorf("noise learned %v: coverage of s is %g", noise, c)
		}
	}
}
