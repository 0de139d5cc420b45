package prior

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/vector"
)

// Complex is a prior of complex entries, whose real and imaginary parts are columns of
// their own: its Posterior and LogNorm take an entry as two numbers. The mean and the variance
// are those of a part, and both parts of an entry have one variance.
type Complex interface {
	Prior

	// Posterior takes whole signals: the first half of each slice are real parts, the
	// second the imaginary parts of the same entries. The two Σ of an entry are the same.
	// Where Σ is +Inf the field is a tilt, e^{λx} for each part.
	Posterior(mean, variance, lambda, sigma []float64)

	// LogNormComplex is LogNorm for the field λ, with variance Σ for each part of it.
	LogNormComplex(lambda complex128, sigma float64) float64
}

// ColumnsOf is how many columns of real numbers an entry is: 2 where it is complex.
func ColumnsOf(p Prior) int {
	if _, ok := p.(Complex); ok {
		return 2
	}
	return 1
}

// ComplexGaussBernoulli is the sparse prior of complex signals: an entry is zero with
// probability 1-ρ, and otherwise drawn from CN(0, v), the complex normal distribution in
// which |x|² has the mean v and no phase is preferred.
type ComplexGaussBernoulli struct {
	Density   float64 // ρ, in (0, 1]
	SignalVar float64 // v > 0, of both parts together

	Learn Parameters // those that are learned, from these values on
}

// part is the prior of each part alone: both are zero together, or neither is.
func (g ComplexGaussBernoulli) part() GaussBernoulli {
	return GaussBernoulli{Density: g.Density, SignalVar: 0.5 * g.SignalVar, Learn: g.Learn}
}

// Validate reports a parameter that describes no distribution.
func (g ComplexGaussBernoulli) Validate() error { return g.part().Validate() }

// Mean is 0.
func (g ComplexGaussBernoulli) Mean() float64 { return 0 }

// Variance is that of a part, ρv/2.
func (g ComplexGaussBernoulli) Variance() float64 { return 0.5 * g.Density * g.SignalVar }

// NonZero implements [Sparse]: ρ.
func (g ComplexGaussBernoulli) NonZero() float64 { return g.Density }

// Name implements [Named]. Where learning starts is forgotten soon, and not in it.
func (g ComplexGaussBernoulli) Name() string {
	if g.Learn != 0 {
		return "complex, each part " + g.part().Name()
	}
	return fmt.Sprintf("complex gauss-bernoulli density=%g variance=%g", g.Density, g.SignalVar)
}

// Values implements [Parametric]: ρ and v.
func (g ComplexGaussBernoulli) Values() []float64 { return []float64{g.Density, g.SignalVar} }

// WithValues implements [Parametric].
func (g ComplexGaussBernoulli) WithValues(v []float64) (Prior, error) {
	if len(v) != 2 {
		return nil, fmt.Errorf("%d values for the two parameters of a complex Gauss–Bernoulli prior", len(v))
	}
	g.Density, g.SignalVar = v[0], v[1]
	return g, g.Validate()
}

// Scaled implements [Scalable].
func (g ComplexGaussBernoulli) Scaled(c float64) Prior {
	g.SignalVar *= c * c
	return g
}

// slab is what is known of an entry that is not zero, and the logarithm of how much
// likelier its field is than if it were: that of both parts together, which is without -log ratio.
func (g ComplexGaussBernoulli) slab(re, im, sigma float64) (meanRe, meanIm, variance, odds, ratio float64) {
	v := 0.5 * g.SignalVar
	if math.IsInf(sigma, 1) {
		return v * re, v * im, v, 0.5 * v * (re*re + im*im), 1
	}
	meanRe, variance, quadratic, ratio := vector.SlabTerms(re, sigma, 0, v)
	meanIm, _, quadraticIm, _ := vector.SlabTerms(im, sigma, 0, v)
	return meanRe, meanIm, variance, 0.5 * (quadratic + quadraticIm), min(1+ratio, math.MaxFloat64)
}

