package prior

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Persistent is a [GaussBernoulli] prior of the samples of a stream whose entries stay from sample to sample: the support of each entry is a Markov chain, and a sample begins with that of the one before
// (J. Ziniel and P. Schniter, "Dynamic compressive sensing of time-varying signals via approximate message passing", IEEE Trans. Signal Process. 61, 2013). With the probability π that it was there,
//
//	ρᵢ = πᵢ τ + (1-πᵢ)(1-τ)ρ/(1-ρ),
//
// where τ is the probability that an entry stays, and ρ the density that all samples have. Signals that have nothing in common have τ = ρ, with which all ρᵢ are ρ; from there τ is learned. Amplitudes are not followed: what W does not
// see of one sample it does not see of the next, so that errors of amplitudes are the same in both, and a mean and a variance of each entry counted them as new ones. Make it with [Persisting].
type Persistent struct {
	Entry   GaussBernoulli // of an entry drawn at random, with what is learned of it
	Stay    float64        // τ
	Support []float64      // N, πᵢ of the sample before
}

// Persisting is the prior before the first sample of n entries.
func Persisting(n int, entry GaussBernoulli) Persistent {
	return Persistent{Entry: entry, Stay: entry.Density, Support: slices.Repeat([]float64{entry.Density}, n)}
}

// density is ρᵢ.
func (p Persistent) density(i int) float64 {
	rho, before := p.Entry.Density, p.Support[i]
	if rho == 1 {
		return 1
	}
	return min(max(before*p.Stay+(1-before)*min(1, (1-p.Stay)*rho/(1-rho)), leastDensity), 1-leastDensity)
}

func (p Persistent) at(i int) GaussBernoulli {
	g := p.Entry.GaussBernoulliPrior()
	g.Density = p.density(i)
	return g
}

// Entries implements [Varied].
func (p Persistent) Entries() int { return len(p.Support) }

// At implements [Varied].
func (p Persistent) At(i int) Prior { return p.at(i) }

// Validate reports a parameter that describes no distribution.
func (p Persistent) Validate() error {
	for _, v := range append([]float64{p.Stay}, p.Support...) {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("an entry stays, and was there, with probabilities from 0 to 1, found %g", v)
		}
	}
	return p.Entry.Validate()
}

// Mean implements [Prior].
func (p Persistent) Mean() float64 { return p.Entry.Mean() }

// Variance implements [Prior].
func (p Persistent) Variance() float64 { return p.Entry.Variance() }

// NonZero implements [Sparse].
func (p Persistent) NonZero() float64 { return p.Entry.NonZero() }

// Square is E x² of an entry drawn at random.
func (p Persistent) Square() float64 { return p.Entry.square() }

// Name implements [Named].
func (p Persistent) Name() string {
	return fmt.Sprintf("%s persistent=%d", p.Entry.Name(), len(p.Support))
}

// Values implements [Parametric]: those of the entry, τ and π.
func (p Persistent) Values() []float64 {
	return slices.Concat(p.Entry.Values(), []float64{p.Stay}, p.Support)
}

// WithValues implements [Parametric].
func (p Persistent) WithValues(v []float64) (Prior, error) {
	own := len(p.Entry.Values())
	if len(v) != own+1+len(p.Support) {
		return p, fmt.Errorf("%d values for a persistent prior of %d entries, %d more than these", len(v), len(p.Support), own+1)
	}
	entry, err := p.Entry.WithValues(v[:own])
	if err != nil {
		return p, err
	}
	p.Entry, p.Stay, p.Support = entry.(GaussBernoulli), v[own], slices.Clone(v[own+1:])
	return p, p.Validate()
}

// Scaled implements [Scalable].
func (p Persistent) Scaled(c float64) Prior {
	p.Entry = p.Entry.Times(c)
	return p
}

// Posterior implements [Prior].
func (p Persistent) Posterior(mean, variance, lambda, sigma []float64) {
	for j := range lambda {
		p.at(j%len(p.Support)).Posterior(mean[j:j+1], variance[j:j+1], lambda[j:j+1], sigma[j:j+1])
	}
}

// LogNorm implements [Prior], of an entry drawn at random.
func (p Persistent) LogNorm(lambda, sigma float64) float64 { return p.Entry.LogNorm(lambda, sigma) }

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
	return p.Entry.CDF(x, lambda, sigma)
}

// Sample implements [Sampler], of an entry drawn at random.
func (p Persistent) Sample(rng *rand.Rand) float64 { return p.Entry.Sample(rng) }

// LearnsScale implements [Learner].
func (p Persistent) LearnsScale() bool { return p.Entry.LearnsScale() }

// Balanced implements [Learner].
func (p Persistent) Balanced(square float64) Learner {
	p.Entry = p.Entry.Balanced(square).(GaussBernoulli)
	return p
}

// Refit implements [Learner]: the entry's parameters are moved, and τ and π by [Persistent.Next], once a sample is known.
func (p Persistent) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	fit := []sample{p.sample(lambda, sigma)}
	for range refitSteps {
		maximise(p.Entry.Learn, groupBallast, fit)
	}
	to := p
	to.Entry = p.Entry.towards(fit[0].g, step)
	return to, to.Entry.distance(p.Entry, float64(len(lambda)))
}

// sample is what fields say of each entry.
func (p Persistent) sample(lambda, sigma []float64) sample {
	s := newSample(p.Entry, lambda, sigma)
	s.odds = make([]float64, len(lambda))
	for j := range s.odds {
		d := p.density(j % len(p.Support))
		s.odds[j] = (1 - d) / d
	}
	return s
}

// Next is the prior of the sample after the one with these fields. It moves τ by the fraction step of the way to
//
//	τ = Σ ξᵢ / Σ πᵢ,   ξᵢ = πᵢ τ/ρᵢ · π'ᵢ,
//
// with the probability ξ that an entry was and is there, and π' that it is.
func (p Persistent) Next(lambda, sigma []float64, step float64) Persistent {
	s := p.sample(lambda, sigma)
	s.expect()
	both, before, now := 0.0, 0.0, make([]float64, len(p.Support))
	for i, d := range p.Support {
		rho := p.density(i)
		if now[i] = s.on[i]; math.IsInf(sigma[i], 1) {
			now[i] = rho
		}
		before += d
		both += now[i] * min(1, d*p.Stay/rho)
	}
	p.Support = now
	if before > 0 {
		p.Stay += step * (min(both/before, 1) - p.Stay)
	}
	return p
}
