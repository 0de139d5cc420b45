package evolution

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// Sensors with offsets. Readings y_k = z̃_k/s₀ + o₀ with z̃ ~ N(0, T₀) and ω_k = c z̃_k + √κ u_k determine s and o by their means
// and by what they differ from these: with D = V+Δ, T₀ = q₀+Δ, c = (q₀-V)/T₀, κ = cD, and six numbers a sensor,
//
//	z̄ = √(T₀/P) n₁,  ω̄ = c z̄ + √(κ/P) n₂,  Σ(z̃-z̄)² = T₀ χ²,  Σ(z̃-z̄)(ω-ω̄) = cT₀χ² + √(κT₀) χ n₃,
//
// s₀ and o₀, with χ² of P-1 degrees of freedom. They are averaged over points that fill space evenly.

const (
	offsetPoints = 4096
	offsetLots   = 8

	offsetNumbers = 6 // of an [offsetPoint]
)

// offsetPoint is one sensor.
type offsetPoint struct {
	mean, noise, size, along float64 // n₁, n₂, χ, n₃
	s, o                     float64 // the truth
	past                     channel.OffsetStats
}

// offsetSensors are all of them, in lots with shifts of their own, from whose spread standard errors are taken.
type offsetSensors struct {
	prior channel.OffsetPrior
	lots  [][]offsetPoint
	rng   *rand.Rand
}

func newOffsetSensors(prior channel.OffsetPrior, p, points int, seed uint64) *offsetSensors {
	c := &offsetSensors{prior: prior, rng: rand.New(rand.NewPCG(seed, 17))}
	none := make([]float64, prior.Gain.Width())
	for range offsetLots {
		shift := randomShift(c.rng, offsetNumbers)
		lot := make([]offsetPoint, max(1, points/offsetLots))
		for i := range lot {
			x := evenly(i, shift)
			lot[i].read(p, x)
			lot[i].s = prior.Gain.Quantile(none, x[4])
			lot[i].o = prior.SD * quantile(x[5])
		}
		c.lots = append(c.lots, lot)
	}
	return c
}

// read gives a sensor p readings.
func (o *offsetPoint) read(p int, x []float64) {
	o.mean, o.noise, o.along, o.size = quantile(x[0]), quantile(x[1]), quantile(x[2]), 0
	if p > 1 {
		o.size = math.Sqrt(2 * mathext.GammaIncRegInv(0.5*float64(p-1), x[3]))
	}
}

// quantile is that of a standard normal variable.
func quantile(level float64) float64 { return quadrature.NormalBound(2*level - 1) }

// uncertainty is the covariance of the errors on the P signals: V on all, and W between any two. What offsets do to one signal they do
// to all, so that errors agree. On what signals differ in it has the eigenvalue V, on what they have in common V + PW.
type uncertainty struct{ v, w float64 }

// power is E x_k x_l in the same two directions.
type power struct{ apart, together float64 }

// stats are what p readings of a sensor say.
func (o *offsetPoint) stats(p int, q power, u uncertainty, noise float64) channel.OffsetStats {
	n := float64(p)
	d, d0 := u.v+noise, u.v+n*u.w+noise
	c, c0 := (q.apart-u.v)/(q.apart+noise), (q.together-u.v-n*u.w)/(q.together+noise)
	z := math.Sqrt((q.together+noise)/n) * o.mean
	size := math.Sqrt(q.apart+noise) * o.size
	return channel.OffsetStats{
		T0: n / d0, Y: z/o.s + o.o, Omega: c0*z + math.Sqrt(c0*d0/n)*o.noise,
		Tau: size * size / (o.s * o.s * d), B: size * (c*size + math.Sqrt(c*d)*o.along) / (o.s * d), N: n,
	}
}

// offsetAverages are -E∂g in the two directions, and the mean square errors on s and o, in the units of signals and readings.
type offsetAverages struct{ apart, together, mseS, mseO Number }

// mean is m̂ = E g² of a signal.
func (a *offsetAverages) mean(p int) Number {
	n := float64(p)
	return Number{((n-1)*a.apart.Value + a.together.Value) / n, ((n-1)*a.apart.Err + a.together.Err) / n}
}

func (c *offsetSensors) averages(p int, q power, u uncertainty, noise float64, w *work) (a offsetAverages) {
	const numbers = 4
	sums := make([][numbers]float64, len(c.lots))
	parallel(len(c.lots), func(j int) {
		for i := range c.lots[j] {
			w.spend(posteriorValues)
			at := &c.lots[j][i]
			own := at.stats(p, q, u, noise)
			total := at.past.Merged(own)
			post := c.prior.Posterior(&total)
			for k, v := range [numbers]float64{
				(1 - post.SVar*own.Tau/float64(p-1)) / (u.v + noise),
				together(&own, &total, &post) / (u.v + float64(p)*u.w + noise),
				post.SVar, post.OffsetVar,
			} {
				sums[j][k] += v
			}
		}
	})
	for k, to := range [numbers]*Number{&a.apart, &a.together, &a.mseS, &a.mseO} {
		var all moments
		for j, lot := range c.lots {
			all.add(sums[j][k] / float64(len(lot)))
		}
		*to = all.number()
	}
	return a
}

