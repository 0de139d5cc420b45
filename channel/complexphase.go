package channel

import (
	"math"
	"math/cmplx"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/search"
)

// The concentrations that are tried: phases of which nothing is known, and such that are known better than any readings tell.
const (
	leastConcentration = 1e-2
	mostConcentration  = 1e8
)

// PhaseSpread is the concentration κ of the phases that the statistics of several sensors, but for those that omit names, are likeliest under, and the logarithm of how
// much likelier they are than under the one that is told. Of phases that are free nothing was told, and both are 0.
//
// With β = 2 r B of amplitude r, a sensor's phase has the likelihood exp(Re β e^{-iφ}), and its mean over the prior is I₀(|β+κ|)/I₀(κ).
func (p ComplexPrior) PhaseSpread(stats []float64, omit []bool) (likeliest, logRatio float64) {
	if p.Free() {
		return 0, 0
	}
	var betas []complex128
	for mu, left := range omit {
		s := stats[mu*complexWidth : (mu+1)*complexWidth]
		if left || !(s[complexPrecision] > 0) {
			continue
		}
		r := min(max(p.Fit(s), p.Lo), p.Hi)
		betas = append(betas, complex(2*r, 0)*fieldOf(s))
	}
	at := func(kappa float64) (total float64) {
		if math.IsInf(kappa, 1) {
			for _, beta := range betas {
				total += real(beta)
			}
			return total
		}
		prior := quadrature.LogBessel(kappa)
		for _, beta := range betas {
			size := cmplx.Abs(beta + complex(kappa, 0))
			more := (square(beta) + 2*kappa*real(beta)) / (size + kappa) // size - κ
			total += more + quadrature.LogBessel(size) - prior
		}
		return total
	}
	golden := search.NewGolden(func(log float64) float64 { return at(math.Exp(log)) }, math.Log(leastConcentration), math.Log(mostConcentration))
	for golden.B-golden.A > 0.02 {
		golden.Narrow()
	}
	return math.Exp(0.5 * (golden.A + golden.B)), max(golden.FC, golden.FD) - at(p.Concentration)
}
