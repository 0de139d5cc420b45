package evolution

import (
	"context"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

const (
	// mostEnough and leastEnough are where [AlphaEnough] looks for a threshold, and enoughStep the factor between two places.
	mostEnough  = 16
	leastEnough = 0.01
	enoughStep  = 0.85
)

// AlphaEnough is the least α from which on the error of cal-AMP, that state evolution comes to from no information, is within a factor of
// the error that nobody falls below: that of known gains, from the truth. It is +Inf where no α is enough, as with one signal, and 0 where
// every α is, since gains hardly matter beside the noise. The noise must be positive: without it the question is [AlphaCal]'s.
func AlphaEnough(ctx context.Context, g prior.GaussBernoulli, gain channel.GainPrior, noiseVar float64, p int, factor float64, opt *ThresholdOptions) (alpha Number, err error) {
	defer ending(&err)
	tol := 0.0 // the usual one
	if opt.network() != nil {
		tol = networkFixed
	}
	enough := func(alpha float64) bool {
		var blind, known *Point
		m := Model{Signal: g, Gain: gain, NoiseVar: noiseVar, Alpha: alpha, P: p, Network: opt.network()}
		blind, err = FixedPoint(ctx, m, &Options{Table: opt.table(), Tol: tol})
		if err == nil {
			m.Gain, m.P = Known(1), 1
			known, err = FixedPoint(ctx, m, &Options{Informed: true, Tol: tol})
		}
		return err == nil && blind.MSEX.Value <= factor*known.MSEX.Value
	}
	good := math.Inf(1)
	for a := float64(mostEnough); a > leastEnough; a *= enoughStep {
		if is := enough(a); err != nil {
			return Number{}, err
		} else if !is {
			return between(a, good, enough, opt.tol(), &err), err
		}
		good = a
	}
	return Number{}, nil
}

// between bisects for the least α that is enough, above one that is not.
func between(bad, good float64, enough func(float64) bool, tol float64, err *error) Number {
	if math.IsInf(good, 1) {
		return Number{Value: good}
	}
	for good-bad > tol*good && *err == nil {
		if middle := math.Sqrt(bad * good); enough(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	return Number{Value: good, Err: good - bad}
}
