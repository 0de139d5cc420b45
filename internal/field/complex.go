package field

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// ComplexVariance is the mean posterior variance E|x - x̂|² of a complex entry that is seen through the
// field CN(x; λ, Σ), λ = x + CN(0, Σ): an integral over |λ|², which is exponential with the mean Σ where the
// entry is zero, and v+Σ where it is not.
func ComplexVariance(g prior.ComplexGaussBernoulli, sigma, tol float64) Number {
	v := g.SignalVar
	q := quadrature.NewIntegrator(tol)
	spread := v / (1 + v/sigma) // posterior variance of an entry that is not zero
	shrink := 1 / (1 + sigma/v)
	logOdds := math.Log(g.Density) - math.Log1p(-g.Density) - math.Log1p(v/sigma)
	at := func(square float64) float64 {
		// |λ|²/Σ - |λ|²/(v+Σ) = |λ|² v/(Σ(v+Σ))
		odds := logOdds + square*shrink/sigma
		away := math.Exp(-math.Abs(odds))
		on, off := 1/(1+away), away/(1+away)
		if odds < 0 {
			on, off = off, on
		}
		return on * (spread + off*shrink*shrink*square)
	}
	var total Number
	for _, part := range []struct{ weight, mean float64 }{{1 - g.Density, sigma}, {g.Density, v + sigma}} {
		if part.weight == 0 {
			continue
		}
		const reach = 50
		marks := []float64{1, 4, 12}
		if turn := -logOdds * sigma / (shrink * part.mean); turn > 0 { // where the odds are even
			width := sigma / (shrink * part.mean)
			for _, k := range []float64{-12, -4, 0, 4, 12} {
				marks = append(marks, turn+k*width)
			}
		}
		r := q.Integrate(func(u float64) (value, err quadrature.Vec) {
			value[0] = part.weight * math.Exp(-u) * at(part.mean*u)
			return value, err
		}, quadrature.Panels(0, reach, 1e-3*min(1, sigma/part.mean), marks))
		total.Value += r.Value[0]
		total.Err += r.Err[0]
	}
	return total
}
