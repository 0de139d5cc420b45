package prior

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Persistent is a [GaussBernoulli] prior, or one of [Groups], of the samples of a stream whose entries stay from sample to sample: the support of each entry is a Markov chain, and a sample begins with that of the one before
// (J. Ziniel and P. Schniter, "Dynamic compressive sensing of time-varying signals via approximate message passing", IEEE Trans. Signal Process. 61, 2013). With the probability π that it was there,
//
//	ρᵢ = πᵢ τ + (1-πᵢ)(1-τ)ρ/(1-ρ),
//
// where τ is the probability that an entry of its group stays, and ρ the density that the group has in all samples. Signals that have nothing in common have τ = ρ, with which all ρᵢ are ρ; from there τ is learned. Amplitudes are not followed: what W does not
// see of one sample it does not see of the next, so that errors of amplitudes are the same in both, and a mean and a variance of each entry counted them as new ones. Make it with [Persisting].
type Persistent struct {
	Kinds   Groups    // of entries drawn at random, with what is learned of them
	Stay    []float64 // τ, by group
	Support []float64 // N, πᵢ of the sample before
}

// Persisting is the prior before the first sample of n entries, of which p is drawn at random: a [GaussBernoulli], of real entries or complex
// ones, or [Groups] of such. It is p itself where that is of another family.
func Persisting(n int, p Prior) Prior {
	switch p := p.(type) {
	case GaussBernoulli:
		groups, err := ByGroup(make([]int, n), []GaussBernoulli{p.GaussBernoulliPrior()})
		if err != nil {
			panic("calamp: " + err.Error()) // n is 0
		}
		groups.Learn = p.Learn
		return persistingGroups(groups)
	case Groups:
		return persistingGroups(p)
	case ComplexGaussBernoulli:
		return persistingComplex(n, p)
	}
	return p
}

// persistingGroups is the prior before the first sample of entries of these groups.
func persistingGroups(groups Groups) Persistent {
	p := Persistent{Kinds: groups, Support: make([]float64, groups.Entries())}
	for _, kind := range groups.kinds {
		p.Stay = append(p.Stay, kind.Density)
	}
	for i, kind := range groups.Of() {
		p.Support[i] = groups.kinds[kind].Density
	}
	return p
}

// Drawn is the prior of an entry whatever the samples before it are, and Begun the one before the sample after those of which that was learned.
func (p Persistent) Drawn() Prior {
	if len(p.Stay) > 1 {
		return p.Kinds
	}
	kind := p.Kinds.kinds[0]
	kind.Learn = p.Kinds.Learn
	return kind
}

// Begun is said at [Persistent.Drawn].
func (p Persistent) Begun(drawn Prior) Prior {
	switch drawn := drawn.(type) {
	case GaussBernoulli:
		return persistingGroups(p.Kinds.with([]GaussBernoulli{drawn.GaussBernoulliPrior()}))
	case Groups:
		return persistingGroups(p.Kinds.with(drawn.kinds))
	}
	return p
}

// staying is ρᵢ, of an entry that was there with the probability before.
func staying(before, stay, rho float64) float64 {
	if rho == 1 {
		return 1
	}
	return min(max(before*stay+(1-before)*min(1, (1-stay)*rho/(1-rho)), leastDensity), 1-leastDensity)
}

func (p Persistent) density(i int) float64 {
	kind := p.Kinds.Of()[i]
	return staying(p.Support[i], p.Stay[kind], p.Kinds.kinds[kind].Density)
}

func (p Persistent) at(i int) GaussBernoulli {
	g := p.Kinds.kinds[p.Kinds.Of()[i]]
	g.Density = p.density(i)
	return g
}

// Entries implements [Varied].
func (p Persistent) Entries() int { return len(p.Support) }

// At implements [Varied].
func (p Persistent) At(i int) Prior { return p.at(i) }

// Validate reports a parameter that describes no distribution.
func (p Persistent) Validate() error {
	if err := probabilities(p.Stay, p.Support); err != nil {
		return err
	}
	return p.Kinds.Validate()
}

func probabilities(lists ...[]float64) error {
	for _, v := range slices.Concat(lists...) {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("an entry stays, and was there, with probabilities from 0 to 1, found %g", v)
		}
	}
	return nil
}

// Mean implements [Prior].
func (p Persistent) Mean() float64 { return p.Kinds.Mean() }

// Variance implements [Prior].
func (p Persistent) Variance() float64 { return p.Kinds.Variance() }

// NonZero implements [Sparse].
func (p Persistent) NonZero() float64 { return p.Kinds.NonZero() }

// Square is E x² of an entry drawn at random.
func (p Persistent) Square() float64 { return p.Kinds.Square() }

// Name implements [Named].
func (p Persistent) Name() string {
	return fmt.Sprintf("%s persistent=%d", p.Drawn().(Named).Name(), len(p.Support))
}

// Values implements [Parametric]: those of the groups, τ of each, and π.
func (p Persistent) Values() []float64 {
	return slices.Concat(p.Kinds.Values(), p.Stay, p.Support)
}

// WithValues implements [Parametric].
func (p Persistent) WithValues(v []float64) (Prior, error) {
	own, groups := len(p.Kinds.Values()), len(p.Stay)
	if len(v) != own+groups+len(p.Support) {
		return p, fmt.Errorf("%d values for a persistent prior of %d entries, %d more than these", len(v), len(p.Support), own+groups)
	}
	kinds, err := p.Kinds.WithValues(v[:own])
	if err != nil {
		return p, err
	}
	p.Kinds, p.Stay, p.Support = kinds.(Groups), slices.Clone(v[own:own+groups]), slices.Clone(v[own+groups:])
	return p, p.Validate()
}

