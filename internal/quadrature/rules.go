package quadrature

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// rule is a quadrature rule for some gain posteriors. They are sorted by how
// many nodes they need, which TestRulesSuffice checks.
type rule struct {
	x, w  []float64
	limit float64 // of the skewness, for a Hermite rule

	// farthest is, for a Legendre rule, the distance of the logarithm's
	// singularity at s = 0 from the middle of the interval, in half-widths,
	// from which on it does not matter.
	farthest float64
}

// A posterior inside its range and nearly Gaussian, as most are once something
// has been learned, is integrated by Gauss–Hermite quadrature of what the
// logarithm adds to the Gaussian. The range must be hermiteReach standard
// deviations away. How many nodes that takes depends on the skewness
// n (sd/s*)³.
//
// Where that and the relative width are tiny, the moments are a short series in
// them, good to 1e-13.
const (
	hermiteReach = 9
	hermiteSpan  = 0.5 // the rule stays that far from s = 0, relative

	seriesSkew  = 5e-8
	seriesWidth = 0.01
)

// Any other is integrated by Gauss–Legendre quadrature between the ends of its
// range or of its tails. How many nodes that takes depends on the larger slope
// of the log-density at the two ends, times the half-width: 2·tail for a Gaussian cut
// at ±√(2·tail) standard deviations, tail for half of it, tail/2 for an
// exponential, little for a range that is narrower than the posterior would be.
var rules = []rule{
	hermite(8, 3e-4), hermite(12, 5e-3), hermite(16, 0.02),
	legendre(16), legendre(24), legendre(32), legendre(40), legendre(48),
	legendre(mostNodes),
}

// legendreLimits are the slopes up to which a rule is enough; the last two are
// for any.
var legendreLimits = [...]float64{8, 22, 48, 150}

const (
	hermiteRules = 3
	mostNodes    = 64
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

// legendre is the rule on [-1, 1]. A singularity at distance cosh(a) costs a
// relative error e^(-2·nodes·a).
func legendre(nodes int) rule {
	r := rule{x: make([]float64, nodes), w: make([]float64, nodes)}
	quad.Legendre{}.FixedLocations(r.x, r.w, -1, 1)
	r.farthest = math.Cosh(18 / float64(nodes))
	return r
}
