package calamp_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// trust is what a run stated, against the truth.
type trust struct {
	learned, settled  bool
	warned            bool // of anything
	t, sd, z, covered float64
	mse               float64
	wrong             int    // healthy sensors that were called broken
	reason            string // why it ended
}

func trustOf(t testing.TB, p *calamp.Problem, truth calamp.Truth) trust {
	res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	score := calamp.Score(res.X, res.S, truth)
	out := trust{
		learned: warned(res, calamp.RangeNotFilled), warned: len(res.Warnings) > 0, settled: res.Status == calamp.Converged,
		t: math.Log(score.Scale), sd: res.ScaleSD, mse: score.XMSEScaled, wrong: len(res.BrokenSensors),
		reason: res.Reason,
	}
	out.z = out.t / out.sd
	lo, hi := res.SIntervalRaw(0.95)
	for mu, s := range truth.S {
		if lo[mu] <= s && s <= hi[mu] {
			out.covered += 1 / float64(len(truth.S))
		}
	}
	return out
}

func warned(res *calamp.Result, code calamp.WarningCode) bool {
	return slices.ContainsFunc(res.Warnings, func(w calamp.Warning) bool { return w.Code == code })
}

// trusts are those of many runs.
type trusts []trust

func (all trusts) count(of func(trust) bool) (n int) {
	for _, r := range all {
		if of(r) {
			n++
		}
	}
	return n
}

func (all trusts) rms(of func(trust) float64) float64 {
	total := 0.0
	for _, r := range all {
		total += of(r) * of(r)
	}
	return math.Sqrt(total / float64(len(all)))
}

func (all trusts) sorted(of func(trust) float64) []float64 {
	var v []float64
	for _, r := range all {
		v = append(v, of(r))
	}
	slices.Sort(v)
	return v
}

func (all trusts) mean(of func(trust) float64) float64 {
	total := 0.0
	for _, r := range all {
		total += of(r) / float64(len(all))
	}
	return total
}

func inParallel(count int, f func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range count {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			f(i)
		})
	}
	wg.Wait()
}

// Intervals and scale where the given range merely contains the gains, or does not: nine
// problems (Δ and P) of N = 400, M = 300 for each seed.
func TestLongTrustRange(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	deltas, signals := []float64{1e-4, 1e-6, 1e-8}, []int{2, 6, 10}
	cells := len(deltas) * len(signals)
	table := tables.New(t, "", "gains", "given", "learned", "warned", "z²", "largest z", "rms t", "median sd", "coverage of s", "least", "error of x", "not converged")
	for _, kind := range gainkind.All {
		var exact trusts
		for _, wide := range []float64{1, 1.2, 2, 10, 0.7} {
			runs := make(trusts, cells*count)
			inParallel(len(runs), func(i int) {
				seed, delta, p := uint64(i/cells), deltas[i%cells/len(signals)], signals[i%len(signals)]
				te := teacher.Teacher{N: 400, M: 300, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: delta}
				in, err := te.Draw(seed)
				if err != nil {
					t.Error(err)
					return
				}
				kind.Spread(in, seed)
				problem := te.Problem(in)
				problem.Channel = channel.Faulty{Working: channel.Gain{Prior: kind.Stated(wide, seed), NoiseVar: delta}}
				runs[i] = trustOf(t, problem, in.Truth)
			})
			if exact == nil {
				exact = runs
			}
			ratio := make(trusts, len(runs))
			for i := range ratio {
				ratio[i].mse = runs[i].mse / exact[i].mse
			}
			z, covered := runs.rms(func(r trust) float64 { return r.z }), runs.mean(func(r trust) float64 { return r.covered })
			zs := runs.sorted(func(r trust) float64 { return math.Abs(r.z) })
			worst := zs[len(zs)-1]
			leastCell := 1.0 // of the nine problems
			for cell := range cells {
				var own trusts
				for i := cell; i < len(runs); i += cells {
					own = append(own, runs[i])
				}
				leastCell = min(leastCell, own.mean(func(r trust) float64 { return r.covered }))
			}
			sds := runs.sorted(func(r trust) float64 { return r.sd })
			ratios := ratio.sorted(func(r trust) float64 { return r.mse })
			table.Row("| %s | %g× | %d of %d | %d | %.2f | %.1f | %.1e | %.1e | %.3f | %.3f | %.2f | %d |", kind.Name, wide,
				runs.count(func(r trust) bool { return r.learned }), len(runs), runs.count(func(r trust) bool { return r.warned }), z*z, worst,
				runs.rms(func(r trust) float64 { return r.t }), sds[len(sds)/2], covered, leastCell, ratios[len(ratios)/2],
				runs.count(func(r trust) bool { return !r.settled }))
			if wide < 1 { // false: only what can be decided is asked for
				continue
			}
			lost := func(r trust) bool { return !r.settled }
			if i := slices.IndexFunc(runs, lost); 20*runs.count(lost) > len(runs) {
				t.Errorf("%s, %g×: %d runs did not converge, the first of P = %d, Δ = %g, seed %d: %s", kind.Name, wide, runs.count(lost), signals[i%len(signals)], deltas[i%cells/len(signals)], i/cells, runs[i].reason)
			}
			// Bounds alone hold the scale of a narrow distribution: ±2 sd of a density that is
			// a box contain the whole box.
			most := 0.999
			if kind.Name == "CCD-like, sd 0.01" {
				most = 1
			}
			if worst > 4 || z*z > 2 || covered < 0.9 || covered > most {
				t.Errorf("%s, %g×: z² %.2f, largest z %.1f, coverage %.3f", kind.Name, wide, z*z, worst, covered)
			}
		}
	}
}

