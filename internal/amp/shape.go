package amp

import (
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/prior"
)

// shape puts a learned mixture in the place of a learned prior of zero or one Gaussian where signals are not like that: coefficients of real
// scenes are compressible, a few large and many small. It looks at fixed points of a run, and now and then at one that does not, since a prior so
// wrong may be what keeps it from resting.
type shape struct {
	Idle
	at   int // iteration of the latest look
	last Unlike
}

func (b *planner) shape() (on bool, why string, err error) {
	g, ok := b.Model.Prior.(prior.GaussBernoulli)
	const free = prior.Density | prior.SignalVar
	return unless("a mixture where signals are unlike zero or one Gaussian", []reason{
		{!ok || g.Learn&free != free, "not needed: the signals' prior is fixed"},
		{b.stream(), oneByOne},
		{b.Tol < 0, noConvergence},
	})
}

func (b *planner) makeShape(*Solver) (Part, error) { return new(shape), nil }

// Begin implements [Part].
func (p *shape) Begin(*Solver) { p.at = 0 }

// After implements [Part].
func (p *shape) After(s *Solver, l *Line) Verdict {
	if l.Index < testedAt || l.Index%testEvery != 0 || !s.State.known() {
		return GoOn
	}
	return p.look(s)
}

// AtFixedPoint implements [Part].
func (p *shape) AtFixedPoint(s *Solver) Verdict { return p.look(s) }

func (p *shape) look(s *Solver) Verdict {
	if p.at == s.Iterations {
		return GoOn
	}
	p.at, p.last = s.Iterations, s.State.Unlike()
	if !p.last.Clear() {
		return GoOn
	}
	mixture := p.last.Mixture
	mixture.Learn = true
	s.State.Adopt(Model{mixture, s.State.model.Channel})
	s.State.ModelMoved = math.Inf(1)
	s.damping.jumped()
	return Disturbed
}

// Unlike is how far the entries of the signals are from the Gauss–Bernoulli prior, zero
// or Gaussian, as a prior of more parts sees them.
type Unlike struct {
	// Gain is the log-likelihood of the fields N(x; λ, Σ) under Mixture, fitted to them, less that under the best prior of one Gaussian.
	Gain    float64
	Mixture prior.Mixture

	// Excess is the mean square error that the mixture expects of the estimates, C' + (x̂-x̂')², relative to the posterior
	// variances stated: 1 where the prior is right.
	Excess float64
}

const (
	// unlikeGain is by how much the log-likelihood of the fields must grow with a mixture of
	// three Gaussians in place of one for the signals to be called unlike the prior.
	// Where the prior is right it grows by 3 or so, whatever the number of entries.
	unlikeGain = 15

	// unlikeError is how many times their stated variance the errors must be.
	unlikeError = 1.2

	// leastField is the least variance of a field that is compared, relative to the signals':
	// below, the log-densities of a mixture's parts, of size λ²/Σ, have no digits left in
	// which they could differ.
	leastField = 1e-12

	mostEntries    = 4096 // of the signals, that are looked at
	quickSteps     = 10   // of expectation–maximisation, after which a gain shows
	unlikeSteps    = 40
	unlikeParts    = 3
	unlikeVariance = 9 // ratio of the variances of neighbouring parts in the beginning
)

// Clear reports whether the signals are unlike the prior.
func (u Unlike) Clear() bool { return u.Gain > unlikeGain && u.Excess > unlikeError }

// LatestUnlike is what was found of the present estimates.
func (s *Solver) LatestUnlike() Unlike {
	if p, ok := PartOf[*shape](s); ok && p.at == s.Iterations && s.Iterations > 0 {
		return p.last
	}
	if i, is := s.Iteration.(integrating); is { // whose sites are of no prior that was given
		if of := i.integrated(); of.Sizes || of.Correlated { // entries are not exchangeable
			return Unlike{Excess: 1}
		}
		return s.State.unlike(ofOneGaussian(s.State.model.Prior))
	}
	return s.State.Unlike()
}

