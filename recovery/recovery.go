// Package recovery computes how many measurements exact recovery of noiseless signals
// takes. Noise and the distribution of gains have no place in it: they are what package evolution
// takes into account. The number is given as α = M/N, a multiple of the signals' length:
// for known gains, and as a lower bound for unknown ones.
package recovery

import (
	"math"
	"sync"

	"github.com/calamp/calamp/internal/field"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/prior"
)

// AlphaMin is the counting bound α_min = ρ P/(P-1): P signals with ρN non-zero
// entries each, and M calibration variables, are (ρNP + M) unknowns for MP
// readings. Below it no algorithm recovers noiseless signals exactly from gains of
// unknown range. It is +Inf for P = 1.
func AlphaMin(density float64, p int) float64 {
	return density * float64(p) / float64(p-1)
}

// OffsetAlphaMin is the counting bound of sensors that have an offset beside the gain, ρP/(P-2): two unknowns each. It is
// +Inf for P = 2.
func OffsetAlphaMin(density float64, p int) float64 {
	return density * float64(p) / float64(p-2)
}

// AlphaCS is the measurement rate above which AMP recovers noiseless signals
// when the gains are known: state evolution V ← mmse(V/α) from V > 0 has no
// fixed point but 0 when α exceeds
//
//	α_CS = sup_Σ mmse(Σ)/Σ
//
// (Krzakala, Mézard, Sausset, Sun, Zdeborová 2012). The error is below 1e-8. It
// depends only on the density and on x̄/√v; values once computed are remembered. It takes
// at most a hundred integrals, some milliseconds, whatever the signals are.
func AlphaCS(g prior.GaussBernoulli) float64 {
	// With a mean of more than 10⁴ standard deviations entries are zero or the mean, whatever that is.
	ratio := min(math.Abs(g.SignalMean)/math.Sqrt(g.SignalVar), 1e4)
	g = prior.GaussBernoulli{Density: g.Density, SignalMean: ratio, SignalVar: 1}
	if known, ok := alphaCS.Load(g); ok {
		return known.(float64)
	}
	alpha := supremum(g.Density, 1+ratio*ratio, func(sigma, tol float64) float64 {
		f := field.Matched(g, sigma)
		return f.Integrate(tol).Variance.Value
	})
	alphaCS.Store(g, alpha)
	return alpha
}

var alphaCS sync.Map // prior.GaussBernoulli, or its complex kind, of variance 1 → float64

// MostAlphaCS bounds [AlphaCS] from above for entries of which a part density is not zero, whatever the others are: the mmse is at most
// the error of soft thresholding, which is
//
//	Σ (ρ(1+τ²) + 2(1-ρ)((1+τ²)Φ(-τ) - τφ(τ)))
//
// at worst, with any threshold τ√Σ (Donoho, Johnstone 1994), and at most Σ. It takes no integral.
func MostAlphaCS(density float64) float64 {
	const step, most = 0.1, 4 // finer ones lower it by less than 1 %
	least := 1.0
	for tau := step; tau < most; tau += step {
		above := 1 + tau*tau
		zeros := above*math.Erfc(tau/math.Sqrt2) - tau*math.Exp(-0.5*tau*tau)*math.Sqrt(2/math.Pi)
		least = min(least, density*above+(1-density)*zeros)
	}
	return least
}

// supremum is sup_Σ mmse(Σ)/Σ for entries of which a part density is not zero, with that mean square and a variance of 1; mmse has the
// relative tolerance tol.
func supremum(density, square float64, mmse func(sigma, tol float64) float64) float64 {
	// The ratio goes to ρ as Σ → 0, and falls like 1/Σ for large Σ. In between it has
	// one maximum above ρ: a coarse scan finds its neighbourhood, and a golden section its top, which is so flat
	// that this width leaves less than 1e-8.
	const above, bottom, step, width = 8, -40, 1, 1e-3
	best, most := 0.0, math.Inf(-1)
	top := above + math.Log(min(square, math.MaxFloat64))
	for l := top; l >= bottom; l -= step {
		if r := mmse(math.Exp(l), 1e-6) / math.Exp(l); r > most {
			best, most = l, r
		}
	}
	peak := search.NewGolden(func(l float64) float64 { return mmse(math.Exp(l), 1e-11) / math.Exp(l) }, best-step, best+step)
	for peak.B-peak.A > width && peak.Narrow() {
	}
	return max(density, peak.FC, peak.FD)
}

// ComplexAlphaMin is the counting bound for complex signals, of which every reading has two parts:
// 2ρNP + unknowns·M for 2MP of them, with one unknown of every s, its amplitude or its phase, or both. It is +Inf
// where that is as many as there are.
func ComplexAlphaMin(density float64, p, unknowns int) float64 {
	left := float64(2*p - unknowns)
	if left <= 0 {
		return math.Inf(1)
	}
	return 2 * density * float64(p) / left
}

// ComplexAlphaCS is [AlphaCS] for complex signals.
func ComplexAlphaCS(g prior.ComplexGaussBernoulli) float64 {
	g.SignalVar = 1
	if known, ok := alphaCS.Load(g); ok {
		return known.(float64)
	}
	alpha := supremum(g.Density, 1, func(sigma, tol float64) float64 { return field.ComplexVariance(g, sigma, tol).Value })
	alphaCS.Store(g, alpha)
	return alpha
}
