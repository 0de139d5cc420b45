package diagnosis

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/amp"
)

const (
	// A signal is far brighter or darker than all others from BrightChance standard deviations on, of chance or of what
	// the others differ by, and a factor of leastBright in power; it takes leastOthers signals.
	BrightChance = 5
	leastBright  = 1.5
	leastOthers  = 5

	// A signal of a run that did not converge is lost where its variance is lostFrom times that of most: one that was disturbed by ten times
	// the noise, among ten, has 60 to 200 times as much; healthy ones up to 1.5.
	lostFrom = 10
)

// warnCommonMode names signals in which all sensors had a common disturbance: by a constant, y = z/s + c, or by a factor, which the signal
// takes upon itself.
func (r *Run) warnCommonMode() *Warning {
	if r.Solver.Iterations == 0 || r.complex() || r.usable() < amp.LeastForCommon {
		return nil
	}
	w := Warning{Code: CommonMode}
	add := func(k int, text string) {
		if len(w.Signals) == 0 {
			w.Message = text
		}
		w.Signals = append(w.Signals, k)
	}
	typical := median(r.state.SumC)
	for k, sum := range r.state.SumC {
		lost := !r.SignalConverged(k) && sum > lostFrom*typical
		if c, t := r.state.Disturbance(r.Solver.AsRead(), k, lost); t != 0 {
			add(k, fmt.Sprintf("all sensors read too much in signal %d, by %+.2g (%.1f standard deviations), which no signal explains: that sample was disturbed; subtract the constant, or leave the sample out", k, c, math.Abs(t)))
		}
	}
	for k, factor := range r.brightness() {
		if slices.Contains(w.Signals, k) {
			continue // a constant makes a signal larger, too
		}
		add(k, fmt.Sprintf("all sensors read %.3g times as much in signal %d as in the others: that signal is larger, or its sample was disturbed by a common factor; a factor changes the signal and not the gains", factor, k))
	}
	switch {
	case len(w.Signals) == 0:
		return nil
	case 2*len(w.Signals) > r.state.P:
		w.Message += fmt.Sprintf("; so do %d of %d signals: the sensors may have offsets (--offset auto)", len(w.Signals), r.state.P)
	case len(w.Signals) > 1:
		w.Message += fmt.Sprintf("; in all, %d signals are disturbed", len(w.Signals))
	}
	return &w
}

// brightness are the signals that are far larger or smaller than the others, and by what factor in amplitude.
func (r *Run) brightness() map[int]float64 {
	if r.state.P <= leastOthers || r.Plan.Has("amplitudes") {
		return nil
	}
	logs, chance := make([]float64, r.state.P), make([]float64, r.state.P)
	for k := range logs {
		logs[k], chance[k] = r.state.Brightness(k)
	}
	middle, off := median(logs), make([]float64, len(logs))
	for k, v := range logs {
		off[k] = math.Abs(v - middle)
	}
	spread := math.Max(median(off)/math.Sqrt(medianSquare), median(chance))
	factors := map[int]float64{}
	for k, v := range logs {
		if d := math.Abs(v - middle); d > BrightChance*math.Max(spread, chance[k]) && d > math.Log(leastBright) && r.found(k) {
			factors[k] = math.Exp(0.5 * (v - middle))
		}
	}
	return factors
}

// found reports whether most of the power of signal k is not uncertainty.
func (r *Run) found(k int) bool {
	s, power := r.state, 0.0
	for _, x := range s.X[k*s.N : (k+1)*s.N] {
		power += x * x
	}
	return s.SumC[k] < 0.1*power
}
