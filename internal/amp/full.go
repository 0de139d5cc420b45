package amp

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/prior"
)

// Full is the iteration with P×P covariances between the signals (paper,
// Algorithm 1). Symmetric matrices are stored as their P(P+1)/2 upper entries,
// so that the sweep is that of the diagonal engine with more quadratic columns.
type Full struct {
	*Engine
	vector prior.Vector

	pairs  int       // P(P+1)/2
	cov    []float64 // pairs×N posterior covariances of the signals
	newCov []float64
	vFull  []float64 // M×pairs covariances of z
	dFull  []float64 // M×pairs ∂g, damped
	dotQ   []float64 // M, ωᵀD⁻¹ω
	logIn  []float64 // N, log-normalisers of the prior's part of the evidence
	pulls  []float64 // N, x̂ᵀΣ⁻¹(λ-x̂)
	failed []error   // N, what the prior could not do

	entries func(chunk int) // made once, so that an iteration allocates nothing
	sensors sync.Pool       // of *channel.Sensor
	fields  sync.Pool       // of *entryField
}

// entryField is what the posterior of one entry of all signals is computed in.
type entryField struct{ precision, covariance, field, mean []float64 }

// NewFull allocates a full-covariance engine, or says why there is none for
// this prior and channel.
func NewFull(c Config) (*Full, error) {
	vector, ok := c.Prior.(prior.Vector)
	if !ok {
		return nil, fmt.Errorf("full covariances need a prior with a vector posterior, and %T has none", c.Prior)
	}
	if working := channel.Unwrap(c.Channel); !correlated(working) {
		return nil, fmt.Errorf("full covariances need a channel with correlated outputs, and %T has none", working)
	}
	if g, ok := channel.Unwrap(c.Channel).(channel.Gain); ok && g.Saturation > 0 {
		return nil, fmt.Errorf("clipped readings need diagonal covariances")
	}
	if g, ok := c.Prior.(prior.GaussBernoulli); ok && g.Density < 1 && c.P > prior.MaxVectorSignals {
		return nil, fmt.Errorf("full covariances with a sparse prior sum over 2^P supports and are limited to P ≤ %d, found P = %d", prior.MaxVectorSignals, c.P)
	}
	e, err := New(c)
	if err != nil {
		return nil, err
	}
	f := &Full{Engine: e, vector: vector, pairs: c.P * (c.P + 1) / 2}
	if err := e.prepareSweeps(f.pairs); err != nil {
		return nil, err
	}
	e.h = make([]float64, f.pairs*e.N)
	f.cov = make([]float64, f.pairs*e.N)
	f.newCov = make([]float64, f.pairs*e.N)
	f.vFull = make([]float64, e.M*f.pairs)
	f.dFull = make([]float64, e.M*f.pairs)
	f.dotQ = make([]float64, e.M)
	f.logIn = make([]float64, e.N)
	f.pulls = make([]float64, e.N)
	f.failed = make([]error, e.N)
	e.rows, f.entries = f.outputRows, f.inputEntries
	p := c.P
	f.sensors.New = func() any {
		return &channel.Sensor{
			Y: make([]float64, p), Omega: make([]float64, p), G: make([]float64, p),
			V: make([]float64, p*p), DG: make([]float64, p*p),
		}
	}
	f.fields.New = func() any {
		return &entryField{
			precision: make([]float64, p*p), covariance: make([]float64, p*p),
			field: make([]float64, p), mean: make([]float64, p),
		}
	}
	e.list = append(e.list, f.cov, f.vFull, f.dFull, f.dotQ, f.logIn, f.pulls)
	for k := range c.P {
		copy(f.cov[f.pair(k, k)*e.N:], e.C[k*e.N:(k+1)*e.N])
	}
	return f, nil
}

func correlated(c channel.Channel) bool {
	_, ok := c.(channel.Correlated)
	return ok
}

// pair is the place of entry (k, l), k ≤ l, among the upper entries.
func (f *Full) pair(k, l int) int { return k*f.P - k*(k-1)/2 + l - k }

