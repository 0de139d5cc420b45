package online_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// late are sensors that read white noise, periodic in n samples, each too late by a normal number of samples, with unknown gains.
type late struct {
	m, n                int
	right, given, slope operator.Operator
	theta, s            []float64
	rng                 *rand.Rand
}

func newLate(m, n int, spread float64, seed uint64) *late {
	l := &late{m: m, n: n, rng: rand.New(rand.NewPCG(seed, 47))}
	fft := fourier.NewFFT(n)
	var a, b, d []float64
	for range m {
		row := make([]float64, n)
		for i := range row {
			row[i] = l.rng.NormFloat64() / math.Sqrt(float64(n))
		}
		theta := spread * l.rng.NormFloat64()
		of := func(factor func(omega float64) complex128) []float64 {
			c := fft.Coefficients(nil, row)
			for k := range c {
				c[k] *= factor(2*math.Pi*fft.Freq(k)) / complex(float64(n), 0)
			}
			c[n/2] = complex(real(c[n/2]), 0)
			return fft.Sequence(nil, c)
		}
		a = append(a, of(func(omega float64) complex128 { return cmplx.Exp(complex(0, -omega*theta)) })...)
		b = append(b, row...)
		d = append(d, of(func(omega float64) complex128 { return complex(0, -omega) })...)
		l.theta, l.s = append(l.theta, theta), append(l.s, 0.8+0.4*l.rng.Float64())
	}
	l.right, _ = operator.NewDense(m, n, a)
	l.given, _ = operator.NewDense(m, n, b)
	l.slope, _ = operator.NewDense(m, n, d)
	return l
}

func (l *late) draw() (y, x []float64) {
	x, y = make([]float64, l.n), make([]float64, l.m)
	for i := range x {
		if l.rng.Float64() < 0.15 {
			x[i] = l.rng.NormFloat64()
		}
	}
	if err := operator.Mul(y, l.right, x); err != nil {
		panic(err)
	}
	for mu := range y {
		y[mu] = (y[mu] + 1e-3*l.rng.NormFloat64()) / l.s[mu]
	}
	return y, x
}

func (l *late) calibrator(t testing.TB, w operator.Operator, opt online.Options) *online.Calibrator {
	c, err := online.NewCalibrator(w, prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}, &opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (l *late) delays() []calamp.Direction { return []calamp.Direction{{Name: "delay", D: l.slope}} }

func within95(mean, variance, truth []float64) (part float64) {
	for mu, v := range truth {
		if math.Abs(mean[mu]-v) < 1.96*math.Sqrt(variance[mu]) {
			part += 1 / float64(len(truth))
		}
	}
	return part
}

func squareError(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += (v - b[i]) * (v - b[i])
	}
	return sum
}

// coverage is that of θ, and of s after the scale that all sensors have in common was corrected, with the square error of the latest signal over
// that of a stream that is given θ.
func (l *late) coverage(t testing.TB, c *online.Calibrator, samples int, opt online.Options) (ofTheta, ofS, over float64) {
	known := l.calibrator(t, l.right, opt)
	var own, other float64
	for k := range samples {
		y, x := l.draw()
		e := absorb(t, c, y)
		own += squareError(e.X, x) * float64(bit(2*k >= samples))
		other += squareError(absorb(t, known, y).X, x) * float64(bit(2*k >= samples))
	}
	p := c.Posterior()
	scale, weight := 0.0, 0.0
	for mu, s := range l.s {
		scale, weight = scale+s*p.S[mu]/p.SVar[mu], weight+p.S[mu]*p.S[mu]/p.SVar[mu]
	}
	s := make([]float64, l.m)
	for mu := range s {
		s[mu] = p.S[mu] * scale / weight
	}
	return within95(mat.Col(nil, 0, p.Theta), mat.Col(nil, 0, p.ThetaVar), l.theta), within95(s, p.SVar, l.s), own / other
}

func bit(v bool) int {
	if v {
		return 1
	}
	return 0
}

