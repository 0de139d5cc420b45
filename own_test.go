package calamp_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// The channel and the prior of the examples, which are not the library's, get
// everything that its own get; and the channel, which has the noise of each sensor,
// makes smaller errors than a gain with the mean variance, and its error bars hold.
func TestOwnChannelIsSolvedAsOurs(t *testing.T) {
	in, own := unequalInstance(300, 240, 8, 1e-4, 1)
	res := solve(t, &calamp.Problem{W: in.W, Y: in.Y, Prior: spikes{0.1, 3}, Channel: own}, nil)
	mean := 0.0
	for _, r := range own.ratios {
		mean += r / float64(len(own.ratios))
	}
	gain := channel.Gain{Prior: own.prior, NoiseVar: mean * own.level}
	equal := solve(t, &calamp.Problem{W: in.W, Y: in.Y, Prior: spikes{0.1, 3}, Channel: gain}, nil)
	for _, part := range []string{"scale step", "learning", "new start", "free scale", "single precision"} {
		if a, b := res.Plan.Has(part), equal.Plan.Has(part); a != b {
			t.Errorf("%s: %t, for a gain %t", part, a, b)
		}
	}
	if res.Status != calamp.Converged || res.ScaleSD == 0 || res.Calibration == nil {
		t.Fatalf("%s; scale known to %g", res.Reason, res.ScaleSD)
	}
	a, b := calamp.Score(res.X, res.S, in.Truth), calamp.Score(equal.X, equal.S, in.Truth)
	if !(a.XMSEScaled < 0.75*b.XMSEScaled) || !(a.SMSEScaled < b.SMSEScaled) {
		t.Errorf("errors %.3g and %.3g, with equal noise %.3g and %.3g", a.XMSEScaled, a.SMSEScaled, b.XMSEScaled, b.SMSEScaled)
	}
	if z := math.Log(a.Scale) / res.ScaleSD; math.Abs(z) > 4 {
		t.Errorf("the scale is %.3g standard deviations off", z)
	}
	inside := 0
	lo, hi := res.SIntervalRaw(0.95)
	for mu, s := range in.Truth.S {
		if lo[mu] < s && s < hi[mu] {
			inside++
		}
	}
	if share := float64(inside) / float64(len(lo)); share < 0.9 {
		t.Errorf("%.3g of the gains are in their 95 %% intervals", share)
	}
}

// What is learned of one's own parts, a range included, and what is anchored.
func TestOwnModelIsLearned(t *testing.T) {
	in, own := unequalInstance(300, 240, 8, 1e-4, 2)
	own.prior, own.level = channel.Uniform(0.7, 1.1), 1e-3
	res := solve(t, &calamp.Problem{W: in.W, Y: in.Y, Prior: spikes{0.1, 3}, Channel: own},
		&calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}, Anchor: calamp.Anchor{Sensors: map[int]float64{3: in.Truth.S[3], 7: in.Truth.S[7]}}})
	lo, hi := channel.CalibrationOf(res.Channel).Range()
	if math.Abs(hi/lo-1.5) > 0.06 {
		t.Errorf("learned the range [%g, %g], the gains are in [0.8, 1.2]", lo, hi)
	}
	if noise := channel.NoiseOf(res.Channel); noise > 1.5e-4 || noise < 0.6e-4 {
		t.Errorf("learned the noise variance %g from 1e-3, the truth is 1e-4", noise)
	}
	if d := res.Prior.(spikes).density; math.Abs(d-0.2) > 0.06 {
		t.Errorf("learned the density %g, the truth is 0.2", d)
	}
	if c := calamp.Score(res.X, res.S, in.Truth).Scale; math.Abs(c-1) > 0.02 {
		t.Errorf("the scale is %g of the truth's, with two sensors anchored", c)
	}
}

// Broken sensors and warnings.
func TestOwnChannelWithBrokenSensors(t *testing.T) {
	in, own := unequalInstance(300, 240, 8, 1e-4, 3)
	broken := []int{5, 50, 100}
	for i, mu := range broken {
		for k := range 8 {
			in.Y.Set(mu, k, math.Sin(float64(7*i+13*k)))
		}
	}
	res := solve(t, &calamp.Problem{W: in.W, Y: in.Y, Prior: spikes{0.1, 3}, Channel: channel.Faulty{Working: own}}, nil)
	var found []int
	for _, b := range res.BrokenSensors {
		found = append(found, b.Sensor)
	}
	if !slices.Equal(found, broken) {
		t.Errorf("found %v broken, expected %v", found, broken)
	}
	own.prior = channel.Uniform(0.9, 1.1)
	res = solve(t, &calamp.Problem{W: in.W, Y: in.Y, Prior: spikes{0.2, 1}, Channel: own}, &calamp.Options{Settings: solver.Settings{MaxIter: 60}})
	codes := map[calamp.WarningCode]bool{}
	for _, w := range res.Warnings {
		codes[w.Code] = true
	}
	if !codes[calamp.SensorAtEdge] || !codes[calamp.ScaleFromGains] {
		t.Errorf("warnings %v of a range that is too narrow, and a scale that was learned", res.Warnings)
	}
}