// unpack writes the symmetric matrix whose upper entries are u, stride apart.
func (f *Full) unpack(dst, u []float64, stride int) {
	for k := range f.P {
		for l := k; l < f.P; l++ {
			v := u[f.pair(k, l)*stride]
			dst[k*f.P+l], dst[l*f.P+k] = v, v
		}
	}
}

// Step does one iteration, keeping the fraction delta of the old state.
func (f *Full) Step(delta float64) {
	f.delta = delta
	f.fieldPull = f.nextPull
	if f.Err = f.sweep.Run(f.r, f.h, f.X, f.cov, f.rows); f.Err != nil {
		return
	}
	f.input()
}

// outputRows turns z and v into ω, V, g and ∂g for a block of sensors.
func (f *Full) outputRows(first int, z, v, g, d []float64) {
	p := f.P
	s := f.sensors.Get().(*channel.Sensor)
	defer f.sensors.Put(s)
	for row := range len(z) / p {
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
		f.Channel.(channel.Correlated).OutputCorrelated(s)

		f.Tau[mu], f.B[mu], f.Count[mu] = s.Tau, s.B, s.Count
		f.S[mu], f.SVar[mu], f.LogZ[mu], f.dotQ[mu] = s.S, s.SVar, s.LogZ, s.Quadratic
		f.Broken[mu] = s.Broken
		copy(f.Omega[mu*p:], s.Omega)
		for k := range p {
			f.V[mu*p+k] = s.V[k*p+k]
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

func (f *Full) inputEntries(chunk int) {
	for i := chunk * entryChunk; i < min((chunk+1)*entryChunk, f.N); i++ {
		f.failed[i] = f.inputEntry(i)
	}
}

func (f *Full) input() {
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
func (f *Full) inputEntry(i int) error {
	p, n := f.P, f.N
	work := f.fields.Get().(*entryField)
	defer f.fields.Put(work)
	a, covariance, field, mean := work.precision, work.covariance, work.field, work.mean
	f.unpack(a, f.h[i:], n)
	for j := range a {
		a[j] = -a[j]
	}
	for k := range p {
		at := k*n + i
		f.centre[at] = f.X[at] + f.delta*(f.centre[at]-f.X[at])
	}
	for k := range p {
		field[k] = f.r[k*n+i]
		for l := range p {
			field[k] += a[k*p+l] * f.centre[l*n+i]
		}
	}
	logNorm, err := f.vector.PosteriorVector(mean, covariance, field, a)
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
func (f *Full) quadraticForm(mu int) float64 {
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

func (f *Full) fullScaleEvidence(gain channel.Gain) scaleEvidence {
	s := scaleEvidence{gain: gain, broken: f.Broken, count: f.Count, tau: f.Tau, b: f.B, quadratic: f.fieldPull}
	for mu := range f.M {
		s.quadratic += (1 - f.Broken[mu]) * f.dotQ[mu]
		s.volume += f.quadraticForm(mu)
	}
	return s
}

// ScaleStep is [Engine.ScaleStep] with full covariances.
func (f *Full) ScaleStep(gain channel.Gain) (c, width float64) {
	s := f.fullScaleEvidence(gain)
	return f.applyScale(&s)
}

// ScaleSD is [Engine.ScaleSD] with full covariances.
func (f *Full) ScaleSD(gain channel.Gain) float64 {
	s := f.fullScaleEvidence(gain)
	return s.spread()
}

// LogEvidence is [Engine.LogEvidence] with full covariances.
func (f *Full) LogEvidence() float64 {
	total := sum(f.LogZ) + sum(f.logIn)
	for mu := range f.M {
		total += 0.5 * f.quadraticForm(mu)
	}
	return total
}

// MeanV returns the mean variance of z and the mean absolute covariance
// between two signals' z at one sensor.
func (f *Full) MeanV() (v, off float64) {
	v, _ = f.Engine.MeanV()
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
