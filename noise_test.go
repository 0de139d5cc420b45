package calamp_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// given is a problem whose noise is given sensor by sensor, and the same with a channel of a
// user's own that has it.
func given(seed uint64) (ours, own *calamp.Problem) {
	in, c := unequalInstance(120, 90, 4, 1e-3, seed)
	signal := prior.GaussBernoulli{Density: 0.1, SignalVar: 3}
	each := make([]float64, len(c.ratios))
	for mu, r := range c.ratios {
		each[mu] = c.level * r
	}
	ours = &calamp.Problem{W: in.W, Y: in.Y, Prior: signal, Channel: channel.Gain{Prior: c.prior, NoiseVar: 1}, NoiseVar: each}
	return ours, &calamp.Problem{W: in.W, Y: in.Y, Prior: signal, Channel: c}
}

// Noise that is given sensor by sensor is what a channel that divides by each sensor's own
// V + Δ makes of it, to rounding, in every iteration there is.
func TestGivenNoiseIsThatOfEverySensor(t *testing.T) {
	tests.Long(t)
	for _, iterations := range []int{1, 2, 3, 5, 8} {
		for name, change := range map[string]func(*calamp.Options){
			"exact":  func(*calamp.Options) {},
			"scalar": func(o *calamp.Options) { o.Variance = solver.Scalar },
			"vector": func(o *calamp.Options) { o.Algorithm, o.Damping = solver.VAMP, solver.FixedDamping(0.3) },
			"step":   func(o *calamp.Options) { o.NoScaleStep = false },
		} {
			opt := calamp.Published(iterations)
			change(opt)
			a, b := given(uint64(iterations))
			if opt.Algorithm == solver.VAMP {
				// Averages of contractions are of z: a channel that has only ∂g has fewer digits of them.
				a.NoiseVar, b.Channel = scaledNoise(a.NoiseVar, b.Channel.(unequal), 100)
			}
			compareResults(t, name, solve(t, a, opt), solve(t, b, opt), 1e-10)
		}
	}
}

func scaledNoise(each []float64, c unequal, by float64) ([]float64, channel.Channel) {
	for mu := range each {
		each[mu] *= by
	}
	c.level *= by
	return each, c
}

func compareResults(t *testing.T, name string, a, b *calamp.Result, within float64) {
	t.Helper()
	largest := 0.0
	for j, x := range a.X.RawMatrix().Data {
		largest = max(largest, math.Abs(x-b.X.RawMatrix().Data[j]))
	}
	for mu, s := range a.S {
		largest = max(largest, math.Abs(s-b.S[mu])/s)
	}
	if !(largest < within) {
		t.Errorf("%s, %d iterations: off by %.2g", name, a.Iterations, largest)
	}
}

// Readings that all have the same noise are those of the channel's own, to the bit, however they are given.
func TestEqualNoiseGivenIsThatOfTheChannel(t *testing.T) {
	te := teacher.Teacher{N: 100, M: 80, P: 3, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-5}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	p := te.Problem(in)
	a := solve(t, p, nil)
	for _, count := range []int{80, 240} {
		p.NoiseVar = make([]float64, count)
		for j := range p.NoiseVar {
			p.NoiseVar[j] = 1e-5
		}
		compareResults(t, "given", a, solve(t, p, nil), math.SmallestNonzeroFloat64)
	}
}

// Given noise of every reading: signals of a noisy sample, and full covariances.
func TestGivenNoiseOfReadings(t *testing.T) {
	te := teacher.Teacher{N: 60, M: 60, P: 3, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1)}
	te.Noise = make([]float64, te.M*te.P)
	for j := range te.Noise {
		te.Noise[j] = []float64{1e-6, 1e-5, 1e-1}[j%3]
	}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	p := te.Problem(in)
	for _, c := range []solver.Covariance{solver.Diagonal, solver.Full} {
		res := solve(t, p, &calamp.Options{Settings: solver.Settings{Covariance: c}})
		square := make([]float64, 3)
		for j, r := range res.Residual.RawMatrix().Data {
			square[j%3] += r * r / float64(te.M)
		}
		for k, v := range square {
			if v < 0.2 || v > 1.8 {
				t.Errorf("covariances %v, signal %d: mean square of the residuals %.3g", c, k, v)
			}
		}
		m := calamp.Score(res.X, res.S, in.Truth)
		if !(m.SMSEScaled < 1e-3) || res.Status != calamp.Converged {
			t.Errorf("covariances %v: %s, error of s %.3g", c, res.Reason, m.SMSEScaled)
		}
		if len(res.NoiseVar) != te.M || math.Abs(res.NoiseVar[7]-0.100011/3) > 1e-9 {
			t.Errorf("noise of the sensors: %v", res.NoiseVar)
		}
	}
}