// Healthy sensors, and a range that is true: none may be called broken, and the range
// must not be rejected.
func TestLongTrustHealthy(t *testing.T) {
	longOnly(t)
	count := seedCount(20)
	table := tables.New(t, "", "range", "P", "Δ", "called broken", "range not believed", "z²", "coverage of s")
	var all trusts
	sensors := 0
	for _, half := range []float64{0.05, 0.2, 0.5} {
		for _, p := range []int{2, 4, 8, 10, 20} {
			for _, delta := range []float64{1e-4, 1e-6, 1e-8, 1e-10} {
				te := teacher.Teacher{N: 500, M: 400, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(1-half, 1+half), NoiseVar: delta}
				runs := make(trusts, count)
				inParallel(count, func(i int) {
					in, err := te.Draw(uint64(i))
					if err != nil {
						t.Error(err)
						return
					}
					problem := te.Problem(in)
					problem.Channel = channel.Faulty{Working: problem.Channel}
					runs[i] = trustOf(t, problem, in.Truth)
				})
				wrong := int(math.Round(float64(count) * runs.mean(func(r trust) float64 { return float64(r.wrong) })))
				z := runs.rms(func(r trust) float64 { return r.z })
				table.Row("| [%g, %g] | %d | %g | %d | %d | %.2f | %.3f |", 1-half, 1+half, p, delta, wrong,
					runs.count(func(r trust) bool { return r.learned }), z*z, runs.mean(func(r trust) float64 { return r.covered }))
				all = append(all, runs...)
				sensors += count * te.M
			}
		}
	}
	wrong := all.mean(func(r trust) float64 { return float64(r.wrong) }) * float64(len(all))
	z := all.rms(func(r trust) float64 { return r.z })
	alarms := all.count(func(r trust) bool { return r.learned })
	zs := all.sorted(func(r trust) float64 { return math.Abs(r.z) })
	table.Row("| all | | | %.0f of %d | %d of %d | %.2f (largest z %.1f) | %.3f |", wrong, sensors, alarms, len(all), z*z, zs[len(zs)-1],
		all.mean(func(r trust) float64 { return r.covered }))
	if wrong > 1e-4*float64(sensors) || alarms > 0 || zs[len(zs)-1] > 4 {
		t.Errorf("%.0f of %d healthy sensors called broken, %d ranges not believed, largest z %.1f", wrong, sensors, alarms, zs[len(zs)-1])
	}
}
