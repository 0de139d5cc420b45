package evolution

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/calamp/calamp/internal/quadrature"
)

// Online state evolution (paper, "Online cal-AMP"). Sample l leaves every sensor
// with y_l²/D_l and y_l ω_l/D_l. Given s₀, with z̃_l = √T₀ χ_l and
//
//	K = Σ χ_l²,   F = Σ χ_l² m_l/D_l,
//
// these add up to s₀²A = K + F exactly, and to s₀B ~ N(F, F). So of all the Gaussian
// variables only the χ_l need to be sampled, and only two sums of them kept.
//
// For the current sample, with its own χ among the sums,
//
//	D m̂ = E[1 - Cˢτ_k] = E[1 - Cˢτ] + E[Cˢ A],
//
// where A is the precision inherited from earlier samples. Given all χ, the averages
// over s₀ and over the Gaussian s₀B depend on the number of samples and on K and F
// alone:
//
//	U(K,F) = E[1 - Cˢτ],   G(K,F) = E[Cˢ/s₀²],   S(K,F) = E[Cˢ].
//
// They are computed by quadrature on a grid, interpolated, and averaged over the
// current χ by quadrature and over a population of (K, F). The population is
// carried from sample to sample by array-RQMC: sorted by F, its members get the
// next χ from a randomised net, whose error falls faster than that of sampling.

// OnlineOptions say how online state evolution is to be run. The zero value is
// the default.
type OnlineOptions struct {
	// Tol is the relative distance to its fixed point below which a sample counts as
	// converged. The default is 1e-6.
	Tol float64
	// Iterations is the most a sample may take; default 200.
	Iterations int
	// Members is the size of a population, a power of 2 (default 256), and
	// Replicates the number of independent populations (default 8) from whose
	// spread standard errors are taken.
	Members, Replicates int
	Seed                uint64

	// Spectrum of W. With other than independent entries it is cal-VAMP that is followed.
	Spectrum Spectrum

	// WarmUp, with offsets, is how many samples are solved together first, as sample 1; default 10.
	WarmUp int

	// Exactly makes exactly Iterations iterations of every sample, also after it has
	// converged.
	Exactly bool

	// Progress, when set, is called after every iteration: sample and iteration
	// count from 1.
	Progress func(sample, iteration int)
}

func (o *OnlineOptions) withDefaults() OnlineOptions {
	var d OnlineOptions
	if o != nil {
		d = *o
	}
	if d.Tol == 0 {
		d.Tol = 1e-6
	}
	if d.Iterations == 0 {
		d.Iterations = 200
	}
	if d.Members == 0 {
		d.Members = 256
	}
	if d.Replicates == 0 {
		d.Replicates = 8
	}
	return d
}

func (o *OnlineOptions) validate() error {
	switch {
	case o.Members < 2 || o.Members&(o.Members-1) != 0:
		return fmt.Errorf("the population must have a power of 2 members, found %d", o.Members)
	case o.Replicates < 2:
		return fmt.Errorf("standard errors need at least 2 replicates, found %d", o.Replicates)
	case !(o.Tol > 0) || o.Iterations < 1:
		return fmt.Errorf("the tolerance and the number of iterations must be positive, found %g and %d", o.Tol, o.Iterations)
	}
	return nil
}

// Sample is the state evolution of one sample of a stream.
type Sample struct {
	Steps     []Step // errors are standard errors over the replicates, with that of the interpolation added
	Converged bool
}

// Last is the sample's last iteration.
func (s *Sample) Last() Step { return s.Steps[len(s.Steps)-1] }

