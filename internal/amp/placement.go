package amp

import (
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

const (
	// placedCells is how many cells the density along the scale is integrated on: it
	// may be a ramp that ends in a cliff. A smooth one needs no more than a quarter
	// of them: it is enough when halving the steps moves the mean by less than placedTo
	// of the standard deviation.
	placedCells = 200
	placedTo    = 1e-5

	// unknown is the standard deviation of the scale's logarithm above which nothing is
	// known of the scale, and nothing is gained by moving it.
	unknown = 0.5

	// blurredFrom is the relative standard deviation above which what is known of an s is no normal distribution
	// that bounds cut off: at a wide one its mean is inside, and leaves too much room. At this one the other form has ten digits.
	blurredFrom = 1e-3

	// falseBounds is how many sensors must be outside the given bounds, wherever the
	// scale is, for the bounds to be false.
	falseBounds = 2
)

// placeScale is where the global scale belongs, seen from where it is: what is known of the
// logarithm of the factor that signals and s are to be multiplied by. They go to its mean, and
// not to the peak where the iteration has put them: at small noise the density is a ramp
// up to the end of the range, and its peak is off by half a standard deviation.
func (s *Solver) placeScale() Placement {
	if s.State.calibration == nil {
		return Placement{}
	}
	if g := s.gaussian(); g != nil && g.ofGains {
		return Placement{SD: g.statedScale()}
	}
	if _, is := s.Iteration.(integrating); is {
		bounds, _ := s.State.calibration.(channel.Bounded)
		return s.State.learnedScale(bounds)
	}
	if s.State.scaleOfNetwork() {
		return Placement{SD: s.scaleEvidence().spread()}
	}
	test, ok := PartOf[*RangeTest](s)
	if ok && test.Rejected {
		return s.State.learnedScale(test.Given)
	}
	p := s.scaleAsGiven().widened(channel.CommonScaleSD(s.State.calibration))
	if ok && test.tested && p.parts != nil { // not where it is to stay at the peak
		return p.or(s.State.learnedScale(test.Given), Doubt(test.odds))
	}
	return p
}

// scaleAsGiven is placeScale with the model that was given.
func (s *Solver) scaleAsGiven() Placement {
	if _, learned := PartOf[freeScale](s); learned && !s.State.ScaleLearned {
		return s.State.learnedScale(nil)
	}
	if step, ok := PartOf[*scaleStep](s); ok && !step.atPeak && s.atFixedPoint() {
		if bounds, ok := s.State.calibration.(channel.Bounded); ok && step.leastNoise && bounds.Fills() == nil {
			return s.State.noiselessScale(bounds)
		}
		e := s.scaleEvidence()
		e.w = s.State.W // results are reported by all ranks
		e.settle()
		if p := e.placement(); p.SD < unknown { // false for a NaN
			return p
		}
	}
	return Placement{SD: s.scaleEvidence().spread()}
}

// atFixedPoint reports whether the latest run ended with every signal settled.
func (s *Solver) atFixedPoint() bool {
	return !slices.ContainsFunc(s.Settled, func(n int) bool { return n < SettledFor })
}

// placement is what e^Φ says of t (see [scaleEvidence.spread]).
func (s *scaleEvidence) placement() Placement {
	s, lo, hi := s.withSupport()
	g := newScaleGrid(s, lo, hi, placedCells/8)
	mean, sd := g.moments()
	for range 3 {
		was, wasSD := mean, sd
		g = g.halved(s)
		if mean, sd = g.moments(); math.Abs(mean-was)+math.Abs(sd-wasSD) <= placedTo*sd {
			break
		}
	}
	return Placement{Mean: mean, SD: sd, parts: []placed{{1, g}}}
}

// learnedScale is the same where the distribution of s was learned. Then its ends hold
// nothing, and what is left are the signals, of known power, and the bounds
// between which s was given to lie, if any:
//
//	K t - ½ S e^{2t} + Σ_µ log P(a < e^t s_µ < b),   K = Σ C/Σ,   S = Σ x̂(λ-x̂)/Σ.
//
// Where the signals' scale was learned as well only the bounds are left. Bounds that
// some sensors contradict wherever the scale is are left out.
func (s *State) learnedScale(bounds channel.Bounded) Placement {
	d := s.densityWithin(bounds)
	return d.placement()
}

func (s *State) densityWithin(bounds channel.Bounded) learnedDensity {
	d := learnedDensity{bounds: bounds, s: s.S, sd: roots(s.SVar), omit: s.outOfOrder()}
	for mu := range d.omit {
		d.omit[mu] = d.omit[mu] || s.calibration.Readings(s.Of(s.Stats, mu)) == 0
	}
	d.signals = s.SignalSums()
	return d
}

// noiselessScale is the same where the noise is nothing and the calibrations are uniform
// between the given bounds: along the one line of signals and s that the readings leave,
// the volume of the s grows as e^{Mt}, with M sensors that read something. What noise says
// of the scale, by its size, is left out: how small it is, is not given.
func (s *State) noiselessScale(bounds channel.Bounded) Placement {
	d := s.densityWithin(bounds)
	d.countSensors()
	return d.placement()
}

// PastAmplitudeScaleSD is [State.PastScaleSD] where s has amplitudes that were given to lie between bounds, with what the signals of
// the past say, and leaves out what noise says of the scale, by its size. In the first samples of a
// stream most of D is V, which grows with the signals, and says nothing: kept in the evidence of the past as if it were noise
// of known size, it would hold the scale wherever it was.
func (s *State) PastAmplitudeScaleSD(past []float64, signals SignalSums) float64 {
	known := s.calibration.(channel.Turning)
	mean, variance := make([]float64, s.M), make([]float64, s.M)
	known.Posteriors(mean, variance, past)
	d := learnedDensity{bounds: known.(channel.Bounded), s: mean, sd: roots(variance), omit: make([]bool, s.M), signals: signals}
	for mu := range d.omit {
		stats := s.Of(past, mu)
		blurred := d.sd[mu] > blurredFrom*d.s[mu]
		d.omit[mu] = blurred || known.Readings(stats) == 0
		if blurred {
			d.blurred = append(d.blurred, func(c float64) float64 { return known.LogScaled(stats, c) })
		}
	}
	d.countSensors()
	p := d.placement()
	return math.Hypot(p.Mean, p.SD)
}

// ScaleWithin is where the global scale belongs when all that is known of it is that most
// s, with these means and variances, lie within the given bounds, and what the signals say.
// Where filled is true, the s are those of a distribution that was given (see [State.noiselessScale]).
// Sensors for which omit is true do not count.
func ScaleWithin(bounds channel.Bounded, s, sVar []float64, omit []bool, signals SignalSums, filled bool) (mean, sd float64) {
	d := learnedDensity{bounds: bounds, s: s, sd: roots(sVar), omit: omit, signals: signals}
	if filled {
		d.countSensors()
	}
	p := d.placement()
	return p.Mean, p.SD
}

// SignalSums are what signals of known variance say of the global scale (see
// [State.learnedScale]). Those of several samples of a stream add up.
type SignalSums struct {
	Active float64 // K: about the number of entries that are not zero, or half of what signals know of the scale where that is more
	Pull   float64 // S
}

// SignalSums are those of the present estimate; zero where the signals' scale was learned.
func (s *State) SignalSums() (sums SignalSums) {
	if s.ScaleLearned {
		return sums
	}
	active := s.active()
	sums = SignalSums{Active: active, Pull: s.nextPull}
	if half := 0.5 * s.scaleInformation(); half > active { // the same slope, steeper
		sums = SignalSums{Active: half, Pull: s.nextPull + half - active}
	}
	return sums
}

// scaleInformation is what the prior has of the scale where that is not 2 for each entry that is not zero, as of a Gaussian of mean zero: of N(m, v) it is 2 + m²/v.
// With 2 for entries of ±2 ± 0.3 each step went twenty times too far, and the next one as far back.
func (s *State) scaleInformation() float64 {
	p := s.model.Prior
	if network, is := prior.NetworkOf(p); is {
		p = network.Latents()
	}
	firm, is := p.(interface {
		ScaleInformation(lambda, sigma []float64) float64
	})
	if !is {
		return 0
	}
	return firm.ScaleInformation(s.priorFields())
}

// active is K (see [SignalSums]). C is damped, and lags behind Σ while that shrinks, of all entries by one factor; the sum before damping does not.
func (s *State) active() (active float64) {
	for k, now := range s.SumC {
		lag := 1.0
		if damped := sum(s.C[k*s.N : (k+1)*s.N]); damped > 0 {
			lag = now / damped
		}
		for i := k * s.N; i < (k+1)*s.N; i++ {
			active += lag * (s.C[i] / s.Sigma[i])
		}
	}
	return active
}

// centre is the logarithm of the factor at which K t - ½ S e^{2t} has its maximum.
func (s SignalSums) centre() float64 {
	if s.Active > 0 && s.Pull > 0 {
		return 0.5 * math.Log(s.Active/s.Pull)
	}
	return 0
}

// logDensity is K t - ½ S e^{2t}, but for a constant.
func (s SignalSums) logDensity(t float64) float64 {
	if s.Active > 0 {
		away := t - s.centre()
		return s.Active * (away - 0.5*math.Expm1(2*away))
	}
	return 0
}

// SignalScale is the logarithm of the factor by which the signals' variance, where it is known, wants
// signals and s to be multiplied, and its standard deviation.
func (s *State) SignalScale() (log, sd float64) {
	sums := s.SignalSums()
	return sums.centre(), 1 / math.Sqrt(2*sums.Active)
}

func roots(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = math.Sqrt(x)
	}
	return out
}

