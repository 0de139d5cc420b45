package online_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// instrumentRange is the only prior that streams of such gains are given: it contains them.
var instrumentRange = channel.Uniform(0.1, 6)

// farOut is the last of the instruments with twenty times as many sensors with outlying gains, for few to be in each stream.
var farOut = gainkind.Kind{Name: "CCD-like, 2 % far out", Draw: func(rng *rand.Rand) float64 {
	near, far := 1+0.01*rng.NormFloat64(), math.Exp(1.5*(2*rng.Float64()-1))
	if rng.Float64() < 0.02 {
		return far
	}
	return near
}}

// instrumentStream are gains as instruments have them, in a stream that is given nothing but the wide range. It returns the
// calibrator after all samples, how many were not learned from, and how many sensors were ever flagged.
func instrumentStream(t testing.TB, kind gainkind.Kind, te teacher.Teacher, seed uint64) (c *online.Calibrator, s stream, rejected, ever int) {
	s = newStream(t, te, seed)
	kind.Spread(s.Instance, seed)
	nothing := prior.GaussBernoulli{Density: math.NaN(), SignalMean: math.NaN(), SignalVar: math.NaN(), Learn: prior.Density | prior.SignalMean | prior.SignalVar}
	c, err := online.NewCalibrator(s.W, nothing, channel.Gain{Prior: instrumentRange, NoiseVar: math.NaN()},
		&online.Options{LearnNoise: true, Outliers: calamp.Outliers{Look: true}, Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	flagged := map[int]bool{}
	for k := range te.P {
		e := absorb(t, c, s.sample(k))
		if !e.Committed {
			rejected++
		}
		for _, mu := range e.Flagged {
			flagged[mu] = true
		}
	}
	return c, s, rejected, len(flagged)
}

// Sensors with outlying gains lie in a range that merely contains all of them: they are used like others, and
// what is learned of the many says nothing of them. Interruptions leave the same bits.
func TestStreamWithGainsLikeNoOther(t *testing.T) {
	te := teacher.Teacher{N: 120, M: 110, P: 8, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.NormalAbout(1, 0.01), NoiseVar: 1e-6}
	s := newStream(t, te, 3)
	for mu, far := range map[int]float64{5: 3, 50: 0.4} {
		for k := range te.P {
			s.Y.Set(mu, k, s.Y.At(mu, k)*s.Truth.S[mu]/far)
		}
		s.Truth.S[mu] = far
	}
	calibrator := func() *online.Calibrator {
		c, err := online.NewCalibrator(s.W, te.Signal, channel.Gain{Prior: channel.Uniform(0.1, 4), NoiseVar: te.NoiseVar}, &online.Options{Outliers: calamp.Outliers{Look: true}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	all, part := calibrator(), calibrator()
	for k := range te.P {
		if e := absorb(t, all, s.sample(k)); len(e.Flagged) > 0 || !e.Committed {
			t.Errorf("sample %d: flagged %v; %s", k, e.Flagged, e.Reason())
		}
		part = again(t, part, calibrator())
		absorb(t, part, s.sample(k))
	}
	p := all.Posterior()
	if p.Range == nil {
		t.Error("the given range is believed")
	}
	if r := statedOf(p, s.Truth.S); r.rel > 0.005 || r.covered < 0.9 {
		t.Errorf("error of s %g, intervals cover %.3f", r.rel, r.covered)
	}
	if bits(t, all) != bits(t, part) {
		t.Error("other bits after interruptions")
	}
}

// TestLongGainDistributionsInStreams: gains as instruments have them, and nothing given but a wide range.
func TestLongGainDistributionsInStreams(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "gains", "Δ", "error of s", "normal, log-normal", "lost", "flagged for a while", "coverage of s", "least", "not learned from")
	for _, kind := range append(slices.Clone(gainkind.Instruments), farOut) {
		for _, delta := range []float64{1e-4, 1e-6} {
			type result struct {
				out  given
				rel  float64 // coverage at the best scale
				log  bool
				ever int
			}
			results := make([]result, count)
			parallel(count, func(i int) {
				te := teacher.Teacher{N: 200, M: 160, P: 30, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: delta}
				c, s, rejected, ever := instrumentStream(t, kind, te, uint64(i))
				p := c.Posterior()
				r := &results[i]
				r.out = statedOf(p, s.Truth.S)
				r.out.rejected, r.ever = rejected, ever
				r.log = p.Range != nil && p.Range.Prior.Log
				lo, hi := p.Calibration.Interval(0.95)
				for mu, s0 := range s.Truth.S {
					if at := s0 * math.Exp(-r.out.t); lo[mu] <= at && at <= hi[mu] {
						r.rel += 1 / float64(te.M)
					}
				}
			})
			var errs []float64
			var lost, ever, rejected int
			var found [2]int
			least, mean := 1.0, 0.0
			for _, r := range results {
				errs = append(errs, r.out.rel)
				lost, ever, rejected = lost+r.out.flagged, ever+r.ever, rejected+r.out.rejected
				least, mean = min(least, r.rel), mean+r.rel/float64(count)
				if r.log {
					found[1]++
				} else if r.out.learned {
					found[0]++
				}
			}
			table.Row("| %s | %.0e | %.2g | %d, %d | %d | %d | %.3f | %.3f | %d |", kind.Name, delta, median(errs), found[0], found[1], lost, ever, mean, least, rejected)
			if lost > 0 || mean < 0.9 || mean > 0.99 {
				t.Errorf("%s, Δ = %g: %d sensors lost, coverage %.3f", kind.Name, delta, lost, mean)
			}
		}
	}
}