// Online follows Bayes-optimal online cal-AMP over m.P samples that arrive one
// at a time; each starts from the prior on x and inherits the posterior of s. A
// cancelled run returns the samples done and ctx.Err().
func Online(ctx context.Context, m Model, opt *OnlineOptions) (out []Sample, err error) {
	defer ending(&err)
	o := opt.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if m.Network != nil {
		return nil, errNetworkOffline
	}
	if m.Entries != nil {
		return nil, errEntriesOffline
	}
	if m.Readings != nil {
		return readingOnline(ctx, m, o)
	}
	if m.OffsetSD != 0 && o.Spectrum.Independent() {
		return offsetOnline(ctx, m, o)
	}
	e, err := newEvolution(m, &Options{Tol: min(1e-8, 0.01*o.Tol)})
	if err != nil {
		return nil, err
	}
	e.P, e.work = 1, newWork(ctx, 0)
	on := &online{evolution: e, OnlineOptions: o, stream: make([]*population, o.Replicates)}
	for r := range on.stream {
		on.stream[r] = newPopulation(o.Members, o.Seed, uint64(r))
	}
	if !o.Spectrum.Independent() {
		for range on.stream {
			own := *e // replicates are followed at the same time
			on.vectors = append(on.vectors, o.Spectrum.between(own.ends()))
		}
	}
	for k := 1; k <= m.P; k++ {
		s, err := on.sample(ctx, k)
		if len(s.Steps) > 0 {
			out = append(out, s)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

type online struct {
	*evolution
	OnlineOptions
	stream  []*population
	vectors []*vectorEvolution // of every replicate; nil for cal-AMP
}

// sample iterates sample k to its fixed point, in all replicates, and absorbs it.
func (o *online) sample(ctx context.Context, k int) (Sample, error) {
	var out Sample
	law := o.law(k)
	n := len(o.stream)
	for _, e := range o.vectors {
		e.restart()
	}
	v, steps := make([]float64, n), make([]Step, n)
	change, used := make([]float64, n), make([]float64, n)
	for r := range v {
		v[r], change[r] = o.Variance(), math.Inf(1)
	}
	for range o.Iterations {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		done := make([]bool, n)
		parallel(n, func(r int) {
			if r > 0 && k == 1 {
				return // without a past nothing is random: one replicate is enough
			}
			used[r] = v[r]
			if o.vectors != nil {
				used[r] = o.vectors[r].v
			}
			steps[r] = o.stepGiven(law, r, v[r])
			last := change[r]
			change[r] = math.Abs(math.Log(steps[r].MSEX.Value / v[r]))
			if o.vectors != nil {
				change[r] = o.vectors[r].move
			}
			done[r] = settled(change[r], last, o.Tol)
			v[r] = steps[r].MSEX.Value
		})
		if k == 1 {
			for r := range v {
				v[r], used[r], steps[r], done[r] = v[0], used[0], steps[0], done[0]
			}
		}
		out.Steps = append(out.Steps, summary(steps))
		if o.Progress != nil {
			o.Progress(k, len(out.Steps))
		}
		out.Converged = !slices.Contains(done, false)
		if out.Converged && !o.Exactly {
			break
		}
	}
	// The next sample inherits the posterior of the last iteration, which was computed
	// from the estimates before that iteration.
	for r, p := range o.stream {
		p.absorb((o.q0 - used[r]) / (used[r] + o.NoiseVar))
	}
	return out, nil
}

// stepGiven is one iteration given the past of replicate r.
func (o *online) stepGiven(law *inherited, r int, v float64) Step {
	if o.vectors != nil {
		e := o.vectors[r]
		if law == nil {
			return e.next()
		}
		return e.follow(o.sensorsGiven(law, o.stream[r], e.v))
	}
	if law == nil {
		s, _ := o.at(v)
		return s
	}
	mHat, mseS := o.sensorsGiven(law, o.stream[r], v)
	in := o.average(1/(o.Alpha*mHat.Value), o.evolution.tol)
	s := Step{MSEX: Number(in.Variance), MHat: mHat, MSES: mseS}
	s.MSEX.Err += law.miss * s.MSEX.Value
	return s
}

// sensorsGiven is the channel's side: m̂, and the error on s.
func (o *online) sensorsGiven(law *inherited, p *population, v float64) (mHat, mseS Number) {
	d := v + o.NoiseVar
	shrink, errS := law.average(p, (o.q0-v)/d, o.work)
	return Number{shrink / d, law.miss * (shrink / d)}, Number{errS, law.miss * errS}
}

// summary is the mean over the replicates and its standard error.
func summary(steps []Step) Step {
	pick := func(f func(Step) Number) Number {
		v := make([]float64, len(steps))
		for i, s := range steps {
			v[i] = f(s).Value
		}
		n := meanOf(v)
		// The errors of quadrature and interpolation are common to all replicates.
		n.Err += f(steps[0]).Err
		return n
	}
	return Step{
		MSEX: pick(func(s Step) Number { return s.MSEX }),
		MHat: pick(func(s Step) Number { return s.MHat }),
		MSES: pick(func(s Step) Number { return s.MSES }),
	}
}

// meanOf is the mean of independent values with its standard error.
func meanOf(v []float64) Number {
	var sum, square float64
	for _, x := range v {
		sum += x
	}
	n := float64(len(v))
	mean := sum / n
	for _, x := range v {
		square += (x - mean) * (x - mean)
	}
	return Number{mean, math.Sqrt(square / (n * (n - 1)))}
}

// population is a set of sensors, each with its sums (K, F) over the samples absorbed
// so far.
type population struct {
	k, f  []float64
	order []int
	rng   *rand.Rand
}

func newPopulation(n int, seed, replicate uint64) *population {
	p := &population{k: make([]float64, n), f: make([]float64, n), order: make([]int, n), rng: rand.New(rand.NewPCG(seed, replicate))}
	for i := range p.order {
		p.order[i] = i
	}
	return p
}

// absorb adds a sample with information m/D to every member. In the order of their F
// the members get χ = Φ⁻¹(u) with u from van der Corput's sequence with a random
// digital shift: together with the order the points fill a square evenly.
func (p *population) absorb(information float64) {
	slices.SortFunc(p.order, func(i, j int) int {
		switch {
		case p.f[i] < p.f[j]:
			return -1
		case p.f[i] > p.f[j]:
			return 1
		}
		return i - j
	})
	shift := p.rng.Uint64()
	for rank, i := range p.order {
		u := quadrature.VanDerCorput(uint64(rank), shift)
		c := quadrature.NormalBound(u)
		p.k[i] += c * c
		p.f[i] += c * c * information
	}
}
