package field

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// OfPrior are the averages of an estimator whose model p of the entry is the true one, whatever p is: its posterior variance C, over λ of the density
//
//	p(λ) = ∫ p(x) N(λ; x, Σ) dx = exp(LogNorm(λ, Σ)) / √(2πΣ),
//
// given which E (x̂-x₀)² and E x₀(x₀-x̂) are both C.
func OfPrior(p prior.Slabbed, sigma, tol float64) Averages {
	q := quadrature.NewIntegrator(tol)
	q.Floor[atLogNorm] = 1
	root := math.Sqrt(sigma)
	var mean, variance, at, of [1]float64
	of[0] = sigma
	r := q.Integrate(func(lambda float64) (v, err quadrature.Vec) {
		at[0] = lambda
		p.Posterior(mean[:], variance[:], at[:], of[:])
		norm := p.LogNorm(lambda, sigma)
		density := math.Exp(norm) / (math.Sqrt(2*math.Pi) * root)
		v[atVariance], v[atSquare], v[atLogNorm] = density*variance[0], density*variance[0]*variance[0], density*norm
		return v, err
	}, cutsOf(p, root))
	number := func(k int) Number { return Number{r.Value[k], r.Err[k]} }
	c := number(atVariance)
	return Averages{Variance: c, Square: number(atSquare), MSE: c, Loss: c, LogNorm: number(atLogNorm)}
}

// cutsOf are ends of panels over λ: near zero in units of the field's √Σ, and where the slab reaches in units of its own width, of which an exponential takes 28.
func cutsOf(p prior.Slabbed, root float64) []float64 {
	const reach = 28
	mean, square := p.Slab()
	if _, cut := p.(prior.NonNegative); cut { // to what is larger than zero
		mean = max(0, mean)
	}
	sd := math.Hypot(math.Sqrt(square), root)
	marks := []float64{0}
	for _, t := range [...]float64{1, 2, 3, 5, 9, 15} {
		marks = append(marks, -t*root, t*root, mean-t*sd, mean+t*sd)
	}
	return quadrature.Panels(min(0, mean)-reach*sd, max(0, mean)+reach*sd, 0.05*min(root, sd), marks)
}
