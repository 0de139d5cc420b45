package prior

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/vector"
)

// Mixture is zero with the probability that its components leave, and otherwise
// drawn from one of some Gaussians,
//
//	p(x) = (1 - Σⱼ ρⱼ) δ(x) + Σⱼ ρⱼ N(x; x̄ⱼ, vⱼ)
//
// (J. P. Vila and P. Schniter, "Expectation-maximization Gaussian-mixture
// approximate message passing", IEEE Trans. Signal Process. 61, 2013).
type Mixture struct {
	Components []Component

	Learn bool // the components are learned, from these on: equal ones stay equal
}

const (
	// compressibleParts are in a mixture from which learning starts, compressibleRatio is that of the variances of neighbours.
	compressibleParts = 3
	compressibleRatio = 30
)

// Compressible is a mixture of zero-mean Gaussians from which the learning of compressible entries starts, of which the part density has nearly
// all of their mean square. It expects more than that: of too narrow a prior the first estimates would be too sure.
func Compressible(density, square float64) Mixture {
	m := Mixture{Components: make([]Component, compressibleParts)}
	for j := range m.Components {
		m.Components[j] = Component{
			Weight: math.Pow(density, 0.5*float64(compressibleParts-1-j)) / (compressibleParts + 0.1),
			Var:    square / density * math.Pow(compressibleRatio, float64(j)-0.5*compressibleParts),
		}
	}
	return m
}

// Component is a Gaussian with its weight.
type Component struct {
	Weight float64 `json:"weight"` // ρⱼ > 0
	Mean   float64 `json:"mean"`   // x̄ⱼ
	Var    float64 `json:"var"`    // vⱼ > 0
}

// atom is the probability of zero.
func (m Mixture) atom() float64 { return max(0, 1-m.Density()) }

// Density is the probability of an entry not to be zero, the sum of the weights.
func (m Mixture) Density() float64 {
	total := 0.0
	for _, c := range m.Components {
		total += c.Weight
	}
	return total
}

// WithDensity implements [Shaped].
func (m Mixture) WithDensity(density float64) Shaped {
	to, by := m.like(), density/m.Density()
	for j, c := range m.Components {
		to.Components[j] = Component{Weight: by * c.Weight, Mean: c.Mean, Var: c.Var}
	}
	to.Learn = m.Learn && density == 1
	return to
}

// AsOne implements [Shaped].
func (m Mixture) AsOne() GaussBernoulli {
	g := GaussBernoulli{Density: m.Density()}
	for _, c := range m.Components {
		g.SignalMean += c.Weight * c.Mean / g.Density
	}
	for _, c := range m.Components {
		d := c.Mean - g.SignalMean
		g.SignalVar += c.Weight * (c.Var + d*d) / g.Density
	}
	return g
}

// Name implements [Named]. Where learning starts is forgotten soon, and not in it.
func (m Mixture) Name() string {
	if m.Learn {
		return fmt.Sprintf("mixture components=%d learned", len(m.Components))
	}
	name := "mixture"
	for _, c := range m.Components {
		name += fmt.Sprintf(" %g,%g,%g", c.Weight, c.Mean, c.Var)
	}
	return name
}

// NonZero implements [Sparse].
func (m Mixture) NonZero() float64 { return min(1, m.Density()) }

// Scaled implements [Scalable].
func (m Mixture) Scaled(c float64) Prior {
	to := m.like()
	for j, from := range m.Components {
		to.Components[j] = Component{Weight: from.Weight, Mean: c * from.Mean, Var: c * c * from.Var}
	}
	return to
}

// like is a mixture of as many components, to be filled.
func (m Mixture) like() Mixture {
	m.Components = make([]Component, len(m.Components))
	return m
}

// Values implements [Parametric]: weight, mean and variance of every component.
func (m Mixture) Values() []float64 {
	var v []float64
	for _, c := range m.Components {
		v = append(v, c.Weight, c.Mean, c.Var)
	}
	return v
}

