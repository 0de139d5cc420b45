// Package field computes averages over an entry of a signal and the Gaussian field
// through which an estimator sees it: it has the Gauss–Bernoulli prior, and does not depend on
// sensors. These averages are the input side of state evolution (paper, "Closing the
// equations").
package field

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// Law is the joint law of an entry x₀ and its field N(x; λ, Σ), and what an estimator
// (the student) assumes of it,
//
//	λ = γ x₀ + N(0, ς²).
//
// In state evolution γ = m̂/χ̂, ς² = q̂/(α χ̂²) and Σ = 1/(α χ̂); Bayes-optimally
// γ = 1 and ς² = Σ.
type Law struct {
	Teacher, Student prior.GaussBernoulli // x₀ is drawn from the first, and assumed to be from the second
	Sigma            float64              // Σ, of the student's field
	Gamma, GammaBias float64              // γ, and 1-γ
	Noise            float64              // ς²
}

// Matched is the law when the student has the law by which x₀ and λ are drawn.
func Matched(g prior.GaussBernoulli, sigma float64) Law {
	return Law{Teacher: g, Student: g, Sigma: sigma, Gamma: 1, Noise: sigma}
}

// Components of the integrand.
const (
	atVariance = iota // C, the posterior variance
	atSquare          // C²
	atError           // (x̂-x₀)²
	atLoss            // x₀(x₀-x̂)
	atLogNorm         // log ∫ p(x) e^{-(x-λ)²/2Σ} dx
)

// Number is a value and the quadrature's estimate of its absolute error.
type Number struct{ Value, Err float64 }

// Averages are taken over x₀ and λ; x̂ and C are the student's posterior mean and
// variance.
type Averages struct {
	Variance, Square Number // E C, E C²
	MSE              Number // E (x̂-x₀)²
	Loss             Number // E x₀(x₀-x̂)
	LogNorm          Number // E log ∫ p(x) e^{-(x-λ)²/2Σ} dx
}

// Integrate computes the averages to a relative tolerance, as integrals over λ:
// given λ, the entry is zero or Gaussian.
func (f *Law) Integrate(tol float64) Averages {
	q := quadrature.NewIntegrator(tol)
	q.Floor[atLogNorm] = 1
	// The average of x₀(x₀-x̂) can be zero, so its error is compared with E x₀².
	square := f.Teacher.Density * (f.Teacher.SignalVar + f.Teacher.SignalMean*f.Teacher.SignalMean)
	q.Floor[atLoss] = 1e-3 * square
	density := f.Teacher.Density
	r := f.over(q, math.Sqrt(f.Noise), 0, f.atSpike, 1-density)
	slab := f.over(q, math.Sqrt(f.Noise+f.Gamma*f.Gamma*f.Teacher.SignalVar), f.Gamma*f.Teacher.SignalMean, f.atSlab, density)
	at := func(k int) Number { return Number{r.Value[k] + slab.Value[k], r.Err[k] + slab.Err[k]} }
	return Averages{at(atVariance), at(atSquare), at(atError), at(atLoss), at(atLogNorm)}
}

// over integrates v over λ ~ N(mean, sd²), times a weight.
func (f *Law) over(q quadrature.Integrator, sd, mean float64, v func(lambda float64) quadrature.Vec, weight float64) quadrature.Result {
	if weight == 0 {
		return quadrature.Result{}
	}
	symmetric := mean == 0 && f.Student.SignalMean == 0 && f.Teacher.SignalMean == 0
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

// cuts places the ends of panels over λ: some for the Gaussian, and some for the
// student's posterior, which goes over from zero to the slab some √Σ away from zero.
func (f *Law) cuts(sd, mean float64, symmetric bool) []float64 {
	const reach = 9
	lo, hi := mean-reach*sd, mean+reach*sd
	if symmetric {
		lo = 0
	}
	var marks []float64
	for _, t := range [...]float64{-5, -2, 0, 2, 5} {
		marks = append(marks, mean+t*sd)
	}
	if f.Student.Density < 1 {
		// It goes over where zero and the slab are equally likely, for x̄ = 0 at
		// λ²v/(Σ(v+Σ)) = 2 log((1-ρ)/ρ) + log(1+v/Σ).
		ratio := f.Student.SignalVar / f.Sigma
		even := max(0.5, 2*(math.Log1p(-f.Student.Density)-math.Log(f.Student.Density))+math.Log1p(ratio))
		turn := math.Sqrt(even * f.Sigma * (1 + 1/ratio))
		root := math.Sqrt(f.Sigma)
		for _, t := range [...]float64{0, turn - root, turn, turn + root, turn + 3*root, turn + 8*root} {
			marks = append(marks, t, -t)
		}
	}
	return quadrature.Panels(lo, hi, 0.05*min(sd, math.Sqrt(f.Sigma)), marks)
}

// atSpike is the integrand where the entry is zero.
func (f *Law) atSpike(lambda float64) (v quadrature.Vec) {
	x := view(f.Student, lambda, f.Sigma)
	variance := x.variance()
	mean := x.on * x.mean
	v[atVariance] = variance
	v[atSquare] = variance * variance
	v[atError] = mean * mean
	v[atLogNorm] = x.logNorm
	return v
}

// atSlab is the integrand where the entry is drawn from the slab: given λ it is
// Gaussian, of mean µ and variance ν. Both µ-λ and x̂-λ are computed without
// subtraction, since x̂ and µ agree to many digits where the errors are small.
func (f *Law) atSlab(lambda float64) (v quadrature.Vec) {
	t := f.Teacher
	total := f.Noise + f.Gamma*f.Gamma*t.SignalVar
	shift := (f.Noise*(t.SignalMean-lambda) + f.Gamma*f.GammaBias*t.SignalVar*lambda) / total // µ-λ
	mean := (f.Gamma*t.SignalVar*lambda + f.Noise*t.SignalMean) / total                       // µ
	spread := f.Noise * t.SignalVar / total                                                   // ν

	x := view(f.Student, lambda, f.Sigma)
	variance := x.variance()
	miss := x.shift - shift - x.off*x.mean // x̂-µ
	v[atVariance] = variance
	v[atSquare] = variance * variance
	v[atError] = miss*miss + spread
	v[atLoss] = spread - mean*miss
	v[atLogNorm] = x.logNorm
	return v
}

// entryView is the posterior that prior.GaussBernoulli gives for a field, with small
// differences such as mean-λ to full precision, which its methods do not give.
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
	x.mean = g.SignalVar/wide*lambda + sigma/wide*g.SignalMean // of which λ leaves nothing where Σ is 1e16 v
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
