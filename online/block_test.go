package online_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
)

// blockStream takes in samples whose amplitudes are correlated so much from one to the next.
func blockStream(t *testing.T, block, samples int, seed uint64, correlation float64) (w *world, c *online.Calibrator, blocks int) {
	t.Helper()
	w = newWorld(t, 160, 200, seed)
	c = w.calibrator(t, online.Options{Block: block})
	for k := range samples {
		w.evolve(k, correlation, 1)
		if absorb(t, c, w.draw()).Together != nil {
			blocks++
		}
	}
	return w, c, blocks
}

// Samples of a scene that moves slowly tell more of the gains together than one by one, and the error bars hold.
func TestBlockOfSlowScene(t *testing.T) {
	tests.Long(t)
	var alone, together float64
	for seed := range uint64(3) {
		w, c, _ := blockStream(t, 1, 60, seed, 0.98)
		rms, _ := w.calibration(c)
		alone += rms
		w, c, blocks := blockStream(t, online.AutoBlock, 60, seed, 0.98)
		rms, covered := w.calibration(c)
		together += rms
		if blocks == 0 || covered < 0.9 {
			t.Errorf("seed %d: %d blocks, %.0f %% of s within intervals", seed, blocks, 100*covered)
		}
	}
	t.Logf("error of s one by one %.4f, together %.4f", alone/3, together/3)
	if together > 0.85*alone {
		t.Errorf("error of s one by one %.4f, together %.4f", alone/3, together/3)
	}
}

// A scene that does not change tells no more together: nothing is learned from the block.
func TestBlockOfStaticScene(t *testing.T) {
	w, c, blocks := blockStream(t, 20, 40, 1, 1)
	if _, covered := w.calibration(c); blocks > 0 || covered < 0.9 {
		t.Errorf("%d blocks, %.0f %% of s within intervals", blocks, 100*covered)
	}
}

// Where the scene changes at once a block ends with the sample before.
func TestBlockEndsAtChange(t *testing.T) {
	w := newWorld(t, 160, 200, 3)
	c := w.calibrator(t, online.Options{Block: online.AutoBlock})
	for k := range 30 {
		if k == 15 {
			w.level, w.scene = 2, nil
		}
		w.evolve(k%15, 0.98, 1)
		y := w.draw()
		e := absorb(t, c, y)
		if ended := e.Together != nil; k > 3 && ended != (k == 15) {
			t.Errorf("sample %d: a block has ended: %t", k, ended)
		}
		if k == 15 && e.Together != nil && !slices.Equal(e.Together.Ago, []int{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}) {
			t.Errorf("samples of the block are %v before", e.Together.Ago)
		}
	}
	if _, covered := w.calibration(c); covered < 0.9 {
		t.Errorf("%.0f %% of s within intervals", 100*covered)
	}
}

// A stream that is interrupted within a block goes on with the same bits, and one that ends there solves what it has.
func TestBlockResumes(t *testing.T) {
	whole, part := newWorld(t, 80, 100, 5), newWorld(t, 80, 100, 5)
	c := whole.calibrator(t, online.Options{Block: 12})
	d := part.calibrator(t, online.Options{Block: 12})
	for k := range 30 {
		whole.evolve(k, 0.95, 1)
		y := whole.draw()
		if k == 4 {
			y[7] = math.NaN()
		}
		absorb(t, c, y)
		d = again(t, d, part.calibrator(t, online.Options{Block: 12}))
		absorb(t, d, y)
	}
	sameState := func() {
		t.Helper()
		a, err := c.Snapshot().MarshalBinary()
		b, err2 := d.Snapshot().MarshalBinary()
		if err != nil || err2 != nil || !slices.Equal(a, b) {
			t.Error("a stream that was interrupted has another state")
		}
	}
	sameState()
	if c.Snapshot().Block == nil {
		t.Fatal("no block")
	}
	for _, c := range []*online.Calibrator{c, d} {
		together, err := c.Finish(context.Background())
		if err != nil || together == nil || len(together.Ago) < 4 {
			t.Fatalf("%v, %v", together, err)
		}
	}
	sameState()
}

// What blocks exclude is an error that names it.
func TestBlockOptions(t *testing.T) {
	w := newWorld(t, 40, 50, 1)
	gain := channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}
	for _, v := range []struct {
		opt  online.Options
		p    prior.Prior
		g    channel.Calibrating
		what string
	}{
		{online.Options{Block: -2}, prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, gain, "at most"},
		{online.Options{Block: 5, Commit: online.Always}, prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, gain, "memory"},
		{online.Options{Block: 5, Memory: 10}, prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, gain, "memory"},
		{online.Options{Block: 5}, prior.Laplace{Density: 0.1, SignalVar: 1}, gain, "Gauss–Bernoulli"},
		{online.Options{Block: 5, WarmUp: 10}, prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, channel.Offset{Prior: channel.OffsetPrior{Gain: gain.Prior, SD: 0.1}, NoiseVar: 1e-4}, "offsets"},
	} {
		_, err := online.NewCalibrator(w.w, v.p, v.g, &v.opt)
		if err == nil || !strings.Contains(err.Error(), v.what) {
			t.Errorf("%+v: %v", v.opt, err)
		}
	}
}

// Signals that are unrelated are not taken together, whatever is asked.
func TestBlockOfUnrelatedSamples(t *testing.T) {
	tests.Long(t)
	for _, block := range []int{10, online.AutoBlock} {
		w := newWorld(t, 160, 200, 2)
		c := w.calibrator(t, online.Options{Block: block})
		for range 40 {
			if e := absorb(t, c, w.draw()); e.Together != nil {
				t.Error("unrelated samples were solved together")
			}
		}
		if _, covered := w.calibration(c); covered < 0.9 {
			t.Errorf("%.0f %% of s within intervals", 100*covered)
		}
	}
}

// Samples that have no solution by themselves have one together, and are learned from.
func TestBlockOfFewSensors(t *testing.T) {
	w := newWorld(t, 60, 200, 1)
	c := w.calibrator(t, online.Options{Block: 10})
	unsolved, last := 0, math.NaN()
	for k := range 40 {
		w.evolve(k, 0.9, 1)
		if e := absorb(t, c, w.draw()); e.Together != nil {
			unsolved += e.Together.Unsolved
			_, samples := e.Together.X.Dims()
			last = w.nmse(mat.Col(nil, samples-1, e.Together.X))
		}
	}
	rms, covered := w.calibration(c)
	t.Logf("%d samples were solved together only; error of s %.4f, %.0f %% within intervals; of the last x %.2g", unsolved, rms, 100*covered, last)
	if unsolved == 0 || rms > 0.015 || covered < 0.9 || !(last < 3e-3) {
		t.Errorf("%d samples were solved together only; error of s %.4f, %.0f %% within intervals; of the last x %.2g", unsolved, rms, 100*covered, last)
	}
}
