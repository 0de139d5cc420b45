package calamp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// mixPrior puts a learned mixture in the place of a learned prior of zero or one Gaussian. Coefficients of real scenes are compressible, a few
// large and many small. Where W is far from random vector AMP with a prior so wrong does not converge.
func (p *Problem) mixPrior() {
	g, ok := p.Prior.(prior.GaussBernoulli)
	const free = prior.Density | prior.SignalVar
	if !ok || g.Learn&free != free {
		return
	}
	if square := p.expectedSquare(); square > 0 {
		mixture := prior.Compressible(g.Density, square)
		mixture.Learn = true
		p.Prior = mixture
	}
}

// expectedSquare is the mean square of the signals' entries that the readings' power suggests; 0 where it cannot be said.
func (p *Problem) expectedSquare() float64 {
	norms, err := operator.RowSquares(p.W, 1)
	if err != nil {
		return 0
	}
	gain := 1.0
	if c := channel.CalibrationOf(p.Channel); c != nil {
		gain = channel.Size(c)
	}
	readings, rows := 0.0, 0.0
	m, count := p.Y.Dims()
	for mu := range m {
		for k := range count {
			if y := gain * p.Y.At(mu, k); !math.IsNaN(y) {
				readings, rows = readings+y*y, rows+norms[mu]
			}
		}
	}
	if square := readings / rows; !math.IsInf(square, 0) && !math.IsNaN(square) {
		return square
	}
	return 0
}
