package calamp_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// behindMean draws a problem whose W has entries of variance 1/N about a mean, with which z is mean on average over signals and sensors.
func behindMean(t *testing.T, te teacher.Teacher, mean float64, seed uint64) (operator.Operator, *mat.Dense, calamp.Truth) {
	t.Helper()
	own := te.Own
	te.Own = channel.Detector{} // of readings through the other W
	drawn, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	table := make([]float64, te.M*te.N)
	for mu := range te.M {
		row := table[mu*te.N : (mu+1)*te.N]
		if err := drawn.W.RowInto(row, mu); err != nil {
			t.Fatal(err)
		}
		for i := range row {
			if mean != 0 {
				row[i] += mean / (float64(te.N) * te.Signal.Mean())
			}
		}
	}
	w, err := operator.NewDense(te.M, te.N, table)
	if err != nil {
		t.Fatal(err)
	}
	te.Own = own
	y, truth, err := te.Readings(w, seed)
	if err != nil {
		t.Fatal(err)
	}
	return w, y, truth
}

// Errors of AMP, at the true common scale, beside those of state evolution where sensors make codes, signs or counts of z/s, or add noise of their own; the model is known.
func TestLongReadingEvolution(t *testing.T) {
	longOnly(t)
	positive := prior.GaussBernoulli{Density: 0.2, SignalMean: 1, SignalVar: 0.25}
	photons := teacher.Teacher{N: 1000, M: 800, P: 8, Signal: positive, Gain: channel.Uniform(0.8, 1.2)}
	plain := teacher.Teacher{N: 1000, M: 800, P: 8, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}
	signs := teacher.Teacher{N: 400, M: 1600, P: 10, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 4}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-3}
	const mean = 3
	table := tables.New(t, "", "readings", "converged", "error of x", "of SE", "error of s", "of SE")
	for _, c := range []struct {
		name    string
		te      teacher.Teacher
		sensors channel.Calibrating
		mean    float64
	}{
		{"photons, 30 counts", photons, channel.Gain{Own: channel.Detector{Photon: mean / 30.}}, mean},
		{"photons, 100 counts, read noise 5", photons, channel.Gain{Own: channel.Detector{Photon: mean / 100., Read: math.Pow(5*mean/100., 2)}}, mean},
		{"photons, 1000 counts", photons, channel.Gain{Own: channel.Detector{Photon: mean / 1000.}}, mean},
		{"photons, 10⁵ counts", photons, channel.Gain{Own: channel.Detector{Photon: mean / 1e5}}, mean},
		{"noise at the reading, 1e-4", plain, channel.Gain{Own: channel.Detector{Read: 1e-4}}, 0},
		{"4 bits", plain, channel.Codes{Step: 0.25}, 0},
		{"6 bits", plain, channel.Codes{Step: 1. / 16}, 0},
		{"sign about 0.3", signs, channel.Codes{Threshold: 0.3}, 0},
	} {
		m := evolution.Model{Signal: c.te.Signal, Gain: c.te.Gain, NoiseVar: c.te.NoiseVar, Alpha: float64(c.te.M) / float64(c.te.N), P: c.te.P, Readings: &evolution.Readings{Sensors: c.sensors, Mean: c.mean}}
		gain, detector := c.sensors.(channel.Gain)
		if detector {
			m.NoiseVar = 0
		}
		se, err := evolution.FixedPoint(context.Background(), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		var x, s, runs float64
		seeds := seedCount(4)
		for seed := range uint64(seeds) {
			te := c.te
			te.NoiseVar, te.Own = m.NoiseVar, gain.Own
			if counts, is := c.sensors.(channel.Counts); is {
				te.Own.Photon = counts.Unit
			}
			w, y, truth := behindMean(t, te, c.mean, seed+1)
			known := c.sensors.WithCalibration(te.Gain)
			if noisy, is := known.(channel.Noisy); is {
				known = noisy.WithNoise(m.NoiseVar)
			}
			if codes, is := c.sensors.(channel.Codes); is {
				y = converted(y, codes)
			}
			res, err := calamp.Solve(context.Background(), &calamp.Problem{W: w, Y: y, Prior: te.Signal, Channel: known}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != calamp.Converged {
				continue
			}
			score := calamp.Score(res.X, res.S, truth)
			x, s, runs = x+score.XMSEScaled, s+atScale(res.S, truth.S), runs+1 // the common scale is known better the more entries there are
		}
		table.Row("| %s | %.0f of %d | %.3g | %.2f | %.3g | %.2f |", c.name, runs, seeds, x/runs, x/runs/se.MSEX.Value, s/runs, s/runs/se.MSES.Value)
		t.Logf("%s: x %.3g, SE %v, s %.3g, SE %v", c.name, x/runs, se.MSEX, s/runs, se.MSES)
	}
}

// atScale is the mean square error of s at the scale that suits it best.
func atScale(s, truth []float64) (mse float64) {
	along, size := 0.0, 0.0
	for mu, v := range s {
		along, size = along+v*truth[mu], size+v*v
	}
	for mu, v := range s {
		off := along/size*v - truth[mu]
		mse += off * off / float64(len(s))
	}
	return mse
}
