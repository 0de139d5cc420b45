package amp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// full is the iteration with P×P covariances between the signals (paper,
// Algorithm 1). Symmetric matrices are stored as their P(P+1)/2 upper entries,
// so that the sweep is that of the diagonal engine with more quadratic columns.
type full struct {
	*State
	vectors []prior.Vector // N, the priors of the entries
	sweep   operator.Sweep
	delta   float64

	pairs  int       // P(P+1)/2
	h      []float64 // pairs×N, (W²)ᵀ∂g
	cov    []float64 // pairs×N posterior covariances of the signals
	newX   []float64
	newCov []float64
	vFull  []float64 // M×pairs covariances of z
	dFull  []float64 // M×pairs ∂g, damped
	dotQ   []float64 // M, ωᵀD⁻¹ω
	logIn  []float64 // N, log-normalisers of the prior's part of the evidence
	pulls  []float64 // N, x̂ᵀΣ⁻¹(λ-x̂)
	failed []error   // N, what the prior could not do

	// Made once, so that an iteration allocates nothing.
	rows         operator.RowFunc
	entries      func(chunk int)
	sensorBuffer parallel.Pool[channel.Sensor]
	fields       parallel.Pool[entryField]
}

// entryField is what the posterior of one entry of all signals is computed in.
type entryField struct{ precision, covariance, field, mean []float64 }

// newFull is for a prior that is a [prior.Vector] and a channel that is a
// [channel.Correlated], see [fullPossible].
func newFull(state *State) *full {
	p := state.P
	f := &full{State: state, pairs: p * (p + 1) / 2}
	for i := range f.N {
		f.vectors = append(f.vectors, prior.At(state.model.Prior, i).(prior.Vector))
	}
	f.newX = make([]float64, p*f.N)
	for _, v := range []*[]float64{&f.h, &f.cov, &f.newCov} {
		*v = make([]float64, f.pairs*f.N)
	}
	for _, v := range []*[]float64{&f.vFull, &f.dFull} {
		*v = make([]float64, f.M*f.pairs)
	}
	f.dotQ = make([]float64, f.M)
	f.logIn, f.pulls = make([]float64, f.N), make([]float64, f.N)
	f.failed = make([]error, f.N)
	f.rows, f.entries = f.outputRows, f.inputEntries
	f.sensorBuffer.New = func() *channel.Sensor { return channel.NewSensor(state.model.Channel, p) }
	f.fields.New = func() *entryField {
		return &entryField{
			precision: make([]float64, p*p), covariance: make([]float64, p*p),
			field: make([]float64, p), mean: make([]float64, p),
		}
	}
	f.keep(f.cov, f.vFull, f.dFull, f.dotQ, f.logIn, f.pulls)
	for k := range p {
		copy(f.cov[f.pair(k, k)*f.N:], f.C[k*f.N:(k+1)*f.N])
	}
	return f
}

// fullPossible says why a model of p signals has no covariances, if it has none.
func fullPossible(m Model, n, p int) error {
	for i := range n {
		vector, ok := prior.At(m.Prior, i).(prior.Vector)
		if !ok {
			return fmt.Errorf("full covariances need a prior with a vector posterior, and %T has none", m.Prior)
		}
		if err := vector.Correlates(p); err != nil {
			return err
		}
	}
	return channel.Correlates(m.Channel)
}

// sweepsOver implements [Iteration].
func (f *full) sweepsOver(w operator.Operator) (s operator.Sweeps, err error) {
	s.Exact, err = w.NewSweep(f.P, f.pairs, f.Threads)
	return s, err
}

// prepare implements [Iteration].
func (f *full) prepare(context.Context) error { return nil }

func (f *full) use(s operator.Sweeps) { f.sweep = s.Exact }

// pair is the place of entry (k, l), k ≤ l, among the upper entries.
func (f *full) pair(k, l int) int { return k*f.P - k*(k-1)/2 + l - k }

// unpack writes the symmetric matrix whose upper entries are u, stride apart.
func (f *full) unpack(dst, u []float64, stride int) {
	for k := range f.P {
		for l := k; l < f.P; l++ {
			v := u[f.pair(k, l)*stride]
			dst[k*f.P+l], dst[l*f.P+k] = v, v
		}
	}
}

// Step does one iteration, keeping the fraction delta of the old state.
func (f *full) Step(delta float64) error {
	f.delta = delta
	f.fieldPull = f.nextPull
	if err := f.sweep.Run(f.Onward, f.h, f.X, f.cov, f.rows); err != nil {
		return err
	}
	f.input()
	return nil
}

// outputRows turns z and v into ω, V, g and ∂g for a block of sensors.
func (f *full) outputRows(first int, z, v, g, d []float64) {
	p := f.P
	s := f.sensorBuffer.Get()
	defer f.sensorBuffer.Put(s)
	for row := range len(z) / p {
		if f.interrupted() {
			return
		}
		mu := first + row
		f.unpack(s.V, v[row*f.pairs:], 1)
		old := f.G[mu*p : (mu+1)*p]
		for k := range p {
			s.Omega[k] = z[row*p+k]
			for l := range p {
				s.Omega[k] -= s.V[k*p+l] * old[l]
			}
		}
		copy(s.Y, f.Y[mu*p:(mu+1)*p])
		s.Index = mu
		for k := range p {
			f.V[mu*p+k] = s.V[k*p+k]
		}
		f.seen(mu, p)
		for k := range p {
			s.V[k*p+k] = f.U[mu*p+k]
		}
		f.model.Channel.(channel.Correlated).OutputCorrelated(s)

		copy(f.Of(f.Stats, mu), s.Stats)
		f.S[mu], f.SVar[mu], f.LogZ[mu], f.dotQ[mu] = s.S, s.SVar, s.LogZ, s.Quadratic
		f.Broken[mu] = s.Broken
		copy(f.Omega[mu*p:], s.Omega)
		for k := range p {
			s.V[k*p+k] = f.V[mu*p+k]
			f.G[mu*p+k] = s.G[k] + f.delta*(f.G[mu*p+k]-s.G[k])
			f.DG[mu*p+k] = s.DG[k*p+k]
			for l := k; l < p; l++ {
				at := mu*f.pairs + f.pair(k, l)
				f.vFull[at] = s.V[k*p+l]
				f.dFull[at] = s.DG[k*p+l] + f.delta*(f.dFull[at]-s.DG[k*p+l])
			}
		}
		copy(g[row*p:(row+1)*p], f.G[mu*p:])
		copy(d[row*f.pairs:(row+1)*f.pairs], f.dFull[mu*f.pairs:])
	}
}

