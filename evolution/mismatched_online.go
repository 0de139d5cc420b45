package evolution

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/quadrature"
)

// OnlineMismatched follows online cal-AMP with a mismatched student over m.P
// samples. For such a student the history of a sensor cannot be condensed to two
// sums, as [Online] does. So sensors and their histories are sampled (paper,
// Algorithm 3, with its misprints corrected). Given a sensor's readings the averages
// over s are integrals, with the derivatives of g in closed form; the entries' side
// is integrated as well. Every sample makes opt.Iterations iterations (default 50).
// Errors are standard errors over eight independent populations of opt.Samples/8
// sensors (default 100 000 in all). Each population has a history of its own, so the
// errors include what earlier samples add to them.
func OnlineMismatched(ctx context.Context, m Mismatch, opt *MonteCarloOptions) (out [][]Overlaps, err error) {
	defer ending(&err)
	const replicates = 8
	o := opt.withDefaults()
	streams := make([]*sensors, replicates)
	for r := range streams {
		e, err := newMismatched(m, &Options{Tol: 1e-7})
		if err != nil {
			return nil, err
		}
		e.work = newWork(ctx, 0)
		streams[r] = newSensors(e, max(2, o.Samples/replicates), rand.New(rand.NewPCG(o.Seed, uint64(r))))
	}
	for k := range m.P {
		steps, err := sampleOf(ctx, streams, o.Iterations, func(iteration int) {
			if o.Progress != nil {
				o.Progress(k+1, iteration)
			}
		})
		if len(steps) > 0 {
			out = append(out, steps)
		}
		if err != nil {
			return out, err
		}
		for _, s := range streams {
			copy(s.tau, s.nextTau)
			copy(s.bias, s.nextBias)
			s.count++
		}
	}
	return out, nil
}

// sensors is a population with its past.
type sensors struct {
	*mismatched
	rng   *rand.Rand
	count float64 // samples absorbed
	s0    []float64

	// The past of every sensor: A, and B - A s₀ in place of B, since the difference
	// would lose its digits once s₀ is known well.
	tau, bias         []float64
	nextTau, nextBias []float64
}

func newSensors(e *mismatched, n int, rng *rand.Rand) *sensors {
	s := &sensors{mismatched: e, rng: rng}
	per := func() []float64 { return make([]float64, n) }
	s.s0, s.tau, s.bias, s.nextTau, s.nextBias = per(), per(), per(), per(), per()
	truth := e.Teacher.Truth()
	for i := range s.s0 {
		s.s0[i] = truth.Gain(rng)
	}
	return s
}

// sampleOf iterates one sample in all replicates.
func sampleOf(ctx context.Context, streams []*sensors, iterations int, progress func(iteration int)) ([]Overlaps, error) {
	for _, s := range streams {
		s.overlapState = s.ignorant()
	}
	var out []Overlaps
	each := make([]Overlaps, len(streams))
	for range iterations {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		parallel(len(streams), func(r int) { each[r] = streams[r].next() })
		out = append(out, overlapsOf(each))
		progress(len(out))
	}
	return out, nil
}

// next is one iteration.
func (s *sensors) next() Overlaps {
	a := s.output()
	f := s.fieldLaw(a)
	in := f.Integrate(s.tol)
	s.overlapState = overlapState{mse: in.MSE.Value, loss: in.Loss.Value, v: in.Variance.Value}
	return Overlaps{
		Q: Number{Value: s.mse + s.q0 - 2*s.loss}, M: Number{Value: s.q0 - s.loss}, V: Number(in.Variance),
		QHat: a.qHat, MHat: a.mHat, ChiHat: a.chiHat, MSEX: Number(in.MSE), MSES: a.mseS,
	}
}

// output draws a reading and an estimate for every sensor: z̃ = s₀y, and ω = z̃ + ρ
// with ρ = √κ u - (1-c) z̃.
func (s *sensors) output() averages {
	law := s.law()
	t0 := s.q0 + s.Teacher.NoiseVar
	d := law.d * t0
	var qHat, mHat, chiHat, mseS moments
	for i, s0 := range s.s0 {
		s.work.spend(posteriorValues)
		z := math.Sqrt(t0) * s.rng.NormFloat64()
		rho := math.Sqrt(law.kappa*t0)*s.rng.NormFloat64() - law.cBias*z
		y := z / s0
		tau, bias := s.tau[i]+y*y/d, s.bias[i]+y*rho/d
		s.nextTau[i], s.nextBias[i] = tau, bias

		q := posterior(s.Student.Gain, s.count+1, tau, s0+bias/tau, quadrature.Fast)
		miss := q.Offset + bias/tau // ŝ - s₀
		g := (miss*y - rho) / d
		// What a single reading gives (see response), with A Cov(s, s²) - B Cˢ added
		// for the past.
		response := q.response(1)
		if s.tau[i] > 0 {
			response += s.tau[i]*(2*q.Mean*q.Var+q.Third) - (s.bias[i]+s.tau[i]*s0)*q.Var
		}
		qHat.add(g * g)
		mHat.add(response / (s0 * d))
		chiHat.add((q.shrink(s.count+1, tau) + s.tau[i]*q.Var) / d)
		mseS.add(miss * miss)
	}
	return averages{qHat: qHat.number(), mHat: mHat.number(), chiHat: chiHat.number(), mseS: mseS.number()}
}

// overlapsOf is the mean over the replicates with its standard error.
func overlapsOf(each []Overlaps) Overlaps {
	pick := func(f func(o *Overlaps) Number) Number {
		v := make([]float64, len(each))
		for i := range each {
			v[i] = f(&each[i]).Value
		}
		return meanOf(v)
	}
	return Overlaps{
		Q: pick(func(o *Overlaps) Number { return o.Q }), M: pick(func(o *Overlaps) Number { return o.M }), V: pick(func(o *Overlaps) Number { return o.V }),
		QHat: pick(func(o *Overlaps) Number { return o.QHat }), MHat: pick(func(o *Overlaps) Number { return o.MHat }), ChiHat: pick(func(o *Overlaps) Number { return o.ChiHat }),
		MSEX: pick(func(o *Overlaps) Number { return o.MSEX }), MSES: pick(func(o *Overlaps) Number { return o.MSES }),
	}
}
