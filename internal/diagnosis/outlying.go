package diagnosis

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/amp"
)

// mostOutlying is how many readings of a sensor may be wrong for the others to count.
const mostOutlying = 2

// outlying looks for single readings that make a sensor look broken: without them all
// others agree with one calibration, within its range. It returns their signals in order, and the
// calibration s; none where it is the sensor. The readings left must outnumber those left out.
//
// Every reading proposes the calibration that it wants itself, so that a wrong one spoils
// no other's proposal; the one that most readings agree with is then fitted to these.
func (r *Run) outlying(mu int) (wrong []int, s float64) {
	if r.state.Offsets() {
		return nil, 0 // one reading does not propose a gain and an offset
	}
	if r.state.Columns() > 1 {
		return nil, 0 // readings are pairs of columns
	}
	var all, agree []int
	for k, y := range r.state.Y[mu*r.state.P : (mu+1)*r.state.P] {
		if !math.IsNaN(y) {
			all = append(all, k)
		}
	}
	for _, k := range all {
		if with := r.agreeing(mu, all, r.fit(mu, k)); len(with) > len(agree) {
			agree = with
		}
	}
	s = r.fit(mu, agree...)
	agree = r.agreeing(mu, all, s)
	outside := len(all) - len(agree)
	if outside == 0 || outside > min(mostOutlying, (len(all)-1)/2) || !r.allowed(s) {
		return nil, 0
	}
	wrong = slices.DeleteFunc(all, func(k int) bool { return slices.Contains(agree, k) })
	return wrong, s
}

// allowed says whether s is in the range of calibrations, which has some play at its ends.
func (r *Run) allowed(s float64) bool {
	if !r.blind() {
		return true
	}
	const play = 0.01
	lo, hi := r.calibration().Range()
	return s >= lo*(1-play) && s <= hi*(1+play)
}

// fit is the calibration of sensor mu that some of its readings want, by least squares; 1
// where calibrations are known.
func (r *Run) fit(mu int, signals ...int) float64 {
	if !r.blind() {
		return 1
	}
	st := r.state
	above, below := 0.0, 0.0
	for _, k := range signals {
		j := mu*st.P + k
		sd := math.Sqrt(st.Doubt(j))
		y := st.Y[j] / sd
		above += y * (st.Omega[j] / sd)
		below += y * y
	}
	return above / below
}

// agreeing are those of the signals whose readings agree with calibration s.
func (r *Run) agreeing(mu int, signals []int, s float64) []int {
	st := r.state
	var list []int
	for _, k := range signals {
		j := mu*st.P + k
		d := s*st.Y[j] - st.Omega[j]
		if d*(d/st.Doubt(j)) <= amp.ConsistentWith {
			list = append(list, k)
		}
	}
	return list
}
