package online_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// world is an instrument whose gains, noise and signals may change from sample to
// sample. Its signals are Gauss–Bernoulli of density 0.15.
type world struct {
	w              *operator.Dense
	rows           [][]float64
	s              []float64 // M, at present
	x              []float64 // N, of the latest sample
	rng            *rand.Rand
	noise          float64 // variance
	density, power float64 // of the signals
	level          float64 // below 1, signals share a support and are correlated to that part
	scene          []float64
	repeat         bool      // the latest signal comes again
	trusting       bool      // --outliers off
	offset         []float64 // M; nil for none
	each           []float64 // M, noise variances of the sensors in place of noise; nil where all have that
}

func newWorld(t testing.TB, m, n int, seed uint64) *world {
	t.Helper()
	w := &world{rng: rand.New(rand.NewPCG(seed, 14)), noise: 1e-4, density: 0.15, power: 1, level: 2, x: make([]float64, n)}
	entries := make([]float64, m*n)
	for i := range entries {
		entries[i] = w.rng.NormFloat64() / math.Sqrt(float64(n))
	}
	op, err := operator.NewDense(m, n, entries)
	if err != nil {
		t.Fatal(err)
	}
	w.w = op
	for mu := range m {
		w.rows = append(w.rows, entries[mu*n:(mu+1)*n])
		w.s = append(w.s, 0.85+0.3*w.rng.Float64())
	}
	return w
}