// entryChunk is how many entries a goroutine takes at a time.
const entryChunk = 64

func (f *full) inputEntries(chunk int) {
	for i := chunk * entryChunk; i < min((chunk+1)*entryChunk, f.N) && !f.interrupted(); i++ {
		f.failed[i] = f.inputEntry(i)
	}
}

func (f *full) input() {
	parallel.Run((f.N+entryChunk-1)/entryChunk, f.Threads, f.entries)
	f.nextPull = sum(f.pulls)
	bad := slices.ContainsFunc(f.failed, isError)
	for k := range f.P {
		var moved, norm, sumC float64
		for i := range f.N {
			at := k*f.N + i
			step := f.newX[at] - f.X[at]
			moved += step * step
			norm += f.newX[at] * f.newX[at]
			sumC += f.newCov[f.pair(k, k)*f.N+i]
			f.X[at] = f.newX[at]
		}
		f.Moved[k], f.Norm[k], f.SumC[k] = math.Sqrt(moved)/(1-f.delta), math.Sqrt(norm), sumC
		if bad {
			f.Moved[k] = math.NaN() // seen by the caller as a step to take back
		}
	}
	for at, v := range f.newCov {
		f.cov[at] = v + f.delta*(f.cov[at]-v)
	}
	for k := range f.P {
		copy(f.C[k*f.N:(k+1)*f.N], f.cov[f.pair(k, k)*f.N:])
	}
}

// inputEntry computes the posterior of entry i of all signals. In terms of
// A = -Σ_µ W_µi² ∂g_µ the field is Aλ = A x̂ + Σ_µ W_µi g_µ: no inverse is needed.
func (f *full) inputEntry(i int) error {
	p, n := f.P, f.N
	work := f.fields.Get()
	defer f.fields.Put(work)
	a, covariance, field, mean := work.precision, work.covariance, work.field, work.mean
	f.unpack(a, f.h[i:], n)
	for j := range a {
		a[j] = -a[j]
	}
	for k := range p {
		at := k*n + i
		f.Centre[at] = f.X[at] + f.delta*(f.Centre[at]-f.X[at])
	}
	for k := range p {
		field[k] = f.Onward[k*n+i]
		for l := range p {
			field[k] += a[k*p+l] * f.Centre[l*n+i]
		}
	}
	logNorm, err := f.vectors[i].PosteriorVector(mean, covariance, field, a)
	if err != nil {
		return err
	}
	pull, trace := 0.0, 0.0
	for k := range p {
		ax := 0.0
		for l := range p {
			ax += a[k*p+l] * mean[l]
			trace += a[k*p+l] * (covariance[k*p+l] + mean[k]*mean[l])
		}
		pull += mean[k] * (field[k] - ax)
		f.newX[k*n+i] = mean[k]
		f.Sigma[k*n+i] = 1 / a[k*p+k]
		for l := k; l < p; l++ {
			f.newCov[f.pair(k, l)*n+i] = covariance[k*p+l]
		}
		trace -= 2 * mean[k] * field[k]
	}
	f.pulls[i] = pull
	f.logIn[i] = logNorm + 0.5*trace
	return nil
}

func isError(err error) bool { return err != nil }

// quadraticForm is Σ_kl g_k V_kl g_l for sensor mu.
func (f *full) quadraticForm(mu int) float64 {
	g := f.G[mu*f.P : (mu+1)*f.P]
	total := 0.0
	for k := range f.P {
		total += f.vFull[mu*f.pairs+f.pair(k, k)] * g[k] * g[k]
		for l := k + 1; l < f.P; l++ {
			total += 2 * f.vFull[mu*f.pairs+f.pair(k, l)] * g[k] * g[l]
		}
	}
	return total
}

// scaleSums implements [Iteration].
func (f *full) scaleSums(quadratic, volume float64) (q, v float64) {
	for mu := range f.M {
		quadratic += (1 - f.Broken[mu]) * f.dotQ[mu]
		volume += f.quadraticForm(mu)
	}
	return quadratic, volume
}

// LogEvidence implements [Iteration].
func (f *full) LogEvidence() float64 {
	total := sum(f.LogZ) + sum(f.logIn)
	for mu := range f.M {
		total += 0.5 * f.quadraticForm(mu)
	}
	return total
}

// MeanV implements [Iteration].
func (f *full) MeanV() (v, off float64) {
	v = Mean(f.V)
	if f.P == 1 {
		return v, 0
	}
	for mu := range f.M {
		for k := range f.P {
			for l := k + 1; l < f.P; l++ {
				off += math.Abs(f.vFull[mu*f.pairs+f.pair(k, l)])
			}
		}
	}
	return v, off / float64(f.M*f.P*(f.P-1)/2)
}
