package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// TestGivenOfOverlappingSpectra: a range of s and a noise variance that are true cost no answer. Message passing finds none of this problem, and signals are integrated out whatever was given.
func TestGivenOfOverlappingSpectra(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	w, y, x0, s0 := instrument(t, 90, 72, 8, 1)
	truth := calamp.Truth{X: x0, S: s0}
	solve := func(lo, hi, noise float64) *calamp.Result {
		t.Helper()
		p, opt := unknown(t, w, y)
		gain := channel.InOrder(p.Channel).(channel.Gain)
		opt.Retry = true
		if hi > 0 {
			gain.Prior, opt.Learn.Range = channel.Uniform(lo, hi), false
		}
		if noise > 0 {
			gain.NoiseVar, opt.Learn.Noise = noise, false
		}
		p.Channel = channel.Faulty{Working: gain}
		res, err := calamp.Solve(context.Background(), p, opt)
		if err != nil || res.Status != calamp.Converged {
			t.Fatalf("s from %g to %g, noise %g: %v %v", lo, hi, noise, res, err)
		}
		return res
	}
	least := calamp.Score(solve(0, 0, 0).X, s0, truth).XMSEScaled
	for _, c := range []struct {
		lo, hi, noise float64
		want          string // of the contradiction
	}{
		{lo: 790, hi: 1210, noise: 1}, // 1e-6 in other units
		{lo: 0.79, hi: 1.21},
		{lo: 0.79, hi: 1.21, noise: 1e-4, want: "the noise variance as 0.0001, where the likelihood has its maximum at about "},
		{lo: 0.95, hi: 1.05, noise: 1e-6, want: "the range of s as 0.95 to 1.05, which does not hold "},
	} {
		res := solve(c.lo, c.hi, c.noise)
		if e := res.Score(truth).XMSEScaled; !(e < 1.5*least) {
			t.Errorf("%+v: mean square error of x %.3g, with nothing given %.3g", c, e, least)
		}
		if w := find(res, calamp.ToldContradicted); (w != nil) != (c.want != "") || w != nil && !strings.Contains(w.Message, c.want) {
			t.Errorf("%+v: %v", c, w)
		}
		if c.want != "" {
			continue
		}
		lo, hi := channel.CalibrationOf(res.Channel).Range()
		if floats.Min(res.S) < c.lo || floats.Max(res.S) > c.hi || lo != c.lo || hi != c.hi || !(res.ScaleSD < 0.02) || find(res, calamp.ScaleFromGains) != nil {
			t.Errorf("%+v: s from %g to %g of [%g, %g], the scale known to %g", c, floats.Min(res.S), floats.Max(res.S), lo, hi, res.ScaleSD)
		}
	}
}

// TestGivenGains: so do a normal distribution of s, and a factory's calibration of each sensor, alone and with the noise: signals are integrated out beside them.
func TestGivenGains(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	w, y, x0, s0 := instrument(t, 60, 48, 6, 1)
	truth := calamp.Truth{X: x0, S: s0}
	solve := func(stated *channel.GainPrior, noise float64) *calamp.Result {
		t.Helper()
		p, opt := unknown(t, w, y)
		gain := channel.InOrder(p.Channel).(channel.Gain)
		opt.Retry = true
		if stated != nil {
			gain.Prior, opt.Learn.Range = *stated, false
		}
		if noise > 0 {
			gain.NoiseVar, opt.Learn.Noise = noise, false
		}
		p.Channel = channel.Faulty{Working: gain}
		res, err := calamp.Solve(context.Background(), p, opt)
		if err != nil || res.Status != calamp.Converged {
			t.Fatalf("s %v, noise %g: %v %v", stated, noise, res, err)
		}
		return res
	}
	least := solve(nil, 0).Score(truth)
	mean := floats.Sum(s0) / float64(len(s0))
	normal, each := channel.NormalAbout(mean, 0.12), channel.About(teacher.Known(s0, 0.02, 7))
	for _, stated := range []*channel.GainPrior{&normal, &each} {
		for _, noise := range []float64{0, 1e-6} {
			res := solve(stated, noise)
			score := res.Score(truth)
			if !(score.XMSEScaled < 1.44*least.XMSEScaled) {
				t.Errorf("s %+v, noise %g: mean square error of x %.3g, with nothing given %.3g", *stated, noise, score.XMSEScaled, least.XMSEScaled)
			}
			if off := math.Abs(math.Log(score.Scale)); off > 4*res.ScaleSD || res.ScaleSD > 0.05 {
				t.Errorf("s %+v, noise %g: scale off by %.2g, stated %.2g", *stated, noise, off, res.ScaleSD)
			}
			lo, hi := res.SIntervalRaw(0.95)
			held := 0
			for mu, s := range s0 {
				if lo[mu] <= s && s <= hi[mu] {
					held++
				}
			}
			t.Logf("noise %g: error %.3g of %.3g, scale %.4g ± %.2g, %d of %d intervals hold", noise, score.XMSEScaled, least.XMSEScaled, score.Scale, res.ScaleSD, held, len(s0))
			if held < 8*len(s0)/10 {
				t.Errorf("s %+v, noise %g: %d of %d intervals hold", *stated, noise, held, len(s0))
			}
		}
	}
}

