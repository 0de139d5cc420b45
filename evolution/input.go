package evolution

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// The input side of state evolution: averages over a signal entry x₀ and the
// field N(x; λ, Σ) in which the student sees it (paper, "Closing the
// equations"),
//
//	λ = γ x₀ + N(0, ς²),   γ = m̂/χ̂,   ς² = q̂/(α χ̂²),   Σ = 1/(α χ̂).
//
// Bayes-optimally γ = 1 and ς² = Σ.

// fieldLaw is the law of an entry and its field, and the student's view of it.
type fieldLaw struct {
	teacher, student prior.GaussBernoulli
	sigma            float64 // Σ, of the student's field
	gamma, gammaBias float64 // γ, and 1-γ
	noise            float64 // ς²
}

func matchedField(g prior.GaussBernoulli, sigma float64) fieldLaw {
	return fieldLaw{teacher: g, student: g, sigma: sigma, gamma: 1, noise: sigma}
}

// Components of the integrand.
const (
	atVariance = iota // C, the posterior variance
	atSquare          // C²
	atError           // (x̂-x₀)²
	atLoss            // x₀(x₀-x̂)
	atLogNorm         // log ∫ p(x) e^{-(x-λ)²/2Σ} dx
)

// fieldAverages are the results.
type fieldAverages struct {
	variance, square, mse, loss, logNorm Number
}

// integrate computes the averages to a relative tolerance, as integrals over λ:
// given λ, the entry is zero or Gaussian.
func (f *fieldLaw) integrate(tol float64) fieldAverages {
	q := quadrature.NewIntegrator(tol)
	q.Floor[atLogNorm] = 1
	// x₀(x₀-x̂) may average to anything; what it must be small against is E x₀².
	q.Floor[atLoss] = 1e-3 * secondMoment(f.teacher)
	density := f.teacher.Density
	r := f.over(q, math.Sqrt(f.noise), 0, f.atSpike, 1-density)
	slab := f.over(q, math.Sqrt(f.noise+f.gamma*f.gamma*f.teacher.SignalVar), f.gamma*f.teacher.SignalMean, f.atSlab, density)
	at := func(k int) Number { return Number{r.Value[k] + slab.Value[k], r.Err[k] + slab.Err[k]} }
	return fieldAverages{at(atVariance), at(atSquare), at(atError), at(atLoss), at(atLogNorm)}
}

// over averages v over λ ~ N(mean, sd²), with a weight.
func (f *fieldLaw) over(q quadrature.Integrator, sd, mean float64, v func(lambda float64) quadrature.Vec, weight float64) quadrature.Result {
	if weight == 0 {
		return quadrature.Result{}
	}
	symmetric := mean == 0 && f.student.SignalMean == 0 && f.teacher.SignalMean == 0
	integrand := func(l float64) (value, err quadrature.Vec) {
		u := (l - mean) / sd
		w := weight * math.Exp(-0.5*u*u) / (sd * math.Sqrt(2*math.Pi))
		if symmetric {
			w *= 2
		}
		value = v(l)
		for k := range value {
			value[k] *= w
		}
		return value, err
	}
	return q.Integrate(integrand, f.cuts(sd, mean, symmetric))
}

// cuts places panels over λ: the Gaussian's own, and those of the student's
// posterior, which turns from zero to the slab some √Σ away from zero.
func (f *fieldLaw) cuts(sd, mean float64, symmetric bool) []float64 {
	const reach = 9
	lo, hi := mean-reach*sd, mean+reach*sd
	if symmetric {
		lo = 0
	}
	var marks []float64
	for _, t := range [...]float64{-5, -2, 0, 2, 5} {
		marks = append(marks, mean+t*sd)
	}
	if f.student.Density < 1 {
		// Where the odds are even: λ²v/(Σ(v+Σ)) = 2 log((1-ρ)/ρ) + log(1+v/Σ), at x̄ = 0.
		ratio := f.student.SignalVar / f.sigma
		even := max(0.5, 2*(math.Log1p(-f.student.Density)-math.Log(f.student.Density))+math.Log1p(ratio))
		turn := math.Sqrt(even * f.sigma * (1 + 1/ratio))
		root := math.Sqrt(f.sigma)
		for _, t := range [...]float64{0, turn - root, turn, turn + root, turn + 3*root, turn + 8*root} {
			marks = append(marks, t, -t)
		}
	}
	return quadrature.Panels(lo, hi, 0.05*min(sd, math.Sqrt(f.sigma)), marks)
}

// atSpike is the integrand where the entry is zero.
func (f *fieldLaw) atSpike(lambda float64) (v quadrature.Vec) {
	x := view(f.student, lambda, f.sigma)
	variance := x.variance()
	mean := x.on * (lambda + x.shift)
	v[atVariance] = variance
	v[atSquare] = variance * variance
	v[atError] = mean * mean
	v[atLogNorm] = x.logNorm
	return v
}

// atSlab is the integrand where it is Gaussian given λ, of mean µ and variance
// ν. Both µ-λ and x̂-λ are formed without subtracting: near the truth the
// estimate and µ agree to many digits.
func (f *fieldLaw) atSlab(lambda float64) (v quadrature.Vec) {
	t := f.teacher
	total := f.noise + f.gamma*f.gamma*t.SignalVar
	shift := (f.noise*(t.SignalMean-lambda) + f.gamma*f.gammaBias*t.SignalVar*lambda) / total // µ-λ
	spread := f.noise * t.SignalVar / total                                                   // ν

	x := view(f.student, lambda, f.sigma)
	variance := x.variance()
	miss := x.shift - shift - x.off*(lambda+x.shift) // x̂-µ
	v[atVariance] = variance
	v[atSquare] = variance * variance
	v[atError] = miss*miss + spread
	v[atLoss] = spread - (lambda+shift)*miss
	v[atLogNorm] = x.logNorm
	return v
}

// entryView is what prior.GaussBernoulli makes of a field, with the small
// differences that its methods do not give.
type entryView struct {
	on, off      float64 // posterior probabilities of the slab and of zero
	mean, spread float64 // of the slab: mean, variance
	shift        float64 // mean - λ
	logNorm      float64 // log ∫ p(x) e^{-(x-λ)²/2Σ} dx
}

func (x *entryView) variance() float64 { return x.on*x.spread + x.on*x.off*x.mean*x.mean }

func view(g prior.GaussBernoulli, lambda, sigma float64) entryView {
	wide := g.SignalVar + sigma
	x := entryView{shift: sigma * (g.SignalMean - lambda) / wide, spread: sigma * (g.SignalVar / wide)}
	x.mean = lambda + x.shift
	far := lambda - g.SignalMean
	slab := math.Log(g.Density) + 0.5*(math.Log(sigma/wide)-far*far/wide)
	if g.Density == 1 {
		x.on, x.logNorm = 1, slab
		return x
	}
	spike := math.Log1p(-g.Density) - 0.5*lambda*(lambda/sigma)
	if odds := slab - spike; odds > 0 {
		e := math.Exp(-odds)
		x.on, x.off = 1/(1+e), e/(1+e)
		x.logNorm = slab + math.Log1p(e)
	} else {
		e := math.Exp(odds)
		x.on, x.off = e/(1+e), 1/(1+e)
		x.logNorm = spike + math.Log1p(e)
	}
	return x
}
