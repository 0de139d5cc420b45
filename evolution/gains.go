package evolution

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
)

// trimmedAt is how many standard deviations of a Gaussian are integrated over: 2e-19 lie beyond.
const trimmedAt = 9

// trimmed is a distribution of gains whose range ends where nothing is left of it, so that what is integrated
// over the range is not lost in it.
func trimmed(g channel.GainPrior) channel.GainPrior {
	if g.Precision == 0 || g.Lo == g.Hi {
		return g
	}
	reach := trimmedAt / math.Sqrt(g.Precision)
	lo, hi := g.Center-reach, g.Center+reach
	if g.Log {
		lo, hi = g.Center*math.Exp(-reach), g.Center*math.Exp(reach)
	}
	if lo = max(lo, g.Lo); lo < g.Hi {
		g.Lo = lo
	}
	if hi = min(hi, g.Hi); hi > g.Lo {
		g.Hi = hi
	}
	return g
}

// gainPanels are ends of panels that resolve the distribution.
func gainPanels(g channel.GainPrior) []float64 {
	return quadrature.Panels(g.Lo, g.Hi, 1e-6*(g.Hi-g.Lo), gainMarks(nil, g, 1))
}

// gainMarks appends places inside the range, times c, between which the density of s changes by moderate factors;
// none for a uniform one.
func gainMarks(marks []float64, g channel.GainPrior, c float64) []float64 {
	if g.Precision == 0 || g.Lo == g.Hi {
		return marks
	}
	sd := 1 / math.Sqrt(g.Precision)
	for k := -8.0; k <= 8; k += 2 {
		at := g.Center + k*sd
		if g.Log {
			at = g.Center * math.Exp(k*sd)
		}
		if at > g.Lo && at < g.Hi {
			marks = append(marks, c*at)
		}
	}
	return marks
}