// ofOneGaussian is the prior of zero or one Gaussian that is nearest to another one; ok is false where that has no such parameters.
func ofOneGaussian(p prior.Prior) (g prior.GaussBernoulli, ok bool) {
	sparse, isSparse := p.(prior.Sparse)
	slabbed, isSlabbed := p.(prior.Slabbed)
	if !isSparse || !isSlabbed || prior.ColumnsOf(p) > 1 {
		return g, false
	}
	mean, variance := slabbed.Slab()
	return prior.GaussBernoulli{Density: sparse.NonZero(), SignalMean: mean, SignalVar: variance}, true
}

// Unlike looks at the present fields, which are taken for as wide as the residuals are, if
// that is wider than the noise makes them.
func (s *State) Unlike() Unlike {
	p, ok := s.model.Prior.(interface{ GaussBernoulliPrior() prior.GaussBernoulli })
	if !ok {
		return Unlike{Excess: 1}
	}
	return s.unlike(p.GaussBernoulliPrior(), true)
}

func (s *State) unlike(g prior.GaussBernoulli, ok bool) Unlike {
	u := Unlike{Excess: 1}
	if !ok {
		return u
	}
	e := s.someEntries()
	if len(e.x) == 0 {
		return u
	}
	one := e.fitOne(g)
	alone := one.SumLogNorm(e.lambda, e.sigma)
	m := inParts(one)
	for step := range unlikeSteps {
		if step == quickSteps && prior.SumLogNorm(m, e.lambda, e.sigma)-alone < 0.5*unlikeGain {
			return u
		}
		m = m.Update(e.lambda, e.sigma)
	}
	return Unlike{Gain: prior.SumLogNorm(m, e.lambda, e.sigma) - alone, Mixture: m, Excess: e.excess(m)}
}

// entries are estimates of the signals' entries, and the fields that they come from.
type entries struct{ lambda, sigma, x, c []float64 }

// someEntries are all, or as many of them as are enough, drawn at random.
func (s *State) someEntries() entries {
	chosen := rand.New(rand.NewPCG(0, 0)).Perm(len(s.X))
	misfit := max(1, s.Misfit()) // less noise than was given makes no error larger
	least := leastField * s.model.Prior.Variance()
	var e entries
	for _, i := range chosen[:min(len(chosen), mostEntries)] {
		if math.IsInf(s.Sigma[i], 1) {
			continue
		}
		e.lambda, e.sigma = append(e.lambda, s.Lambda[i]), append(e.sigma, max(misfit*s.Sigma[i], least))
		e.x, e.c = append(e.x, s.X[i]), append(e.c, s.C[i])
	}
	return e
}

// fitOne is the likeliest prior of one Gaussian.
func (e entries) fitOne(g prior.GaussBernoulli) prior.GaussBernoulli {
	const steps, settled = 10, 0.01 // in standard errors: the likelihood then stays as it is
	g.Learn = prior.Density | prior.SignalMean | prior.SignalVar
	var l prior.Learner = g
	for change, step := 1.0, 0; step < steps && !(change < settled); step++ {
		l, change = l.Refit(e.lambda, e.sigma, 1)
	}
	return l.(prior.GaussBernoulli).GaussBernoulliPrior() // whose Refit returns its own kind
}

// inParts is where the fit of a mixture starts: the Gaussian of g in parts that are
// narrower and wider.
func inParts(g prior.GaussBernoulli) prior.Mixture {
	var m prior.Mixture
	for j := range unlikeParts {
		m.Components = append(m.Components, prior.Component{
			Weight: 0.98 * g.Density / unlikeParts, Mean: g.SignalMean,
			Var: g.SignalVar * math.Pow(unlikeVariance, float64(j)-0.5*(unlikeParts-1)),
		})
	}
	return m
}

// excess is the mean square error that m expects, relative to what is stated.
func (e entries) excess(m prior.Mixture) float64 {
	mean, variance := make([]float64, len(e.x)), make([]float64, len(e.x))
	m.Posterior(mean, variance, e.lambda, e.sigma)
	expected, stated := 0.0, 0.0
	for i, x := range e.x {
		d := x - mean[i]
		expected += variance[i] + d*d
		stated += e.c[i]
	}
	return expected / stated
}
