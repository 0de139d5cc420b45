package online_test

import (
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
)

// noisy is a world of which the sensors' noise is spread over so many decades, log-uniformly, about 1e-4.
func noisy(t testing.TB, m, n int, decades float64, seed uint64) *world {
	w := newWorld(t, m, n, seed)
	w.each = make([]float64, m)
	for mu := range w.each {
		w.each[mu] = w.noise * math.Pow(10, decades*(w.rng.Float64()-0.5))
	}
	return w
}

// noiseTally is what became of a stream whose sensors are not equally noisy.
type noiseTally struct{ error, variance, inside, chi, lost, logError, count float64 }

func (n *noiseTally) stream(t *testing.T, w *world, samples int, opt online.Options) {
	c := w.calibrator(t, opt)
	var error, variance float64
	for k := range samples {
		y := w.draw()
		e := absorb(t, c, y)
		n.lost += float64(len(e.Flagged))
		if k < samples-5 {
			continue
		}
		square := 0.0
		for i, x := range w.x {
			square += x * x
			variance += e.XVar[i]
		}
		error += w.nmse(e.X) * square
		n.chi += e.ChiSquare / 5
	}
	_, inside := w.calibration(c)
	p := c.Posterior()
	for mu, v := range p.NoiseVar {
		n.logError += math.Pow(math.Log(v/w.each[mu]), 2) / float64(len(w.each))
	}
	n.error += error
	n.variance += error / variance
	n.inside += inside
	n.count++
}

// The noise of every sensor is learned along a stream: the error nears that with the noise given.
func TestLongNoiseOfSensorsInStreams(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "decades", "samples", "noise", "error of x, to given", "error of x / x_var", "s inside 95 %", "mean χ²", "rms of log Δ", "sensors flagged, of samples × sensors")
	count := seedCount(4)
	for _, decades := range []float64{2, 0} {
		for _, samples := range []int{10, 30, 100} {
			given := 0.0
			for _, kind := range []string{"given", "one for all, learned", "learned for every sensor"} {
				var n noiseTally
				for seed := range count {
					w := noisy(t, 320, 400, decades, uint64(seed))
					opt := online.Options{LearnSensorNoise: kind == "learned for every sensor"}
					if kind == "given" {
						opt.NoiseVar = slices.Clone(w.each)
					}
					n.stream(t, w, samples, opt)
				}
				if given == 0 {
					given = n.error
				}
				c := n.count
				table.Row("| %g | %d | %s | %.2f | %.2f | %.1f %% | %.2f | %.2f | %.0f |", decades, samples, kind, n.error/given, n.variance/c, 100*n.inside/c, n.chi/c, math.Sqrt(n.logError/c), n.lost)
			}
		}
	}
}
