package channel

import (
	"math"
	"math/cmplx"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/search"
)

// The concentrations that are tried: phases of which nothing is known, and such that are known better than from any readings.
const (
	leastConcentration = 1e-2
	mostConcentration  = 1e8

	closeConcentration = 1e-5 // how near its logarithm is found
)

// PhaseSpread is the concentration κ of the phases that the statistics of several sensors, but for those that omit names, are likeliest under, and the logarithm of how
// much likelier they are than under the concentration of the prior. Where phases are free the prior has none, and both results are 0, as they are for rows of two sensors.
//
// With β = 2 r B of amplitude r, a sensor's phase has the likelihood exp(Re β e^{-iφ}), and its mean over the prior is I₀(|β+κ|)/I₀(κ).
func (p ComplexPrior) PhaseSpread(stats []float64, omit []bool) (likeliest, logRatio float64) {
	if p.Free() || p.Pairs != nil {
		return 0, 0
	}
	at := p.phaseEvidence(stats, omit)
	golden := search.NewGolden(func(log float64) float64 { return at(math.Exp(log)) }, math.Log(leastConcentration), math.Log(mostConcentration))
	for golden.B-golden.A > closeConcentration && golden.Narrow() {
	}
	return math.Exp(0.5 * (golden.A + golden.B)), max(golden.FC, golden.FD) - at(p.Concentration)
}

// AboutNominal is the logarithm of how much likelier statistics are with the phases as they are known here than with phases that may be anywhere; +Inf for rows of two sensors, of which no common
// phase is open.
func (p ComplexPrior) AboutNominal(stats []float64, omit []bool) float64 {
	if p.Pairs != nil {
		return math.Inf(1)
	}
	at := p.phaseEvidence(stats, omit)
	return at(p.Concentration) - at(0)
}

// phaseEvidence is the logarithm of the likelihood of statistics as a function of κ, up to a constant.
func (p ComplexPrior) phaseEvidence(stats []float64, omit []bool) func(kappa float64) float64 {
	var betas []complex128
	for mu, left := range omit {
		s := stats[mu*complexWidth : (mu+1)*complexWidth]
		if left || !(s[complexPrecision] > 0) {
			continue
		}
		r := min(max(p.Fit(s), p.Lo), p.Hi)
		betas = append(betas, complex(2*r, 0)*fieldOf(s))
	}
	return func(kappa float64) (total float64) {
		if math.IsInf(kappa, 1) {
			for _, beta := range betas {
				total += real(beta)
			}
			return total
		}
		prior := quadrature.LogBessel(kappa)
		for _, beta := range betas {
			size := cmplx.Abs(beta + complex(kappa, 0))
			if size+kappa > 0 {
				total += (square(beta) + 2*kappa*real(beta)) / (size + kappa) // size - κ
			}
			total += quadrature.LogBessel(size) - prior
		}
		return total
	}
}
