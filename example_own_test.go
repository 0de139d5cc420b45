package calamp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// unequal is a channel that the library does not have: the noise of sensor µ has the
// variance Δ r_µ, with known ratios r. Everything else is as for channel.Gain; what it
// has as a prior of s is a channel.GainPrior, which does the integrals.
type unequal struct {
	level  float64   // Δ
	ratios []float64 // r, one a sensor
	prior  channel.GainPrior
}

func (c unequal) Validate() error {
	if !(c.level >= 0) {
		return fmt.Errorf("the noise variance must not be negative, found %g", c.level)
	}
	return c.prior.Validate()
}

func (c unequal) Output(b *channel.Block) {
	width := c.prior.Width()
	for row := range b.Rows() {
		stats, past := b.Stats[row*width:(row+1)*width], b.Past[row*width:(row+1)*width]
		noise := c.level * c.ratios[b.First+row]
		tau, field, n := past[0], past[1], past[2]
		for k := row * b.P; k < (row+1)*b.P; k++ {
			if y := b.Y[k]; !math.IsNaN(y) {
				d := b.V[k] + noise
				tau, field, n = tau+y*y/d, field+y*b.Omega[k]/d, n+1
			}
		}
		copy(stats, channel.GainStats(tau, field, n))
		c.prior.Posteriors(b.S[row:row+1], b.SVar[row:row+1], stats)
		b.LogZ[row] = c.prior.LogEvidence(stats)
		for k := row * b.P; k < (row+1)*b.P; k++ {
			y, omega, d := b.Y[k], b.Omega[k], b.V[k]+noise
			if math.IsNaN(y) {
				b.G[k], b.DG[k] = 0, 0
				continue
			}
			b.G[k] = (b.S[row]*y - omega) / d
			b.DG[k] = min(0, (b.SVar[row]*y*y/d-1)/d)
			b.LogZ[row] -= 0.5 * (omega*omega/d + math.Log(2*math.Pi*d))
		}
	}
}

func (c unequal) Noise() float64 { return c.level }

func (c unequal) WithNoise(v float64) channel.Channel {
	c.level = v
	return c
}

func (c unequal) Calibration() channel.Calibration { return c.prior }

func (c unequal) WithCalibration(known channel.Calibration) channel.Channel {
	c.prior = known.(channel.GainPrior)
	return c
}

func (c unequal) ScaleQuadratic(sum float64, b *channel.Block) float64 {
	for k, y := range b.Y {
		if row := k / b.P; !math.IsNaN(y) {
			sum += (1 - b.Broken[row]) * b.Omega[k] * b.Omega[k] / (b.V[k] + c.level*c.ratios[b.First+row])
		}
	}
	return sum
}

func (c unequal) ScaleDerivatives(scale float64, b *channel.Block) (first, second float64) {
	return c.prior.ScaleDerivatives(scale, b.Broken, b.Stats)
}

// MarshalText tells the channel from others, for the state file of a stream.
func (c unequal) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "unequal noise %v", c.ratios), nil
}

// spikes is a sparse prior as a user may write it, and learn: zero with probability
// 1-ρ, and otherwise Gaussian around zero.
type spikes struct{ density, variance float64 }

func (p spikes) Validate() error {
	if !(p.density > 0 && p.density < 1 && p.variance > 0) {
		return fmt.Errorf("a density in (0, 1) and a positive variance are needed, found %g and %g", p.density, p.variance)
	}
	return nil
}

func (p spikes) Mean() float64                { return 0 }
func (p spikes) Variance() float64            { return p.density * p.variance }
func (p spikes) NonZero() float64             { return p.density }
func (p spikes) LearnsScale() bool            { return true }
func (p spikes) Values() []float64            { return []float64{p.density, p.variance} }
func (p spikes) Scaled(c float64) prior.Prior { return spikes{p.density, c * c * p.variance} }

func (p spikes) WithValues(v []float64) (prior.Prior, error) {
	to := spikes{v[0], v[1]}
	return to, to.Validate()
}