// calibrator is given the range of s, and learns the rest.
func (w *world) calibrator(t testing.TB, opt online.Options) *online.Calibrator {
	t.Helper()
	opt.LearnNoise, opt.Threads, opt.Outliers.Look = opt.NoiseVar == nil, 1, !w.trusting
	p := prior.GaussBernoulli{Density: math.NaN(), SignalVar: math.NaN(), Learn: prior.Density | prior.SignalVar}
	var g channel.Calibrating = channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: math.NaN()}
	if w.offset != nil {
		g = channel.Offset{Prior: channel.OffsetPrior{Gain: channel.Uniform(0.8, 1.2), SD: math.NaN()}, NoiseVar: math.NaN()}
		opt.WarmUp, opt.LearnOffsets = online.LeastWarmUp, true
	}
	c, err := online.NewCalibrator(w.w, p, g, &opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// draw returns the readings of a new signal.
func (w *world) draw() []float64 {
	if w.repeat {
		return w.readings()
	}
	if w.level > 1 || w.scene == nil {
		for i := range w.x {
			w.x[i] = 0
			if w.rng.Float64() < w.density {
				w.x[i] = w.rng.NormFloat64() * math.Sqrt(w.power)
			}
		}
	}
	if w.level <= 1 {
		if w.scene == nil {
			w.scene = slices.Clone(w.x)
		}
		for i, v := range w.scene {
			if v != 0 {
				w.x[i] = (v + w.level*w.rng.NormFloat64()) / math.Sqrt(1+w.level*w.level)
			}
		}
	}
	return w.readings()
}

func (w *world) readings() []float64 {
	y := make([]float64, len(w.s))
	for mu, row := range w.rows {
		noise := w.noise
		if w.each != nil {
			noise = w.each[mu]
		}
		z := math.Sqrt(noise) * w.rng.NormFloat64()
		for i, v := range row {
			z += v * w.x[i]
		}
		y[mu] = z / w.s[mu]
		if w.offset != nil {
			y[mu] += w.offset[mu]
		}
	}
	return y
}

// nmse is the error of an estimate of the latest signal at the best scale, relative.
func (w *world) nmse(x []float64) float64 {
	var dot, own, square float64
	for i, v := range w.x {
		dot += v * x[i]
		own += x[i] * x[i]
		square += v * v
	}
	return 1 - dot*dot/max(own*square, math.SmallestNonzeroFloat64)
}

// calibration compares the posterior of s with the truth at the best scale: the root
// mean square relative error, and the part of the sensors in use within 95 % intervals.
func (w *world) calibration(c *online.Calibrator) (rms, covered float64) {
	p := c.Posterior()
	var dot, square float64
	for mu, s := range p.S {
		dot += s * w.s[mu]
		square += s * s
	}
	lo, hi := p.Calibration.Interval(0.95)
	for mu, s := range w.s {
		s *= square / dot
		rms += (p.S[mu] - s) * (p.S[mu] - s) / (s * s)
		if lo[mu] <= s && s <= hi[mu] {
			covered++
		}
	}
	m := float64(len(w.s))
	return math.Sqrt(rms / m), covered / m
}

// walk moves all gains by a random step.
func (w *world) walk(step float64, part float64) {
	for mu := range w.s {
		if float64(mu) < part*float64(len(w.s)) {
			w.s[mu] = min(max(w.s[mu]*(1+step*w.rng.NormFloat64()), 0.8), 1.2)
		}
	}
}

// change is what happens to a world before sample k, from 0.
type change struct {
	name    string
	samples int
	tells   string  // what must be reported; "" for nothing
	reach   float64 // largest error of x ten samples after a change, 0 for none
	do      func(w *world, k int)
}

func differingBy(level float64) func(*world, int) { return func(w *world, _ int) { w.level = level } }

func at(when int, do func(w *world)) func(*world, int) {
	return func(w *world, k int) {
		if k == when {
			do(w)
		}
	}
}

func jump(part, size float64) func(w *world) {
	return func(w *world) {
		for mu := range w.s {
			if w.rng.Float64() < part {
				factor := 1 + size
				if w.rng.IntN(2) == 0 {
					factor = 1 - size
				}
				w.s[mu] = min(max(w.s[mu]*factor, 0.8), 1.2)
			}
		}
	}
}

var changes = []change{
	{"none", 500, "", 0, func(*world, int) {}},
	{"drift of 3 % in 160", 160, "drift", 0, func(w *world, k int) {
		rng := rand.New(rand.NewPCG(3, 3))
		for mu := range w.s {
			w.s[mu] = min(max(w.s[mu]*(1+0.03/160*rng.NormFloat64()), 0.8), 1.2)
		}
	}},
	{"walk of 0.2 %", 200, "drift", 0, func(w *world, k int) { w.walk(0.002, 1) }},
	{"walk of 0.05 %", 300, "drift", 0, func(w *world, k int) { w.walk(0.0005, 1) }},
	{"walk of 0.2 % from 150", 300, "drift", 0, func(w *world, k int) {
		if k >= 150 {
			w.walk(0.002, 1)
		}
	}},
	{"a fifth walks 0.5 %", 200, "drift", 0, func(w *world, k int) { w.walk(0.005, 0.2) }},
	{"walk of 0.2 %, noise 1e-8", 200, "drift", 0, func(w *world, k int) {
		w.noise = 1e-8
		w.walk(0.002, 1)
	}},
	{"30 % of the gains jump by 2 %", 100, "drift", 0, at(60, jump(0.3, 0.02))},
	{"30 % of the gains jump by 10 %", 100, "gains", 1.5e-3, at(60, jump(0.3, 0.1))},
	{"60 % of the gains jump by 10 %", 100, "gains", 1.5e-3, at(60, jump(0.6, 0.1))},
	{"noise 26 times larger", 100, "noise", 1.5e-2, at(60, func(w *world) { w.noise *= 26 })},
	{"signals 20 times brighter", 100, "signals", 1e-5, at(60, func(w *world) { w.power *= 400 })},
	{"brightness ramp to 20", 160, "", 0, func(w *world, k int) { w.power = math.Pow(20, 2*math.Min(1, float64(k)/100)) }},
	{"differing by 50 %", 60, "", 0, differingBy(0.5)},
	{"differing by 30 %", 60, "", 0, differingBy(0.3)},
	{"differing by 20 %", 60, "", 0, differingBy(0.2)},
	{"differing by 5 %", 60, "", 0, differingBy(0.05)},
	{"all equal", 60, "", 0, differingBy(0)},
	{"one repeated 20 times", 60, "", 0, func(w *world, k int) { w.repeat = k%20 != 0 }},
	{"density 0.05 to 0.3", 100, "", 0, func(w *world, k int) {
		w.density = 0.05
		if k >= 60 {
			w.density = 0.3
		}
	}},
}

// TestLongTrustStreams measures what streams make of drifts, changes and signals that
// look similar. Medians over the seeds, of the coverage the mean and the worst.
func TestLongTrustStreams(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "what happens", "error of s", "95 % intervals cover", "at worst",
		"nmse of x before", "1st", "4th", "10th after 60", "end", "named", "not learned from")
	for _, ch := range changes {
		runs := make([]trial, seedCount(5))
		parallel(len(runs), func(seed int) { runs[seed] = tryOut(t, ch, uint64(seed)) })
		at := func(value func(trial) float64) float64 {
			v := make([]float64, len(runs))
			for i, r := range runs {
				v[i] = value(r)
			}
			return median(v)
		}
		covered, worst, given, rejected := 0.0, 1.0, map[string]int{}, 0
		for _, r := range runs {
			covered += r.covered / float64(len(runs))
			worst = min(worst, r.covered)
			rejected += r.rejected
			for _, what := range r.given {
				given[what]++
			}
		}
		table.Row("| %s | %.1e | %.0f %% | %.0f %% | %.1e | %.1e | %.1e | %.1e | %.1e | %v | %d |", ch.name,
			at(func(r trial) float64 { return r.rms }), 100*covered, 100*worst, at(func(r trial) float64 { return r.before }),
			at(func(r trial) float64 { return r.after[0] }), at(func(r trial) float64 { return r.after[3] }),
			at(func(r trial) float64 { return r.after[9] }), at(func(r trial) float64 { return r.end }), counts(given), rejected)
		if covered < 0.88 || worst < 0.75 {
			t.Errorf("%s: 95 %% intervals cover %.0f %%, at worst %.0f %%", ch.name, 100*covered, 100*worst)
		}
		for _, r := range runs {
			if ch.tells != "" && !slices.Contains(r.given, ch.tells) || ch.tells == "" && len(r.given) > 0 {
				t.Errorf("%s: named %v, expected %q", ch.name, r.given, ch.tells)
			}
			if last := r.after[9]; ch.reach > 0 && last > ch.reach {
				t.Errorf("%s: error %.2g after ten samples", ch.name, last)
			}
		}
	}
}