// WithValues implements [Parametric].
func (m Mixture) WithValues(v []float64) (Prior, error) {
	if len(v) != 3*len(m.Components) {
		return m, fmt.Errorf("%d values for the parameters of %d components, three each", len(v), len(m.Components))
	}
	to := m.like()
	for j := range to.Components {
		to.Components[j] = Component{Weight: v[3*j], Mean: v[3*j+1], Var: v[3*j+2]}
	}
	return to, to.Validate()
}

// Validate reports a parameter that describes no distribution.
func (m Mixture) Validate() error {
	if len(m.Components) == 0 {
		return fmt.Errorf("a mixture needs at least one component")
	}
	for j, c := range m.Components {
		if !(c.Weight > 0 && c.Weight <= 1) {
			return fmt.Errorf("component %d: its weight must be in (0, 1], found %g", j, c.Weight)
		}
		if math.IsNaN(c.Mean) || math.IsInf(c.Mean, 0) {
			return fmt.Errorf("component %d: its mean must be finite, found %g", j, c.Mean)
		}
		if err := validPositive("its variance", c.Var); err != nil {
			return fmt.Errorf("component %d: %w", j, err)
		}
	}
	if total := m.Density(); total > 1+1e-9 {
		return fmt.Errorf("the weights of a mixture sum to 1 at most, found %g", total)
	}
	return nil
}

// own are the parts of the prior itself.
func (m Mixture) own() []part {
	parts := []part{spike(m.atom())}
	for _, c := range m.Components {
		parts = append(parts, part{math.Log(c.Weight), c.Mean, c.Var})
	}
	return parts
}

// Mean implements [Prior].
func (m Mixture) Mean() float64 {
	mean, _ := combine(m.own())
	return mean
}

// Variance implements [Prior].
func (m Mixture) Variance() float64 {
	_, variance := combine(m.own())
	return variance
}

// parts implements pieces. Of two squares, nearly equal for small v, the
// difference is taken over a common denominator, as for [GaussBernoulli].
func (m Mixture) parts(into []part, lambda, sigma float64) []part {
	into = append(into, spike(m.atom()))
	for _, c := range m.Components {
		mean, variance, odds := vector.Slab(lambda, sigma, c.Mean, c.Var)
		into = append(into, part{math.Log(c.Weight) + odds, mean, variance})
	}
	return into
}

// Posterior implements [Prior].
func (m Mixture) Posterior(mean, variance, lambda, sigma []float64) {
	posterior(m, mean, variance, lambda, sigma)
}

// LogNorm implements [Prior].
func (m Mixture) LogNorm(lambda, sigma float64) float64 { return logNorm(m, lambda, sigma) }

// ScaleInformation is minus the second derivative by log c, at 1, of the evidence of fields N(λ, Σ) under the prior that is stretched by c, which is Σ log Z(λ/c, Σ/c²). With
// D = v + Σ a component N(m, v) has log Z = ½ log Σ/D - (λ-m)²/2D; zero has none.
func (m Mixture) ScaleInformation(lambda, sigma []float64) (information float64) {
	var buffer [8]part
	for i, l := range lambda {
		q := sigma[i]
		if math.IsInf(q, 1) {
			continue
		}
		parts := m.parts(buffer[:0], l, q)
		_, total := weigh(parts)
		mean, square := 0.0, 0.0 // of the first derivatives
		for j, c := range m.Components {
			weight, d, off := parts[j+1].log/total, c.Var+q, l-c.Mean
			first := (l*off-c.Var)/d - off*off*q/(d*d)
			mean += weight * first
			square += weight * first * first
			information += weight * (2*q*c.Var/(d*d) + (l*off+l*l)/d - 4*l*off*q/(d*d) - off*off*(2*q/(d*d)-4*q*q/(d*d*d)))
		}
		information -= square - mean*mean
	}
	return information
}

