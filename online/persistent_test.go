package online_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// persisting is the calibrator of a world whose entries may stay from sample to sample.
func (w *world) persisting(t testing.TB, persistent bool, opt online.Options) *online.Calibrator {
	t.Helper()
	opt.LearnNoise, opt.Threads, opt.Outliers.Look = true, 1, true
	entry := prior.GaussBernoulli{Density: math.NaN(), SignalVar: math.NaN(), Learn: prior.Density | prior.SignalVar}
	var p prior.Prior = entry
	if persistent {
		p = prior.Persisting(len(w.x), entry)
	}
	c, err := online.NewCalibrator(w.w, p, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: math.NaN()}, &opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Of few sensors samples are found by the support of those before them, and what is learned of it is a part of the state.
func TestPersistent(t *testing.T) {
	tests.Long(t)
	const samples = 60
	var errors [2]float64
	for way := range errors {
		w := newWorld(t, 60, 200, 1)
		c := w.persisting(t, way == 1, online.Options{})
		var again *online.Calibrator
		for k := range samples {
			w.evolve(k, 0, 0.98)
			y := w.draw()
			e := absorb(t, c, y)
			if k >= samples/2 {
				errors[way] += math.Log(w.nmse(e.X)) / (samples / 2)
			}
			switch {
			case again != nil:
				if f := absorb(t, again, y); !slices.Equal(f.X, e.X) {
					t.Fatalf("sample %d is another after a restart", k)
				}
			case k == samples/2:
				again = w.persisting(t, way == 1, online.Options{})
				data, err := c.Snapshot().MarshalBinary()
				if err != nil {
					t.Fatal(err)
				}
				state := new(online.State)
				if err := state.UnmarshalBinary(data); err != nil {
					t.Fatal(err)
				}
				if err := again.Restore(state); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("errors of x %.2g one by one, %.2g", math.Exp(errors[0]), math.Exp(errors[1]))
	if errors[1] > errors[0]-math.Log(3) {
		t.Errorf("errors of x %.2g, one by one %.2g", math.Exp(errors[1]), math.Exp(errors[0]))
	}
}

// The support goes on from a block to the samples after it, and a stream that is interrupted within a block goes on with the same bits. Of a scene whose amplitudes hardly change gains
// follow from the blocks, and signals of few sensors from the support.
func TestPersistentBlocks(t *testing.T) {
	tests.Long(t)
	w := newWorld(t, 60, 200, 1)
	c, d := w.persisting(t, true, online.Options{}), w.persisting(t, true, online.Options{})
	blocks, unfound := 0, 0
	for k := range 60 {
		w.evolve(k, 0.99, 1)
		y := w.draw()
		e := absorb(t, c, y)
		if e.Together != nil {
			blocks++
		}
		if k >= 40 && w.nmse(e.X) > 3e-3 {
			unfound++
		}
		d = again(t, d, w.persisting(t, true, online.Options{}))
		absorb(t, d, y)
	}
	a, err := c.Snapshot().MarshalBinary()
	b, err2 := d.Snapshot().MarshalBinary()
	if err != nil || err2 != nil || !slices.Equal(a, b) {
		t.Error("a stream that was interrupted has another state")
	}
	rms, covered := w.calibration(c)
	t.Logf("%d blocks, error of s %.4f, %.0f %% within intervals, %d of 20 signals not found", blocks, rms, 100*covered, unfound)
	if blocks == 0 || rms > 0.03 || covered < 0.9 || unfound > 2 {
		t.Errorf("%d blocks, error of s %.4f, %.0f %% within intervals, %d of 20 signals not found", blocks, rms, 100*covered, unfound)
	}
}

// Blocks are the default of a support that is followed, where they are possible: not with a W for each sample, or a memory. Where they were asked for it is an error.
func TestPersistentBlocksWhereTheyCanBe(t *testing.T) {
	w := newWorld(t, 40, 50, 1)
	several, err := operator.NewChoice([]operator.Operator{w.w, w.w})
	if err != nil {
		t.Fatal(err)
	}
	p, g := prior.Persisting(50, prior.GaussBernoulli{Density: 0.1, SignalVar: 1}), channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}
	for _, v := range []struct {
		w     operator.Operator
		opt   online.Options
		block int // 0: an error
	}{
		{w.w, online.Options{}, online.AutoBlock},
		{w.w, online.Options{Block: 1}, 1},
		{w.w, online.Options{Memory: 10}, 1},
		{w.w, online.Options{Memory: 10, Block: 5}, 0},
		{several, online.Options{}, 1},
		{several, online.Options{Block: 5}, 0},
	} {
		c, err := online.NewCalibrator(v.w, p, g, &v.opt)
		if v.block == 0 && err == nil || v.block != 0 && (err != nil || c.Block() != v.block) {
			t.Errorf("%T, %+v: %v", v.w, v.opt, err)
		}
	}
}

// A sample of another scene, whose support is not the one that was expected, is solved as the first of its scene, and no gains are found to have changed.
func TestPersistentOfNewScene(t *testing.T) {
	tests.Long(t)
	w := newWorld(t, 70, 200, 2)
	c := w.persisting(t, true, online.Options{Block: 1})
	for k := range 60 {
		if w.evolve(k, 0.9, 1); k == 40 {
			w.level, w.scene = 1, nil
			w.draw()
			w.level, w.scene = 0, slices.Clone(w.x)
		}
		e := absorb(t, c, w.draw())
		if e.Change != nil {
			t.Errorf("sample %d: %v have changed", k, e.Change.What())
		}
		if k >= 40 && (!e.Committed || w.nmse(e.X) > 3e-3) {
			t.Errorf("sample %d: %v, error %.2g", k, e.Reject, w.nmse(e.X))
		}
	}
}

// TestLongPersistent compares streams one by one, in blocks, with the support of the samples before, and with both.
func TestLongPersistent(t *testing.T) {
	longOnly(t)
	again := func(w *world, k int) {
		if w.evolve(k, 0.9, 1); k%40 == 0 {
			w.level, w.scene = 1, nil
			w.draw()
			w.level, w.scene = 0, slices.Clone(w.x)
		}
	}
	table := tables.New(t, "", "signals", "sensors", "way", "error of s", "95 % intervals of s cover", "at worst", "error of x", "95 % intervals of x cover", "samples not learned from", "stay")
	for _, sc := range []struct {
		name string
		m    int
		draw func(w *world, k int)
	}{
		{"static", 160, func(w *world, k int) { w.evolve(k, 1, 1) }},
		{"amplitudes .99, one support", 160, func(w *world, k int) { w.evolve(k, 0.99, 1) }},
		{"amplitudes .9, entries stay for 20", 160, func(w *world, k int) { w.evolve(k, 0.9, 0.95) }},
		{"amplitudes .9, new at every 40th", 160, again},
		{"unrelated", 160, func(*world, int) {}},
		{"static", 60, func(w *world, k int) { w.evolve(k, 1, 1) }},
		{"amplitudes .99, one support", 60, func(w *world, k int) { w.evolve(k, 0.99, 1) }},
		{"amplitudes .9, one support", 60, func(w *world, k int) { w.evolve(k, 0.9, 1) }},
		{"amplitudes .9, entries stay for 20", 60, func(w *world, k int) { w.evolve(k, 0.9, 0.95) }},
		{"amplitudes new, entries stay for 50", 60, func(w *world, k int) { w.evolve(k, 0, 0.98) }},
		{"amplitudes .9, new at every 40th", 60, again},
		{"unrelated", 60, func(*world, int) {}},
	} {
		for _, way := range []string{"one by one", "block auto", "persistent", "persistent, block auto"} {
			const samples = 120
			count := seedCount(3)
			var s, inside, x, there []float64
			lost, stay := 0, 0.0
			for seed := range count {
				w, opt := newWorld(t, sc.m, 200, uint64(seed)), online.Options{Block: 1}
				if strings.HasSuffix(way, "block auto") {
					opt.Block = online.AutoBlock
				}
				c := w.persisting(t, strings.HasPrefix(way, "persistent"), opt)
				sum := [5]float64{}
				for k := range samples {
					sc.draw(w, k)
					e := absorb(t, c, w.draw())
					lost += int(1 - b2f(e.Committed))
					if k < samples/2 {
						continue
					}
					rms, covered := w.calibration(c)
					sum[0], sum[1], sum[2] = sum[0]+rms, sum[1]+covered, sum[2]+math.Log(w.nmse(e.X))
					var dot, own float64
					for i, v := range w.x {
						dot, own = dot+v*e.X[i], own+e.X[i]*e.X[i]
					}
					for i, v := range w.x {
						if v != 0 {
							sum[3] += b2f(math.Abs(v-dot/own*e.X[i]) < 1.96*math.Sqrt(e.XVar[i]))
							sum[4]++
						}
					}
				}
				s, inside, x, there = append(s, 2*sum[0]/samples), append(inside, 2*sum[1]/samples), append(x, 2*sum[2]/samples), append(there, sum[3]/sum[4])
				if m := c.Posterior().Model; strings.HasPrefix(way, "persistent") {
					stay += m.Values[3] / float64(count)
				}
			}
			table.Row("| %s | %d | %s | %.4f | %.1f %% | %.1f %% | %.2g | %.1f %% | %d | %.3f |", sc.name, sc.m, way, mean(s), 100*mean(inside), 100*slices.Min(inside), math.Exp(mean(x)), 100*mean(there), lost, stay)
		}
	}
}