func TestGivenNoiseIsChecked(t *testing.T) {
	for want, edit := range map[string]func(p *calamp.Problem){
		"89 noise variances for 90 sensors and 4 signals": func(p *calamp.Problem) { p.NoiseVar = p.NoiseVar[1:] },
		"noise variance of sensor 3 must be finite":       func(p *calamp.Problem) { p.NoiseVar[3] = -1 },
		"no noise that could differ":                      func(p *calamp.Problem) { p.Channel = noiseless{} },
	} {
		p, _ := given(1)
		edit(p)
		if _, err := calamp.Solve(context.Background(), p, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	p, _ := given(1)
	if _, err := calamp.Solve(context.Background(), p, &calamp.Options{Learn: calamp.Learn{Noise: true, SensorNoise: true}}); err == nil {
		t.Error("the noise of each sensor, which was given, was to be learned")
	}
	wanted := slices.Clone(p.NoiseVar)
	for j, v := range wanted {
		p.NoiseVar[j] = 9 * v
	}
	res := solve(t, p, &calamp.Options{Learn: calamp.Learn{Noise: true}})
	if factor := res.NoiseVar[7] / wanted[7]; math.Abs(math.Log(factor)) > 0.3 || math.Abs(res.NoiseVar[50]/wanted[50]/factor-1) > 1e-9 {
		t.Errorf("noise variances 9 times as large as they are, their common factor learned: %.3g times as large", factor)
	}
}

// noiseless is a channel without noise.
type noiseless struct{}

func (noiseless) Validate() error         { return nil }
func (noiseless) Output(b *channel.Block) {}

// Noise over two decades that is not given: learned sensor by sensor the errors are smaller than
// with one variance for all, the error bars hold, and a noisy sensor is not called broken; a broken one is.
func TestSensorNoiseIsLearned(t *testing.T) {
	te := teacher.Teacher{N: 150, M: 110, P: 12, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}
	te.Noise = te.SpreadNoise(2, 1)
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	broken := breakSensors(in.Y, in.Truth.S, 3, 1, fault{"gain", gainFault(0.5)}, fault{"random", randomFault(0.5)}, fault{"gain", gainFault(2)})
	solve := func(each []float64, learn calamp.Learn) (*calamp.Result, calamp.Metrics) {
		p := te.Problem(in)
		p.Channel, p.NoiseVar = channel.Faulty{Working: p.Channel}, each
		res := solve(t, p, &calamp.Options{Learn: learn})
		if right, wrong := found(res, broken); right != 3 || wrong != 0 || res.Status != calamp.Converged {
			t.Errorf("%+v: %d of 3 broken sensors found, %d others; %s", learn, right, wrong, res.Reason)
		}
		return res, calamp.Score(res.X, res.S, in.Truth)
	}
	_, given := solve(te.Noise, calamp.Learn{})
	_, common := solve(nil, calamp.Learn{Noise: true})
	res, own := solve(nil, calamp.Learn{SensorNoise: true})
	if !(own.XMSEScaled < 0.7*common.XMSEScaled && own.XMSEScaled < 1.8*given.XMSEScaled) {
		t.Errorf("error %.3g, given %.3g, one for all %.3g", own.XMSEScaled, given.XMSEScaled, common.XMSEScaled)
	}
	if ratio := own.XMSEScaled / meanOf(res.XVar.RawMatrix().Data); ratio < 0.7 || ratio > 1.4 {
		t.Errorf("the error is %.2f times its variance", ratio)
	}
	if inside := shareInside(res, in.Truth.S); inside < 0.88 {
		t.Errorf("%.3g of s are in their intervals of 95 %%", inside)
	}
}
