package prior

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/internal/vector"
)

// Varied is a prior under which entries of a signal have different distributions. Slices that its methods
// take, of one or several signals one after the other, then hold whole signals, entry i of N in
// the place i; LogNorm, Mean and Variance are those of an entry drawn at random.
type Varied interface {
	Prior
	Entries() int   // N
	At(i int) Prior // of entry i
}

// At is the prior of entry i.
func At(p Prior, i int) Prior {
	if v, ok := p.(Varied); ok {
		return v.At(i)
	}
	return p
}

// ValidateFor is p.Validate for signals of n entries.
func ValidateFor(p Prior, n int) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if v, ok := p.(Varied); ok && v.Entries() != n {
		return fmt.Errorf("it is for %d entries, and signals have %d", v.Entries(), n)
	}
	return nil
}

// Square is E x², of an entry drawn at random.
func Square(p Prior) float64 {
	if g, ok := p.(interface{ Square() float64 }); ok {
		return g.Square()
	}
	return p.Variance() + p.Mean()*p.Mean()
}

// Groups is a [GaussBernoulli] prior with parameters that differ by group of entries, as
// images have in a basis of cosines or wavelets: entry i is of the distribution of group Of(i).
// Make it with [ByGroup].
type Groups struct {
	kinds  []GaussBernoulli // of the groups
	layout *layout

	Learn Parameters // those that are learned of every group, from these values on

	// Shared, if it is not nil, makes groups share what is learned: those with the same
	// number in it. They differ in fixed parameters, such as a variance that is known for
	// each entry.
	Shared []int
}

// with is g with other kinds.
func (g Groups) with(kinds []GaussBernoulli) Groups {
	g.kinds = kinds
	return g
}

// layout is which entries are of which group. Copies of a prior share it.
type layout struct {
	of      []int   // N, the group of every entry
	members [][]int // of every group, its entries in ascending order
	works   parallel.Pool[fields]
}

// fields is room for fields and posterior of the entries of a group, in one signal.
type fields struct{ lambda, sigma, mean, variance []float64 }

// ByGroup returns the prior under which entry i is of the group of[i], counted from 0, and
// entries of group g are distributed as kinds[g].
func ByGroup(of []int, kinds []GaussBernoulli) (Groups, error) {
	l := &layout{of: slices.Clone(of), members: make([][]int, len(kinds))}
	for i, g := range of {
		if g < 0 || g >= len(kinds) {
			return Groups{}, fmt.Errorf("entry %d is of group %d, expected a group from 0 to %d", i, g, len(kinds)-1)
		}
		l.members[g] = append(l.members[g], i)
	}
	most := 0
	for g, members := range l.members {
		if len(members) == 0 {
			return Groups{}, fmt.Errorf("group %d has no entries", g)
		}
		most = max(most, len(members))
	}
	l.works.New = func() *fields {
		return &fields{make([]float64, most), make([]float64, most), make([]float64, most), make([]float64, most)}
	}
	return Groups{kinds: slices.Clone(kinds), layout: l}, nil
}

// Of returns the group of every entry (N). It is the prior's own: do not change it.
func (g Groups) Of() []int { return g.layout.of }

// Kinds returns the distribution of the entries of every group.
func (g Groups) Kinds() []GaussBernoulli { return slices.Clone(g.kinds) }

// Fraction is the part of all entries that are of group j.
func (g Groups) Fraction(j int) float64 {
	return float64(len(g.layout.members[j])) / float64(len(g.layout.of))
}

// GroupsPrior is the prior with nothing of it learned. A prior that has one within has the method, too: it says whether a
// prior is of this family.
func (g Groups) GroupsPrior() Groups {
	g.Learn, g.Shared = 0, nil
	return g
}

// Entries implements [Varied].
func (g Groups) Entries() int { return len(g.layout.of) }

// At implements [Varied].
func (g Groups) At(i int) Prior { return g.kinds[g.layout.of[i]] }

// Validate reports the group of which a parameter describes no distribution.
func (g Groups) Validate() error {
	if g.layout == nil {
		return fmt.Errorf("groups are made by prior.ByGroup")
	}
	for j, kind := range g.kinds {
		if err := kind.Validate(); err != nil {
			return fmt.Errorf("group %d: %w", j, err)
		}
	}
	return nil
}

// over is the mean of a function over all entries.
func (g Groups) over(f func(GaussBernoulli) float64) float64 {
	total := 0.0
	for j, kind := range g.kinds {
		total += g.Fraction(j) * f(kind)
	}
	return total
}

// Mean implements [Prior].
func (g Groups) Mean() float64 { return g.over(GaussBernoulli.Mean) }

