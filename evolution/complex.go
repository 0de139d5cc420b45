package evolution

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/field"
	"github.com/calamp/calamp/prior"
)

// ComplexModel is a complex problem in the limit of large N: W has independent entries of variance 1/N
// (CN(0, 1/N), or real), P signals have independent entries, and sensor µ reads (z_µk + ε_µk)/s_µ with complex gains s.
// All variances are of both parts together.
type ComplexModel struct {
	Signal   prior.ComplexGaussBernoulli // of a signal's entry
	Gain     channel.ComplexPrior        // of s
	NoiseVar float64                     // Δ ≥ 0, variance of ε
	Alpha    float64                     // α = M/N > 0
	P        int                         // signals
}

// ComplexOptions say how state evolution of a [ComplexModel] is to be run. The zero value is the default.
type ComplexOptions struct {
	Iterations int // of a trajectory; default 50

	// Tol ends a trajectory before, where an iteration moves the error on x by no more than this part of it; 0 for never.
	Tol float64

	// Points is how many readings the output side is averaged over, of a sequence that fills space evenly
	// (quasi-Monte Carlo), in eight lots with shifts of their own; the default is 4096. Errors are the standard errors over the lots.
	Points int
	Seed   uint64

	// Overlap is that of signals and their estimates before the first iteration, relative to E|x|², where phases are free: below 1, and by
	// default next to nothing. With orthogonal rows nothing grows from there, however many these are, and a finite problem begins by chance elsewhere.
	Overlap float64

	// Spectrum of W. With other than independent entries it is cal-VAMP that is followed.
	Spectrum Spectrum

	// Progress, when set, is called after every iteration with the number done.
	Progress func(iterations int)
}

const (
	complexPoints = 4096
	complexLots   = 8

	// weakStart is the overlap, relative to E|x|², from which phases that are free start: none is a
	// fixed point, and finite problems start from chance.
	weakStart = 1e-3
)

// Validate reports a parameter that describes no model.
func (m ComplexModel) Validate() error {
	if err := m.Signal.Validate(); err != nil {
		return err
	}
	if err := m.Gain.Validate(); err != nil {
		return err
	}
	// The rest is what is asked of real models.
	return Model{Signal: prior.Gaussian(0, 1), Gain: Known(1), NoiseVar: m.NoiseVar, Alpha: m.Alpha, P: m.P}.Validate()
}

// ComplexOffline follows Bayes-optimal offline cal-AMP on complex problems iteration by iteration. Errors of m̂
// and of s are standard errors of their averages; how they grow along a trajectory is not in them.
func ComplexOffline(ctx context.Context, m ComplexModel, opt *ComplexOptions) (out *Trajectory, err error) {
	defer ending(&err)
	e, err := newComplexEvolution(m, opt)
	if err != nil {
		return nil, err
	}
	if opt == nil {
		opt = &ComplexOptions{}
	}
	steps := opt.Iterations
	if steps == 0 {
		steps = defaultSteps
	}
	e.work, out = newWork(ctx, 0), &Trajectory{}
	next := e.iteration(opt.Spectrum)
	for range steps {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		out.Steps = append(out.Steps, next())
		if opt.Progress != nil {
			opt.Progress(len(out.Steps))
		}
		if n := len(out.Steps); n > 1 && opt.Tol > 0 {
			now := out.Steps[n-1].MSEX.Value
			if math.Abs(now-out.Steps[n-2].MSEX.Value) <= opt.Tol*now {
				break
			}
		}
	}
	return out, nil
}

// complexEvolution is the map V → V'.
type complexEvolution struct {
	ComplexModel
	work *work
	q0   float64 // E|x|²
	lots [][]complexPoint

	overlap float64 // from which phases that are free start
}

// complexPoint is one reading of the average: z̃ = s₀y has the size √(q₀+Δ)·size in P components, u is what ω
// has along z̃ beside its mean, in its own standard deviations, and s₀ the true calibration.
type complexPoint struct {
	size float64
	u    complex128
	s0   complex128
}

