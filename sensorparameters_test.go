package calamp_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"sync"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// delayed is m sensors whose rows are white noise, periodic in n samples, each read too late by a normal number of samples: the true W, W
// without delays, its derivative by the delay, and the delays.
func delayed(m, n int, spread float64, rng *rand.Rand) (right, given, slope operator.Operator, theta []float64) {
	fft := fourier.NewFFT(n)
	a, b, d := make([]float64, 0, m*n), make([]float64, 0, m*n), make([]float64, 0, m*n)
	theta = make([]float64, m)
	for mu := range m {
		row := make([]float64, n)
		for i := range row {
			row[i] = rng.NormFloat64() / math.Sqrt(float64(n))
		}
		theta[mu] = spread * rng.NormFloat64()
		of := func(factor func(omega float64) complex128) []float64 {
			c := fft.Coefficients(nil, row)
			for k := range c {
				c[k] *= factor(2*math.Pi*fft.Freq(k)) / complex(float64(n), 0)
			}
			if n%2 == 0 {
				c[n/2] = complex(real(c[n/2]), 0)
			}
			return fft.Sequence(nil, c)
		}
		a = append(a, of(func(omega float64) complex128 { return cmplx.Exp(complex(0, -omega*theta[mu])) })...)
		b = append(b, row...)
		d = append(d, of(func(omega float64) complex128 { return complex(0, -omega) })...)
	}
	right, _ = operator.NewDense(m, n, a)
	given, _ = operator.NewDense(m, n, b)
	slope, _ = operator.NewDense(m, n, d)
	return right, given, slope, theta
}

// coveredTheta is the part of θ within 1.96 standard deviations.
func coveredTheta(res *calamp.Result, theta []float64) (covered float64) {
	for mu, truth := range theta {
		if math.Abs(res.Theta.At(mu, 0)-truth) < 1.96*res.ThetaSD.At(mu, 0) {
			covered += 1 / float64(len(theta))
		}
	}
	return covered
}

func TestSensorDelays(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 43))
	right, given, slope, theta := delayed(160, 200, 0.01, rng)
	y, truth := scenes(right, 10, 0.15, 1e-6, rng)
	opt := &calamp.Options{SensorDerivatives: []calamp.Direction{{Name: "delay", D: slope}}}
	res, err := calamp.Solve(context.Background(), givenModel(given, y, 0.15, 1e-6), opt)
	if err != nil {
		t.Fatal(err)
	}
	known, err := calamp.Solve(context.Background(), givenModel(right, y, 0.15, 1e-6), &calamp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != calamp.Converged {
		t.Fatalf("%v: %s", res.Status, res.Reason)
	}
	s, th, ratio := coverage95(res, truth), coveredTheta(res, theta), res.Score(truth).XMSEScaled/known.Score(truth).XMSEScaled
	t.Logf("coverage of s %.3f, theta %.3f; error of x over that of known theta %.3f; spread %.4f; %d iterations, %d", s, th, ratio, res.SensorSpread[0], res.Iterations, known.Iterations)
	for _, w := range res.Warnings { // about noise above all, which rows left behind their parameters would look like
		t.Errorf("%s: %s", w.Code, w.Message)
	}
	if res.Iterations > 2*known.Iterations {
		t.Errorf("%d iterations, %d with known theta", res.Iterations, known.Iterations)
	}
	if s < 0.9 || th < 0.9 || ratio > 1.3 || math.Abs(res.SensorSpread[0]/0.01-1) > 0.2 {
		t.Errorf("coverage of s %.3f, theta %.3f; error of x over that of known theta %.3f; spread %.4f", s, th, ratio, res.SensorSpread[0])
	}
}

// TestLongSensorDelays measures delays of sensors: N = 500, M = 400, P = 10, of a spread of 1 % of a sample.
func TestLongSensorDelays(t *testing.T) {
	longOnly(t)
	count := seedCount(20)
	table := tables.New(t, "", "delays, samples", "model", "converged", "coverage of theta", "of s", "of x", "error of x over that with theta known, mean", "largest", "with theta left out", "spread learned, mean", "iterations", "with theta known")
	for _, spread := range []float64{0.01} {
		for _, model := range []string{"given", "learned"} {
			var lock sync.Mutex
			var ofTheta, s, x, ratio, most, without, learned, iterations, knownIterations float64
			converged := 0
			inParallel(count, func(i int) {
				rng := rand.New(rand.NewPCG(uint64(i), 44))
				right, given, slope, theta := delayed(400, 500, spread, rng)
				y, truth := scenes(right, 10, 0.15, 1e-6, rng)
				run := func(w operator.Operator, directions ...calamp.Direction) *calamp.Result {
					p, opt := givenModel(w, y, 0.15, 1e-6), &calamp.Options{}
					if model == "learned" {
						p = freeModel(w, y)
						opt.Learn = calamp.Learn{Noise: true, Range: true}
					}
					opt.SensorDerivatives = directions
					res, err := calamp.Solve(context.Background(), p, opt)
					if err != nil {
						t.Error(err)
					}
					return res
				}
				res, known, left := run(given, calamp.Direction{Name: "delay", D: slope}), run(right), run(given)
				ranks, _ := res.Ranks(truth, rng)
				lock.Lock()
				defer lock.Unlock()
				part := 1 / float64(count)
				if res.Status == calamp.Converged {
					converged++
				}
				errorOver := res.Score(truth).XMSEScaled / known.Score(truth).XMSEScaled
				ofTheta, s, x = ofTheta+part*coveredTheta(res, theta), s+part*coverage95(res, truth), x+part*centralPart(ranks)
				ratio, most = ratio+part*errorOver, max(most, errorOver)
				without += part * left.Score(truth).XMSEScaled / known.Score(truth).XMSEScaled
				learned += part * res.SensorSpread[0]
				iterations, knownIterations = iterations+part*float64(res.Iterations), knownIterations+part*float64(known.Iterations)
			})
			table.Row("| %g | %s | %d of %d | %.3f | %.3f | %.3f | %.2f | %.2f | %.0f | %.4f | %.0f | %.0f |", spread, model, converged, count, ofTheta, s, x, ratio, most, without, learned, iterations, knownIterations)
			if converged < count || ofTheta < 0.92 || s < 0.92 || ratio > 1.3 {
				t.Errorf("delays of %g, %s", spread, model)
			}
		}
	}
}

