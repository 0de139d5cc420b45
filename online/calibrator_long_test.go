package online_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Measurements too long for every run: go test -run Long -long -v -timeout 3h ./online
var (
	long    = tables.Long
	seeds   = flag.Int("seeds", 0, "seeds of a long measurement; 0 is the number on record")
	samples = flag.Int("samples", 100_000, "samples of the soak")
	sizeN   = flag.Int("n", 4000, "N of the long measurements on one ensemble")
)

func longOnly(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("a long measurement: add -long")
	}
}

func seedCount(standard int) int {
	if *seeds > 0 {
		return *seeds
	}
	return standard
}

// reference is the ensemble of the paper's online figures.
func reference(n, samples int) teacher.Teacher {
	return teacher.Teacher{
		N: n, M: n * 6 / 10, P: samples,
		Signal:   prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain:     channel.Uniform(0.95, 1.05),
		NoiseVar: 1e-8,
	}
}

// outcome is what one sample of a run gave.
type outcome struct {
	calamp.Metrics
	iterations          int
	committed           bool
	scaleSD             float64
	covered, coveredRaw float64 // 95 % intervals of s with and without the common mode
	correlation         float64
	flagged, masked     int
}

func score(s stream, c *online.Calibrator, est *online.Estimate, k int, s0 []float64) outcome {
	post := c.Posterior()
	x := mat.DenseCopyOf(s.Truth.X.Slice(0, s.N, k, k+1))
	o := outcome{
		Metrics:    calamp.Score(mat.NewDense(s.N, 1, slices.Clone(est.X)), post.S, calamp.Truth{X: x, S: s0}),
		iterations: est.Iterations, committed: est.Committed, scaleSD: post.ScaleSD,
		flagged: len(est.Flagged), masked: len(est.Masked),
	}
	o.correlation = 1 - o.SOneMinusCNCC
	for mu, v := range post.SVar {
		miss := math.Abs(post.S[mu] - s0[mu])
		if miss <= 1.959964*math.Sqrt(v) {
			o.coveredRaw += 1 / float64(s.M)
		}
		if miss <= 1.959964*math.Hypot(math.Sqrt(v), post.S[mu]*post.ScaleSD) {
			o.covered += 1 / float64(s.M)
		}
	}
	return o
}

// runs absorbs whole streams, one a seed, in parallel; result[seed][sample].
func runs(t *testing.T, te teacher.Teacher, opt online.Options) [][]outcome {
	t.Helper()
	opt.Threads = 1
	out := make([][]outcome, seedCount(5))
	parallel(len(out), func(seed int) {
		s := newStream(t, te, uint64(seed))
		c := s.calibrator(t, &opt)
		for k := range te.P {
			out[seed] = append(out[seed], score(s, c, absorb(t, c, s.sample(k)), k, s.Truth.S))
		}
	})
	return out
}

// medianAt is the median over seeds of a number at sample k.
func medianAt(runs [][]outcome, k int, value func(outcome) float64) float64 {
	v := make([]float64, len(runs))
	for i, r := range runs {
		v[i] = value(r[k])
	}
	return median(v)
}

func xScaled(o outcome) float64    { return o.XMSEScaled }
func xRaw(o outcome) float64       { return o.XMSE }
func sScaled(o outcome) float64    { return o.SMSEScaled }
func sRaw(o outcome) float64       { return o.SMSE }
func iterations(o outcome) float64 { return float64(o.iterations) }
func common(o outcome) float64     { return o.scaleSD }

// meanCovered is the mean over seeds, since the scale's error is common to all sensors: in
// a run where it happens to be small, which are most, all intervals are wider than they need be.
func meanCovered(runs [][]outcome, k int) (mean float64) {
	for _, r := range runs {
		mean += r[k].covered / float64(len(runs))
	}
	return mean
}