func newComplexEvolution(m ComplexModel, opt *ComplexOptions) (*complexEvolution, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	points, seed := complexPoints, uint64(0)
	if opt != nil {
		if opt.Points < 0 || opt.Iterations < 0 {
			return nil, errors.New("the numbers of points and of iterations must not be negative")
		}
		if !(opt.Overlap >= 0 && opt.Overlap < 1) {
			return nil, errors.New("the overlap at the start must be in [0, 1)")
		}
		if opt.Points > 0 {
			points = opt.Points
		}
		seed = opt.Seed
	}
	e := &complexEvolution{ComplexModel: m, q0: m.Signal.Density * m.Signal.SignalVar, overlap: weakStart}
	if opt != nil && opt.Overlap > 0 {
		e.overlap = opt.Overlap
	}
	rng := rand.New(rand.NewPCG(seed, 18))
	amplitude, phase := amplitudeQuantiles(m.Gain), phaseQuantiles(m.Gain.Concentration)
	for range complexLots {
		shift := randomShift(rng, complexNumbers)
		lot := make([]complexPoint, max(1, points/complexLots))
		for i := range lot {
			x := evenly(i, shift)
			lot[i] = complexPoint{
				size: math.Sqrt(mathext.GammaIncRegInv(float64(m.P), x[0])),
				u:    cmplx.Rect(math.Sqrt(-math.Log(x[1])), 2*math.Pi*x[2]),
				s0:   cmplx.Rect(amplitude(x[3]), phase(x[4])),
			}
		}
		e.lots = append(e.lots, lot)
	}
	return e, nil
}

// start is the error before the first iteration.
func (e *complexEvolution) start() float64 {
	if e.Gain.Free() {
		return e.q0 * (1 - e.overlap)
	}
	return e.q0
}

// iteration returns what does one iteration after the other, of AMP or of vector AMP.
func (e *complexEvolution) iteration(s Spectrum) func() Step {
	if !s.Independent() {
		return s.between(e.ends()).next
	}
	v := e.start()
	return func() Step {
		s := e.step(v)
		v = s.MSEX.Value
		return s
	}
}

func (e *complexEvolution) step(v float64) Step {
	mHat, mseS := e.output(v)
	x := e.entry(e.Alpha * mHat.Value)
	return Step{MSEX: Number{x.Value, x.Err + mHat.Relative()*x.Value}, MHat: mHat, MSES: mseS}
}

// entry is the error on an entry that is seen through a field of so much precision.
func (e *complexEvolution) entry(precision float64) Number {
	if !(precision > 0) {
		return Number{Value: e.q0}
	}
	return Number(field.ComplexVariance(e.Signal, 1/precision, 1e-10))
}

// ends are those of vector AMP.
func (e *complexEvolution) ends() ends {
	return ends{
		start: e.start(), noise: max(e.NoiseVar, asTruth(e.q0, e.NoiseVar)), alpha: e.Alpha, readings: e.output,
		entry: func(gamma float64) (mse Number, slope float64) { return e.entry(gamma), 1 },
	}
}

// output computes m̂ = E|g|² per signal, and the mean square error on s, at the error V: with D = V+Δ, T₀ = q₀+Δ,
// c = (q₀-V)/T₀ and κ = cD, ω has along z̃ the component c|z̃| + √κ u, and across it nothing but noise of variance κ in P-1
// components:
//
//	m̂ = [E| (ŝ/s₀-1)|z̃| + |z̃|D/T₀ - √κ u |² + (P-1)κ] / (P D²).
func (e *complexEvolution) output(v float64) (mHat, mseS Number) {
	d, t0 := v+e.NoiseVar, e.q0+e.NoiseVar
	c := max(0, e.q0-v) / t0 // where nothing is known rounding may leave V above q₀
	kappa := c * d
	var hats, errors moments
	for _, lot := range e.lots {
		var hat, miss float64
		for _, p := range lot {
			e.work.spend(posteriorValues)
			z := math.Sqrt(t0) * p.size
			omega := complex(c*z, 0) + complex(math.Sqrt(kappa), 0)*p.u
			r := cmplx.Abs(p.s0)
			posterior := channel.ComplexStats(z*z/(r*r*d), omega*complex(z/d, 0)/cmplx.Conj(p.s0), float64(e.P))
			s, variance := e.Gain.Posterior(posterior)
			off := s/p.s0 - 1
			g := off*complex(z, 0) + complex(z*d/t0, 0) - complex(math.Sqrt(kappa), 0)*p.u
			hat += square(g)
			miss += variance // on average the squared error, and less noisy
		}
		count := float64(len(lot))
		hats.add((hat/count + float64(e.P-1)*kappa) / (float64(e.P) * d * d))
		errors.add(miss / count)
	}
	return hats.number(), errors.number()
}

// complexNumbers is how many of them a [complexPoint] takes.
const complexNumbers = 5