// Stays is the probability that an entry that is there stays, on average.
func (p Persistent) Stays() float64 {
	stay, there := 0.0, 0.0
	for j, kind := range p.Kinds.kinds {
		part := p.Kinds.Fraction(j) * kind.Density
		stay, there = stay+part*p.Stay[j], there+part
	}
	return stay / there
}

// Scaled implements [Scalable].
func (p Persistent) Scaled(c float64) Prior {
	p.Kinds = p.Kinds.Times(c)
	return p
}

// Posterior implements [Prior].
func (p Persistent) Posterior(mean, variance, lambda, sigma []float64) {
	for j := range lambda {
		p.at(j%len(p.Support)).Posterior(mean[j:j+1], variance[j:j+1], lambda[j:j+1], sigma[j:j+1])
	}
}

// LogNorm implements [Prior], of an entry drawn at random.
func (p Persistent) LogNorm(lambda, sigma float64) float64 { return p.Kinds.LogNorm(lambda, sigma) }

// SumLogNorm implements [Summer], over whole signals.
func (p Persistent) SumLogNorm(lambda, sigma []float64) (total float64) {
	for j, l := range lambda {
		if !math.IsInf(sigma[j], 1) {
			total += p.at(j%len(p.Support)).LogNorm(l, sigma[j])
		}
	}
	return total
}

// CDF implements [Distribution], of an entry drawn at random; [At] gives that of an entry.
func (p Persistent) CDF(x, lambda, sigma float64) (below, upTo float64) {
	return p.Kinds.CDF(x, lambda, sigma)
}

// Sample implements [Sampler], of an entry drawn at random.
func (p Persistent) Sample(rng *rand.Rand) float64 { return p.Kinds.Sample(rng) }

// LearnsScale implements [Learner].
func (p Persistent) LearnsScale() bool { return p.Kinds.LearnsScale() }

// Balanced implements [Learner].
func (p Persistent) Balanced(square float64) Learner {
	p.Kinds = p.Kinds.Balanced(square).(Groups)
	return p
}

// Refit implements [Learner]: the groups' parameters are moved, and τ and π by [Persistent.Next], once a sample is known.
func (p Persistent) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	p.Kinds, change = p.Kinds.refit(lambda, sigma, step, p.density)
	return p, change
}

// Next is the prior of the sample after the one with these fields. It moves τ of each group by the fraction step of the way to
//
//	τ = Σ ξᵢ / Σ πᵢ,   ξᵢ = πᵢ τ/ρᵢ · π'ᵢ,
//
// with the probability ξ that an entry was and is there, and π' that it is. With a weight below 1, of a sample that says in part what those before it have said, π' is what
// is left of its evidence raised to that power.
func (p Persistent) Next(lambda, sigma []float64, step, weight float64) Prior {
	now, stay := slices.Clone(p.Support), slices.Clone(p.Stay)
	for _, family := range p.Kinds.Families() {
		var moved stayed
		for _, s := range p.Kinds.samples(family, lambda, sigma, p.density) {
			s.expect()
			for a, i := range s.entries {
				now[i] = moved.add(p.Support[i], p.Stay[family[0]], p.density(i), s.on[a], sigma[i], weight)
			}
		}
		for _, kind := range family {
			stay[kind] = moved.towards(stay[kind], step)
		}
	}
	p.Support, p.Stay = now, stay
	return p
}

// Passed is the prior of the sample after one of which nothing is known.
func (p Persistent) Passed() Prior {
	p.Support = passed(len(p.Support), p.density)
	return p
}

// Anew is the prior of the first sample of another scene: entries are there as often as in all samples, and stay as long.
func (p Persistent) Anew() Prior {
	p.Support = passed(len(p.Support), func(i int) float64 { return p.Kinds.kinds[p.Kinds.Of()[i]].Density })
	return p
}

// After is the prior of the sample after one with this support, the probability that each of N entries is there.
func (p Persistent) After(support []float64) Prior {
	p.Support = slices.Clone(support)
	return p
}

func passed(n int, density func(i int) float64) []float64 {
	support := make([]float64, n)
	for i := range support {
		support[i] = density(i)
	}
	return support
}

// stayed are sums over entries that were there, and of these over those that are.
type stayed struct{ before, both float64 }

// add takes an entry that is there with the probability on, and returns what that is where nothing was measured, too, and evidence counts as weight.
func (s *stayed) add(before, stay, rho, on, sigma, weight float64) (now float64) {
	if now = counted(rho, on, weight); math.IsInf(sigma, 1) {
		now = rho
	}
	s.before += before
	s.both += now * min(1, before*stay/rho)
	return now
}

// towards is τ moved by the fraction step of the way.
func (s *stayed) towards(stay, step float64) float64 {
	if s.before > 0 {
		stay += step * (min(s.both/s.before, 1) - stay)
	}
	return stay
}

// counted is π to which evidence has brought a probability ρ, where that is raised to the power of weight: π/(1-π) = ρ/(1-ρ) eˡ becomes ρ/(1-ρ) e^(weight l).
func counted(rho, pi, weight float64) float64 {
	if weight == 1 || rho == 1 {
		return pi
	}
	there, zero := rho*math.Pow(pi/rho, weight), (1-rho)*math.Pow((1-pi)/(1-rho), weight)
	return there / (there + zero)
}
