//go:build !noasm

package vector

// The functions that there are in assembly, for instruction sets other than plain Go.
// They are called directly, not through variables, so that arguments can stay on the
// stack.

func logarithms(v []float64) { logAVX2(v) }

func exponentials(v []float64) { expAVX2(v) }

func gainPowers(x, w []float64, n, groups int, d, scratch, out []float64) {
	gainPowersAVX2(x, w, n, groups, d, scratch, out)
}

func gainEnds(n, tau []float64, lo, hi float64, steep, far, out []float64) {
	gainEndsAVX2(n, tau, lo, hi, steep, far, out)
}

func gainIntegrals(x, w []float64, groups int, d, scratch, out []float64) {
	gainIntegralsAVX2(x, w, groups, d, scratch, out)
}

func gaussBernoulli(mean, variance, lambda, sigma []float64, logOdds, signalMean, signalVar float64) {
	gaussBernoulliAVX2(mean, variance, lambda, sigma, logOdds, signalMean, signalVar)
}

func phasorNodes(x, w, p, zero, difference, weight, re, im, scatter, along []float64) {
	phasorNodesAVX2(x, w, p, zero, difference, weight, re, im, scatter, along)
}

func gainShapes(n, tau, b []float64, lo, hi float64, out []float64) {
	gainShapesAVX2(n, tau, b, lo, hi, out)
}

func hinge(groups int, d []float64, slope float64) { hingeAVX2(groups, d, slope) }

func millsRatios(v []float64) { millsAVX2(v) }

func logisticNodes(x, logs, d []float64) { logisticNodesAVX2(x, logs, d) }