// complexBlock is how many entries' logarithms and exponentials are computed together.
const complexBlock = 64

// slabs are those of some entries, with the log-odds that they are not zero and e^-|log-odds|.
type slabs struct{ re, im, variance, odds, away [complexBlock]float64 }

// slabs computes those from entry from on, and returns how many there are. Entries have the density of g, or one of their own.
func (g ComplexGaussBernoulli) slabs(s *slabs, lambda, sigma []float64, from int, density func(i int) float64) int {
	n := len(lambda) / 2
	count := min(complexBlock, n-from)
	for i := range count {
		s.re[i], s.im[i], s.variance[i], s.odds[i], s.away[i] = g.slab(lambda[from+i], lambda[n+from+i], sigma[from+i])
	}
	whole := vector.Padded(count)
	for i := count; i < whole; i++ {
		s.away[i] = 1
	}
	vector.Log(s.away[:whole])
	logOdds := math.Log(g.Density) - math.Log1p(-g.Density) // +Inf for the Gaussian
	for i := range whole {
		if density != nil && i < count {
			d := density(from + i)
			logOdds = math.Log(d) - math.Log1p(-d)
		}
		s.odds[i] += logOdds - s.away[i]
		s.away[i] = -math.Abs(s.odds[i])
	}
	vector.Exp(s.away[:whole])
	return count
}

// support is the probability that an entry is not zero, and that it is.
func (s *slabs) support(i int) (nonzero, zero float64) {
	larger, smaller := 1/(1+s.away[i]), s.away[i]/(1+s.away[i])
	if s.odds[i] < 0 {
		return smaller, larger
	}
	return larger, smaller
}

// Posterior implements [Complex].
func (g ComplexGaussBernoulli) Posterior(mean, variance, lambda, sigma []float64) {
	g.posterior(mean, variance, lambda, sigma, nil)
}

func (g ComplexGaussBernoulli) posterior(mean, variance, lambda, sigma []float64, density func(i int) float64) {
	n := len(mean) / 2
	var s slabs
	for from := 0; from < n; from += complexBlock {
		for i := range g.slabs(&s, lambda, sigma, from, density) {
			nonzero, zero := s.support(i)
			re, im, to := s.re[i], s.im[i], from+i
			mean[to], mean[n+to] = nonzero*re, nonzero*im
			both := nonzero*s.variance[i] + nonzero*zero*(0.5*(re*re+im*im))
			variance[to], variance[n+to] = both, both
		}
	}
}

// PartCDF is what [Distribution.CDF] is, of one part x of an entry: lambda is that part of its field, and other the other part, which says whether
// the entry is zero, too.
func (g ComplexGaussBernoulli) PartCDF(x, lambda, other, sigma float64) (below, upTo float64) {
	mean, _, variance, odds, ratio := g.slab(lambda, other, sigma)
	nonzero := 1 / (1 + math.Exp(math.Log1p(-g.Density)-math.Log(g.Density)-odds+math.Log(ratio)))
	return withAtom(x, mean, variance, nonzero)
}

// LogNormComplex implements [Complex].
func (g ComplexGaussBernoulli) LogNormComplex(lambda complex128, sigma float64) float64 {
	_, _, _, odds, ratio := g.slab(real(lambda), imag(lambda), sigma)
	at := real(lambda)*(real(lambda)/sigma) + imag(lambda)*(imag(lambda)/sigma)
	return logAddExp(math.Log1p(-g.Density), math.Log(g.Density)+odds-math.Log(ratio)) - 0.5*at
}

// LogNorm implements [Prior]: of a part alone.
func (g ComplexGaussBernoulli) LogNorm(lambda, sigma float64) float64 {
	return g.part().LogNorm(lambda, sigma)
}

// Sample draws one entry. As many random numbers are used for every entry.
func (g ComplexGaussBernoulli) Sample(rng *rand.Rand) complex128 {
	on, size := rng.Float64() < g.Density, math.Sqrt(0.5*g.SignalVar)
	x := complex(size*rng.NormFloat64(), size*rng.NormFloat64())
	if !on {
		return 0
	}
	return x
}

