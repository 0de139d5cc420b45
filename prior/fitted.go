package prior

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// moments are sums over entries on which fields have information: over their number, and, each with the probability πᵢ that it is
// not zero, over 1, x, |x| and x².
type moments struct{ entries, on, first, absolute, second float64 }

// momentsOf are those of a prior whose first part is the atom at zero, and of whose other parts none is on both sides of it.
func momentsOf(p pieces, lambda, sigma []float64) (m moments) {
	var buffer [8]part
	for i, l := range lambda {
		if math.IsInf(sigma[i], 1) {
			continue
		}
		parts := p.parts(buffer[:0], l, sigma[i])
		_, total := weigh(parts)
		m.entries++
		for _, q := range parts[1:] {
			weight := q.log / total
			m.on += weight
			m.first += weight * q.mean
			m.absolute += weight * math.Abs(q.mean)
			m.second += weight * (q.variance + q.mean*q.mean)
		}
	}
	return m
}

// density is Σ πᵢ/n, kept from where expectation–maximisation never comes back.
func (m moments) density() float64 {
	return min(max(m.on/m.entries, leastDensity), 1-leastDensity)
}

// tell reports whether there are entries that are not zero, of which alone a slab can be learned.
func (m moments) tell() bool { return m.on > leastDensity*m.entries && m.second > 0 }

// mostCut is how many standard deviations of its Gaussian the mean may be below zero: the slab is then exponential to three digits,
// and the parameters that make it more so run away together.
const mostCut = 30

// root is where a function that rises from a to b is zero, by halving.
func root(a, b float64, f func(x float64) float64) float64 {
	for range 100 {
		if middle := a + 0.5*(b-a); f(middle) < 0 {
			a = middle
		} else {
			b = middle
		}
	}
	return a + 0.5*(b-a)
}

// cutAt is the mean and the mean square of N(u, 1) cut to the positive half-line.
func cutAt(u float64) (mean, square float64) {
	_, mean, variance := quadrature.TruncatedNormal(u)
	return mean, variance + mean*mean
}

// expected is one step of expectation–maximisation. The cut Gaussian is an exponential family: the likeliest one has, of what its free
// parameters weigh, the expected mean: of x and x² where both are learned, of (x-x̄)² where x̄ is fixed, of x where v is.
func (n NonNegative) expected(learn Parameters, lambda, sigma []float64) NonNegative {
	m := momentsOf(n, lambda, sigma)
	if m.entries == 0 {
		return n
	}
	if learn&Density != 0 {
		n.Density = m.density()
	}
	if !m.tell() {
		return n
	}
	first, second := m.first/m.on, m.second/m.on
	switch learn & (SignalMean | SignalVar) {
	case SignalMean | SignalVar:
		// first²/second is 1/2 of an exponential density and 1 of a point.
		u := root(-mostCut, mostCut, func(u float64) float64 {
			mean, square := cutAt(u)
			return mean*mean/square - first*first/second
		})
		mean, _ := cutAt(u)
		sd := first / mean
		n.SignalMean, n.SignalVar = u*sd, sd*sd
	case SignalVar:
		about := second - 2*n.SignalMean*first + n.SignalMean*n.SignalMean
		log := root(math.Log(second)-20, math.Log(second)+20, func(log float64) float64 {
			v := math.Exp(log)
			u := n.SignalMean / math.Sqrt(v)
			mean, square := cutAt(u)
			return v*(square-2*u*mean+u*u) - about
		})
		n.SignalVar = math.Exp(log)
	case SignalMean:
		sd := math.Sqrt(n.SignalVar)
		n.SignalMean = sd * root(-mostCut, first/sd, func(u float64) float64 {
			mean, _ := cutAt(u)
			return sd*mean - first
		})
	}
	return n
}

// shape is a Gauss–Bernoulli prior with the same moments, for distances.
func (n NonNegative) shape() GaussBernoulli {
	mean, variance := n.cut()
	return GaussBernoulli{Density: n.Density, SignalMean: mean, SignalVar: variance}
}

// Parameters implements [Slabbed].
func (n NonNegative) Parameters() Parameters { return Density | SignalMean | SignalVar }

// Learned implements [Slabbed].
func (n NonNegative) Learned() Parameters { return n.Learn }

// Learning implements [Slabbed].
func (n NonNegative) Learning(which Parameters) Slabbed {
	n.Learn = which
	return n
}

