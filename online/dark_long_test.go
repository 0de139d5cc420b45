package online_test

import (
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
)

// Dark samples teach nothing, and the others are learned from.
func TestLongDarkStreams(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "good samples first", "dark after these", "dark ones learned from", "others rejected", "95 % intervals of s cover", "at worst")
	for _, good := range []int{0, 20} {
		for _, part := range []float64{0.1, 0.3, 0.5} {
			runs := make([]darkTally, seedCount(4))
			parallel(len(runs), func(seed int) { runs[seed] = darkStream(t, uint64(seed), good, 300, part) })
			var all darkTally
			worst := 1.0
			for _, d := range runs {
				all.samples, all.rejected = all.samples+d.samples, all.rejected+d.rejected
				all.dark, all.learned = all.dark+d.dark, all.learned+d.learned
				all.covered += d.covered / float64(len(runs))
				worst = min(worst, d.covered)
			}
			table.Row("| %d | %.0f %% | %d/%d | %d/%d | %.1f %% | %.1f %% |", good, 100*part, all.learned, all.dark, all.rejected, all.samples, 100*all.covered, 100*worst)
			if all.learned > 0 || 50*all.rejected > all.samples || all.covered < 0.93 || worst < 0.88 {
				t.Errorf("%d good, %g dark: %+v, at worst %g", good, part, all, worst)
			}
		}
	}
}

// Signals whose powers differ by orders of magnitude are learned from, as far as they have more than noise.
func TestLongSignalsOfUnequalPower(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "powers", "learned from", "no signal", "rejected otherwise", "changes", "95 % intervals of s cover")
	for _, kind := range []struct {
		name   string
		spread float64 // standard deviation of the logarithm of the amplitude
		faint  float64 // power of every second sample or so; 0 for none
	}{
		{"log-normal, amplitudes by a factor of 1.6", 0.5, 0},
		{"log-normal, a factor of 3", 1.15, 0},
		{"log-normal, a factor of 10", 2.3, 0},
		{"a half of them 1/10", 0, 0.1},
		{"a half of them 1/100", 0, 0.01},
		{"a half of them 1/1000", 0, 1e-3},
	} {
		type tally struct {
			learned, dark, rejected, changes int
			covered                          float64
		}
		runs := make([]tally, seedCount(3))
		parallel(len(runs), func(seed int) {
			w, r := newWorld(t, 160, 200, uint64(seed)), &runs[seed]
			c := w.calibrator(t, online.Options{})
			for range 200 {
				w.power = math.Exp(2 * kind.spread * w.rng.NormFloat64())
				if kind.faint > 0 && w.rng.IntN(2) == 0 {
					w.power = kind.faint
				}
				e := absorb(t, c, w.draw())
				switch {
				case e.Committed:
					r.learned++
				case e.Reject == online.NoSignal:
					r.dark++
				default:
					r.rejected++
				}
				if e.Change != nil {
					r.changes++
				}
			}
			_, r.covered = w.calibration(c)
		})
		var all tally
		for _, r := range runs {
			all = tally{all.learned + r.learned, all.dark + r.dark, all.rejected + r.rejected, all.changes + r.changes, all.covered + r.covered/float64(len(runs))}
		}
		table.Row("| %s | %d | %d | %d | %d | %.1f %% |", kind.name, all.learned, all.dark, all.rejected, all.changes, 100*all.covered)
		if all.covered < 0.92 || all.changes > 0 {
			t.Errorf("%s: %+v", kind.name, all)
		}
	}
}

// A scene that stays from the first sample on.
func TestLongStaticScene(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "M", "Δ", "entries vary by", "95 % intervals of s cover", "at worst", "error of x, in what is stated", "at worst", "offsets named", "sensors flagged, of streams")
	for _, v := range []struct {
		m            int
		noise, level float64
	}{{160, 1e-4, 0}, {160, 1e-6, 0}, {120, 1e-4, 0}, {160, 1e-4, 0.1}} {
		runs := make([]staticTally, seedCount(4))
		parallel(len(runs), func(seed int) { runs[seed] = staticStream(t, uint64(seed), v.m, 200, v.noise, v.level) })
		covered, ratio, offsets, flagged := []float64{}, []float64{}, 0, 0
		for _, s := range runs {
			covered, ratio = append(covered, s.covered), append(ratio, math.Sqrt(s.error2/s.variance))
			if s.offsets {
				offsets++
			}
			if s.flagged {
				flagged++
			}
		}
		least, most := slices.Min(covered), slices.Max(ratio)
		table.Row("| %d | %.0e | %.0f %% | %.1f %% | %.1f %% | %.2f | %.2f | %d/%d | %d/%d |", v.m, v.noise, 100*v.level, 100*mean(covered), 100*least, mean(ratio), most, offsets, len(runs), flagged, len(runs))
		if mean(covered) < 0.88 || least < 0.75 || most > 1.3 || offsets+flagged > 0 {
			t.Errorf("%+v: %v, %v, offsets %d, flagged %d", v, covered, ratio, offsets, flagged)
		}
	}
}

// Wrong readings near the least number of sensors, with gains that walk.
func TestLongWrongReadingsThatHide(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "readings that are wrong", "found", "others", "not converged", "rejected", "of samples", "error of x, in what is stated", "95 % intervals of s cover")
	kinds := append(slices.Clone(gainkind.WrongReadings), gainkind.WrongReading{Name: "none"})
	for i, kind := range kinds {
		rate := 0.01
		if kind.Spoil == nil {
			rate = 0
		}
		runs := make([]hiddenTally, seedCount(2))
		parallel(len(runs), func(seed int) { runs[seed].stream(t, uint64(seed), 300, rate, kind) })
		var h hiddenTally
		for _, r := range runs {
			h.samples, h.unconverged, h.rejected = h.samples+r.samples, h.unconverged+r.unconverged, h.rejected+r.rejected
			h.wrong, h.found, h.others = h.wrong+r.wrong, h.found+r.found, h.others+r.others
			h.error2, h.variance, h.covered = h.error2+r.error2, h.variance+r.variance, h.covered+r.covered/float64(len(runs))
		}
		ratio := math.Sqrt(h.error2 / h.variance)
		table.Row("| %s | %d/%d | %d | %d | %d | %d | %.2f | %.1f %% |", kind.Name, h.found, h.wrong, h.others, h.unconverged, h.rejected, h.samples, ratio, 100*h.covered)
		if ratio > 1.3 || h.covered < 0.88 || i < 2 && 50*h.rejected > h.samples {
			t.Errorf("%s: %+v", kind.Name, h)
		}
	}
}
