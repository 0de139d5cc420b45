package evolution

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/channel"
)

// Readings is what sensors make of (z + ε)/s, where that is not the reading itself: codes, signs, counts, or readings to which they add noise of
// their own. Averages are then over points (see readingSensors), with their standard errors. Of signs about a threshold for every reading
// ([channel.Codes.Thresholds]) each reading has one of those that are given, by chance, as many as there may be.
type Readings struct {
	Sensors channel.Calibrating // a [channel.Codes] or [channel.Counts], or a [channel.Gain] with noise of its own; gains and noise before the division are those of the [Model]
	Mean    float64             // of z, known to the solver: what signals have in common behind a W whose entries have a mean. Photons need one
}

// validate reports readings that the model cannot have.
func (r *Readings) validate(m Model) error {
	codes, isCodes := channel.CodesOf(r.Sensors)
	_, isCounts := channel.CountsOf(r.Sensors)
	own, isOwn := channel.DetectorOf(r.Sensors)
	switch {
	case m.OffsetSD != 0 || m.Network != nil:
		return errors.New("codes, counts and noise of the sensors' own are predicted without offsets and networks")
	case m.Gain.Lo == m.Gain.Hi:
		return errors.New("codes, counts and noise of the sensors' own are predicted for gains that are not known")
	case !isCodes && !isCounts && !isOwn:
		return fmt.Errorf("no prediction for readings of a %T", r.Sensors)
	case isCodes && codes.Thresholds != nil && len(codes.Thresholds) == 0:
		return errors.New("signs about thresholds of their own: there are none")
	case math.IsNaN(r.Mean) || math.IsInf(r.Mean, 0):
		return fmt.Errorf("the mean of z must be finite, found %g", r.Mean)
	case isCounts && m.NoiseVar > 0:
		return errors.New("counts have no noise but their own")
	}
	if photons := isCounts || own.Photon > 0; photons && r.Mean < leastDark*math.Sqrt(m.SecondMoment()) {
		return fmt.Errorf("photons are positive: z must have a mean of %d standard deviations or more, of %.3g, found %.3g", leastDark, math.Sqrt(m.SecondMoment()), r.Mean)
	}
	return r.sensors(m).Validate()
}

// leastDark is how many standard deviations z is to be above 0 on average: where it is below it makes no photons, one time in 700.
const leastDark = 3

// sensors is the channel with the model's gains and noise.
func (r *Readings) sensors(m Model) channel.Calibrating {
	c := r.Sensors.WithCalibration(m.Gain)
	if noisy, is := c.(channel.Noisy); is {
		c = noisy.WithNoise(m.NoiseVar)
	}
	return c.(channel.Calibrating)
}

const (
	// readingPoints are how many sensors are averaged over where each is an integral, and detectorPoints where it has a closed form.
	readingPoints  = 2048
	detectorPoints = 16384
	readingLots    = 8

	// ownRounds are how often noise of the sensors' own is set from the posterior of s, and that computed anew: the iterations of a solver do it.
	ownRounds = 3

	// readingRest is the relative change of the error at which a fixed point is found: averages over points have no more digits.
	readingRest = 1e-4

	// readingStep is how far in log V the slope of the map is looked for, which is rough where codes and counts change.
	readingStep = 0.1
)

// readingSensors are sensors whose gains fill their distribution evenly, with P random readings each, the same for every error V: in lots, from whose spread standard errors are taken.
type readingSensors struct {
	of      Readings
	own     channel.Detector
	noise   float64
	channel channel.Channel
	lots    []*readingLot
	rng     *rand.Rand
}

// readingLot is some of them.
type readingLot struct {
	channel            channel.Channel
	block              *channel.Block
	s0                 []float64
	omega, innov, rest []float64 // normal numbers of every reading
	level              []float64 // of counts, in (0, 1)
}

