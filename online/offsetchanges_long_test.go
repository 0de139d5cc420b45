package online_test

import (
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
)

// withOffsets gives the sensors of a world offsets of half the readings' size.
func withOffsets(w *world) *world {
	w.offset = make([]float64, len(w.s))
	for mu := range w.offset {
		w.offset[mu] = 0.2 * w.rng.NormFloat64()
	}
	return w
}

// Streams with offsets are watched for drifts and changes as those without are.
func TestLongChangesBesideOffsets(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "sample 40 on", "streams", "named", "named falsely", "error of x, last 10 samples", "s inside 95 %", "offsets inside 95 %", "sensors flagged")
	count := seedCount(3)
	for _, c := range []struct {
		name  string
		do    func(w *world, k int)
		tells string
	}{
		{"nothing", func(*world, int) {}, ""},
		{"noise 26 times larger", at(40, func(w *world) { w.noise *= 26 }), "noise"},
		{"30 % of the gains jump by 10 %", at(40, jump(0.3, 0.1)), "gains"},
		{"signals 20 times brighter", at(40, func(w *world) { w.power *= 400 }), "signals"},
		{"walk of 0.2 % (from the start)", func(w *world, _ int) { w.walk(0.002, 1) }, "drift"},
	} {
		var given, falsely, flagged int
		var nmse, inside, offsets float64
		for seed := range count {
			w := withOffsets(newWorld(t, 160, 200, uint64(seed)))
			cal := w.calibrator(t, online.Options{})
			found := false
			for k := range 100 {
				c.do(w, k)
				e := absorb(t, cal, w.draw())
				var names []string
				if e.Change != nil {
					names = e.Change.What()
				}
				if e.Drift > 0 {
					names = append(names, "drift")
				}
				found = found || slices.Contains(names, c.tells)
				if c.tells == "" && len(names) > 0 {
					falsely++
				}
				if k >= 90 {
					nmse += w.nmse(e.X) / float64(10*count)
				}
			}
			given += int(b2f(found))
			p := cal.Posterior()
			flagged += len(p.Flagged)
			_, covered := w.calibration(cal)
			inside += covered / float64(count)
			for mu, o := range w.offset {
				d := p.Offset[mu] - o
				offsets += b2f(d*d < 1.96*1.96*p.OffsetVar[mu]) / float64(count*len(w.offset))
			}
		}
		table.Row("| %s | %d | %d | %d | %.2g | %.1f %% | %.1f %% | %d |", c.name, count, given, falsely, nmse, 100*inside, 100*offsets, flagged)
		if falsely > 0 || flagged > 0 || inside < 0.8 || offsets < 0.9 {
			t.Errorf("%s: %d named falsely, %d flagged, %.0f %% and %.0f %% inside", c.name, falsely, flagged, 100*inside, 100*offsets)
		}
	}
}