// Variance implements [Prior]. It is the mean of the variances within the groups: what is
// not known of an entry is not how its group's mean differs from others'.
func (g Groups) Variance() float64 { return g.over(GaussBernoulli.Variance) }

// NonZero implements [Sparse].
func (g Groups) NonZero() float64 { return g.over(GaussBernoulli.NonZero) }

// Square is the mean of E x² over all entries.
func (g Groups) Square() float64 { return g.over(GaussBernoulli.square) }

// Name implements [Named]. Where learning starts is forgotten soon, and not in it.
func (g Groups) Name() string {
	given, learned := g.Values(), ""
	if g.Learn != 0 {
		learned = fmt.Sprintf(" learned=%d", g.Learn)
	}
	for j := range given {
		if g.Learn&(1<<(j%3)) != 0 {
			given[j] = 0
		}
	}
	for _, s := range g.Shared {
		given = append(given, float64(s))
	}
	return fmt.Sprintf("gauss-bernoulli groups=%d entries=%s%s values=%x", len(g.kinds), g.layout.name(), learned, sumOf(given))
}

// name distinguishes layouts.
func (l *layout) name() string {
	h := sha256.New()
	for _, j := range l.of {
		_ = binary.Write(h, binary.LittleEndian, int64(j)) // a hash takes all
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

func sumOf(values []float64) []byte {
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, values)
	return h.Sum(nil)[:16]
}

// Values implements [Parametric]: density, mean and variance of every group.
func (g Groups) Values() (v []float64) {
	for _, kind := range g.kinds {
		v = append(v, kind.Values()...)
	}
	return v
}

// WithValues implements [Parametric].
func (g Groups) WithValues(v []float64) (Prior, error) {
	if len(v) != 3*len(g.kinds) {
		return g, fmt.Errorf("%d values for the parameters of %d groups, three each", len(v), len(g.kinds))
	}
	to := g.with(make([]GaussBernoulli, len(g.kinds)))
	for j := range to.kinds {
		to.kinds[j] = GaussBernoulli{Density: v[3*j], SignalMean: v[3*j+1], SignalVar: v[3*j+2]}
	}
	return to, to.Validate()
}

// Scaled implements [Scalable].
func (g Groups) Scaled(c float64) Prior { return g.Times(c) }

// Times returns the distribution of c·x.
func (g Groups) Times(c float64) Groups {
	to := g.with(make([]GaussBernoulli, len(g.kinds)))
	for j, kind := range g.kinds {
		to.kinds[j] = kind.Times(c)
	}
	return to
}

// Posterior implements [Prior], group by group, since a group has one set of parameters.
func (g Groups) Posterior(mean, variance, lambda, sigma []float64) {
	n := g.Entries()
	g.checkWhole(lambda)
	for from := 0; from < len(lambda); from += n {
		g.posteriorSignal(mean[from:from+n], variance[from:from+n], lambda[from:from+n], sigma[from:from+n])
	}
}

func (g Groups) posteriorSignal(mean, variance, lambda, sigma []float64) {
	w := g.layout.works.Get()
	defer g.layout.works.Put(w)
	for j, members := range g.layout.members {
		size := len(members)
		for a, i := range members {
			w.lambda[a], w.sigma[a] = lambda[i], sigma[i]
		}
		g.kinds[j].Posterior(w.mean[:size], w.variance[:size], w.lambda[:size], w.sigma[:size])
		for a, i := range members {
			mean[i], variance[i] = w.mean[a], w.variance[a]
		}
	}
}

func (g Groups) checkWhole(lambda []float64) {
	if len(lambda)%g.Entries() != 0 {
		panic(fmt.Sprintf("calamp: a prior of %d entries was given %d", g.Entries(), len(lambda)))
	}
}

// LogNorm implements [Prior], of an entry drawn at random.
func (g Groups) LogNorm(lambda, sigma float64) float64 {
	total := math.Inf(-1)
	for j, kind := range g.kinds {
		total = logAddExp(total, math.Log(g.Fraction(j))+kind.LogNorm(lambda, sigma))
	}
	return total
}

// SumLogNorm implements [Summer], over whole signals.
func (g Groups) SumLogNorm(lambda, sigma []float64) float64 {
	g.checkWhole(lambda)
	total := 0.0
	for j := range g.kinds {
		f := g.gather(j, lambda, sigma)
		total += g.kinds[j].SumLogNorm(f.lambda, f.sigma)
	}
	return total
}

// gather returns the fields of the entries of group j in all signals.
func (g Groups) gather(j int, lambda, sigma []float64) (f fields) {
	n, members := g.Entries(), g.layout.members[j]
	size := len(lambda) / n * len(members)
	f.lambda, f.sigma = make([]float64, 0, size), make([]float64, 0, size)
	for from := 0; from < len(lambda); from += n {
		for _, i := range members {
			f.lambda, f.sigma = append(f.lambda, lambda[from+i]), append(f.sigma, sigma[from+i])
		}
	}
	return f
}

// CDF implements [Distribution], of an entry drawn at random; [At] gives that of an entry.
func (g Groups) CDF(x, lambda, sigma float64) (below, upTo float64) {
	norm := g.LogNorm(lambda, sigma)
	for j, kind := range g.kinds {
		weight := g.Fraction(j) * math.Exp(kind.LogNorm(lambda, sigma)-norm)
		b, u := kind.CDF(x, lambda, sigma)
		below, upTo = below+weight*b, upTo+weight*u
	}
	return below, upTo
}

// Sample implements [Sampler], of an entry drawn at random; [At] gives that of an entry.
func (g Groups) Sample(rng *rand.Rand) float64 {
	return g.At(rng.IntN(g.Entries())).(Sampler).Sample(rng)
}

// Learning is the prior of which these parameters are learned of every group.
func (g Groups) Learning(which Parameters) Groups {
	g.Learn = which
	return g
}

// Learns says whether anything is learned.
func (g Groups) Learns() bool { return g.Learn != 0 }

// LearnsScale implements [Learner].
func (g Groups) LearnsScale() bool { return g.Learn&SignalVar != 0 }

// Balanced implements [Learner]: every group is mended by the factor that all together need.
func (g Groups) Balanced(square float64) Learner {
	ratio := square / g.Square()
	to := g.with(make([]GaussBernoulli, len(g.kinds)))
	for j, kind := range g.kinds {
		kind.Learn = g.Learn
		to.kinds[j] = kind.Balanced(ratio * kind.square()).(GaussBernoulli).GaussBernoulliPrior() // whose Balanced returns its own kind
	}
	return to
}

// Average is the mean of parameters such as [Groups.Values] returns, over all entries; NaN where
// one is not known.
func (g Groups) Average(values []float64) (mean GaussBernoulli) {
	for j := range g.kinds {
		part := g.Fraction(j)
		mean.Density += part * values[3*j]
		mean.SignalMean += part * values[3*j+1]
		mean.SignalVar += part * values[3*j+2]
	}
	return mean
}

// Families lists the groups that share what is learned.
func (g Groups) Families() (list [][]int) {
	if g.Shared == nil {
		for j := range g.kinds {
			list = append(list, []int{j})
		}
		return list
	}
	place := map[int]int{}
	for j, s := range g.Shared {
		at, ok := place[s]
		if !ok {
			at = len(list)
			place[s], list = at, append(list, nil)
		}
		list[at] = append(list[at], j)
	}
	return list
}

// groupBallast is how many entries the present parameters of a group count for. A fixed point
// stays where it is, but one entry in one sample of a stream does not make a
// distribution without a width.
const groupBallast = 1

// Refit implements [Learner] by expectation–maximisation in every group.
func (g Groups) Refit(lambda, sigma []float64, step float64) (next Learner, change float64) {
	return g.refit(lambda, sigma, step, nil)
}

// refit is that of entries with densities of their own.
func (g Groups) refit(lambda, sigma []float64, step float64, density func(i int) float64) (to Groups, change float64) {
	g.checkWhole(lambda)
	to = g.with(slices.Clone(g.kinds))
	for _, family := range g.Families() {
		samples := g.samples(family, lambda, sigma, density)
		for range refitSteps {
			maximise(g.Learn, groupBallast, samples)
		}
		for a, j := range family {
			to.kinds[j] = g.kinds[j].towards(samples[a].g, step)
		}
		change = max(change, movedBy(samples, g.kinds, to.kinds, family))
	}
	return to, change
}

// samples are the fields of the groups of a family. Entries have the density of their group, or one of their own.
func (g Groups) samples(family []int, lambda, sigma []float64, density func(i int) float64) (samples []sample) {
	for _, j := range family {
		f := g.gather(j, lambda, sigma)
		s := newSample(g.kinds[j], f.lambda, f.sigma)
		s.entries = g.layout.members[j]
		for at := 0; density != nil && at < len(f.lambda); at++ {
			d := density(s.entries[at%len(s.entries)])
			s.odds = append(s.odds, (1-d)/d)
		}
		samples = append(samples, s)
	}
	return samples
}

// movedBy is how far a family moved, in standard errors of what its fields can say of the
// parameters. Where a group's variance is below that of the fields it is known to that
// only, and its logarithm goes on for ever.
func movedBy(samples []sample, from, to []GaussBernoulli, family []int) float64 {
	var n, on, ofMean, ofVariance float64
	for a, j := range family {
		v := to[j].SignalVar
		for i, sigma := range samples[a].sigma {
			if math.IsInf(sigma, 1) {
				continue
			}
			n++
			p := samples[a].on[i]
			on += p
			ofMean += p / (v + sigma)
			ofVariance += 0.5 * p * (v / (v + sigma)) * (v / (v + sigma))
		}
	}
	if n == 0 {
		return 0
	}
	before, now := from[family[0]], to[family[0]]
	density := math.Abs(now.Density-before.Density) / math.Sqrt(now.Density*(1-now.Density)/n+1/(n*n))
	mean := math.Abs(now.SignalMean-before.SignalMean) * math.Sqrt(ofMean)
	variance := math.Abs(math.Log(now.SignalVar/before.SignalVar)) * math.Sqrt(ofVariance)
	return max(density, mean, variance)
}

// sample is the fields of entries that are of one distribution.
type sample struct {
	g             GaussBernoulli
	lambda, sigma []float64
	on, mean      []float64 // the probability of not being zero, and the mean if it is not
	variance      []float64 // if it is not
	factor        []float64 // of the odds of being zero
	odds          []float64 // of being zero, before the fields; nil where all have those of g
	entries       []int     // whose they are, of each signal; nil where nothing asks for it
}

func newSample(g GaussBernoulli, lambda, sigma []float64) sample {
	some := func() []float64 { return make([]float64, vector.Padded(len(lambda)))[:len(lambda)] }
	return sample{g: g, lambda: lambda, sigma: sigma, on: some(), mean: some(), variance: some(), factor: some()}
}

// certain is the exponent of odds beyond which it makes no difference.
const certain = 300

// expect computes on and mean, and returns Σπ, Σπm, Σπu and the number of known entries.
func (s *sample) expect() (n, total, first, spread float64) {
	g := s.g
	odds := (1 - g.Density) / g.Density
	for i, l := range s.lambda {
		m, u, quadratic, ratio := vector.SlabTerms(l, s.sigma[i], g.SignalMean, g.SignalVar)
		s.mean[i], s.variance[i], s.on[i] = m, u, min(-0.5*quadratic, certain)
		if s.odds != nil {
			odds = s.odds[i]
		}
		s.factor[i] = odds * math.Sqrt(1+ratio)
	}
	padded := s.on[:vector.Padded(len(s.on))]
	clear(padded[len(s.on):])
	vector.Exp(padded)
	for i, e := range s.on {
		s.on[i] = 0
		if math.IsInf(s.sigma[i], 1) {
			continue
		}
		on := 1 / (1 + s.factor[i]*e)
		s.on[i] = on
		n++
		total += on
		first += on * s.mean[i]
		spread += on * s.variance[i]
	}
	return n, total, first, spread
}

// leastGiven is the least variance of entries that are not zero, in standard errors of its estimate, to which it shrinks where it is hidden in the fields: from there on
// they cannot tell it from zero. At a tenth of it, the variances of fields followed so steeply that it went up and down for ever (text behind 747 masks).
const leastGiven = 1

// creeps is the change of log v in a step of expectation–maximisation below which it creeps, at half way to an end that it reaches in a hundred steps.
const creeps = 0.1

// scoreReach bounds the factor by which one step of [sample.score] shrinks a variance: estimates follow only some iterations later.
const scoreReach = 2

// score takes a step of Fisher scoring where the entries' variance v is hidden, below that of their fields, as where all that are not zero
// have one value: expectation–maximisation goes only the part v/(v+Σ) of its way there. With weights on/(v+Σ)²,
//
//	v ← ⟨(λ-x̄)² - Σ⟩.
func (s *sample) score(learn Parameters, before float64) {
	v, mean := s.g.SignalVar, s.g.SignalMean
	var excess, information, hidden float64
	for i, on := range s.on {
		if on == 0 {
			continue
		}
		total := v + s.sigma[i]
		d := s.lambda[i] - mean
		excess, information = excess+on*(d*d-s.sigma[i])/total/total, information+on/total/total
		hidden += on * s.sigma[i] / total / total
	}
	if learn&SignalVar == 0 || !(information > 0) || v*information > hidden || math.Abs(math.Log(v/before)) > creeps {
		return
	}
	s.g.SignalVar = max(excess/information, min(before, leastGiven*math.Sqrt(2/information)), v/scoreReach)
}
