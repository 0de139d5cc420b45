package evolution

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/cmplx"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"

	"github.com/calamp/calamp/channel"
)

// ComplexOnlineOptions say how state evolution of a stream of complex readings is to be run. The zero value is the default.
type ComplexOnlineOptions struct {
	Tol        float64 // as in [OnlineOptions]; default 1e-6
	Iterations int     // the most a sample may take; default 200
	Exactly    bool    // exactly Iterations of them

	// WarmUp is how many samples are solved together first; 0 for none. Phases of which nothing is known need it.
	WarmUp int

	// Points is how many sensors are followed, in eight lots; default 4096. Seed chooses them.
	Points int
	Seed   uint64

	Spectrum Spectrum // as in [OnlineOptions]

	Progress func(sample, iteration int) // as in [OnlineOptions]
}

// ComplexOnline follows Bayes-optimal online cal-AMP over m.P complex samples. A sensor's past are its statistics: those of
// a population of sensors are carried from sample to sample. Samples that are solved together are one [Sample]. Errors are standard errors over the lots.
// A cancelled run returns the samples done and ctx.Err().
func ComplexOnline(ctx context.Context, m ComplexModel, opt *ComplexOnlineOptions) (out []Sample, err error) {
	defer ending(&err)
	var o ComplexOnlineOptions
	if opt != nil {
		o = *opt
	}
	o.Tol, o.Iterations = cmp.Or(o.Tol, 1e-6), cmp.Or(o.Iterations, 200)
	switch {
	case !(o.Tol > 0) || o.Iterations < 1 || o.WarmUp < 0 || o.Points < 0:
		return nil, errors.New("the tolerance and the numbers of iterations, samples and sensors must not be negative")
	case m.Gain.Free() && o.WarmUp < 2:
		return nil, errors.New("nothing is known of phases: a stream begins with 2 samples or more that are solved together")
	}
	e, err := newComplexEvolution(m, &ComplexOptions{Points: o.Points, Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	on := &complexOnline{complexEvolution: e, ComplexOnlineOptions: o, rng: rand.New(rand.NewPCG(o.Seed, 19))}
	for _, lot := range e.lots {
		on.past = append(on.past, make([]float64, len(lot)*m.Gain.Width()))
	}
	e.work = newWork(ctx, 0)
	for done := 0; done < m.P; {
		p := 1
		if done == 0 && o.WarmUp > 1 {
			p = o.WarmUp
		}
		s, err := on.sample(ctx, len(out)+1, p)
		if len(s.Steps) > 0 {
			out = append(out, s)
		}
		if err != nil {
			return out, err
		}
		done += p
	}
	return out, nil
}

// complexOnline is the population.
type complexOnline struct {
	*complexEvolution
	ComplexOnlineOptions
	past [][]float64 // of every lot, the statistics of its sensors
	rng  *rand.Rand
}

// sample iterates p signals together to their fixed point, and absorbs them.
func (o *complexOnline) sample(ctx context.Context, number, p int) (Sample, error) {
	var out Sample
	o.P = p
	o.draw()
	next := o.follow(o.Spectrum)
	var v float64 // that the sensors were given
	for t := 1; t <= o.Iterations; t++ {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		used, step, moved := next()
		v = used
		out.Steps = append(out.Steps, step)
		if o.Progress != nil {
			o.Progress(number, t)
		}
		if out.Converged = out.Converged || moved <= o.Tol; moved <= o.Tol && !o.Exactly {
			break
		}
	}
	o.absorb(v)
	return out, nil
}

// follow returns what does one iteration after the other, given what earlier samples left: what the sensors were given of V, the step, and by
// how much it moved the logarithm of the error.
func (o *complexOnline) follow(s Spectrum) func() (used float64, step Step, moved float64) {
	if !s.Independent() {
		ends := o.ends()
		ends.readings = o.output
		vector := s.between(ends)
		return func() (used float64, step Step, moved float64) {
			used = vector.v
			step = vector.next()
			return used, step, vector.move
		}
	}
	v := o.start()
	return func() (used float64, step Step, moved float64) {
		used = v
		mHat, mseS := o.output(v)
		v = o.entry(o.Alpha * mHat.Value).Value
		return used, Step{MSEX: Number{v, mHat.Relative() * v}, MHat: mHat, MSES: mseS}, math.Abs(math.Log(v / used))
	}
}

// draw gives every sensor the next readings. Gains stay.
func (o *complexOnline) draw() {
	for _, lot := range o.lots {
		shift := randomShift(o.rng, complexNumbers)
		order := o.rng.Perm(len(lot)) // else sensors would always have similar readings
		for i := range lot {
			x := evenly(order[i], shift)
			lot[i].size = math.Sqrt(mathext.GammaIncRegInv(float64(o.P), x[0]))
			lot[i].u = cmplx.Rect(math.Sqrt(-math.Log(x[1])), 2*math.Pi*x[2])
		}
	}
}

// output is [complexEvolution.output] given what earlier samples left.
func (o *complexOnline) output(v float64) (mHat, mseS Number) {
	d, t0 := v+o.NoiseVar, o.q0+o.NoiseVar
	kappa := max(0, o.q0-v) / t0 * d
	var hats, misses moments
	for j, lot := range o.lots {
		var hat, miss float64
		for i, p := range lot {
			o.work.spend(posteriorValues)
			z := math.Sqrt(t0) * p.size
			s, variance := o.Gain.Posterior(o.added(j, i, v))
			g := (s/p.s0-1)*complex(z, 0) + complex(z*d/t0, 0) - complex(math.Sqrt(kappa), 0)*p.u
			hat += square(g)
			miss += variance
		}
		count := float64(len(lot))
		hats.add((hat/count + float64(o.P-1)*kappa) / (float64(o.P) * d * d))
		misses.add(miss / count)
	}
	return hats.number(), misses.number()
}

// added are the statistics of sensor i of lot j with its present readings, at the error V.
func (o *complexOnline) added(j, i int, v float64) []float64 {
	p := o.lots[j][i]
	d, t0 := v+o.NoiseVar, o.q0+o.NoiseVar
	c := max(0, o.q0-v) / t0
	z, r := math.Sqrt(t0)*p.size, cmplx.Abs(p.s0)
	omega := complex(c*z, 0) + complex(math.Sqrt(c*d), 0)*p.u
	stats := channel.ComplexStats(z*z/(r*r*d), omega*complex(z/d, 0)/cmplx.Conj(p.s0), float64(o.P))
	for k, past := range o.past[j][i*len(stats) : (i+1)*len(stats)] {
		stats[k] += past
	}
	return stats
}

func (o *complexOnline) absorb(v float64) {
	for j, lot := range o.lots {
		for i := range lot {
			stats := o.added(j, i, v)
			copy(o.past[j][i*len(stats):], stats)
		}
	}
}

func square(z complex128) float64 { return real(z)*real(z) + imag(z)*imag(z) }
