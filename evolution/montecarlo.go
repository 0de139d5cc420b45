package evolution

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// Truth is the side of the teacher: it draws entries of signals, calibration
// variables and readings.
type Truth interface {
	Entry(rng *rand.Rand) float64
	Gain(rng *rand.Rand) float64
	Reading(z, s float64, rng *rand.Rand) float64
	SecondMoment() float64 // E x₀²
}

// truth is a [Belief] taken as the teacher's.
type truth struct{ Belief }

// Truth returns the teacher for whom the belief is true.
func (b Belief) Truth() Truth { return truth{b} }

// Entry implements [Truth].
func (b truth) Entry(rng *rand.Rand) float64 {
	if rng.Float64() >= b.Signal.Density {
		return 0
	}
	return b.Signal.SignalMean + math.Sqrt(b.Signal.SignalVar)*rng.NormFloat64()
}

// Gain implements [Truth].
func (b truth) Gain(rng *rand.Rand) float64 {
	g := b.Belief.Gain
	if g.Precision == 0 {
		return g.Lo + (g.Hi-g.Lo)*rng.Float64()
	}
	return g.Sample(rng)
}

// Reading implements [Truth]: (z + ε)/s.
func (b truth) Reading(z, s float64, rng *rand.Rand) float64 {
	return (z + math.Sqrt(b.NoiseVar)*rng.NormFloat64()) / s
}

// SecondMoment implements [Truth].
func (b truth) SecondMoment() float64 { return secondMoment(b.Signal) }

// TruthWith is [Belief.Truth] with the entries of signals drawn from another prior.
func (b Belief) TruthWith(entries prior.Sampler) Truth { return otherEntries{truth{b}, entries} }

type otherEntries struct {
	truth
	entries prior.Sampler
}

// Entry implements [Truth].
func (o otherEntries) Entry(rng *rand.Rand) float64 { return o.entries.Sample(rng) }

// SecondMoment implements [Truth].
func (o otherEntries) SecondMoment() float64 {
	mean := o.entries.Mean()
	return o.entries.Variance() + mean*mean
}

// Channel returns the output functions of a student with this belief.
func (b Belief) Channel() channel.Channel {
	if b.Gain.Lo == b.Gain.Hi {
		return known{channel.AWGN{NoiseVar: b.NoiseVar}, b.Gain.Lo}
	}
	return channel.Gain{Prior: b.Gain, NoiseVar: b.NoiseVar}
}

// known is the AWGN channel of any number of sensors that all have the same known
// gain.
type known struct {
	channel.AWGN
	s float64
}

func (k known) Output(b *channel.Block) {
	for i := range b.Y {
		b.Y[i] *= k.s
	}
	k.AWGN.Output(b)
	for i := range b.Y {
		b.Y[i] /= k.s
	}
	for i := range b.S {
		b.S[i] = k.s
	}
}

// Sampled is a problem whose state evolution is computed by Monte Carlo, for any
// truth, prior and channel. The overlaps are numbers that are the same for all
// signals.
type Sampled struct {
	Truth   Truth
	Prior   prior.Prior
	Channel channel.Channel
	Alpha   float64
	P       int

	// Matched says that prior and channel are those of the truth. Then q̂ = m̂ = χ̂ and
	// q = m = q₀-V, and one average is taken for all three, as in the paper's
	// algorithms. Otherwise the three are averaged separately, and the differences
	// between their sampling errors move the global scale of signals and gains, which
	// the iteration restores only slowly. Trajectories then need many samples, most of
	// all at P = 1.
	Matched bool
}

// MonteCarloOptions say how much to sample.
type MonteCarloOptions struct {
	Samples    int // sensors and entries; default 100 000
	Iterations int // of each sample, default 50
	Seed       uint64

	// Progress, when set, is called by OnlineMismatched after every iteration:
	// sample and iteration count from 1.
	Progress func(sample, iteration int)
}

func (o *MonteCarloOptions) withDefaults() MonteCarloOptions {
	var d MonteCarloOptions
	if o != nil {
		d = *o
	}
	if d.Samples == 0 {
		d.Samples = 100000
	}
	if d.Iterations == 0 {
		d.Iterations = defaultSteps
	}
	return d
}

// MonteCarlo runs offline state evolution by sampling (paper, Algorithm 2; with
// a mismatched student the section before it). Errors are the standard errors of
// each average; what the errors of earlier iterations add is not in them.
func MonteCarlo(ctx context.Context, m Sampled, opt *MonteCarloOptions) (out []Overlaps, err error) {
	defer ending(&err)
	s, err := newSampling(m, opt)
	if err != nil {
		return nil, err
	}
	err = s.run(ctx, func(o Overlaps) { out = append(out, o) })
	return out, err
}

// sampling holds the samples: sensors with their gains, and entries.
type sampling struct {
	Sampled
	work  *work
	o     MonteCarloOptions
	p     int
	rng   *rand.Rand
	s0    []float64
	block *channel.Block
	innov []float64 // z minus its mean given ω, one value a reading
}

