package online_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
)

// TestLongStreamDelays measures delays of sensors along a stream: spread of 1 % of a sample, α = 0.8, density 0.15, noise of variance 1e-6.
func TestLongStreamDelays(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "N", "samples", "model", "coverage of theta", "of s", "error of x over that with theta known, later half", "spread learned")
	for _, c := range []struct {
		n, samples int
		free       bool
	}{{200, 10, false}, {200, 40, false}, {200, 40, true}, {500, 40, false}} {
		seeds := seedCount(10)
		var ofTheta, ofS, over, spread float64
		for seed := range seeds {
			l := newLate(c.n*4/5, c.n, 0.01, uint64(10+seed))
			opt := online.Options{SensorDerivatives: l.delays()}
			calibrator := l.calibrator(t, l.given, opt)
			if c.free {
				calibrator = l.free(t, opt)
			}
			a, b, r := l.coverage(t, calibrator, c.samples, online.Options{})
			ofTheta, ofS, over, spread = ofTheta+a/float64(seeds), ofS+b/float64(seeds), over+r/float64(seeds), spread+calibrator.Posterior().Spread[0]/float64(seeds)
		}
		model := "given"
		if c.free {
			model = "learned"
		}
		table.Row("| %d | %d | %s | %.3f | %.3f | %.2f | %.4f |", c.n, c.samples, model, ofTheta, ofS, over, spread)
		if ofTheta < 0.92 || ofS < 0.92 {
			t.Errorf("N = %d, %d samples, model %s: coverage of theta %.3f, of s %.3f", c.n, c.samples, model, ofTheta, ofS)
		}
	}
}

// free is a stream that is given the distribution of s alone.
func (l *late) free(t testing.TB, opt online.Options) *online.Calibrator {
	nan := math.NaN()
	opt.LearnNoise = true
	signal := prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan, Learn: prior.Density | prior.SignalMean | prior.SignalVar}
	c, err := online.NewCalibrator(l.given, signal, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: nan}, &opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
