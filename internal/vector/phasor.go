package vector

import "github.com/calamp/calamp/internal/simd"

// Layout of the parameters of [PhasorNodes].
const (
	PhasorMiddle           = iota // of the interval, as an offset from the mode r₀
	PhasorHalf                    // half its width
	PhasorTilt                    // of the weights, as those of a Hermite rule have it
	PhasorSlope                   // h₀' + (1-A₀)R₀'
	PhasorPower                   // of r
	PhasorTau                     // τ
	PhasorMode                    // r₀
	PhasorInverse                 // 1/r₀
	PhasorBetaRe                  // β
	PhasorBetaIm                  //
	PhasorAtRe                    // βr₀ + K
	PhasorAtIm                    //
	PhasorBig                     // R₀, its modulus
	PhasorRise                    // R₀'
	PhasorAcross                  // Im β*K / R₀
	PhasorComplement              // 1-A₀
	PhasorToRe                    // β/|β|, seen from the direction of βr₀ + K
	PhasorToIm                    //
	PhasorHalfLogPrecision        // half the precision of log r
	PhasorFields
)

// PhasorResults are what there is at each node.
type PhasorResults struct {
	Weight  []float64 // of the rule, times e^h(u) √(2π) I₀(R)e^{-R}
	Re, Im  []float64 // E[s|r₀+u], less that at r₀, seen from the direction of that
	Scatter []float64 // Var[s|r₀+u]
	Along   []float64 // of that, the part along B
}

// PhasorNodes computes four nodes at a time what the posterior of a complex gain has at the nodes u = middle + half·x (see
// quadrature.Phasor, where its twin in plain Go is), with the asymptotic series of the Bessel functions in the coefficients given, which
// is for large R alone. Their number is a multiple of four. It reports false, and does nothing, where there are no vectors.
func PhasorNodes(x, w []float64, p *[PhasorFields]float64, zero, difference []float64, out *PhasorResults) bool {
	if active == simd.Go {
		return false
	}
	n := len(x)
	phasorNodes(x, w[:n], p[:], zero, difference[:len(zero)], out.Weight[:n], out.Re[:n], out.Im[:n], out.Scatter[:n], out.Along[:n])
	return true
}
