package online

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// A stream whose sensors add noise of their own, and photons theirs, goes where state evolution says.
func TestStreamsWithNoiseAtTheReading(t *testing.T) {
	tests.Long(t)
	const n, m, warm, samples, seeds = 250, 200, 10, 14, 2
	positive := prior.GaussBernoulli{Density: 0.2, SignalMean: 1, SignalVar: 0.25}
	for _, c := range []struct {
		name  string
		mean  float64 // of z
		warm  int
		prior prior.GaussBernoulli
		own   channel.Detector
	}{
		{"noise at the reading", 0, 1, prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Detector{Read: 1e-4}},
		{"photons, 1000", 3, warm, positive, channel.Detector{Photon: 3. / 1000}},
		{"photons, 100, read noise 5", 3, warm, positive, channel.Detector{Photon: 3. / 100, Read: math.Pow(5*3./100, 2)}},
	} {
		if c.name == "photons, 1000" && !*tables.Long { // between the others
			continue
		}
		gain := channel.Gain{Prior: channel.Uniform(0.8, 1.2), Own: c.own}
		se, err := evolution.Online(context.Background(), evolution.Model{
			Signal: c.prior, Gain: gain.Prior, Alpha: float64(m) / n, P: samples, Readings: &evolution.Readings{Sensors: gain, Mean: c.mean},
		}, &evolution.OnlineOptions{WarmUp: c.warm, Members: 64, Replicates: 3})
		if err != nil {
			t.Fatal(err)
		}
		var x, s, inside float64
		for seed := range uint64(seeds) {
			rng := rand.New(rand.NewPCG(seed, 5))
			w := make([]float64, m*n)
			for i := range w {
				w[i] = rng.NormFloat64() / math.Sqrt(n)
				if c.mean > 0 {
					w[i] += c.mean / (n * c.prior.Mean())
				}
			}
			truth := make([]float64, m)
			for mu := range truth {
				truth[mu] = 0.8 + 0.4*rng.Float64()
			}
			table, err := operator.NewDense(m, n, w)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := NewCalibrator(table, c.prior, gain, nil)
			if err != nil {
				t.Fatal(err)
			}
			signal, y := make([]float64, n), make([]float64, m)
			var e *Estimate
			for range samples {
				for i := range signal {
					if signal[i] = 0; rng.Float64() < c.prior.Density {
						signal[i] = c.prior.SignalMean + math.Sqrt(c.prior.SignalVar)*rng.NormFloat64()
					}
				}
				for mu := range y {
					y[mu] = 0
					for i, v := range signal {
						y[mu] += w[mu*n+i] * v / truth[mu]
					}
					y[mu] += math.Sqrt(c.own.Variance(y[mu])) * rng.NormFloat64()
				}
				if e, err = stream.Absorb(context.Background(), y); err != nil {
					t.Fatal(err)
				}
			}
			p := stream.Posterior()
			if !e.Committed || len(p.Flagged) > 0 || len(p.Warnings) > 0 {
				t.Errorf("%s: %s, flagged %v, warnings %v", c.name, e.Reason(), p.Flagged, p.Warnings)
			}
			scale := bestScale(p.S, truth)
			for mu, v := range truth {
				off := p.S[mu]*scale - v
				s += off * off / m / seeds
				if math.Abs(off) < 1.96*math.Sqrt(p.SVar[mu]) {
					inside += 1. / m / seeds
				}
			}
			scale = bestScale(e.X, signal)
			for i, v := range signal {
				x += math.Pow(e.X[i]*scale-v, 2) / n / seeds
			}
		}
		last := se[len(se)-1].Last()
		t.Logf("%s: x %.3g of %v, s %.3g of %v, inside %.3f", c.name, x, last.MSEX, s, last.MSES, inside)
		if x > 1.3*last.MSEX.Value || s > 1.5*last.MSES.Value || inside < 0.9 {
			t.Errorf("%s: x %.3g, predicted %v, s %.3g, predicted %v, inside %.3f", c.name, x, last.MSEX, s, last.MSES, inside)
		}
	}
}

// bestScale is the factor that brings estimates nearest to the truth.
func bestScale(estimate, truth []float64) float64 {
	along, square := 0.0, 0.0
	for i, v := range estimate {
		along, square = along+v*truth[i], square+v*v
	}
	return along / square
}
