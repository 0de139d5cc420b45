package diagnosis

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// contradictory is how many standard deviations apart what the signals' known variance
// and what the range of s say of the common scale must be.
const contradictory = 4

// amplitude is the distribution of |s| where that is complex, and of s where it is real.
func amplitude(c channel.Calibration) channel.Calibration {
	if known, ok := c.(channel.Turning); ok {
		if lo, hi := known.Range(); lo < hi {
			return known.Gains()
		}
	}
	return c
}

// warnRange tells that the gains do not fill the range that was given, and what was
// learned in its place.
func (r *Run) warnRange() *Warning {
	test, rejected := r.rangeTest()
	if !rejected {
		return nil
	}
	lo, hi := test.Given.Range()
	mean, variance := channel.Typical(amplitude(r.calibration()))
	c := math.Exp(r.state.Placement.Mean)
	w := Warning{Code: RangeNotFilled}
	w.Message = fmt.Sprintf("the gains are not spread evenly over the range [%.4g, %.4g] that was given (log-likelihood ratio %.3g): their distribution was learned within it, with mean %.4g and standard deviation %.2g; so the range hardly determines the common scale, which is known to ±%.2g %%",
		lo, hi, test.LogRatio, c*mean, c*math.Sqrt(variance), 100*r.state.Placement.SD)
	if w.Sensors = r.outside(); len(w.Sensors) > 0 {
		w.Message += fmt.Sprintf("; %d of %d sensors still lie outside: the range is too narrow", len(w.Sensors), r.state.M)
	}
	return &w
}

// outside lists the sensors that a given range cannot hold, wherever the scale is.
func (r *Run) outside() (list []int) {
	test, _ := r.rangeTest()
	c := math.Exp(r.state.Placement.Mean)
	for mu, s := range r.state.S {
		if r.isBroken(mu) || r.calibration().Readings(r.stats(mu)) == 0 {
			continue
		}
		if _, out := test.Given.LogInside(c*s, c*math.Sqrt(r.state.SVar[mu])); out {
			list = append(list, mu)
		}
	}
	return list
}

// warnScaleContradicted tells where the signals' known variance implies another common
// scale than the range of s.
func (r *Run) warnScaleContradicted() *Warning {
	p, ok := r.model().Prior.(interface{ GaussBernoulliPrior() prior.GaussBernoulli })
	if !ok || p.GaussBernoulliPrior().SignalMean != 0 { // what these say of the scale has another form
		return nil
	}
	if !r.blind() || r.state.ScaleLearned || r.Anchored || r.Plan.Has("joint moves") || r.Solver.Iterations == 0 || !r.Converged {
		return nil
	}
	wanted, sd := r.state.SignalScale()
	wanted -= r.state.Placement.Mean
	if !(math.Abs(wanted) > contradictory*math.Hypot(sd, r.state.Placement.SD)) {
		return nil
	}
	return &Warning{Code: ScaleContradicted, Message: fmt.Sprintf(
		"the given variance of the signals makes signals and s %.3g times as large (±%.2g %%) as the range of s does: one of the two is wrong, and x and s may be off by that factor",
		math.Exp(wanted), 100*sd)}
}
