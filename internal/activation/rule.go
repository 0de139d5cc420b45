package activation

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// ruleNodes is the number of nodes of a panel: exp(-x²/2) over a standard deviation is exact to the last digit with 14.
const ruleNodes = 16

// mostPanels bounds the panels of an interval: its density falls by less than e^40, a factor of e or a standard deviation a panel.
const mostPanels = 64

var legendreNodes, legendreWeights = legendre()

func legendre() (x, w [ruleNodes]float64) {
	quad.Legendre{}.FixedLocations(x[:], w[:], -1, 1)
	return x, w
}

// hermiteOrder is the number of nodes for exp(-x²/2) times what is nearly a polynomial: of the cubic that a logistic function adds at the width of
// [mostNarrow] it leaves 2e-11.
const hermiteOrder = 20

var hermiteNodes, hermiteWeights = hermite(hermiteOrder)

// hermite is Gauss and Hermite's rule for the weight exp(-x²/2).
func hermite(n int) (x, w []float64) {
	x, w = make([]float64, n), make([]float64, n)
	quad.Hermite{}.FixedLocations(x, w, math.Inf(-1), math.Inf(1))
	for i := range x { // from the weight exp(-x²)
		x[i] *= math.Sqrt2
		w[i] *= math.Sqrt2
	}
	return x, w
}