type learnedDensity struct {
	bounds  channel.Bounded // nil for none
	s, sd   []float64       // M
	omit    []bool          // M
	signals SignalSums
	sensors float64                       // M where the distribution of s between the bounds was given, 0 where that is learned
	prior   func(s float64) (log float64) // that distribution; nil where it is uniform

	blurred []func(c float64) (log float64) // what sensors say that are not known well enough to be normal; they are omitted else
}

// countSensors makes the distribution of s one that was given.
func (d *learnedDensity) countSensors() {
	for _, omit := range d.omit {
		if !omit {
			d.sensors++
		}
	}
	if gains, ok := d.bounds.(channel.Gains); ok && d.bounds.Fills() != nil {
		d.prior = gains.Gains().LogDensity
	}
}

// placement is what the density says. Where the distribution of s was learned it is, for all that the
// bounds say, a box, and the truth is often at an end of it ([touchesEnd]). A normal distribution of its width reaches beyond both.
func (d *learnedDensity) placement() Placement {
	grid, outside := d.grid()
	if outside >= falseBounds {
		d.bounds = nil
		grid, _ = d.grid()
	}
	mean, sd := grid.moments()
	if math.IsNaN(mean) || math.IsNaN(sd) {
		return Placement{SD: scaleReach} // the numbers are beyond double precision: nothing is known
	}
	p := Placement{Mean: mean, SD: sd}
	if d.sensors > 0 || d.blurred != nil {
		p.parts = []placed{{1, grid}}
	}
	return p
}

