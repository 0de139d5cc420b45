package diagnosis

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
)

const (
	// changed is how many standard deviations from what was known of it a sensor has changed by.
	changed = 6

	// oversure is the ratio of the typical deviation to what is expected of it, above which all that was known is less
	// sure than stated.
	oversure = 2

	medianOfNormal = 0.6745 // of |N(0, 1)|
)

// known reports whether something was known of single sensors.
func (r *Run) known() bool {
	p, ok := r.calibration().(channel.Gains)
	return ok && p.Gains().Each != nil
}

// warnKnowledge tells of sensors that are not what was known of them.
func (r *Run) warnKnowledge() *Warning {
	if !r.known() || r.Solver.Iterations == 0 {
		return nil
	}
	w := Warning{Code: KnowledgeMismatch}
	var sizes []float64
	for mu := range r.state.M {
		if z, ok := channel.Surprise(r.calibration(), r.stats(mu)); ok && !r.isBroken(mu) {
			sizes = append(sizes, math.Abs(z))
			if math.Abs(z) > changed {
				w.Sensors = append(w.Sensors, mu)
			}
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	if s, together := channel.SmoothOf(r.calibration()); together {
		return notSmooth(sizes, s, r.state.Each == 1 && len(r.BrokenSensors()) > 0)
	}
	slices.Sort(sizes)
	typical := sizes[len(sizes)/2] / medianOfNormal
	switch {
	case len(sizes) >= leastSensors && typical > oversure:
		w.Message = fmt.Sprintf("the sensors typically differ from s_prior_mean by %.2g times s_prior_sd: the prior is less certain than given, and error bars are too small; give a larger s_prior_sd, or none", typical)
	case w.Sensors != nil:
		w.Message = fmt.Sprintf("%d of %d sensors have changed: their s differ from s_prior_mean by more than %d standard deviations, and the readings outweigh the prior; the first is sensor %d with s = %.4g",
			len(w.Sensors), len(sizes), changed, w.Sensors[0], r.state.S[w.Sensors[0]])
	default:
		return nil
	}
	return &w
}

// surelyPeaked is how many of its standard deviations, √(24/M) of M normal numbers, the excess kurtosis of what sensors differ by from what all others say of
// them may be, and leastPeaked what it is at least before error bars suffer. A step leaves large differences beside it and small ones elsewhere, and an excess
// of 3 to 30. One of .65, of 3968 pixels, is of scatter that is the same for gains of .7 and of 1.3, and no excess at all by their logarithms.
const (
	surelyPeaked = 5
	leastPeaked  = 1
)

// notSmooth tells of gains that belong together, but not as any kernel has it: sizes are what sensors differ by, in standard deviations. leftOut is whether
// some were taken for broken by one reading each, which a gain unlike its neighbours' explains as well.
func notSmooth(sizes []float64, s channel.Smooth, leftOut bool) *Warning {
	count := float64(len(sizes))
	var second, fourth float64
	for _, z := range sizes {
		second += z * z / count
		fourth += z * z * z * z / count
	}
	excess := fourth/(second*second) - 3
	if len(sizes) < leastSensors || !leftOut && !(excess > max(surelyPeaked*math.Sqrt(24/count), leastPeaked)) {
		return nil
	}
	return &Warning{Code: GainsNotSmooth, Message: fmt.Sprintf(
		"gains are not as smooth as a kernel of length %.3g with a scatter of %.2g: a few sensors differ far more than the others from what their neighbours predict, because of a step or a failure; error bars are right on average, too large for most and too small for these", s.Length, s.Scatter)}
}