// A stream learns delays of its sensors with their gains, from samples one by one, and an interruption changes nothing.
func TestStreamLearnsDelays(t *testing.T) {
	l := newLate(96, 120, 0.01, 3)
	opt := online.Options{SensorDerivatives: l.delays()}
	all, part := l.calibrator(t, l.given, opt), l.calibrator(t, l.given, opt)
	same := *l
	same.rng = rand.New(rand.NewPCG(3, 48))
	l.rng = rand.New(rand.NewPCG(3, 48))
	for range 12 {
		y, _ := same.draw()
		part = again(t, part, l.calibrator(t, l.given, opt))
		absorb(t, part, y)
	}
	ofTheta, ofS, over := l.coverage(t, all, 12, online.Options{})
	p := all.Posterior()
	t.Logf("coverage of theta %.3f, of s %.3f; error of x over that with theta known %.2f; spread %.4f", ofTheta, ofS, over, p.Spread[0])
	if ofTheta < 0.88 || ofS < 0.88 || over > 2 || math.Abs(p.Spread[0]/0.01-1) > 0.25 {
		t.Errorf("coverage of theta %.3f, of s %.3f; error of x over that with theta known %.2f; spread %.4f", ofTheta, ofS, over, p.Spread[0])
	}
	if bits(t, all) != bits(t, part) {
		t.Error("other bits after interruptions")
	}
}

// A stream says of delays that rows are not linear in them: gains take a part, and their error bars do not hold.
func TestStreamDoubtsDelays(t *testing.T) {
	tests.Long(t)
	for spread, want := range map[float64]bool{0.01: false, 0.03: true} {
		l := newLate(96, 120, spread, 3)
		c := l.calibrator(t, l.given, online.Options{SensorDerivatives: l.delays()})
		for range 30 {
			y, _ := l.draw()
			absorb(t, c, y)
		}
		doubted := slices.ContainsFunc(c.Posterior().Warnings, func(w calamp.Warning) bool { return w.Code == calamp.MatrixDoubtful })
		if doubted != want {
			t.Errorf("delays of %g samples: warned %v, expected %v", spread, doubted, want)
		}
	}
}

// After one sample a stream has the posterior that an offline run has with that sample alone.
func TestStreamOfOneSampleIsOffline(t *testing.T) {
	l := newLate(160, 200, 0.01, 1)
	y, _ := l.draw()
	model := prior.GaussBernoulli{Density: 0.15, SignalVar: 1}
	gain := channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}
	res, err := calamp.Solve(context.Background(), &calamp.Problem{W: l.given, Y: mat.NewDense(l.m, 1, y), Prior: model, Channel: gain},
		&calamp.Options{SensorDerivatives: l.delays(), SensorSpread: []float64{0.01}, Settings: solver.Settings{Tol: 1e-8}})
	if err != nil {
		t.Fatal(err)
	}
	c := l.calibrator(t, l.given, online.Options{SensorDerivatives: l.delays(), SensorSpread: []float64{0.01}, Settings: solver.Settings{Tol: 1e-8}})
	e, p := absorb(t, c, y), c.Posterior()
	for i, x := range e.X {
		if v := res.X.At(i, 0); math.Abs(x-v) > 0.02*math.Sqrt(res.XVar.At(i, 0))+1e-6 {
			t.Errorf("x[%d] is %.8g, offline %.8g ± %.2g", i, x, v, math.Sqrt(res.XVar.At(i, 0)))
		}
	}
	for mu := range l.m {
		if math.Abs(p.S[mu]-res.S[mu]) > 0.02*math.Sqrt(res.SVar[mu]) || math.Abs(p.Theta.At(mu, 0)-res.Theta.At(mu, 0)) > 0.02*res.ThetaSD.At(mu, 0) {
			t.Errorf("sensor %d: s %.6g, theta %.6g; offline %.6g, %.6g", mu, p.S[mu], p.Theta.At(mu, 0), res.S[mu], res.Theta.At(mu, 0))
		}
	}
}

func TestStreamRefusesParametersWithout(t *testing.T) {
	l := newLate(16, 20, 0.01, 1)
	for name, c := range map[string]struct {
		opt  online.Options
		g    channel.Calibrating
		want string
	}{
		"warm-up":       {online.Options{SensorDerivatives: l.delays(), WarmUp: 10}, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}, "warm-up"},
		"spreads":       {online.Options{SensorDerivatives: l.delays(), SensorSpread: []float64{1, 2}}, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}, "2 spreads"},
		"no derivative": {online.Options{SensorDerivatives: []calamp.Direction{{Name: "delay"}}}, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}, "delay"},
		"offsets":       {online.Options{SensorDerivatives: l.delays()}, channel.Offset{Prior: channel.OffsetPrior{Gain: channel.Uniform(0.8, 1.2), SD: 1}, NoiseVar: 1e-6}, "offsets"},
	} {
		if _, err := online.NewCalibrator(l.given, prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, c.g, &c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