// Sample implements [Sampler].
func (m Mixture) Sample(rng *rand.Rand) float64 {
	choice, value := rng.Float64(), rng.NormFloat64()
	for _, c := range m.Components {
		if choice -= c.Weight; choice < 0 {
			return c.Mean + math.Sqrt(c.Var)*value
		}
	}
	return 0
}

// Update is one step of expectation–maximisation towards the mixture that makes
// the fields N(x; λ[i], Σ[i]) likeliest: with πᵢⱼ the probability that entry i is
// of component j, and mᵢⱼ, uᵢⱼ its mean and variance if it is,
//
//	ρⱼ = Σᵢ πᵢⱼ/n,   x̄ⱼ = Σᵢ πᵢⱼ mᵢⱼ/Σᵢ πᵢⱼ,   vⱼ = Σᵢ πᵢⱼ (uᵢⱼ + (mᵢⱼ-x̄ⱼ)²)/Σᵢ πᵢⱼ
//
// (Vila and Schniter, section III). Σ[i] = +Inf says nothing. A component that
// no entry is of keeps its mean and variance, and a weight above zero, and a
// variance stays above rounding: neither would come back from there. Without an
// atom at zero the update has none.
func (m Mixture) Update(lambda, sigma []float64) Mixture {
	count, n, atom := len(m.Components), 0.0, m.atom()
	shares := make([]part, 0, count*len(lambda)) // of each entry, the components' πᵢⱼ, mᵢⱼ and uᵢⱼ
	sums, factors := make([]componentSums, count), make([]float64, count)
	zero := part{}
	if atom == 0 {
		zero.log = math.Inf(-1)
	}
	var buffer [8]part
	for i, l := range lambda {
		if math.IsInf(sigma[i], 1) {
			continue
		}
		n++
		// Exponents alone are weighed; factors come afterwards, which spares their logarithms.
		parts := append(buffer[:0], zero)
		for j, c := range m.Components {
			mean, variance, quadratic, ratio := vector.SlabTerms(l, sigma[i], c.Mean, c.Var)
			parts, factors[j] = append(parts, part{0.5 * quadratic, mean, variance}), c.Weight/math.Sqrt(1+ratio)
		}
		weigh(parts)
		total := atom * parts[0].log
		for j, factor := range factors {
			parts[1+j].log *= factor
			total += parts[1+j].log
		}
		for j, p := range parts[1:] {
			p.log /= total
			sums[j].addMean(p.log, p.mean)
			shares = append(shares, p)
		}
	}
	for j := range sums {
		sums[j].closeMean(m.Components[j])
	}
	for at, p := range shares { // the variances need the means
		sums[at%count].addVariance(p.log, p.mean, p.variance)
	}
	for j := range sums {
		sums[j].closeVariance(m.Components[j])
	}
	if n == 0 {
		return m
	}
	next := m.like()
	for j, s := range sums {
		next.Components[j] = Component{Weight: max(s.weight/n, leastWeight), Mean: s.mean, Var: s.variance}
	}
	if total := next.Density(); total > 1 {
		for j := range next.Components {
			next.Components[j].Weight /= total
		}
	}
	return next
}

const (
	leastWeight   = 1e-6
	leastVariance = 1e-12 // relative to the component's mean square
)

// componentSums gather a component's statistics, the mean first, and then the variance
// around it.
type componentSums struct{ weight, first, spread, mean, variance float64 }

func (s *componentSums) addMean(weight, mean float64) {
	s.weight += weight
	s.first += weight * mean
}

func (s *componentSums) closeMean(before Component) {
	s.mean = before.Mean
	if s.weight > 0 {
		s.mean = s.first / s.weight
	}
}

func (s *componentSums) addVariance(weight, mean, variance float64) {
	d := mean - s.mean
	s.spread += weight * (variance + d*d)
}

func (s *componentSums) closeVariance(before Component) {
	s.variance = before.Var
	if s.weight > 0 {
		s.variance = max(s.spread/s.weight, leastVariance*(before.Var+s.mean*s.mean))
	}
}