// together is the part of what the mean of a sensor's own readings says that is left for the signals after s and o have been
// estimated. Deviations are from the mean of all its readings, those of the past included.
func together(own, total *channel.OffsetStats, p *quadrature.OffsetPosterior) float64 {
	off := own.Y - total.Y
	return 1 - (p.SVar*off*off+2*p.SZeta*off+p.ZetaVar+p.Rho/total.T0)*own.T0
}

// absorb makes the readings the past of those to come.
func (c *offsetSensors) absorb(p int, q power, u uncertainty, noise float64) {
	for _, lot := range c.lots {
		for i := range lot {
			lot[i].past = lot[i].past.Merged(lot[i].stats(p, q, u, noise))
		}
	}
}

// draw gives every sensor the next p readings.
func (c *offsetSensors) draw(p int) {
	for _, lot := range c.lots {
		shift := randomShift(c.rng, offsetNumbers)
		order := c.rng.Perm(len(lot)) // else sensors would always have similar readings
		for i := range lot {
			lot[i].read(p, evenly(order[i], shift))
		}
	}
}

// offsetEntry is an entry of P signals, seen through fields λ_k = x_k + √b ξ + √S ε_k.
type offsetEntry struct {
	weight float64
	signal prior.GaussBernoulli
	x, own []float64 // and ε
	common float64   // ξ
}

const (
	entriesOfLot = 32   // about as many samples of an entry
	leastEntries = 2    // of those that so many of the signals have
	rareEntries  = 1e-8 // less likely ones are left out
)

// newOffsetEntries draws samples; how many of the signals have an entry is not left to chance.
func newOffsetEntries(m Model, rng *rand.Rand) (list []offsetEntry) {
	for _, g := range m.groups() {
		for active := range m.P + 1 {
			weight := g.Fraction * binomial(m.P, active, g.Signal.Density)
			if weight < rareEntries {
				continue
			}
			count := max(leastEntries, int(entriesOfLot*weight))
			for range count {
				e := offsetEntry{weight: weight / float64(count), signal: g.Signal, common: rng.NormFloat64()}
				for k := range m.P {
					x := 0.0
					if k < active {
						x = g.Signal.SignalMean + math.Sqrt(g.Signal.SignalVar)*rng.NormFloat64()
					}
					e.x, e.own = append(e.x, x), append(e.own, rng.NormFloat64())
				}
				list = append(list, e)
			}
		}
	}
	return list
}

