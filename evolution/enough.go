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
// the lower bound on the error: that of known gains, from the truth. It is +Inf where no α is enough, as with one signal, and 0 where
// every α is, since gains hardly matter beside the noise. The noise must be positive: without it the question is [AlphaCal]'s.
func AlphaEnough(ctx context.Context, g prior.GaussBernoulli, gain channel.GainPrior, noiseVar float64, p int, factor float64, opt *ThresholdOptions) (alpha Number, err error) {
	defer ending(&err)
	o, tol := opt.orDefault(), 0.0 // the usual one
	if o.Network != nil {
		tol = networkFixed
	}
	enough := func(alpha float64) bool {
		var blind, known *Point
		m := Model{Signal: g, Gain: gain, NoiseVar: noiseVar, Alpha: alpha, P: p, Network: o.Network, Entries: o.Entries}
		blind, err = FixedPoint(ctx, m, &Options{Table: o.Table, Tol: tol})
		if err == nil {
			m.Gain, m.P = Known(1), 1
			known, err = FixedPoint(ctx, m, &Options{Informed: true, Tol: tol})
		}
		return err == nil && blind.MSEX.Value <= factor*known.MSEX.Value
	}
	alpha = firstEnough(enough, o.Tol, &err)
	return alpha, err
}

// JointAlphaEnough is [AlphaEnough] for signals that belong together; the Alpha of the model is not used.
func JointAlphaEnough(ctx context.Context, m JointModel, factor float64, opt *ThresholdOptions) (alpha Number, err error) {
	defer ending(&err)
	blind, known := m, m
	known.Gain = Known(1)
	o := opt.orDefault()
	w := newWork(ctx, o.Work)
	ends := func(m JointModel, alpha float64, informed bool) (float64, error) {
		m.Alpha = alpha
		e, err := newJointEvolution(m, jointTol, o.Points, w)
		if err != nil {
			return 0, err
		}
		at, err := e.fixedPoint(ctx, e.start(informed), jointEnoughTol, defaultLimit)
		if err != nil {
			return 0, err
		}
		return at.MSEX.Value, nil
	}
	enough := func(alpha float64) bool {
		var reached, least float64
		if reached, err = ends(blind, alpha, false); err == nil {
			least, err = ends(known, alpha, true)
		}
		return err == nil && reached <= factor*least
	}
	alpha = firstEnough(enough, o.Tol, &err)
	return alpha, err
}

// jointEnoughTol is how well errors are known that are compared with a factor.
const jointEnoughTol = 1e-3

// firstEnough is the least α from which on all are enough.
func firstEnough(enough func(alpha float64) bool, tol float64, err *error) Number {
	good := math.Inf(1)
	for a := float64(mostEnough); a > leastEnough; a *= enoughStep {
		if is := enough(a); *err != nil {
			return Number{}
		} else if !is {
			return between(a, good, enough, tol, err)
		}
		good = a
	}
	return Number{}
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