func counts(given map[string]int) string {
	var words []string
	for _, what := range slices.Sorted(maps.Keys(given)) {
		words = append(words, fmt.Sprintf("%s: %d", what, given[what]))
	}
	return strings.Join(words, ", ")
}

// trial is one stream.
type trial struct {
	rms, covered float64     // error of s, and coverage, over the last ten samples
	before, end  float64     // error of x over the ten samples before 60, and the last ten
	after        [10]float64 // of the samples from 60 on
	rejected     int
	given        []string // drift, and what has changed
}

func tryOut(t *testing.T, ch change, seed uint64) (r trial) {
	w := newWorld(t, 320, 400, seed)
	c := w.calibrator(t, online.Options{})
	tell := func(what string) {
		if !slices.Contains(r.given, what) {
			r.given = append(r.given, what)
		}
	}
	for k := range ch.samples {
		ch.do(w, k)
		e := absorb(t, c, w.draw())
		if !e.Committed {
			r.rejected++
		}
		if e.Drift > 0 {
			tell("drift")
		}
		if e.Change != nil {
			for _, what := range e.Change.What() {
				tell(what)
			}
		}
		n := w.nmse(e.X)
		if k >= 60 && k < 70 {
			r.after[k-60] = n
		}
		if k >= 50 && k < 60 {
			r.before += n / 10
		}
		if k >= ch.samples-10 {
			r.end += n / 10
			rms, covered := w.calibration(c)
			r.rms += rms / 10
			r.covered += covered / 10
		}
	}
	return r
}

// TestLongTrustFalseAlarms looks for alarms and changes where nothing happens.
func TestLongTrustFalseAlarms(t *testing.T) {
	longOnly(t)
	type seen struct {
		alarms, changes, rejected, flagged, offsets int
		sums                                        float64
	}
	out := make([]seen, seedCount(4))
	parallel(len(out), func(seed int) {
		w := newWorld(t, 160, 200, uint64(seed))
		c := w.calibrator(t, online.Options{})
		o := &out[seed]
		for k := range 5000 {
			e := absorb(t, c, w.draw())
			if e.Drift > 0 {
				o.alarms++
			}
			if e.Change != nil {
				o.changes++
			}
			if !e.Committed {
				o.rejected++
			}
			o.flagged = max(o.flagged, len(e.Flagged))
			if k%10 == 0 {
				if namesOffsets(c) {
					o.offsets++
				}
				o.sums = max(o.sums, slices.Max(c.Snapshot().Drift.Sums))
			}
		}
	})
	table := tables.New(t, "", "seed", "samples with an alarm", "changes", "not learned from", "sensors flagged", "largest sum", "offsets named")
	for seed, o := range out {
		table.Row("| %d | %d | %d | %d | %d | %.1f | %d |", seed, o.alarms, o.changes, o.rejected, o.flagged, o.sums, o.offsets)
		if o.alarms > 0 || o.changes > 0 || o.offsets > 0 {
			t.Errorf("seed %d: %d samples with an alarm, %d changes, offsets named %d times", seed, o.alarms, o.changes, o.offsets)
		}
	}
}

// parallel calls f for every i below count, on all processors.
func parallel(count int, f func(i int)) {
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
