package prior

import (
	"math"

	"github.com/calamp/calamp/internal/vector"
)

const block = 64

// SumLogNorm is the sum of LogNorm over all entries, with vector logarithms.
func (g GaussBernoulli) SumLogNorm(lambda, sigma []float64) float64 {
	var odds [block]float64
	total := 0.0
	for len(lambda) > 0 {
		n := min(block, len(lambda))
		for i, l := range lambda[:n] {
			total -= 0.5 * l * (l / sigma[i])
		}
		g.slabOdds(odds[:n], lambda[:n], sigma[:n])
		total += g.sumLogMix(&odds, n)
		lambda, sigma = lambda[n:], sigma[n:]
	}
	return total
}

// slabOdds is the log-odds of [vector.Slab] for a block.
func (g GaussBernoulli) slabOdds(odds, lambda, sigma []float64) {
	var wide [block]float64
	for i, l := range lambda {
		s := sigma[i]
		ratio := min(g.SignalVar/s, 1e300)
		wide[i] = 1 + ratio
		odds[i] = 0.5 * (float64(l*l*ratio) + float64(2*l*g.SignalMean) - float64(g.SignalMean*g.SignalMean)) / (g.SignalVar + s)
	}
	padded := wide[:(len(odds)+vector.Lanes-1)/vector.Lanes*vector.Lanes]
	for i := len(odds); i < len(padded); i++ {
		padded[i] = 1
	}
	vector.Log(padded)
	for i := range odds {
		odds[i] -= 0.5 * wide[i]
	}
}

// sumLogMix is Σ log((1-ρ) + ρ e^odds) over n entries: with ℓ the difference of the
// two logarithms log(1-ρ) + max(0, ℓ) + log(1 + e^-|ℓ|), where the last, at most
// log 2 each, are the logarithm of one product. It overwrites odds.
func (g GaussBernoulli) sumLogMix(odds *[block]float64, n int) float64 {
	total := 0.0
	if g.Density == 1 {
		for _, o := range odds[:n] {
			total += o
		}
		return total
	}
	spike := math.Log1p(-g.Density)
	shift := math.Log(g.Density) - spike
	for i, o := range odds[:n] {
		l := shift + o
		if l > 0 {
			total += l
		}
		odds[i] = -math.Abs(l)
	}
	vector.Exp(odds[:(n+vector.Lanes-1)/vector.Lanes*vector.Lanes])
	product := 1.0
	for _, e := range odds[:n] {
		product *= 1 + e
	}
	return total + float64(n)*spike + math.Log(product)
}
