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
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// readNoise draws problems whose noise is at the reading, of gains that differ by a factor of three.
var readNoise = teacher.Teacher{
	N: 400, M: 280, P: 8, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.5, 1.5), Own: channel.Detector{Read: 1e-4},
}

func hasWarning(r *calamp.Result, code calamp.WarningCode) bool {
	return slices.ContainsFunc(r.Warnings, func(w calamp.Warning) bool { return w.Code == code })
}

// TestNoiseAtTheReading solves problems with noise of both places as either. With the right place given, the gains are within their intervals at the true common scale, a level
// that is learned is the true one, and nothing is warned of; with the other place given, that is.
func TestNoiseAtTheReading(t *testing.T) {
	tests.Long(t)
	before := readNoise
	before.NoiseVar, before.Own = 1e-4, channel.Detector{}
	for _, own := range []bool{false, true} {
		for _, given := range []bool{false, true} {
			inside, all := 0, 0
			for seed := range uint64(2) {
				from := before
				if own {
					from = readNoise
				}
				p, truth, err := from.Pose(seed + 1)
				if err != nil {
					t.Fatal(err)
				}
				gain := channel.Gain{Prior: from.Gain, NoiseVar: 1e-2}
				if given {
					gain = channel.Gain{Prior: from.Gain, Own: channel.Detector{Read: 1e-2}}
				}
				p.Channel = channel.Faulty{Working: gain}
				r := solve(t, p, &calamp.Options{Learn: calamp.Learn{Noise: true}, Outliers: calamp.Outliers{Look: true}})
				if r.Status != calamp.Converged || hasWarning(r, calamp.NoiseElsewhere) != (own != given) || len(r.Warnings) > 1 {
					t.Errorf("noise at the reading %t, said so %t: %v, %v", own, given, r.Status, r.Warnings)
				}
				d, is := channel.DetectorOf(r.Channel)
				if is != given || is && own && math.Abs(math.Log(d.Read/1e-4)) > 0.15 {
					t.Errorf("learned %+v as noise at the reading", d)
				}
				_, _, lo, hi := r.SIntervals(0.95)
				scale := calamp.Score(r.X, r.S, truth).Scale
				for mu, s := range truth.S {
					if all++; scale*lo[mu] < s && s < scale*hi[mu] {
						inside++
					}
				}
			}
			if share := float64(inside) / float64(all); own == given && math.Abs(share-0.95) > 0.02 {
				t.Errorf("noise at the reading %t: %.3g of the gains are in their 95 %% intervals", own, share)
			}
		}
	}
}

// The scale of signals and gains is a convention, and noise at the reading does not know it.
func TestNoiseAtTheReadingDoesNotScale(t *testing.T) {
	p, _, err := readNoise.Pose(1)
	if err != nil {
		t.Fatal(err)
	}
	p.Prior = readNoise.Signal.Learning(prior.Density | prior.SignalVar)
	opt := &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}, Anchor: calamp.Anchor{Mean: 7}}
	r := solve(t, p, opt)
	d, _ := channel.DetectorOf(r.Channel)
	mean := 0.0
	for _, s := range r.S {
		mean += s / float64(len(r.S))
	}
	if math.Abs(mean-7) > 0.01 || math.Abs(math.Log(d.Read/1e-4)) > 0.15 || math.Abs(math.Log(r.NoiseVar[0]/(1e-4*r.S[0]*r.S[0]))) > 0.2 {
		t.Errorf("gains of mean %g, noise %g at the reading and %g of sensor 0 before the division", mean, d.Read, r.NoiseVar[0])
	}
}

// A given level stays while a prior is learned, from whatever it starts.
func TestGivenNoiseAtTheReading(t *testing.T) {
	p, truth, err := readNoise.Pose(2)
	if err != nil {
		t.Fatal(err)
	}
	p.Prior = prior.GaussBernoulli{Density: 0.1, SignalVar: 0.3, Learn: prior.Density | prior.SignalVar}
	r := solve(t, p, nil)
	d, _ := channel.DetectorOf(r.Channel)
	if score := calamp.Score(r.X, r.S, truth); r.Status != calamp.Converged || d.Read != 1e-4 || score.XMSEScaled > 1e-3 {
		t.Errorf("%v, noise %g, error %g", r.Status, d.Read, score.XMSEScaled)
	}
}

func TestNoiseAtTheReadingIsRefused(t *testing.T) {
	p, _, err := readNoise.Pose(1)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(err error, words string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, expected words of %q", err, words)
		}
	}
	_, err = online.NewCalibrator(p.W, readNoise.Signal, p.Channel.(channel.Gain), &online.Options{LearnNoise: true})
	refused(err, "stream")
	for words, opt := range map[string]*calamp.Options{
		"every sensor": {Learn: calamp.Learn{SensorNoise: true}},
		"parameters":   {SensorDerivatives: []calamp.Direction{{Name: "W itself", D: p.W}}},
		"errors of W":  {MatrixError: 0.1},
		"together":     {Joint: solver.JointOn},
		"covariances":  {Settings: solver.Settings{Covariance: solver.Full}},
	} {
		_, err := calamp.Solve(context.Background(), p, opt)
		refused(err, words)
	}
	p.Channel = channel.Gain{Prior: readNoise.Gain, Own: channel.Detector{Read: -1}}
	_, err = calamp.Solve(context.Background(), p, nil)
	refused(err, "not negative")
}