// Slab implements [Slabbed]: the variance is that of both parts together.
func (g ComplexGaussBernoulli) Slab() (mean, variance float64) { return 0, g.SignalVar }

// WithSlab implements [Slabbed].
func (g ComplexGaussBernoulli) WithSlab(_, variance float64) Slabbed {
	g.SignalVar = variance
	return g
}

// SlabSD implements [Slabbed].
func (g ComplexGaussBernoulli) SlabSD(entries float64) (ofMean, ofVar float64) {
	return GaussBernoulli{SignalVar: g.SignalVar}.SlabSD(entries)
}

// ComplexPrior is the prior with nothing of it learned. A prior that has one within has the method, too:
// so code that is only for these two finds both.
func (g ComplexGaussBernoulli) ComplexPrior() ComplexGaussBernoulli {
	g.Learn = 0
	return g
}

// Parameters implements [Slabbed].
func (g ComplexGaussBernoulli) Parameters() Parameters { return Density | SignalVar }

// Learned implements [Slabbed].
func (g ComplexGaussBernoulli) Learned() Parameters { return g.Learn }

// Learning implements [Slabbed].
func (g ComplexGaussBernoulli) Learning(which Parameters) Slabbed {
	g.Learn = which & g.Parameters()
	return g
}

// withPart takes the density and the variance of a part.
func (g ComplexGaussBernoulli) withPart(p GaussBernoulli) ComplexGaussBernoulli {
	g.Density, g.SignalVar = p.Density, 2*p.SignalVar
	return g
}

// Learns says whether anything is learned.
func (g ComplexGaussBernoulli) Learns() bool { return g.Learn != 0 }

// LearnsScale implements [Learner].
func (g ComplexGaussBernoulli) LearnsScale() bool { return g.part().LearnsScale() }

// Balanced implements [Learner]; square is that of a part.
func (g ComplexGaussBernoulli) Balanced(square float64) Learner {
	return g.withPart(g.part().Balanced(square).(GaussBernoulli)) // which returns its own kind
}

// Refit implements [Learner]: the first half of lambda and sigma are real parts, the second the imaginary parts of
// the same entries, as for Posterior. With π the probability that an entry is not zero, and m and u the mean and
// the variance of each part if it is not, a step of expectation–maximisation is ρ = Σπ/n, v = Σπ(|m|²+2u)/Σπ.
func (g ComplexGaussBernoulli) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	return g.refit(lambda, sigma, step, nil)
}

func (g ComplexGaussBernoulli) refit(lambda, sigma []float64, step float64, density func(i int) float64) (to ComplexGaussBernoulli, change float64) {
	fit := g
	for range refitSteps {
		fit = fit.expected(g.Learn, lambda, sigma, density)
	}
	from := g.part()
	to = g.withPart(from.towards(fit.part(), step))
	return to, to.part().distance(from, float64(len(lambda)/2))
}

// expected is one step of expectation–maximisation.
func (g ComplexGaussBernoulli) expected(learn Parameters, lambda, sigma []float64, density func(i int) float64) ComplexGaussBernoulli {
	n := len(lambda) / 2
	var count, total, square float64
	var s slabs
	for from := 0; from < n; from += complexBlock {
		for i := range g.slabs(&s, lambda, sigma, from, density) {
			if math.IsInf(sigma[from+i], 1) {
				continue
			}
			on, _ := s.support(i)
			count++
			total += on
			square += on * (s.re[i]*s.re[i] + s.im[i]*s.im[i] + 2*s.variance[i])
		}
	}
	to := g
	if learn&Density != 0 && count > 0 {
		to.Density = min(max(total/count, leastDensity), 1-leastDensity)
	}
	if v := square / total; learn&SignalVar != 0 && total > leastDensity*count && v > 0 && !math.IsInf(v, 1) {
		to.SignalVar = v
	}
	return to
}