func newReadingSensors(m Model, seed uint64) *readingSensors {
	r := &readingSensors{of: *m.Readings, noise: m.NoiseVar, channel: m.Readings.sensors(m)}
	points := readingPoints
	if own, is := channel.DetectorOf(r.channel); is {
		r.own, points = own, detectorPoints
	}
	r.rng = rand.New(rand.NewPCG(seed, 38))
	none := make([]float64, m.Gain.Width())
	for range readingLots {
		count := points / readingLots
		lot := &readingLot{}
		shift := r.rng.Float64()
		for i := range count {
			lot.s0 = append(lot.s0, m.Gain.Quantile(none, (float64(i)+shift)/float64(count)))
		}
		r.lots = append(r.lots, lot)
		r.draw(lot, m.P)
	}
	return r
}

// draw gives sensors p readings, beside what their past says.
func (r *readingSensors) draw(lot *readingLot, p int) {
	before := lot.block
	lot.channel = r.channel
	if codes, is := channel.CodesOf(r.channel); is && codes.Thresholds != nil {
		given := codes.Thresholds
		codes.Thresholds = make([]float64, len(lot.s0)*p)
		for j := range codes.Thresholds {
			codes.Thresholds[j] = given[r.rng.IntN(len(given))]
		}
		lot.channel = codes
	}
	lot.block = channel.NewBlock(lot.channel, len(lot.s0), p)
	if before != nil {
		copy(lot.block.Past, before.Stats)
	}
	lot.omega, lot.innov, lot.rest, lot.level = nil, nil, nil, nil
	for range len(lot.s0) * p {
		lot.omega, lot.innov, lot.rest = append(lot.omega, r.rng.NormFloat64()), append(lot.innov, r.rng.NormFloat64()), append(lot.rest, r.rng.NormFloat64())
		lot.level = append(lot.level, r.rng.Float64())
	}
}

// averages are -E∂g of a reading and the mean square error on s, at the error V of signals with E x² = q₀. Where the likelihood is exact that is the mean variance of the posterior of s, which
// varies a third as much from sensor to sensor: of codes with P = 8 it has an error of 2 % in place of 6 %.
func (r *readingSensors) averages(p int, q0, v float64, w *work) (a averages) {
	sums := make([][2]float64, len(r.lots))
	parallel(len(r.lots), func(j int) {
		lot := r.lots[j]
		w.spend(posteriorValues * len(lot.s0))
		r.read(lot, p, q0, v)
		for mu, s0 := range lot.s0 {
			square := lot.block.SVar[mu]
			if r.own != (channel.Detector{}) {
				square = (lot.block.S[mu] - s0) * (lot.block.S[mu] - s0)
			}
			sums[j][1] += square / float64(len(lot.s0))
		}
		for _, dg := range lot.block.DG {
			sums[j][0] -= dg / float64(len(lot.block.DG))
		}
	})
	for k, to := range [2]*Number{&a.chiHat, &a.mseS} {
		var all moments
		for _, s := range sums {
			all.add(s[k])
		}
		*to = all.number()
	}
	return a
}

// read draws readings, with what is expected of them, and lets the sensors compute their output.
func (r *readingSensors) read(lot *readingLot, p int, q0, v float64) {
	b, known, error := lot.block, math.Sqrt(max(0, q0-v)), math.Sqrt(v)
	for mu, s0 := range lot.s0 {
		for j := mu * p; j < (mu+1)*p; j++ {
			b.Omega[j], b.V[j] = r.of.Mean+known*lot.omega[j], v
			b.Y[j] = r.reading(lot, j, (b.Omega[j]+error*lot.innov[j])/s0, s0)
		}
	}
	if r.own == (channel.Detector{}) {
		lot.channel.Output(b)
		return
	}
	calibration := channel.CalibrationOf(r.channel)
	typical, variance := channel.Typical(calibration)
	for mu := range lot.s0 {
		b.S[mu], b.SVar[mu] = typical, variance
	}
	for range ownRounds {
		for mu := range lot.s0 {
			square := b.S[mu]*b.S[mu] + b.SVar[mu]
			for j := mu * p; j < (mu+1)*p; j++ {
				b.V[j] = v + r.own.Variance(b.Omega[j]/b.S[mu])*square
			}
		}
		lot.channel.Output(b)
	}
}