func TestLongReferenceErrorsAndScale(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "sample", "scaled MSE of x", "raw", "scaled MSE of s", "raw", "intervals cover", "sd of the scale", "iterations", "rejected", "plain: raw x", "plain: raw s")
	// State evolution by Monte Carlo, good to 5 %, computed independently.
	wantX := []float64{1.85e-5, 2.7e-6, 4.3e-7, 8.4e-8, 2.6e-8, 1.39e-8, 9.98e-9, 8.35e-9, 7.45e-9, 6.95e-9}
	wantS := []float64{2.6e-4, 5.3e-5, 8.8e-6, 1.6e-6, 4.1e-7, 1.5e-7, 7.3e-8, 4.5e-8, 3.1e-8, 2.4e-8}
	te := reference(*sizeN, 50)
	ours := runs(t, te, online.Options{})
	plain := runs(t, te, online.Options{Settings: solver.Settings{NoScaleStep: true}, Commit: online.Always})
	for k := range te.P {
		rejected := 0
		for _, r := range ours {
			if !r[k].committed {
				rejected++
			}
		}
		offX, offS := "", ""
		if k < len(wantX) {
			x, s := medianAt(ours, k, xScaled)/wantX[k]-1, medianAt(ours, k, sScaled)/wantS[k]-1
			offX, offS = fmt.Sprintf(" (%+.0f %%)", 100*x), fmt.Sprintf(" (%+.0f %%)", 100*s)
			if math.Abs(x) > 0.25 || math.Abs(s) > 0.25 {
				t.Errorf("sample %d: MSE of x off by %.0f %%, of s by %.0f %%", k+1, 100*x, 100*s)
			}
		}
		if k >= 10 && k+1 != 15 && (k+1)%10 != 0 {
			continue
		}
		table.Row("| %d | %.3g%s | %.3g | %.3g%s | %.3g | %.1f %% | %.2g | %.0f | %d | %.3g | %.3g |", k+1,
			medianAt(ours, k, xScaled), offX, medianAt(ours, k, xRaw), medianAt(ours, k, sScaled), offS, medianAt(ours, k, sRaw),
			100*meanCovered(ours, k), medianAt(ours, k, common), medianAt(ours, k, iterations), rejected,
			medianAt(plain, k, xRaw), medianAt(plain, k, sRaw))
	}
	last := te.P - 1
	if raw, scaled := medianAt(ours, last, sRaw), medianAt(ours, last, sScaled); raw > 3*scaled || raw >= medianAt(ours, last-20, sRaw) {
		t.Errorf("raw MSE of s %g, scale-corrected %g; 20 samples earlier raw %g", raw, scaled, medianAt(ours, last-20, sRaw))
	}
	if c := meanCovered(ours, last); c < 0.90 || c > 0.99 {
		t.Errorf("95 %% intervals cover %.1f %%", 100*c)
	}
}

func TestLongDrift(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "Δ", "`--memory`", "centred correlation of s at 50", "at 200", "intervals cover (191–200)", "samples rejected", "sensors flagged a sample", "iterations a sample")
	for _, noise := range []float64{1e-8, 1e-4} {
		for _, memory := range []float64{20, 100, 3} {
			te := reference(500, 200)
			te.NoiseVar = noise
			var at50, at200, cover []float64
			var rejected, flagged, spent int
			for seed := range seedCount(5) {
				s := newStream(t, te, uint64(seed))
				c := s.calibrator(t, &online.Options{Settings: solver.Settings{Threads: 1}, Memory: memory})
				d := newDrift(s, 0.002, uint64(seed))
				for k := range te.P {
					est := absorb(t, c, d.sample(k))
					spent += est.Iterations
					if !est.Committed {
						rejected++
					}
					flagged += len(est.Flagged)
					o := score(s, c, est, k, d.s)
					if k == 49 {
						at50 = append(at50, o.correlation)
					}
					if k >= 190 {
						cover = append(cover, o.covered)
					}
					if k == 199 {
						at200 = append(at200, o.correlation)
					}
				}
			}
			total := seedCount(5) * te.P
			table.Row("| %.0e | %g | %.4f | %.4f | %.1f %% | %.1f %% | %.2f | %d |", noise, memory, median(at50), median(at200), 100*median(cover), 100*float64(rejected)/float64(total), float64(flagged)/float64(total), spent/total)
			if median(at200) < median(at50)-0.01 || median(cover) < 0.85 {
				t.Errorf("Δ = %g, memory %g: below the bar", noise, memory)
			}
		}
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return 0.5 * (v[(n-1)/2] + v[n/2])
}

// One sensor of 500 broken, from the start and from sample 16 on.
func TestLongBadSensor(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "seed", "sensor", "broken from sample", "flagged at its", "error of x (median)", "largest", "samples rejected", "others flagged")
	const bad = 123
	te := reference(834, 30)
	for seed := range seedCount(5) {
		s := newStream(t, te, uint64(seed))
		clean := make([]float64, te.P)
		c := s.calibrator(t, nil)
		for k := range te.P {
			_, clean[k] = s.xError(absorb(t, c, s.sample(k)), k)
		}
		for _, start := range []int{0, 15} {
			for _, name := range slices.Sorted(maps.Keys(faults)) {
				c := s.calibrator(t, nil)
				flaggedAt, rejected, others := 0, 0, 0
				worst, typical := 0.0, []float64{}
				for k := range te.P {
					y := s.sample(k)
					if k >= start {
						y[bad] = faults[name](y[bad])
					}
					est := absorb(t, c, y)
					if !est.Committed {
						rejected++
					}
					if flaggedAt == 0 && slices.Contains(est.Flagged, bad) {
						flaggedAt = k + 1 - start
					}
					others = max(others, len(est.Flagged)-1)
					_, e := s.xError(est, k)
					worst = max(worst, e/clean[k])
					typical = append(typical, e/clean[k])
				}
				table.Row("| %d | %s | %d | %d | %.2f | %.2f | %d | %d |", seed, name, start+1, flaggedAt, median(typical), worst, rejected, max(0, others))
				if flaggedAt == 0 || flaggedAt > 10 || median(typical) > 2 || others > 0 {
					t.Errorf("seed %d, %s from sample %d: below the bar", seed, name, start+1)
				}
			}
		}
	}
}

