package prior

import (
	"fmt"
	"slices"
)

// ComplexPersistent is [Persistent] of complex entries. Make it with [Persisting].
type ComplexPersistent struct {
	Entry   ComplexGaussBernoulli // of an entry drawn at random, with what is learned of it
	Stay    float64               // τ
	Support []float64             // N, πᵢ of the sample before
}

// persistingComplex is the prior before the first sample of n entries.
func persistingComplex(n int, entry ComplexGaussBernoulli) ComplexPersistent {
	return ComplexPersistent{Entry: entry, Stay: entry.Density, Support: slices.Repeat([]float64{entry.Density}, n)}
}

// Drawn is that of [Persistent].
func (p ComplexPersistent) Drawn() Prior { return p.Entry }

// Begun is that of [Persistent].
func (p ComplexPersistent) Begun(drawn Prior) Prior {
	if g, is := drawn.(ComplexGaussBernoulli); is {
		return persistingComplex(len(p.Support), g.Learning(p.Entry.Learn).(ComplexGaussBernoulli))
	}
	return p
}

// density is ρᵢ, of one signal after the other.
func (p ComplexPersistent) density(i int) float64 {
	return staying(p.Support[i%len(p.Support)], p.Stay, p.Entry.Density)
}

// Entries implements [Varied].
func (p ComplexPersistent) Entries() int { return len(p.Support) }

// At implements [Varied].
func (p ComplexPersistent) At(i int) Prior {
	g := p.Entry.ComplexPrior()
	g.Density = p.density(i)
	return g
}

// Validate reports a parameter that describes no distribution.
func (p ComplexPersistent) Validate() error {
	if err := probabilities([]float64{p.Stay}, p.Support); err != nil {
		return err
	}
	return p.Entry.Validate()
}

// ComplexPrior is that of an entry drawn at random.
func (p ComplexPersistent) ComplexPrior() ComplexGaussBernoulli { return p.Entry.ComplexPrior() }

// Mean is 0.
func (p ComplexPersistent) Mean() float64 { return 0 }

// Variance implements [Prior].
func (p ComplexPersistent) Variance() float64 { return p.Entry.Variance() }

// NonZero implements [Sparse].
func (p ComplexPersistent) NonZero() float64 { return p.Entry.NonZero() }

// Name implements [Named].
func (p ComplexPersistent) Name() string {
	return fmt.Sprintf("%s persistent=%d", p.Entry.Name(), len(p.Support))
}

// Stays is τ.
func (p ComplexPersistent) Stays() float64 { return p.Stay }

// Values implements [Parametric]: those of the entry, τ and π.
func (p ComplexPersistent) Values() []float64 {
	return slices.Concat(p.Entry.Values(), []float64{p.Stay}, p.Support)
}

// WithValues implements [Parametric].
func (p ComplexPersistent) WithValues(v []float64) (Prior, error) {
	own := len(p.Entry.Values())
	if len(v) != own+1+len(p.Support) {
		return p, fmt.Errorf("%d values for a persistent prior of %d entries, %d more than these", len(v), len(p.Support), own+1)
	}
	entry, err := p.Entry.WithValues(v[:own])
	if err != nil {
		return p, err
	}
	p.Entry, p.Stay, p.Support = entry.(ComplexGaussBernoulli), v[own], slices.Clone(v[own+1:])
	return p, p.Validate()
}

// Scaled implements [Scalable].
func (p ComplexPersistent) Scaled(c float64) Prior {
	p.Entry = p.Entry.Scaled(c).(ComplexGaussBernoulli)
	return p
}

// Posterior implements [Complex].
func (p ComplexPersistent) Posterior(mean, variance, lambda, sigma []float64) {
	p.Entry.posterior(mean, variance, lambda, sigma, p.density)
}

// LogNorm implements [Prior]: of a part alone, of an entry drawn at random.
func (p ComplexPersistent) LogNorm(lambda, sigma float64) float64 {
	return p.Entry.LogNorm(lambda, sigma)
}

// LogNormComplex implements [Complex], of an entry drawn at random; [At] gives that of an entry.
func (p ComplexPersistent) LogNormComplex(lambda complex128, sigma float64) float64 {
	return p.Entry.LogNormComplex(lambda, sigma)
}

// LearnsScale implements [Learner].
func (p ComplexPersistent) LearnsScale() bool { return p.Entry.LearnsScale() }

// Balanced implements [Learner].
func (p ComplexPersistent) Balanced(square float64) Learner {
	p.Entry = p.Entry.Balanced(square).(ComplexGaussBernoulli)
	return p
}

// Refit implements [Learner], as that of [Persistent].
func (p ComplexPersistent) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	p.Entry, change = p.Entry.refit(lambda, sigma, step, p.density)
	return p, change
}

// Next is that of [Persistent].
func (p ComplexPersistent) Next(lambda, sigma []float64, step, weight float64) Prior {
	now, n := slices.Clone(p.Support), len(p.Support)
	var moved stayed
	var s slabs
	for from := 0; from < n; from += complexBlock {
		for a := range p.Entry.slabs(&s, lambda, sigma, from, p.density) {
			i := from + a
			on, _ := s.support(a)
			now[i] = moved.add(p.Support[i], p.Stay, p.density(i), on, sigma[i], weight)
		}
	}
	p.Support, p.Stay = now, moved.towards(p.Stay, step)
	return p
}

// Passed is that of [Persistent].
func (p ComplexPersistent) Passed() Prior {
	p.Support = passed(len(p.Support), p.density)
	return p
}

// Anew is that of [Persistent].
func (p ComplexPersistent) Anew() Prior {
	p.Support = slices.Repeat([]float64{p.Entry.Density}, len(p.Support))
	return p
}

// After is that of [Persistent].
func (p ComplexPersistent) After(support []float64) Prior {
	p.Support = slices.Clone(support)
	return p
}
