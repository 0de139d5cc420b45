package calamp_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
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
	return &calamp.Problem{W: w, Y: y, Prior: prior.LearnedGaussBernoulli{GaussBernoulli: signal, Learn: prior.Density | prior.SignalMean | prior.SignalVar}, Channel: gain}
}

func allLearned() calamp.Options {
	return calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}, Settings: solver.Settings{Threads: 1}}
}

func toldModel(w operator.Operator, y *mat.Dense, density, noise float64) *calamp.Problem {
	return &calamp.Problem{W: w, Y: y, Prior: prior.GaussBernoulli{Density: density, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: noise}}
}

func TestExploreFit(t *testing.T) {
	for _, truth := range [][]float64{{0.05}, {0.05, -0.03, 0.004}} {
		for seed := range uint64(2) {
			rng := rand.New(rand.NewPCG(seed, 40))
			ws := newWaves(320, 20, 20, rng)
			w0, _ := ws.at(nil)
			w, _ := ws.at(truth)
			y, tr := scenes(w, 6, 0.15, 1e-6, rng)
			for i, p := range []*calamp.Problem{freeModel(w0, y), toldModel(w0, y, 0.15, 1e-6)} {
				opt := allLearned()
				if i == 1 {
					opt.Learn = calamp.Learn{}
				}
				q := *p
				q.W = w
				begun := time.Now()
				known, err := calamp.Solve(context.Background(), &q, &opt)
				one := time.Since(begun)
				if err != nil {
					t.Fatal(err)
				}
				total := 0
				f := &calamp.FitOptions{Options: opt, Start: make([]float64, len(truth)), Tell: func(r calamp.MatrixRun) {
					total += r.Iterations
					if seed == 0 {
						t.Logf("   %+v", r)
					}
				}}
				begun = time.Now()
				fit, err := calamp.FitMatrix(context.Background(), ws.at, p, f)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					continue
				}
				z := make([]float64, len(truth))
				for j := range z {
					z[j] = (fit.Theta[j] - truth[j]) / fit.ThetaSD[j]
				}
				t.Logf("%v seed %d model %d: z %.2f sd %.2g: %v, %d runs, %d iterations (%d), x %.3g (%.3g), time %.1f", truth, seed, i, z, fit.ThetaSD, fit.Status, len(fit.Runs), total, known.Iterations, fit.Score(tr).XMSEScaled, known.Score(tr).XMSEScaled, float64(time.Since(begun))/float64(one))
			}
		}
	}
}
