package activation

import "gonum.org/v1/gonum/integrate/quad"

// ruleNodes is the number of nodes of a panel: exp(-x²/2) over a standard deviation is exact to the last digit with 14.
const ruleNodes = 16

// mostPanels bounds the panels of an interval: its density falls by less than e^40, a factor of e or a standard deviation a panel.
const mostPanels = 64

var legendreNodes, legendreWeights = legendre()

func legendre() (x, w [ruleNodes]float64) {
	quad.Legendre{}.FixedLocations(x[:], w[:], -1, 1)
	return x, w
}