func (p spikes) Balanced(square float64) prior.Learner { return spikes{p.density, square / p.density} }

// slab is the probability that an entry is there, its mean and variance if it is, and
// the logarithm of the evidence of its field.
func (p spikes) slab(lambda, sigma float64) (on, mean, variance, log float64) {
	if math.IsInf(sigma, 1) {
		return p.density, 0, p.variance, 0
	}
	total := p.variance + sigma
	mean, variance = lambda*p.variance/total, sigma*p.variance/total
	there := math.Log(p.density) + 0.5*(math.Log(sigma/total)-lambda*lambda/total)
	not := math.Log1p(-p.density) - 0.5*lambda*lambda/sigma
	top := max(there, not)
	log = top + math.Log(math.Exp(there-top)+math.Exp(not-top))
	return math.Exp(there - log), mean, variance, log
}

func (p spikes) Posterior(mean, variance, lambda, sigma []float64) {
	for i, l := range lambda {
		on, m, v, _ := p.slab(l, sigma[i])
		mean[i], variance[i] = on*m, on*(v+(1-on)*m*m)
	}
}

func (p spikes) LogNorm(lambda, sigma float64) float64 {
	_, _, _, log := p.slab(lambda, sigma)
	return log
}

// Refit is one step of expectation–maximisation.
func (p spikes) Refit(lambda, sigma []float64, step float64) (prior.Learner, float64) {
	var n, on, square float64
	for i, l := range lambda {
		if !math.IsInf(sigma[i], 1) {
			w, m, v, _ := p.slab(l, sigma[i])
			n, on, square = n+1, on+w, square+w*(v+m*m)
		}
	}
	next := spikes{
		density:  p.density + step*(min(max(on/n, 1e-4), 1-1e-4)-p.density),
		variance: p.variance * math.Pow(square/on/p.variance, step),
	}
	change := math.Abs(next.density-p.density) / math.Sqrt(p.density/n)
	return next, change + math.Abs(math.Log(next.variance/p.variance))*math.Sqrt(on/2)
}

func (p spikes) MarshalText() ([]byte, error) { return []byte("spikes, learned"), nil }

// unequalInstance is a problem whose sensors have noise of variances between 0.1 and
// 10 times the given one.
func unequalInstance(n, m, signals int, noise float64, seed uint64) (*teacher.Instance, unequal) {
	c := unequal{level: noise, ratios: make([]float64, m), prior: channel.Uniform(0.8, 1.2)}
	in, err := teacher.Teacher{
		N: n, M: m, P: signals, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.prior,
	}.Draw(seed)
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	for mu := range c.ratios {
		c.ratios[mu] = math.Pow(10, 2*rng.Float64()-1)
	}
	in.Y.Apply(func(mu, _ int, y float64) float64 {
		return y + math.Sqrt(noise*c.ratios[mu])*rng.NormFloat64()/in.Truth.S[mu]
	}, in.Y)
	return in, c
}

// A channel that calibrates and a prior that is learned, both of a user's own, get all
// that the library's get: the step along the common scale, error bars, learning,
// broken sensors, streams.
func Example_ownCalibratingChannel() {
	in, sensors := unequalInstance(300, 240, 8, 1e-4, 1)
	result, err := calamp.Solve(context.Background(), &calamp.Problem{
		W: in.W, Y: in.Y, Prior: spikes{density: 0.1, variance: 3},
		Channel: channel.Faulty{Working: sensors},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v; scale step %t, learning %t\n", result.Status, result.Plan.Has("scale step"), result.Plan.Has("learning"))
	inside := 0
	lo, hi := result.SIntervalRaw(0.95)
	for mu, s := range in.Truth.S {
		if lo[mu] < s && s < hi[mu] {
			inside++
		}
	}
	fmt.Printf("density %.1f, gains within their 95 %% intervals: more than nine in ten: %t\n",
		result.Prior.(spikes).density, inside > 216)
	// Output:
	// converged; scale step true, learning true
	// density 0.2, gains within their 95 % intervals: more than nine in ten: true
}