// Learns says whether anything is learned.
func (n NonNegative) Learns() bool { return n.Learn != 0 }

// LearnsScale implements [Learner].
func (n NonNegative) LearnsScale() bool { return n.Learn&SignalVar != 0 }

// Values implements [Parametric]: density, mean and variance.
func (n NonNegative) Values() []float64 { return GaussBernoulli(n).Values() }

// WithValues implements [Parametric].
func (n NonNegative) WithValues(v []float64) (Prior, error) {
	p, err := GaussBernoulli(n).WithValues(v)
	if err == nil {
		n = NonNegative(p.(GaussBernoulli))
	}
	return n, err
}

// Balanced implements [Learner]: as [GaussBernoulli.Balanced].
func (n NonNegative) Balanced(square float64) Learner {
	mean, variance := n.cut()
	ratio := square / (n.Density * (variance + mean*mean))
	switch {
	case ratio > 0.5 && ratio < 2 || !(ratio > 0) || math.IsInf(ratio, 1):
	case n.Learn&(SignalMean|SignalVar) == SignalMean|SignalVar, n.Learn&SignalVar != 0 && n.SignalMean == 0:
		return n.times(math.Sqrt(ratio))
	case n.Learn&Density != 0:
		n.Density = min(ratio*n.Density, max(0.5, n.Density))
	}
	return n
}

// Refit implements [Learner].
func (n NonNegative) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	fit := n
	for range refitSteps {
		fit = fit.expected(n.Learn, lambda, sigma)
	}
	to := fit // from nothing of the former one, which may be far in the tail
	if step != 1 {
		to = NonNegative(GaussBernoulli(n).towards(GaussBernoulli(fit), step))
	}
	return to, to.shape().distance(n.shape(), float64(len(lambda)))
}

// expected is one step of expectation–maximisation: b = Σ πᵢ E|xᵢ| / Σ πᵢ.
func (l Laplace) expected(learn Parameters, lambda, sigma []float64) Laplace {
	m := momentsOf(l, lambda, sigma)
	if m.entries == 0 {
		return l
	}
	if learn&Density != 0 {
		l.Density = m.density()
	}
	if b := m.absolute / m.on; learn&SignalVar != 0 && m.tell() && b > 0 {
		l.SignalVar = 2 * b * b
	}
	return l
}

// gaussian is the Gauss–Bernoulli prior with the same parameters.
func (l Laplace) gaussian() GaussBernoulli {
	return GaussBernoulli{Density: l.Density, SignalVar: l.SignalVar, Learn: l.Learn}
}

// take takes the density and the variance of a Gauss–Bernoulli prior.
func (l Laplace) take(g GaussBernoulli) Laplace {
	l.Density, l.SignalVar = g.Density, g.SignalVar
	return l
}

// Parameters implements [Slabbed].
func (l Laplace) Parameters() Parameters { return Density | SignalVar }

// Learned implements [Slabbed].
func (l Laplace) Learned() Parameters { return l.Learn }

// Learning implements [Slabbed].
func (l Laplace) Learning(which Parameters) Slabbed {
	l.Learn = which & l.Parameters()
	return l
}

// Learns says whether anything is learned.
func (l Laplace) Learns() bool { return l.Learn != 0 }

// LearnsScale implements [Learner].
func (l Laplace) LearnsScale() bool { return l.Learn&SignalVar != 0 }

// Values implements [Parametric]: density and variance.
func (l Laplace) Values() []float64 { return []float64{l.Density, l.SignalVar} }

// WithValues implements [Parametric].
func (l Laplace) WithValues(v []float64) (Prior, error) {
	if len(v) != 2 {
		return l, fmt.Errorf("%d values for density and variance", len(v))
	}
	l.Density, l.SignalVar = v[0], v[1]
	return l, l.Validate()
}

// Balanced implements [Learner].
func (l Laplace) Balanced(square float64) Learner {
	return l.take(l.gaussian().Balanced(square).(GaussBernoulli)) // which returns its own kind
}

// Refit implements [Learner].
func (l Laplace) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	fit := l
	for range refitSteps {
		fit = fit.expected(l.Learn, lambda, sigma)
	}
	from := l.gaussian()
	to := l.take(from.towards(fit.gaussian(), step))
	return to, to.gaussian().distance(from, float64(len(lambda)))
}