func newSampling(m Sampled, opt *MonteCarloOptions) (*sampling, error) {
	if m.Truth == nil || m.Prior == nil || m.Channel == nil {
		return nil, fmt.Errorf("sampling needs a truth, a prior and a channel")
	}
	if m.P < 1 || !(m.Alpha > 0) {
		return nil, fmt.Errorf("α and P must be positive, found %g and %d", m.Alpha, m.P)
	}
	s := &sampling{Sampled: m, o: opt.withDefaults(), p: m.P}
	n := s.o.Samples
	s.rng = rand.New(rand.NewPCG(s.o.Seed, 0))
	s.s0 = make([]float64, n)
	for i := range s.s0 {
		s.s0[i] = m.Truth.Gain(s.rng)
	}
	s.block = channel.NewBlock(m.Channel, n, m.P)
	s.innov = make([]float64, n*m.P)
	return s, nil
}

// run iterates from the student's prior.
func (s *sampling) run(ctx context.Context, take func(Overlaps)) error {
	s.work = newWork(ctx, 0)
	mean := s.Prior.Mean()
	q0 := s.Truth.SecondMoment()
	o := Overlaps{Q: Number{Value: mean * mean}, V: Number{Value: s.Prior.Variance()}}
	// x̂ is the student's prior mean, so E x̂x₀ is that times the teacher's mean.
	if mean != 0 {
		total := 0.0
		for range s.o.Samples {
			total += s.Truth.Entry(s.rng)
		}
		o.M.Value = mean * total / float64(s.o.Samples)
	}
	for range s.o.Iterations {
		if err := ctx.Err(); err != nil {
			return err
		}
		o = s.step(o, q0)
		take(o)
	}
	return nil
}

// step is one iteration from the overlaps given.
func (s *sampling) step(o Overlaps, q0 float64) Overlaps {
	out := s.output(o, q0)
	if s.Matched {
		out.MHat, out.ChiHat = out.QHat, out.QHat
	}
	s.input(&out)
	if s.Matched {
		out.Q = Number{q0 - out.V.Value, out.V.Err}
		out.M = out.Q
	}
	return out
}

// output samples sensors: z and ω jointly Gaussian, then a reading.
func (s *sampling) output(o Overlaps, q0 float64) Overlaps {
	q, m := o.Q.Value, o.M.Value
	gain := 0.0
	if q > 0 {
		gain = m / q
	}
	rest := math.Sqrt(max(0, q0-m*gain))
	b := s.block
	for row, s0 := range s.s0 {
		s.work.spend(s.p)
		for k := row * s.p; k < (row+1)*s.p; k++ {
			b.Omega[k] = math.Sqrt(q) * s.rng.NormFloat64()
			s.innov[k] = rest * s.rng.NormFloat64()
			b.V[k] = o.V.Value
			b.Y[k] = s.Truth.Reading(gain*b.Omega[k]+s.innov[k], s0, s.rng)
		}
	}
	s.Channel.Output(b)
	var qHat, mHat, chiHat, mseS moments
	p := float64(s.p)
	for row, s0 := range s.s0 {
		var gg, gz, dg float64
		for k := row * s.p; k < (row+1)*s.p; k++ {
			gg += b.G[k] * b.G[k]
			dg -= b.DG[k]
			// Integration by parts over the Gaussian z: E[g (z-E[z|ω])] = E[∂_z g] Var(z|ω).
			gz += b.G[k] * s.innov[k] / (rest * rest)
		}
		qHat.add(gg / p)
		mHat.add(gz / p)
		chiHat.add(dg / p)
		mseS.add((b.S[row] - s0) * (b.S[row] - s0))
	}
	return Overlaps{QHat: qHat.number(), MHat: mHat.number(), ChiHat: chiHat.number(), MSES: mseS.number()}
}

// input samples entries and their fields.
func (s *sampling) input(o *Overlaps) {
	a := s.Alpha * o.ChiHat.Value
	lambda, sigma := make([]float64, s.o.Samples), make([]float64, s.o.Samples)
	x0, mean, variance := make([]float64, s.o.Samples), make([]float64, s.o.Samples), make([]float64, s.o.Samples)
	for i := range x0 {
		x0[i] = s.Truth.Entry(s.rng)
		lambda[i] = (s.Alpha*o.MHat.Value*x0[i] + math.Sqrt(s.Alpha*o.QHat.Value)*s.rng.NormFloat64()) / a
		sigma[i] = 1 / a
	}
	s.Prior.Posterior(mean, variance, lambda, sigma)
	var q, m, v, mse moments
	for i, x := range mean {
		q.add(x * x)
		m.add(x * x0[i])
		v.add(variance[i])
		mse.add((x - x0[i]) * (x - x0[i]))
	}
	o.Q, o.M, o.V, o.MSEX = q.number(), m.number(), v.number(), mse.number()
}

// moments accumulates a mean and its standard error (Welford).
type moments struct {
	n            int
	mean, square float64
}

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / float64(m.n)
	m.square += d * (x - m.mean)
}

func (m *moments) number() Number {
	n := float64(m.n)
	return Number{m.mean, math.Sqrt(m.square / (n * (n - 1)))}
}
