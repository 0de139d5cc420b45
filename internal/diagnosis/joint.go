package diagnosis

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/recovery"
)

// joint says whether rows of the signals were taken together.
func (r *Run) joint() bool { return r.Plan.Has("joint rows") || r.Solver.TogetherInSites() }

// warnJointMeasurements is warnMeasurements for signals whose rows belong together: which of them are there is found with all signals, so that
// the counting bound is what is left.
func (r *Run) warnJointMeasurements(alpha, counting float64) *Warning {
	if !r.blind() || alpha >= counting {
		return nil
	}
	return &Warning{Code: TooFewMeasurements, Message: fmt.Sprintf("α = M/N = %.4g is below what exact recovery needs: the counting bound is α_min = %.4g for %d signals with a share %.3g of non-zero entries", alpha, counting, r.signals(), r.density())}
}

// nearCounting is the α, relative to the counting bound, from which on rows were recovered in all problems tried.
const nearCounting = 1.25

// warnJointUnrecovered is warnUnrecovered for them: the counting bound is in the place of theory.
func (r *Run) warnJointUnrecovered(left float64) *Warning {
	alpha, counting := float64(r.usable())/float64(r.state.N), recovery.AlphaMin(r.density(), r.state.P)
	if alpha >= nearCounting*counting {
		return nil
	}
	return &Warning{Code: UnrecoveredOrNoise, Message: fmt.Sprintf("%.3g %% of the signals' power remains unknown: it is noise, or signals that were not recovered; α = M/N = %.3g is close to the counting bound %.3g; more sensors or signals would decide, or a known noise variance (--noise-var)", 100*min(left, 1), alpha, counting)}
}

func (r *Run) density() float64 { return gaussBernoulli(r.model().Prior).Density }

// along is what [MeanOff] needs of residuals e, all of variance 1, of which an offset is a multiple of constant.
func along(e, constant []float64) (n, mean, spread float64) {
	var dot, square, all float64
	for k, v := range e {
		dot += v * constant[k]
		square += constant[k] * constant[k]
		all += v * v
	}
	n = float64(len(e))
	return n, dot / math.Sqrt(square*n), all - dot*dot/square
}