// TestSensorParameterAlongRowsIsGain: where the derivative is W itself, 1 + θ is what a gain is.
func TestSensorParameterAlongRowsIsGain(t *testing.T) {
	const spread = 0.03
	rng := rand.New(rand.NewPCG(5, 45))
	given, _ := wrongAtRandom(160, 200, 0, rng)
	y, truth := scenes(given, 10, 0.15, 1e-6, rng)
	rows, columns := y.Dims()
	for mu := range rows { // gains of 1 + θ
		factor := truth.S[mu] * (1 + spread*rng.NormFloat64())
		for k := range columns {
			y.Set(mu, k, y.At(mu, k)*factor)
		}
	}
	solve := func(prior channel.GainPrior, opt *calamp.Options) *calamp.Result {
		p := givenModel(given, y, 0.15, 1e-6)
		p.Channel = channel.Gain{Prior: prior, NoiseVar: 1e-6}
		res, err := calamp.Solve(context.Background(), p, opt)
		if err != nil {
			t.Fatal(err)
		}
		if res.Status != calamp.Converged {
			t.Fatalf("%v: %s", res.Status, res.Reason)
		}
		return res
	}
	gains := solve(channel.TruncatedNormal(1, spread, 0.7, 1.3), &calamp.Options{Settings: solver.Settings{SPrior: solver.UniformS}})
	along := solve(channel.Uniform(1-1e-7, 1+1e-7), &calamp.Options{
		Settings:          solver.Settings{SPrior: solver.UniformS},
		SensorDerivatives: []calamp.Direction{{Name: "W", D: given}}, SensorSpread: []float64{spread},
	})
	var scale, off, sd float64 // the common one has an error bar of its own
	for mu := range rows {
		scale += 1 / (1 + along.Theta.At(mu, 0)) / gains.S[mu] / float64(rows)
	}
	for mu := range rows {
		d := 1/(1+along.Theta.At(mu, 0))/scale - gains.S[mu]
		off, sd = off+d*d, sd+gains.SVar[mu]
	}
	var moved mat.Dense
	moved.Scale(1/scale, along.X)
	moved.Sub(&moved, gains.X)
	apart, doubt := mat.Norm(&moved, 2), math.Sqrt(mat.Sum(gains.XVar))
	t.Logf("gains differ by %.3g of their standard deviation, signals by %.3g, the scale by %.2g ± %.2g", math.Sqrt(off/sd), apart/doubt, scale-1, gains.ScaleSD)
	if math.Sqrt(off/sd) > 0.1 || apart > 0.1*doubt || math.Abs(scale-1) > 0.5*gains.ScaleSD {
		t.Errorf("gains differ by %.3g of their standard deviation, signals by %.3g, the scale by %.2g ± %.2g", math.Sqrt(off/sd), apart/doubt, scale-1, gains.ScaleSD)
	}
}

// TestSensorDelaysBeyondLinear: of delays that rows are not linear in, gains take a part and end with bars that do not hold. That is said.
func TestSensorDelaysBeyondLinear(t *testing.T) {
	for spread, want := range map[float64]bool{0.01: false, 0.03: true, 0.1: true} {
		rng := rand.New(rand.NewPCG(3, 43))
		right, given, slope, _ := delayed(160, 200, spread, rng)
		y, _ := scenes(right, 10, 0.15, 1e-6, rng)
		opt := &calamp.Options{SensorDerivatives: []calamp.Direction{{Name: "delay", D: slope}}, Learn: calamp.Learn{Noise: true, Range: true}}
		res, err := calamp.Solve(context.Background(), freeModel(given, y), opt)
		if err != nil {
			t.Fatal(err)
		}
		if warned(res, calamp.MatrixDoubtful) != want {
			t.Errorf("delays of %g samples: warned %v, expected %v", spread, !want, want)
		}
	}
}