// TestGivenOfOneSignal: one signal does not determine whether gains fill the range that was given. Its learned distribution is taken where that is likelier.
func TestGivenOfOneSignal(t *testing.T) {
	tests.Long(t)
	signal := prior.GaussBernoulli{Density: 0.11, SignalVar: 1}
	p, truth, err := teacher.Teacher{N: 300, M: 220, P: 1, Signal: signal, Gain: channel.TruncatedNormal(1, 0.05, 0.5, 1.5), NoiseVar: 1e-4}.Pose(1)
	if err != nil {
		t.Fatal(err)
	}
	p.Prior = signal.Learning(allParameters)
	p.Channel = channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 1e-4}
	errorOf := func(retry bool) float64 {
		res, err := calamp.Solve(context.Background(), p, &calamp.Options{Retry: retry})
		if err != nil {
			t.Fatal(err)
		}
		return math.Sqrt(res.Score(truth).XMSEScaled / signal.Density)
	}
	if asGiven, learned := errorOf(false), errorOf(true); !(learned < 0.7*asGiven) {
		t.Errorf("error %.3g with gains anywhere between 0.5 and 1.5, %.3g with their distribution learned", asGiven, learned)
	}
}

// TestErrorBarsOfSites: signals that are integrated out have error bars that do not depend on the prior that was asked for.
func TestErrorBarsOfSites(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	w, y, _, _ := instrument(t, 60, 48, 6, 0)
	var totals []float64
	for _, positive := range []bool{false, true} {
		p, opt := unknown(t, w, y)
		opt.Algorithm, opt.Outliers = solver.Evidence, calamp.Outliers{}
		if g := p.Prior.(prior.GaussBernoulli); positive {
			p.Prior = prior.NonNegative(g).Learning(g.Learn)
		}
		res, err := calamp.Solve(context.Background(), p, opt)
		if err != nil {
			t.Fatal(err)
		}
		totals = append(totals, floats.Sum(res.XVar.RawMatrix().Data))
		t.Log(res.Warnings)
	}
	if !(math.Abs(totals[1]/totals[0]-1) < 0.1) {
		t.Errorf("variances of x add up to %.3g, and %.3g with a nonnegative prior", totals[0], totals[1])
	}
}

// TestKnownGains: what a range says of known gains is used. A run that takes long is gone on with before gains are learned, from one snapshot that hardly determines them.
func TestKnownGains(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	const m, n = 90, 72
	w, y, x0, s0 := instrument(t, m, n, 1, 1)
	for mu, s := range s0 {
		y.Set(mu, 0, s*y.At(mu, 0))
		s0[mu] = 1
	}
	p, opt := unknown(t, w, y)
	gain := channel.InOrder(p.Channel).(channel.Gain)
	gain.Prior, opt.Learn.Range, opt.Retry = channel.Uniform(0.999999, 1.000001), false, true
	p.Channel = gain
	res := solve(t, p, opt)
	if e := res.Score(calamp.Truth{X: x0, S: s0}).XMSEScaled; res.Status != calamp.Converged || !(floats.Max(res.SVar) < 1e-10) {
		t.Errorf("%v: %s; mean square error of x %.3g, s known to %.3g", res.Status, res.Reason, e, floats.Max(res.SVar))
	}
}

// A W that is wrong by another basis of the signals has the same columns' span, so that other signals explain the readings to the noise: entries of all sizes, in place of few. Gains are right, and a density that was
// given is all that contradicts.
func TestAnotherBasisContradictsTheDensity(t *testing.T) {
	tests.Long(t)
	const m, n, p, density, noise = 90, 60, 8, 0.15, 1e-6
	for _, wrong := range []float64{0, 0.03} {
		rng := rand.New(rand.NewPCG(1, 2))
		normal := func(sd float64) func(int, int, float64) float64 {
			return func(_, _ int, v float64) float64 { return v + sd*rng.NormFloat64() }
		}
		w, x, y, basis := mat.NewDense(m, n, nil), mat.NewDense(n, p, nil), mat.NewDense(m, p, nil), mat.NewDense(n, n, nil)
		w.Apply(normal(1/math.Sqrt(n)), w)
		x.Apply(func(int, int, float64) float64 {
			if rng.Float64() > density {
				return 0
			}
			return rng.NormFloat64()
		}, x)
		y.Mul(w, x)
		y.Apply(normal(math.Sqrt(noise)), y)
		for mu := range m {
			s := 0.8 + 0.4*rng.Float64()
			for k := range p {
				y.Set(mu, k, y.At(mu, k)/s)
			}
		}
		for i := range n {
			basis.Set(i, i, 1)
		}
		basis.Apply(normal(wrong), basis)
		var given mat.Dense
		given.Mul(w, basis)
		op, err := operator.NewDense(m, n, given.RawMatrix().Data)
		if err != nil {
			t.Fatal(err)
		}
		signals, gains := prior.GaussBernoulli{Density: density, SignalVar: 1, Learn: prior.SignalVar}, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: noise}
		res, err := calamp.Solve(t.Context(), &calamp.Problem{W: op, Y: y, Prior: signals, Channel: gains}, &calamp.Options{Retry: true, Learn: calamp.Learn{Noise: true}})
		if err != nil {
			t.Fatal(err)
		}
		if got := warned(res, calamp.ToldContradicted); got != (wrong > 0) || res.Status != calamp.Converged {
			t.Errorf("basis off by %g: %v, %v", wrong, res.Status, res.Warnings)
		}
	}
}
