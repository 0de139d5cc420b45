package online_test

import (
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// given is what a stream stated of its gains after some samples, against the true gains.
type given struct {
	learned             bool
	t, sd, covered, rel float64 // the scale is e^t of the truth's; rel: error of s at the best scale
	flagged, rejected   int
}

// statedAfter absorbs a stream, and looks after these numbers of samples.
func statedAfter(t testing.TB, kind gainkind.Kind, wide, delta float64, seed uint64, counts []int) []given {
	te := teacher.Teacher{N: 400, M: 300, P: slices.Max(counts), Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: delta}
	s := newStream(t, te, seed)
	kind.Spread(s.Instance, seed)
	c, err := online.NewCalibrator(s.W, te.Signal, channel.Gain{Prior: kind.Stated(wide, seed), NoiseVar: delta}, &online.Options{Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var out []given
	rejected := 0
	for k := range te.P {
		if !absorb(t, c, s.sample(k)).Committed {
			rejected++
		}
		if slices.Contains(counts, k+1) {
			out = append(out, statedOf(c.Posterior(), s.Truth.S))
			out[len(out)-1].rejected = rejected
		}
	}
	return out
}

// statedOf compares what is in a file, the 95 % intervals of s as it is above all.
func statedOf(p *online.Posterior, truth []float64) given {
	out := given{learned: p.Range != nil, sd: p.ScaleSD, flagged: len(p.Flagged)}
	var dot, own float64
	lo, hi := p.Calibration.Interval(0.95)
	for mu, s := range truth {
		dot += p.S[mu] * s
		own += p.S[mu] * p.S[mu]
		common := 1.96 * p.ScaleSD * p.S[mu]
		if p.S[mu]-math.Hypot(p.S[mu]-lo[mu], common) <= s && s <= p.S[mu]+math.Hypot(hi[mu]-p.S[mu], common) {
			out.covered += 1 / float64(len(truth))
		}
	}
	out.t = math.Log(dot / own)
	for mu, s := range truth {
		d := p.S[mu]*dot/own/s - 1
		out.rel += d * d / float64(len(truth))
	}
	out.rel = math.Sqrt(out.rel)
	return out
}

// TestLongTrustStreamRange measures what streams state of the gains where the given range
// merely contains them, or does not.
func TestLongTrustStreamRange(t *testing.T) {
	longOnly(t)
	deltas, counts := []float64{1e-4, 1e-6, 1e-8}, []int{2, 6, 10, 40}
	table := tables.New(t, "", "gains", "given", "learned", "z²", "largest z", "rms t", "median sd", "coverage of s", "after 2", "6", "10", "40", "error of s after 40", "flagged", "not learned from")
	for _, kind := range gainkind.All {
		for _, wide := range []float64{1, 1.2, 2, 10, 0.7} {
			streams := make([][]given, len(deltas)*seedCount(10))
			parallel(len(streams), func(i int) {
				streams[i] = statedAfter(t, kind, wide, deltas[i%len(deltas)], uint64(i/len(deltas)), counts)
			})
			var learned, flagged, rejected int
			var z2, worst, t2, covered float64
			var tested2, testedWorst float64 // from 6 samples on: before, blurred gains may not tell how they are spread
			var sds, errs []float64
			after := make([]float64, len(counts))
			for _, stream := range streams {
				for i, r := range stream {
					if r.learned {
						learned++
					}
					z := r.t / r.sd
					z2, worst, t2, covered = z2+z*z, max(worst, math.Abs(z)), t2+r.t*r.t, covered+r.covered
					if counts[i] >= 6 {
						tested2, testedWorst = tested2+z*z/float64(len(streams)*(len(counts)-1)), max(testedWorst, math.Abs(z))
					}
					after[i] += r.covered / float64(len(streams))
					sds = append(sds, r.sd)
				}
				last := stream[len(stream)-1]
				errs = append(errs, last.rel)
				flagged, rejected = flagged+last.flagged, rejected+last.rejected
			}
			n := float64(len(sds))
			z2, covered = z2/n, covered/n
			table.Row("| %s | %g× | %d of %.0f | %.2f | %.1f | %.1e | %.1e | %.3f | %.3f | %.3f | %.3f | %.3f | %.1e | %d | %d |", kind.Name, wide, learned, n, z2, worst,
				math.Sqrt(t2/n), median(sds), covered, after[0], after[1], after[2], after[3], median(errs), flagged, rejected)
			if wide >= 1 && (testedWorst > 4 || tested2 > 2 || covered < 0.9 || covered > 0.999) {
				t.Errorf("%s, %g×: z² %.2f, largest z %.1f, coverage %.3f", kind.Name, wide, z2, worst, covered)
			}
		}
	}
}
