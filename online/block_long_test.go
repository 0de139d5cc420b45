package online_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
)

// scenes are ways in which a stream's signals resemble each other. Signals keep mean square 1 where they are not zero.
var blockScenes = []struct {
	name string
	m    int // sensors
	draw func(w *world, k int)
}{
	{"static", 160, func(w *world, k int) { w.evolve(k, 1, 1) }},
	{"amplitudes .99", 160, func(w *world, k int) { w.evolve(k, 0.99, 1) }},
	{"amplitudes .9", 160, func(w *world, k int) { w.evolve(k, 0.9, 1) }},
	{"amplitudes new, one support", 160, func(w *world, k int) { w.evolve(k, 0, 1) }},
	{"amplitudes .99, entries stay for 100", 160, func(w *world, k int) { w.evolve(k, 0.99, 0.99) }},
	{"amplitudes .9, entries stay for 20", 160, func(w *world, k int) { w.evolve(k, 0.9, 0.95) }},
	{"amplitudes .9, of few sensors", 60, func(w *world, k int) { w.evolve(k, 0.9, 1) }},
	{"amplitudes new, of few sensors", 60, func(w *world, k int) { w.evolve(k, 0, 1) }},
	{"common .96, new at every 40th", 160, func(w *world, k int) {
		if k%40 == 0 {
			w.scene = nil
			w.level = 2
			w.draw()
			w.level = 0.3
			w.scene = slices.Clone(w.x)
		}
	}},
	{"unrelated", 160, func(w *world, k int) {}},
}

// evolve makes amplitudes a Gauss–Markov process, and the support a Markov chain that keeps its density.
func (w *world) evolve(k int, correlation, stay float64) {
	if k == 0 {
		w.draw()
		w.level = 0
		w.scene = slices.Clone(w.x)
		return
	}
	for i, v := range w.scene {
		switch {
		case v != 0 && w.rng.Float64() > stay:
			w.scene[i], w.x[i] = 0, 0
		case v != 0:
			w.scene[i] = correlation*v + math.Sqrt(1-correlation*correlation)*w.rng.NormFloat64()
		case w.rng.Float64() < (1-stay)*w.density/(1-w.density):
			w.scene[i] = w.rng.NormFloat64()
		}
	}
}

// TestLongBlocks compares streams whose samples resemble each other with and without blocks.
func TestLongBlocks(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "signals", "block", "error of s", "95 % intervals of s cover", "at worst", "error of x, in what is stated", "error of x", "samples not learned from", "blocks")
	for _, sc := range blockScenes {
		alone := 0.0
		for _, block := range []int{1, 30, online.AutoBlock} {
			type seen struct {
				rms, covered, e2, v, n float64
				lost, blocks           int
			}
			runs := make([]seen, seedCount(4))
			parallel(len(runs), func(seed int) {
				w := newWorld(t, sc.m, 200, uint64(seed))
				c := w.calibrator(t, online.Options{Block: block})
				r := &runs[seed]
				for k := range 150 {
					sc.draw(w, k)
					e := absorb(t, c, w.draw())
					r.lost += int(1 - b2f(e.Committed))
					if e.Together != nil {
						r.blocks++
					}
					if k >= 120 {
						rms, covered := w.calibration(c)
						r.rms, r.covered = r.rms+rms/30, r.covered+covered/30
						r.n += w.nmse(e.X) / 30
						var dot, own float64
						for i, v := range w.x {
							dot += v * e.X[i]
							own += e.X[i] * e.X[i]
						}
						for i, v := range w.x {
							d := v - dot/own*e.X[i]
							r.e2 += d * d
							r.v += e.XVar[i]
						}
					}
				}
			})
			var rms, covered, ratio, n []float64
			lost, blocks := 0, 0
			for _, r := range runs {
				rms, covered, ratio, n = append(rms, r.rms), append(covered, r.covered), append(ratio, math.Sqrt(r.e2/r.v)), append(n, r.n)
				lost, blocks = lost+r.lost, blocks+r.blocks
			}
			name := fmt.Sprint(block)
			if block == online.AutoBlock {
				name = "auto"
			}
			if block == 1 {
				alone = mean(rms)
			}
			worst := slices.Min(covered)
			if mean(covered) < 0.92 || worst < 0.85 || mean(rms) > 1.05*alone {
				t.Errorf("%s, %s: %.3g of s within intervals, at worst %.3g; error %.4f, one by one %.4f", sc.name, name, mean(covered), worst, mean(rms), alone)
			}
			table.Row("| %s | %s | %.4f | %.1f %% | %.1f %% | %.2f | %.2e | %d | %d |", sc.name, name, median(rms), 100*mean(covered), 100*worst, mean(ratio), median(n), lost, blocks)
		}
	}
}
