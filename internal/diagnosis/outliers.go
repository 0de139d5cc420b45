package diagnosis

import (
	"fmt"
	"math"
	"slices"
)

const (
	// leftOut is the probability above which a reading was left out.
	leftOut = 0.5

	// manyOutliers is the part of all readings that may be outliers before the model is to blame, and
	// disturbed the part of a signal's where it is the sample that was disturbed, or a signal that was not found.
	manyOutliers = 0.1
	disturbed    = 0.1
)

// readings counts those that there are: one that was left out may still be in y, or be missing there by now.
func readings(y, outlying []float64) (count int) {
	for j, v := range y {
		if !math.IsNaN(v) || outlying[j] > leftOut {
			count++
		}
	}
	return count
}

// warnOutliers names single readings that were left out.
func (r *Run) warnOutliers() *Warning {
	each, p := r.Solver.Outlying(), r.state.P
	if each == nil { // not looked for
		return nil
	}
	w := Warning{Code: OutlyingReadings}
	count, all, first := 0, readings(r.state.Y, each), -1
	ofSignal := make([]int, p)
	for j, probability := range each {
		if probability <= leftOut {
			continue
		}
		count++
		ofSignal[j%p]++
		if first < 0 {
			first = j
		}
		if mu := r.state.SensorOf(j); !slices.Contains(w.Sensors, mu) { // with several rows, which may be anywhere
			w.Sensors = append(w.Sensors, mu)
		}
	}
	if count == 0 {
		return nil
	}
	what, keep := "readings are outliers, spikes perhaps, and were", fmt.Sprintf("their %d sensors keep", len(w.Sensors))
	if len(w.Sensors) == 1 {
		keep = "their sensor keeps"
	}
	if count == 1 {
		what, keep = "readings is an outlier, a spike perhaps, and was", "its sensor keeps"
	}
	w.Message = fmt.Sprintf("%d of %d %s left out; %s all others; the first outlier is at sensor %d, signal %d", count, all, what, keep, r.state.SensorOf(first), first%p)
	for k, n := range ofSignal {
		if float64(n) > disturbed*float64(r.state.Rows()) {
			w.Signals = append(w.Signals, k)
		}
	}
	switch {
	case len(w.Signals) > 0:
		w.Message += fmt.Sprintf("; %d of them are of signal %d: that sample was disturbed, or the run has not found that signal (--outliers off)", ofSignal[w.Signals[0]], w.Signals[0])
	case float64(count) > manyOutliers*float64(all):
		w.Message += "; with so many outliers the model is in doubt, the noise variance first (--noise-var auto or per-sensor)"
	}
	return &w
}