// A stream calibrates with them, learns the prior, and goes on from its state with the same bits.
func TestOwnChannelOnAStream(t *testing.T) {
	tests.Long(t)
	in, own := unequalInstance(200, 160, 12, 1e-4, 4)
	calibrator := func() *online.Calibrator {
		c, err := online.NewCalibrator(in.W, spikes{0.2, 1}, own, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	whole, resumed := calibrator(), calibrator()
	for k := range 12 {
		y := mat.Col(nil, k, in.Y)
		if _, err := whole.Absorb(context.Background(), y); err != nil {
			t.Fatal(err)
		}
		b, err := resumed.Snapshot().MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var s online.State
		if err := s.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		resumed = calibrator()
		if err := resumed.Restore(&s); err != nil {
			t.Fatal(err)
		}
		if _, err := resumed.Absorb(context.Background(), y); err != nil {
			t.Fatal(err)
		}
	}
	a, _ := whole.Snapshot().MarshalBinary()
	b, _ := resumed.Snapshot().MarshalBinary()
	if !slices.Equal(a, b) {
		t.Error("the state after interruptions is another one")
	}
	p := whole.Posterior()
	score := calamp.Score(nil, p.S, calamp.Truth{S: in.Truth.S})
	if p.Samples < 10 || score.SMSEScaled > 1e-3 {
		t.Errorf("%d samples learned from, error of s %g", p.Samples, score.SMSEScaled)
	}
	id, err := online.Identify(in.W, spikes{0.2, 1}, own, nil)
	if err != nil {
		t.Fatal(err)
	}
	gain, err := online.Identify(in.W, spikes{0.2, 1}, channel.Gain{Prior: own.prior, NoiseVar: own.level}, nil)
	if err != nil || id.Fingerprint == gain.Fingerprint {
		t.Errorf("the state of one's own channel serves a gain (%v)", err)
	}
}

// A pointer to a channel is as good as the channel.
func TestPointerToAChannelCalibrates(t *testing.T) {
	in, own := unequalInstance(100, 80, 4, 1e-4, 5)
	gain := channel.Gain{Prior: own.prior, NoiseVar: own.level}
	byValue := solve(t, &calamp.Problem{W: in.W, Y: in.Y, Prior: spikes{0.2, 1}, Channel: gain}, nil)
	byPointer := solve(t, &calamp.Problem{W: in.W, Y: in.Y, Prior: spikes{0.2, 1}, Channel: &gain}, nil)
	if byPointer.ScaleSD != byValue.ScaleSD || byPointer.Calibration == nil || !slices.Equal(byPointer.S, byValue.S) {
		t.Errorf("scale known to %g, by value %g", byPointer.ScaleSD, byValue.ScaleSD)
	}
}

// TestSignsAreNoClippedReadings solves readings that are signs, by the channel of the example, with its own prior and others, given and
// learned. Nothing may be said of them that supposes readings to be z plus noise, and the scores must have the size that the
// likelihood expects of them.
func TestSignsAreNoClippedReadings(t *testing.T) {
	const n, p = 200, 6
	in, err := teacher.Teacher{N: n, M: 800, P: p, Signal: prior.Gaussian(0, 1), Gain: channel.Uniform(0.999, 1.001)}.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		prior  prior.Prior
		levels bool // signals are ±1
	}{
		{"two levels", twoLevel{a: 1}, true},
		{"Gaussian", prior.Gaussian(0, 1), false},
		{"learned", prior.GaussBernoulli{Density: 0.9, SignalVar: 1, Learn: prior.Density}, false},
	} {
		x := mat.DenseCopyOf(in.Truth.X)
		if c.levels {
			x.Apply(func(_, _ int, v float64) float64 { return math.Copysign(1, v) }, x)
		}
		r, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: signs(in.W, x), Prior: c.prior, Channel: oneBit{noise: 1e-3}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		square := mat.Norm(r.Residual, 2)
		square *= square / (800 * p)
		var off mat.Dense
		off.Sub(r.X, x)
		t.Logf("%s: %v, error %.3g, stated %.3g, mean squared residual %.3g", c.name, r.Status, math.Pow(mat.Norm(&off, 2), 2)/(n*p), mat.Sum(r.XVar)/(n*p), square)
		if r.Status != calamp.Converged || len(r.Warnings) > 0 {
			t.Errorf("%s: %v, %v", c.name, r.Status, r.Warnings)
		}
		if !c.levels && math.Abs(square-1) > 0.2 { // those of signs that are all right tend to zero
			t.Errorf("%s: mean squared residual %.3g", c.name, square)
		}
	}
}