// evenly is point i of a sequence that fills the cube of dim dimensions evenly: multiples of powers of one over the root of
// x^(dim+1) = x+1, modulo 1 (M. Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018), shifted.
func evenly(i int, shift []float64) []float64 {
	x := make([]float64, len(shift))
	root := map[int]float64{3: 1.2207440846057595, 4: 1.1673039782614187, 5: 1.1347241384015194926, 6: 1.1127756842787055}[len(shift)]
	step := 1.0
	for j := range x {
		step /= root
		_, x[j] = math.Modf(shift[j] + float64(i+1)*step)
		x[j] = min(max(x[j], 1e-12), 1-1e-12)
	}
	return x
}

func randomShift(rng *rand.Rand, dimensions int) []float64 {
	shift := make([]float64, dimensions)
	for j := range shift {
		shift[j] = rng.Float64()
	}
	return shift
}

// amplitudeQuantiles returns the quantiles of |s|, which are those of a real gain: before a reading its phase says nothing of its size.
func amplitudeQuantiles(g channel.ComplexPrior) func(level float64) float64 {
	if g.Precision == 0 {
		return func(level float64) float64 { return g.Lo + (g.Hi-g.Lo)*level }
	}
	size := g.Amplitude()
	none := make([]float64, size.Width())
	return func(level float64) float64 { return size.Quantile(none, level) }
}

// phaseQuantiles returns those of a von Mises distribution about 0, from a table. Phases that are known, and
// those that are free, whose common phase is a convention, are 0.
func phaseQuantiles(kappa float64) func(level float64) float64 {
	if kappa == 0 || math.IsInf(kappa, 1) {
		return func(float64) float64 { return 0 }
	}
	const cells = 20000
	reach := min(math.Pi, 12/math.Sqrt(kappa))
	sums := make([]float64, cells+1)
	density := func(i int) float64 {
		half := math.Sin(0.5 * reach * (2*float64(i)/cells - 1))
		return math.Exp(-2 * kappa * half * half)
	}
	for i := range cells {
		sums[i+1] = sums[i] + 0.5*(density(i)+density(i+1))
	}
	return func(level float64) float64 {
		at := level * sums[cells]
		lo, hi := 0, cells
		for hi-lo > 1 {
			if mid := (lo + hi) / 2; sums[mid] <= at {
				lo = mid
			} else {
				hi = mid
			}
		}
		place := float64(lo) + (at-sums[lo])/(sums[hi]-sums[lo])
		return reach * (2*place/cells - 1)
	}
}

// ComplexAlphaCal is [AlphaCal] for complex problems: the smallest α at which state evolution from no information
// reaches the target. The error is that of the average.
func ComplexAlphaCal(ctx context.Context, g prior.ComplexGaussBernoulli, gain channel.ComplexPrior, noiseVar float64, p int, opt *ThresholdOptions) (alpha Number, err error) {
	defer ending(&err)
	o := opt.orDefault()
	e, err := newComplexEvolution(ComplexModel{Signal: g, Gain: gain, NoiseVar: noiseVar, Alpha: 1, P: p}, &ComplexOptions{Points: o.Points})
	if err != nil {
		return Number{}, err
	}
	e.work = newWork(ctx, o.Work)
	target := o.Target * g.SignalVar
	if !(target > 0) || target >= e.q0 {
		return Number{}, fmt.Errorf("the target error must be positive and below the prior's variance %g, found %g", e.q0, target)
	}
	lo, hi := math.Log(target), math.Log(g.SignalVar)+fieldsAbove
	for lo < hi && field.ComplexVariance(g, math.Exp(lo), 1e-8).Value < target {
		lo += 0.02
	}
	at, found, err := highest(ctx, e.maximalAlpha, lo, hi)
	if err != nil {
		return Number{}, err
	}
	near := golden(e.maximalAlpha, at, lo)
	for near.B-near.A > 0.01 && near.Narrow() {
	}
	found.Value = max(found.Value, near.FC, near.FD)
	return found, nil
}

// maximalAlpha is the α at which V = mmse(Σ) is a fixed point, Σ = e^x.
func (e *complexEvolution) maximalAlpha(x float64) Number {
	sigma := math.Exp(x)
	mHat, _ := e.output(field.ComplexVariance(e.Signal, sigma, 1e-10).Value)
	a := 1 / (sigma * mHat.Value)
	return Number{a, a * mHat.Relative()}
}
