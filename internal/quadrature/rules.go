package quadrature

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/calamp/calamp/internal/vector"
)

// rule is a quadrature rule for some of the gain posteriors. Which rule is good enough
// for which posterior is decided by the limits in this file. They were chosen so that
// TestRulesSuffice holds, which asks for 3e-13 standard deviations in the mean and
// 1e-12 in the variance.
type rule struct {
	x, w  []float64
	limit float64 // of the skewness, for a Hermite rule
}

// Once something has been learned, most posteriors are nearly Gaussian, with the ends of
// the range at least EdgeReach standard deviations away, beyond which is 1e-19 of them. These are integrated by
// Gauss–Hermite quadrature of the factor that the logarithm adds to the Gaussian. How
// many nodes that takes depends on the skewness n (sd/s*)³.
//
// Where the skewness and the relative width are tiny, the moments are short series in
// them, good to 1e-13 ([vector.GainShapes]).
const (
	EdgeReach   = vector.NarrowReach
	hermiteSpan = 0.5 // the rule stays that far from s = 0, relative
)

// Any other posterior is integrated by Gauss–Legendre quadrature, between the ends of the
// range or the points where the tails are cut. How many nodes that takes depends on the
// larger slope of the log-density at these two ends, times half their distance. For a
// Gaussian cut at ±√(2·tail) standard deviations that is 2·tail, for half a Gaussian
// tail, for an exponential tail/2, and it is small where the range is much narrower than
// the posterior would be without it.
var rules = []rule{
	hermite(8, 3e-4), hermite(12, 5e-3), hermite(16, 0.02),
	legendre(8), legendre(12), legendre(16), legendre(24), legendre(32), legendre(40), legendre(48),
	legendre(mostNodes),
}

// narrowest is for posteriors of complex gains that no series is for.
var narrowest = hermite(4, 1e-7)

// legendreLadder chooses among the Legendre rules. The seventh is good enough for any slope; the eighth is for the singularity at s = 0, which
// causes, at the distance cosh(a) from the middle, a relative error of e^(-2·nodes·a); with a = 18/nodes that is 2e-16.
var legendreLadder = vector.Ladder{Steep: []float64{0.5, 3, 8, 22, 48, 150}, Far: farthest[:]}

var farthest = func() (f [legendreRules - 1]float64) {
	for i := range f {
		f[i] = math.Cosh(18 / float64(len(rules[hermiteRules+i].x)))
	}
	return f
}()

const (
	hermiteRules  = 3
	legendreRules = 8
	mostNodes     = 64
)

// hermite is the rule for ∫ f(x) e^{-x²/2} dx.
func hermite(nodes int, limit float64) rule {
	r := rule{x: make([]float64, nodes), w: make([]float64, nodes), limit: limit}
	quad.Hermite{}.FixedLocations(r.x, r.w, math.Inf(-1), math.Inf(1))
	for i := range r.x {
		r.x[i] *= math.Sqrt2
		r.w[i] *= math.Sqrt2
	}
	return r
}

// legendre is the rule on [-1, 1].
func legendre(nodes int) rule {
	r := rule{x: make([]float64, nodes), w: make([]float64, nodes)}
	quad.Legendre{}.FixedLocations(r.x, r.w, -1, 1)
	return r
}