func binomial(n, k int, p float64) float64 {
	return math.Exp(lgamma(float64(n+1)) - lgamma(float64(k+1)) - lgamma(float64(n-k+1)) +
		float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// offsetEvolution is the map of the errors' covariance, of P signals that are solved together.
type offsetEvolution struct {
	Model
	work    *work
	sensors *offsetSensors
	entries [][]offsetEntry // of every lot
	q       power
	at      uncertainty
}

func newOffsetEvolution(m Model, seed uint64) (*offsetEvolution, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	e := &offsetEvolution{Model: m, sensors: newOffsetSensors(m.offsets(), m.P, offsetPoints, seed)}
	e.start()
	return e, nil
}

// start is the state before the first iteration: x̂ is the prior's mean.
func (e *offsetEvolution) start() {
	square := e.over(func(g prior.GaussBernoulli) float64 { return g.Mean() * g.Mean() }) // what signals have in common
	e.q = power{apart: e.SecondMoment() - square, together: e.SecondMoment() + float64(e.P-1)*square}
	e.at = uncertainty{v: e.Variance()}
	e.entries = e.entries[:0]
	if e.P > 1 {
		for range offsetLots {
			e.entries = append(e.entries, newOffsetEntries(e.Model, e.sensors.rng))
		}
	}
}

// step is one iteration. Errors are standard errors of its averages; how they grow along a trajectory is not in them.
func (e *offsetEvolution) step() Step {
	a := e.sensors.averages(e.P, e.q, e.at, e.NoiseVar, e.work)
	n := float64(e.P)
	apart := 1 / (e.Alpha * a.apart.Value)
	s := Step{MHat: a.together, MSES: a.mseS, MSEO: a.mseO}
	if e.P == 1 {
		x := e.average(1/(e.Alpha*a.together.Value), defaultTol)
		e.at = uncertainty{v: x.Variance.Value}
		s.MSEX = Number{x.Variance.Value, a.together.Relative() * x.Variance.Value}
		return s
	}
	s.MHat = a.mean(e.P)
	common := max(0, (1/(e.Alpha*a.together.Value)-apart)/n)
	alone := e.average(apart, defaultTol).Variance.Value
	each, sum := e.seen(apart, common, alone)
	s.MSEX = Number{each.Value, math.Hypot(each.Err, a.apart.Relative()*each.Value)}
	e.at.w = max(0, (sum.Value/n-each.Value)/(n-1))
	e.at.v = each.Value - e.at.w
	return s
}

// seen are the posterior variance of an entry, and that of its sum over the signals. What is sampled is how much larger they are
// than alone, that of an entry whose fields have no error in common.
func (e *offsetEvolution) seen(apart, common, alone float64) (each, sum Number) {
	sums := make([][2]float64, len(e.entries))
	parallel(len(e.entries), func(j int) {
		var shift prior.CommonShift
		lambda, sigma := make([]float64, e.P), make([]float64, e.P)
		mean, variance := make([]float64, e.P), make([]float64, e.P)
		for i := range sigma {
			sigma[i] = apart
		}
		for _, s := range e.entries[j] {
			e.work.spend(e.P)
			for k, x := range s.x {
				lambda[k] = x + math.Sqrt(apart)*s.own[k]
			}
			s.signal.Posterior(mean, variance, lambda, sigma)
			known := floats.Sum(variance)
			for k := range lambda {
				lambda[k] += math.Sqrt(common) * s.common
			}
			shift.Posterior(s.signal, mean, variance, lambda, sigma, common)
			sums[j][0] += s.weight * (floats.Sum(variance) - known) / float64(e.P)
			sums[j][1] += s.weight * (shift.SumVar - known)
		}
	})
	var ofEach, ofSum moments
	for _, s := range sums {
		ofEach.add(alone + s[0])
		ofSum.add(float64(e.P)*alone + s[1])
	}
	return ofEach.number(), ofSum.number()
}

// offsetOffline is [Offline] with offsets, or as many iterations of it as until it has converged to the tolerance rest.
func offsetOffline(ctx context.Context, m Model, opt *Options, limit int, rest float64) (out *Trajectory, converged bool, err error) {
	if err := opt.validate(); err != nil {
		return nil, false, err
	}
	e, err := newOffsetEvolution(m, 0)
	if err != nil {
		return nil, false, err
	}
	if opt != nil && opt.Informed {
		e.at.v = 1e-18 * (e.SecondMoment() + e.NoiseVar)
	}
	e.work = opt.heeding(ctx)
	out = &Trajectory{}
	for range limit {
		if err := ctx.Err(); err != nil {
			return out, false, err
		}
		before := e.at
		out.Steps = append(out.Steps, e.step())
		opt.progress(len(out.Steps))
		if e.moved(before) <= rest {
			return out, true, nil
		}
	}
	return out, false, nil
}

// moved is how far the last step went, relative to where it ended.
func (e *offsetEvolution) moved(before uncertainty) float64 {
	n := float64(e.P)
	return max(math.Abs(e.at.v-before.v)/e.at.v, math.Abs(e.at.v+n*e.at.w-before.v-n*before.w)/(e.at.v+n*e.at.w))
}

// offsetRest is the relative change at which a fixed point is found, at the least: averages over points have no more digits.
const offsetRest = 1e-7

func offsetFixedPoint(ctx context.Context, m Model, opt *Options) (*Point, error) {
	t, found, err := offsetOffline(ctx, m, opt, opt.iterations(defaultLimit), max(offsetRest, opt.tol()))
	if t == nil || len(t.Steps) == 0 {
		return nil, err
	}
	return &Point{Step: t.Steps[len(t.Steps)-1], Converged: found, Evaluations: len(t.Steps)}, err
}

// offsetOnline is [Online] with offsets: a batch, and samples one by one after it.
func offsetOnline(ctx context.Context, m Model, o OnlineOptions) (out []Sample, err error) {
	total := m.P
	if o.WarmUp == 0 {
		o.WarmUp = offsetWarmUp
	}
	m.P = min(o.WarmUp, total)
	e, err := newOffsetEvolution(m, o.Seed)
	if err != nil {
		return nil, err
	}
	e.work = newWork(ctx, 0)
	return oneByOne(total, &e.P, func() {
		e.sensors.draw(1)
		e.start()
	}, func(number int) (Sample, error) {
		s, used, err := e.sample(ctx, number, &o)
		if err == nil {
			e.sensors.absorb(e.P, e.q, used, e.NoiseVar)
		}
		return s, err
	})
}

// oneByOne is a stream of total samples, of which the first p are solved together and the others one by one, each beginning with draw.
func oneByOne(total int, p *int, draw func(), solve func(number int) (Sample, error)) (out []Sample, err error) {
	for done := 0; done < total; done += *p {
		if done > 0 {
			*p = 1
			draw()
		}
		s, err := solve(len(out) + 1)
		if len(s.Steps) > 0 {
			out = append(out, s)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// offsetWarmUp is how many samples are solved together where nothing is said, as streams do.
const offsetWarmUp = 10

// sample iterates to the fixed point, and returns with what uncertainty its last iteration began.
func (e *offsetEvolution) sample(ctx context.Context, number int, o *OnlineOptions) (s Sample, used uncertainty, err error) {
	for range o.Iterations {
		if err := ctx.Err(); err != nil {
			return s, used, err
		}
		used = e.at
		s.Steps = append(s.Steps, e.step())
		if o.Progress != nil {
			o.Progress(number, len(s.Steps))
		}
		s.Converged = e.moved(used) <= o.Tol
		if s.Converged && !o.Exactly {
			break
		}
	}
	return s, used, nil
}
