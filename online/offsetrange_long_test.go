package online_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// besideOffsets is a stream of sensors with offsets, and the range that it is given.
func besideOffsets(t testing.TB, kind gainkind.Kind, wide, delta float64, samples int, seed uint64) (stream, func() *online.Calibrator) {
	te := teacher.Teacher{N: 200, M: 160, P: samples, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: delta}
	s := newStream(t, te, seed)
	kind.Spread(s.Instance, seed)
	for mu := range te.M {
		for k := range samples { // offsets a quarter of the readings
			s.Y.Set(mu, k, s.Y.At(mu, k)+0.1*math.Sin(float64(1+mu*mu)))
		}
	}
	return s, func() *online.Calibrator {
		g := channel.Offset{Prior: channel.OffsetPrior{Gain: kind.Stated(wide, seed), SD: math.NaN()}, NoiseVar: delta}
		c, err := online.NewCalibrator(s.W, te.Signal, g, &online.Options{WarmUp: 10, LearnOffsets: true, Settings: solver.Settings{Threads: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// A range that merely contains the gains is found out beside offsets, too, and one that they fill is kept; signals that were
// solved together are at the scale of those that follow. Interruptions leave the same bits.
func TestRangeOfAStreamWithOffsets(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		wide    float64
		learned bool
	}{{1, false}, {3, true}} {
		s, calibrator := besideOffsets(t, gainkind.All[0], c.wide, 1e-6, 12, 2)
		all, part := calibrator(), calibrator()
		for k := range s.P {
			e := absorb(t, all, s.sample(k))
			if e.Together != nil {
				score := calamp.Score(e.Together.X, all.Posterior().S, calamp.Truth{X: mat.DenseCopyOf(s.Truth.X.Slice(0, s.N, 0, 10)), S: s.Truth.S})
				if math.Abs(score.Scale-1) > 0.1 || score.XMSE > 0.01 {
					t.Errorf("given %g×: signals of the first samples are off by the factor %g", c.wide, score.Scale)
				}
			}
			part = again(t, part, calibrator())
			absorb(t, part, s.sample(k))
		}
		p := all.Posterior()
		r := statedOf(p, s.Truth.S)
		if r.learned != c.learned || math.Abs(r.t) > 3.5*r.sd || r.covered < 0.9 || r.flagged > 0 {
			t.Errorf("given %g×: %+v", c.wide, r)
		}
		if bits(t, all) != bits(t, part) {
			t.Errorf("given %g×: other bits after interruptions", c.wide)
		}
	}
}

// TestLongRangeBesideOffsetsInStreams measures what streams of sensors with offsets make of a given range.
func TestLongRangeBesideOffsetsInStreams(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "gains", "given", "learned", "z² of the scale", "largest z", "coverage of s", "error of s", "flagged", "not learned from")
	count := seedCount(4)
	for _, kind := range []gainkind.Kind{gainkind.All[0], gainkind.All[2], gainkind.All[4]} {
		for _, wide := range []float64{1, 2, 10} {
			deltas := []float64{1e-4, 1e-6}
			results := make([]given, len(deltas)*count)
			parallel(len(results), func(i int) {
				s, calibrator := besideOffsets(t, kind, wide, deltas[i%len(deltas)], 30, uint64(i/len(deltas)))
				c, rejected := calibrator(), 0
				for k := range s.P {
					if e := absorb(t, c, s.sample(k)); !e.Committed && e.Reject != online.WarmingUp {
						rejected++
					}
				}
				results[i] = statedOf(c.Posterior(), s.Truth.S)
				results[i].rejected = rejected
			})
			var learned, flagged, rejected int
			var z2, worst, covered float64
			var errs []float64
			n := float64(len(results))
			for _, r := range results {
				if r.learned {
					learned++
				}
				z := r.t / r.sd
				z2, worst, covered = z2+z*z/n, max(worst, math.Abs(z)), covered+r.covered/n
				flagged, rejected, errs = flagged+r.flagged, rejected+r.rejected, append(errs, r.rel)
			}
			table.Row("| %s | %g× | %d of %.0f | %.2f | %.1f | %.3f | %.1e | %d | %d |", kind.Name, wide, learned, n, z2, worst, covered, median(errs), flagged, rejected)
			filled := kind.Name == "uniform" && wide == 1
			if filled && learned > 0 || !filled && learned < len(results) || z2 > 2.5 || worst > 4 || covered < 0.9 || flagged > 0 {
				t.Errorf("%s, %g×: learned in %d, z² %.2f, largest %.1f, coverage %.3f, %d flagged", kind.Name, wide, learned, z2, worst, covered, flagged)
			}
		}
	}
}
