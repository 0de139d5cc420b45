package diagnosis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// outlierCost is by how much a sensor's log-likelihood falls when it is taken as
// no part of the others' range: one in a hundred, from anywhere within a hundred times
// the range of all.
const outlierCost = 9.2

// warnOutlying names the sensors that stretch a learned range: those without
// which the rest would be the more likely a draw from a narrower one.
func (r *Run) warnOutlying() *Warning {
	if _, _, normal := channel.NormalOf(r.calibration()); normal {
		return r.warnLikeNoOther()
	}
	var order []int
	for mu := range r.state.M {
		if r.Solver.Heard(mu) {
			order = append(order, mu)
		}
	}
	s := r.state.S
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s[a], s[b]) })
	m := len(order)
	if m < leastSensors {
		return nil
	}
	all := s[order[m-1]] - s[order[0]]
	best, below, above := 0.0, 0, 0
	for cut := 1; cut <= m/5; cut++ {
		for low := 0; low <= cut; low++ {
			rest := s[order[m-1-(cut-low)]] - s[order[low]]
			if gain := float64(m-cut)*math.Log(all/rest) - outlierCost*float64(cut); gain > best {
				best, below, above = gain, low, cut-low
			}
		}
	}
	if below+above == 0 {
		return nil
	}
	w := Warning{Code: SensorAtEdge}
	w.Sensors = append(append(w.Sensors, order[:below]...), order[m-above:]...)
	slices.Sort(w.Sensors)
	w.Message = fmt.Sprintf("s of %d in %d sensors is far from all others, which lie in [%.4g, %.4g]; the first is sensor %d with %.4g: faulty sensors widen the learned range of s",
		len(w.Sensors), m, s[order[below]], s[order[m-1-above]], w.Sensors[0], s[w.Sensors[0]])
	return &w
}

// leastSensors is how many it takes to tell which one is apart.
const leastSensors = 10

// apart is how many standard deviations from the middle of all a sensor's gain is an outlier.
const apart = 6

// warnLikeNoOther names the sensors far from a normal or log-normal distribution that was learned: they
// count, with the gain that is likeliest for their readings.
func (r *Run) warnLikeNoOther() *Warning {
	center, sd, _ := channel.NormalOf(r.calibration())
	var w Warning
	for mu, s := range r.state.S {
		d := s - center
		if channel.IsLog(r.calibration()) {
			d = math.Log(s / center)
		}
		if math.Abs(d) > apart*sd && !r.isBroken(mu) && r.Solver.Heard(mu) {
			w.Sensors = append(w.Sensors, mu)
		}
	}
	if w.Sensors == nil {
		return nil
	}
	w.Code = SensorAtEdge
	w.Message = fmt.Sprintf("s of %d in %d sensors is an outlier, more than %d standard deviations from the median, and the readings agree with it; the first is sensor %d with %.4g",
		len(w.Sensors), r.state.M, apart, w.Sensors[0], r.state.S[w.Sensors[0]])
	return &w
}

// warnScale says what the common scale depends on when that of the signals was learned.
func (r *Run) warnScale() *Warning {
	p := prior.LearnerOf(r.model().Prior)
	learned := p != nil && p.LearnsScale() || r.joint() && r.LearnCalibration
	if !r.blind() || !learned || r.Anchored {
		return nil
	}
	w := Warning{Code: ScaleFromGains, Message: "the signals' scale was learned, so the common scale of signals and gains depends on the range of s alone"}
	if r.known() {
		w.Message = fmt.Sprintf("the signals' scale was learned, so the common scale of signals and gains depends on the priors of single sensors: it is known to ±%.2g %%", 100*r.state.Placement.SD)
	}
	if r.LearnCalibration {
		what := "middle of the range"
		if _, _, normal := channel.NormalOf(r.calibration()); normal {
			what = "mean of s"
			if channel.IsLog(r.calibration()) {
				what = "median of s"
			}
		}
		w.Message = fmt.Sprintf("the common scale of signals and gains is not identified, since the signals' scale and the range of s are both learned: the %s is set to %.4g; an anchor would fix it", what, channel.Middle(r.calibration()))
	}
	return &w
}

// onlyNoise is the part of the corrected readings' power at which learned noise
// leaves nothing to be recovered.
const onlyNoise = 0.5

func (r *Run) warnOnlyNoise() *Warning {
	if !r.LearnNoise || r.Solver.Iterations == 0 {
		return nil
	}
	e := r.state
	power, count := 0.0, 0.0
	for j, y := range e.Y {
		if !math.IsNaN(y) {
			z := e.S[e.SensorOf(j)] * e.Reading(j)
			power += z * z
			count++
		}
	}
	noise := r.noise()
	if !(power > 0 && noise > onlyNoise*power/count) {
		return nil
	}
	return &Warning{
		Code:    OnlyNoise,
		Message: fmt.Sprintf("the learned noise variance is %.3g, which is %.0f %% of the readings' mean square: the readings look like noise, and nothing was recovered", noise, 100*noise*count/power),
	}
}