// grid holds the density where its mass is, and how many sensors are outside the bounds
// at its peak.
func (d *learnedDensity) grid() (g *scaleGrid, outside int) {
	lo, hi := -scaleReach, scaleReach
	if active, centre := d.signals.Active, d.signals.centre(); active > 0 && d.sensors == 0 && d.blurred == nil {
		width := 6 / math.Sqrt(2*active)
		lo, hi = max(centre-width, -3*scaleReach), min(centre+width, 3*scaleReach)
	}
	// The first grids find where the mass is, the last resolves it.
	for range 2 {
		g, _ = d.on(lo, hi, scaleCells)
		lo, hi = g.support()
	}
	return d.on(lo, hi, placedCells)
}

func (d *learnedDensity) on(lo, hi float64, cells int) (g *scaleGrid, outside int) {
	g = &scaleGrid{lo: lo, step: (hi - lo) / float64(cells), weight: make([]float64, cells+1)}
	inside := make([]float64, cells+1)
	top := math.Inf(-1)
	near := d.near(lo, hi)
	for i := range g.weight {
		t, out := lo+float64(i)*g.step, 0
		g.weight[i] = d.signals.logDensity(t)
		inside[i], out = d.inside(t, near)
		if phi := g.weight[i] + inside[i]; phi > top {
			top, outside = phi, out
		}
	}
	if d.bounds != nil && d.sensors == 0 {
		touchEnds(inside)
	}
	for i := range g.weight {
		g.weight[i] += inside[i]
	}
	exponentials(g.weight)
	return g, outside
}

// touchesEnd is the probability that learned gains touch an end of the range that was given, and not merely lie in it: people
// know where gains begin or end about as well as that a range contains them. With a quarter, half at each end, an
// otherwise even density has the standard deviation √(¾·⅓ + ¼) = 1/√2 of its half-width, and no truth within is farther than
// √2 of that from its middle.
const touchesEnd = 0.25

// touchEnds gives the ends of what the bounds leave open, where this logarithm of their density rises and falls, that
// part of the probability.
func touchEnds(inside []float64) {
	within := slices.Clone(inside)
	exponentials(within)
	mass := sum(within)
	for i := range inside {
		change := math.Abs(within[min(i+1, len(within)-1)]-within[max(i-1, 0)]) / 2 // adds up to 2, 1 at each end
		inside[i] = math.Log((1-touchesEnd)*within[i]/mass + touchesEnd*change/2)
	}
}

// exponentials puts those of logarithms in their place, the largest as 1.
func exponentials(logs []float64) {
	top := slices.Max(logs)
	for i, log := range logs {
		logs[i] = math.Exp(log - top)
	}
}

// near are the sensors that are not surely inside the bounds all the way from lo to hi: few, where they are well known. All count
// where their distribution was given.
func (d *learnedDensity) near(lo, hi float64) (list []int) {
	if d.bounds == nil {
		return nil
	}
	for mu, omit := range d.omit {
		if omit {
			continue
		}
		if d.prior != nil {
			list = append(list, mu)
			continue
		}
		for _, c := range [2]float64{math.Exp(lo), math.Exp(hi)} {
			if log, _ := d.bounds.LogInside(c*d.s[mu], c*d.sd[mu]); log != 0 {
				list = append(list, mu)
				break
			}
		}
	}
	return list
}

// inside is the logarithm of what the bounds say, and how many of the sensors near them are then outside.
func (d *learnedDensity) inside(t float64, near []int) (phi float64, outside int) {
	if d.bounds == nil {
		return 0, 0
	}
	phi = d.sensors * t
	c := math.Exp(t)
	for _, log := range d.blurred {
		phi += log(c)
	}
	for _, mu := range near {
		log, out := d.bounds.LogInside(c*d.s[mu], c*d.sd[mu])
		phi += log
		if d.prior != nil {
			phi += d.prior(c * d.s[mu])
		}
		if out {
			outside++
		}
	}
	return phi, outside
}
