package quadrature

import "math"

const (
	// cellNodes is the order of the rule on a cell. The density falls along it by at most e^-cellDepth, which the rule integrates to 1e-9:
	// its error is that of the term of degree 2·cellNodes of an exponential.
	cellNodes = 20
	cellDepth = 36

	// flatNodes is the order on a cell along which the density falls by no more than e^-flatDepth: as exact.
	flatNodes = 7
	flatDepth = 3

	// wideCell is from where on differences of Φ keep eleven digits of the variance, whose terms are 12/width² times as large as it; narrow
	// cells and those in the tail are integrated. A cell that begins beyond cellTail is in the tail.
	wideCell = 0.5
	cellTail = 3
)

var cellRule, flatRule = newLineRule(cellNodes, cellDepth), newLineRule(flatNodes, flatDepth)

// Legendre20 are the nodes and weights of the rule of order 20 on [-1, 1]. They are not to be changed.
func Legendre20() (x, w []float64) { return cellRule.x, cellRule.w }

// NormalCell is about N(0, 1) restricted to a < t < b, either of which may be infinite: the logarithm of its mass Φ(b)-Φ(a), the mean and
// the variance, with relative errors below 1e-8 also for cells that are narrow or far in a tail.
func NormalCell(a, b float64) (logMass, mean, variance float64) {
	if a+b < 0 {
		logMass, mean, variance = NormalCell(-b, -a)
		return logMass, -mean, variance
	}
	width := b - a
	switch {
	case !(width > 0):
		return math.Inf(-1), a, 0
	case width*(a+0.5*width) > cellDepth: // what is beyond b is e^-36 of what is beyond a
		logMass, mean, variance = TruncatedNormal(-a)
		return logMass, a + mean, variance
	case width < wideCell || a > cellTail:
		return integratedCell(a, b)
	}
	mass := 0.5 * (math.Erfc(a/math.Sqrt2) - math.Erfc(b/math.Sqrt2))
	from, to := normalDensity(a)/mass, normalDensity(b)/mass
	mean = from - to
	return math.Log(mass), mean, 1 + edge(a, from) - edge(b, to) - mean*mean
}

// edge is t φ(t), which is 0 at infinity.
func edge(t, density float64) float64 {
	if density == 0 {
		return 0
	}
	return t * density
}

// normalDensity is φ.
func normalDensity(t float64) float64 { return math.Exp(-0.5*t*t - halfLog2Pi) }

// integratedCell is NormalCell by a rule on the cell, about its middle.
func integratedCell(a, b float64) (logMass, mean, variance float64) {
	half, middle := 0.5*(b-a), 0.5*(a+b)
	rule := &cellRule
	if half*(2*middle+half) < flatDepth {
		rule = &flatRule
	}
	top := half * (middle - 0.5*half) // the exponent at a, where it is largest
	var total, first, second float64
	for i, x := range rule.x {
		u := half * x
		w := rule.w[i] * math.Exp(-u*(middle+0.5*u)-top)
		total += w
		first += w * u
		second += w * (u * u)
	}
	first /= total
	return math.Log(half*total) + top - 0.5*middle*middle - halfLog2Pi, middle + first, second/total - first*first
}