// reading is number j of a lot, where z/s is expected.
func (r *readingSensors) reading(lot *readingLot, j int, expected, s float64) float64 {
	normal, level := lot.rest[j], lot.level[j]
	if codes, is := channel.CodesOf(lot.channel); is {
		return codes.CodeAt(j, expected+math.Sqrt(r.noise)*normal/s)
	}
	if counts, is := channel.CountsOf(r.channel); is {
		return counts.Unit * poissonQuantile(level, expected/counts.Unit)
	}
	if unit := r.own.Photon; unit > 0 {
		expected = unit * poissonQuantile(level, expected/unit)
	}
	return expected + math.Sqrt(r.own.Read+r.noise/(s*s))*normal
}

// poissonQuantile is the least count that a Poisson number of that mean is at or below with probability level.
func poissonQuantile(level, mean float64) float64 {
	if !(mean > 0) {
		return 0
	}
	const manyCounts = 300 // from which on a normal number, with the skewness of counts, is as good, and below which exp(-mean) is none too small
	if root := math.Sqrt(mean); mean > manyCounts {
		z := quantile(level)
		return math.Round(mean + root*z + (z*z-1)/6)
	}
	probability := math.Exp(-mean)
	total, count := probability, 0.0
	for total < level && count < mean+40*math.Sqrt(mean)+40 {
		count++
		probability *= mean / count
		total += probability
	}
	return count
}

// readingFixedPoint iterates until the map turns round, as it does at a jump, and takes the jump: where readings are signs one of its points changes sign at a time, and
// iteration alone goes in circles about the error at which the map leaps over itself (signs about 0.6, P = 10: a circle of three steps, .06 % wide, for ten thousand steps).
func readingFixedPoint(ctx context.Context, m Model, opt *Options) (*Point, error) {
	e, err := newEvolution(m, opt)
	if err != nil {
		return nil, err
	}
	e.work = opt.heeding(ctx)
	e.tol = max(e.tol, readingRest)
	x, limit := math.Log(m.Variance()), opt.iterations(defaultLimit)
	if opt != nil && opt.Informed {
		x = math.Log(e.truth())
	}
	p := &Point{}
	var slope, before, gBefore float64
	for p.Evaluations < limit && !p.Converged {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		var g float64
		g, p.Step, slope = e.excess(x)
		p.Evaluations++
		if g*gBefore < 0 {
			x, p.Step, slope, p.Converged = e.bracketed(ctx, x, before, g, gBefore, limit, p)
			break
		}
		if p.Converged = math.Abs(g) <= e.tol; !p.Converged {
			before, gBefore, x = x, g, x+g
		}
	}
	if p.Converged {
		up, _, _ := e.excess(x + readingStep)
		down, _, _ := e.excess(x - readingStep)
		p.Step = e.settle(x, p.Step, slope, (up-down)/(2*readingStep))
	}
	return p, ctx.Err()
}

// signedWarmUp is how many samples are solved together where readings have one sign and nothing is said, as streams do.
const signedWarmUp = 10

// readingOnline is [Online] where sensors add noise of their own: samples that are solved together first, and others one by one.
func readingOnline(ctx context.Context, m Model, o OnlineOptions) (out []Sample, err error) {
	if _, coded := channel.CodedOf(m.Readings.Sensors); coded {
		return nil, errors.New("streams of codes, signs and counts are not predicted")
	}
	total := m.P
	if o.WarmUp == 0 && m.Readings.Mean != 0 {
		o.WarmUp = signedWarmUp
	}
	m.P = min(max(1, o.WarmUp), total)
	e, err := newEvolution(m, nil)
	if err != nil {
		return nil, err
	}
	e.work = newWork(ctx, 0)
	return oneByOne(total, &e.P, func() {
		for _, lot := range e.readings.lots {
			e.readings.draw(lot, 1)
		}
	}, func(number int) (s Sample, err error) {
		v := m.Variance()
		for len(s.Steps) < o.Iterations && (o.Exactly || !s.Converged) {
			if err := ctx.Err(); err != nil {
				return s, err
			}
			step, _ := e.at(v)
			s.Steps = append(s.Steps, step)
			if o.Progress != nil {
				o.Progress(number, len(s.Steps))
			}
			s.Converged = math.Abs(math.Log(step.MSEX.Value/v)) <= max(readingRest, o.Tol)
			v = step.MSEX.Value
		}
		return s, nil
	})
}