func TestLongLatency(t *testing.T) {
	longOnly(t)
	te := reference(1000, 230)
	s := newStream(t, te, 0)
	c := s.calibrator(t, nil)
	var wall, iterations []float64
	for k := range te.P {
		start := time.Now()
		est := absorb(t, c, s.sample(k))
		if k >= 30 {
			wall = append(wall, 1e3*time.Since(start).Seconds())
			iterations = append(iterations, float64(est.Iterations))
		}
	}
	slices.Sort(wall)
	fmt.Printf("N = 1000, M = 600: p50 %.1f ms, p99 %.1f ms, %.0f iterations a sample (median)\n", wall[len(wall)/2], wall[len(wall)*99/100], median(iterations))
}

// instrument is a small ensemble for long streams.
func instrument() teacher.Teacher {
	return teacher.Teacher{
		N: 256, M: 160, P: 1,
		Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-8,
	}
}

// endless returns a function that draws sample after sample from the ensemble.
func (s stream) endless(seed uint64) func() []float64 {
	rng := rand.New(rand.NewPCG(5, seed))
	x, y, w := make([]float64, s.N), make([]float64, s.M), make([]float64, s.N)
	return func() []float64 {
		for i := range x {
			x[i] = 0
			if rng.Float64() < s.Signal.Density {
				x[i] = rng.NormFloat64()
			}
		}
		for mu := range y {
			s.W.RowInto(w, mu)
			z := math.Sqrt(s.NoiseVar) * rng.NormFloat64()
			for i, v := range w {
				z += v * x[i]
			}
			y[mu] = z / s.Truth.S[mu]
		}
		return y
	}
}

// The scale's own error bar along a stream that goes on and on.
func TestLongScaleOfLongStreams(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "Δ", "range", "samples", "(scale error / stated sd)²")
	for _, at := range []struct {
		noise  float64
		sPrior solver.SPrior
		given  string
		marks  []int
	}{
		{1e-8, solver.AutoS, "tested", []int{10, 100, 1000, 10000}},
		{1e-14, solver.AutoS, "tested", []int{10, 100, 1000}},
		{1e-14, solver.UniformS, "insisted on", []int{10, 100, 1000}},
	} {
		te := instrument()
		te.NoiseVar = at.noise
		square := make([][]float64, len(at.marks)) // by mark and seed
		for i := range square {
			square[i] = make([]float64, seedCount(8))
		}
		parallel(seedCount(8), func(seed int) {
			s := newStream(t, te, uint64(100+seed))
			c := s.calibrator(t, &online.Options{Settings: solver.Settings{Threads: 1, SPrior: at.sPrior}})
			next := s.endless(uint64(seed)) // of its own: the signals' power is what tells the scale
			k := 0
			for i, mark := range at.marks {
				for ; k < mark; k++ {
					absorb(t, c, next())
				}
				post := c.Posterior()
				off := calamp.Score(nil, post.S, calamp.Truth{S: s.Truth.S}).Scale - 1
				fmt.Printf("seed %d, %d samples: scale off by %.2g, sd %.2g\n", seed, mark, off, post.ScaleSD)
				square[i][seed] = off / post.ScaleSD * off / post.ScaleSD
			}
		})
		for i, mark := range at.marks {
			mean := floats.Sum(square[i]) / float64(len(square[i]))
			table.Row("| %g | %s | %d | %.2f |", at.noise, at.given, mark, mean)
			if mean > 2 {
				t.Errorf("Δ = %g, range %s, %d samples: the scale is off by %.2f stated variances", at.noise, at.given, mark, mean)
			}
		}
	}
}

// Memory and throughput of an endless stream stay flat, and so does everything
// else: nothing is flagged or rejected for no reason.
func TestLongSoak(t *testing.T) {
	longOnly(t)
	s := newStream(t, instrument(), 1)
	c := s.calibrator(t, &online.Options{Settings: solver.Settings{Threads: 1}})
	next := s.endless(5)
	var first uint64
	var rejected, flagged, masked, spent int
	start := time.Now()
	every := max(1, *samples/20)
	for k := 1; k <= *samples; k++ {
		est := absorb(t, c, next())
		spent += est.Iterations
		if !est.Committed {
			rejected++
		}
		masked += len(est.Masked)
		flagged = max(flagged, len(est.Flagged))
		if k != 1000 && k%every != 0 {
			continue
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if k == 1000 {
			first = m.Sys
		}
		post := c.Posterior()
		sc := calamp.Score(nil, post.S, calamp.Truth{S: s.Truth.S})
		fmt.Printf("| %d | %.1f MiB | %.2f ms | %d its | rejected %d | masked %d | flagged %d | raw s %.2g | scaled s %.2g | mean var %.2g | scale %.2g, sd %.2g |\n", k, float64(m.Sys)/(1<<20), 1e3*time.Since(start).Seconds()/float64(every), spent/every, rejected, masked, flagged, sc.SMSE, sc.SMSEScaled, mean(post.SVar), sc.Scale-1, post.ScaleSD)
		if k > 1000 && m.Sys > first+2<<20 {
			t.Errorf("memory grew from %d to %d bytes", first, m.Sys)
		}
		start, spent = time.Now(), 0
	}
}

func mean(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total / float64(len(v))
}
