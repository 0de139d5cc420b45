package diagnosis

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

const (
	// unlikeGain is by how much the log-likelihood of the fields must grow with a mixture of
	// three Gaussians in place of one for the signals to be called unlike the prior.
	// Where the prior is right it grows by 3 or so, whatever the number of entries.
	unlikeGain = 15

	// unlikeError is how many times their stated variance the errors must be.
	unlikeError = 1.2

	// orthogonalRows is the largest singular value, relative to that of independent entries, below
	// which rows are nearly orthogonal: noise then reaches the fields in another way.
	orthogonalRows = 0.6

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

// unlike measures how far the entries of the signals are from the Gauss–Bernoulli prior, zero
// or Gaussian, as a prior of more parts sees them: compressible signals have many small
// entries, which the prior takes for zero.
//
// gain is the log-likelihood of the fields N(x; λ, Σ) under a mixture of three Gaussians
// fitted to them, less that under the best prior of one. excess is the mean square error
// that the mixture expects of the estimates, C' + (x̂-x̂')², relative to the posterior
// variances stated: 1 where the prior is right. Fields are as wide as the residuals are,
// if that is wider than the noise makes them.
func (r *Run) unlike() (gain, excess float64) {
	p, ok := r.model().Prior.(interface{ GaussBernoulliPrior() prior.GaussBernoulli })
	if !ok || r.Settings.Covariance == solver.Full || !r.Converged || r.Solver.Iterations == 0 {
		return 0, 1
	}
	e := r.someEntries()
	if len(e.x) == 0 {
		return 0, 1
	}
	one := e.fitOne(p.GaussBernoulliPrior())
	alone := one.SumLogNorm(e.lambda, e.sigma)
	m := inParts(one)
	for step := range unlikeSteps {
		if step == quickSteps && prior.SumLogNorm(m, e.lambda, e.sigma)-alone < 0.5*unlikeGain {
			return 0, 1
		}
		m = m.Update(e.lambda, e.sigma)
	}
	return prior.SumLogNorm(m, e.lambda, e.sigma) - alone, e.excess(m)
}

// entries are estimates of the signals' entries, and the fields that they come from.
type entries struct{ lambda, sigma, x, c []float64 }

// someEntries are all, or as many of them as are enough, drawn at random.
func (r *Run) someEntries() entries {
	s := r.state
	chosen := rand.New(rand.NewPCG(0, 0)).Perm(len(s.X))
	misfit := max(1, s.Misfit()) // less noise than was told makes no error larger
	least := leastField * r.model().Prior.Variance()
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
	var l prior.Learner = prior.LearnedGaussBernoulli{GaussBernoulli: g, Learn: prior.Density | prior.SignalMean | prior.SignalVar}
	for change, step := 1.0, 0; step < steps && !(change < settled); step++ {
		l, change = l.Refit(e.lambda, e.sigma, 1)
	}
	return l.(prior.LearnedGaussBernoulli).GaussBernoulli // whose Refit returns its own kind
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

// Excess is the factor by which the posterior variances of the signals are too small, since the
// signals are not like the prior; 1 where nothing says so.
func (r *Run) Excess() float64 {
	if r.excess == 0 {
		r.excess = 1
		if gain, excess := r.unlike(); gain > unlikeGain && excess > unlikeError && r.illConditioned() == "" && !r.orthogonal() {
			r.excess = excess
		}
	}
	return r.excess
}

// orthogonal says whether the rows of W are, as those of a cosine transform: there the
// fields' variances are not what AMP takes them for, which looks like another prior.
func (r *Run) orthogonal() bool {
	if r.vector() {
		return false
	}
	w := r.spectrum()
	return w.err != nil || w.largest < orthogonalRows*(1+math.Sqrt(float64(r.state.M)/float64(r.state.N)))
}

func (r *Run) warnUnlike() *Warning {
	excess := r.Excess()
	if excess == 1 {
		return nil
	}
	return &Warning{Code: SignalsUnlikePrior, Message: fmt.Sprintf("the signals' entries are not like the prior, zero or Gaussian: their squared errors are about %.2g times the variances that follow from it, and the variances of x were made that much larger; a prior that fits them has smaller errors: --learn-components, --prior laplace, or a basis in which the signals are sparser", excess)}
}
