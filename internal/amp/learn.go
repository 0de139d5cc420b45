package amp

import (
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// Learning re-fits the model between iterations, towards the stationary points of the Bethe
// free energy: the prior when it is a [prior.Learner], and what else is asked
// for. Early estimates say little, and a parameter needs some
// iterations to show its effect: hence the schedule.
type Learning struct {
	Noise bool // the channel's noise variance; the channel must be [channel.Noisy]
	Range bool // the range of s; the channel must be [channel.Gain]

	// ScaleFree says that the prior takes its scale from the signals: with Range
	// nothing determines the global scale then, and the middle of the range stays where it is.
	ScaleFree bool

	// Of a stream. Step is how far a sample may move the prior from where it
	// started, 0 for all the way, and PastInformation what earlier samples said of the noise
	// variance (an inverse variance). Information is what the latest run said.
	Step                         float64
	PastInformation, Information float64

	moved     float64 // how far the latest re-fit moved the model, in standard errors
	fromPrior prior.Learner
	fromNoise float64
}

const (
	firstRefit = 6
	refitEvery = 3

	// noiseReach bounds the factor of one update of the noise variance: V
	// follows it only some iterations later.
	noiseReach = 4

	// leastNoise is the least noise variance learned, relative to the mean
	// square of the corrected readings: below, rounding is what is left of the residuals.
	leastNoise = 1e-15

	// mostPower is how many times the readings' power a learned prior may expect.
	mostPower = 4

	// A model that moves by less than this, in standard errors of its parameters, has settled. The
	// ends of a range move in steps of at least rangeTolerance.
	modelTolerance = 1e-3
	rangeTolerance = 0.05

	// rangePatience is after how many iterations larger moves are left out, too:
	// where noise hides the spread of s, the ends of its range wander for ever.
	rangePatience = 100

	// gaugeReach bounds how far the scale goes in one step that follows the prior.
	gaugeReach = 0.1
)

// start notes where a run starts.
func (l *Learning) start(e *Engine) {
	l.moved = math.Inf(1)
	l.fromPrior, _ = e.Prior.(prior.Learner)
	if l.Noise {
		l.fromNoise = channel.Unwrap(e.Channel).(channel.Noisy).Noise()
	}
}

// refit moves the model and returns how far, in standard errors.
func (l *Learning) refit(e *Engine, t int) (change float64) {
	defer func() { l.moved = change }()
	if l.Range {
		change = l.refitRange(e, t)
	}
	if l.Noise {
		change = max(change, l.refitNoise(e))
	}
	if p, ok := e.Prior.(prior.Learner); ok {
		change = max(change, l.refitPrior(e, p))
	}
	return change
}

// refitPrior lets the prior fit itself to the fields. It does not take what
// expects far more power than the readings have: a signal on its way astray
// would take all others with it.
func (l *Learning) refitPrior(e *Engine, p prior.Learner) float64 {
	from, step := p, 1.0
	if l.Step > 0 && l.Step < 1 {
		from, step = l.fromPrior, l.Step
	}
	next, change := from.Refit(e.Lambda, e.Sigma, step)
	expected := e.W.MeanSquare() * float64(e.N) * (next.Variance() + next.Mean()*next.Mean())
	if power, _ := e.power(); !(expected <= mostPower*power) {
		return change
	}
	e.Prior = next
	if step < 1 {
		return 0 // the fields tell whether they have settled; change is that from the start
	}
	return change
}

// power is the typical mean square of a sensor's corrected readings, whatever a
// few sensors do, and the number of readings.
func (e *Engine) power() (typical, count float64) {
	squares := make([]float64, 0, e.M)
	for mu, s := range e.S {
		total, n := 0.0, 0.0
		for _, y := range e.Y[mu*e.P : (mu+1)*e.P] {
			if !math.IsNaN(y) {
				total += s * y * s * y
				n++
			}
		}
		if n > 0 {
			squares = append(squares, total/n)
			count += n
		}
	}
	if len(squares) == 0 {
		return 0, 0
	}
	slices.Sort(squares)
	return squares[len(squares)/2], count
}

// refitNoise moves Δ towards the stationarity of the Bethe free energy,
//
//	∂/∂Δ Σ log Z_out = ½ Σ (g² + ∂g) = 0,
//
// by the factor Σ g² / Σ -∂g (F. Krzakala et al., J. Stat. Mech. 2012, P08009,
// for a channel with known gains). Where AMP recovers, V is proportional to Δ, and
// the factor brings the residuals to what V+Δ expects at once. On a stream the
// sample's own estimate is averaged with the past, by their information on Δ, ½ Σ (∂g)²:
// samples whose signal or gains are little known say little of the noise.
func (l *Learning) refitNoise(e *Engine) float64 {
	var squares, slopes, information float64
	for j, y := range e.Y {
		if math.IsNaN(y) {
			continue
		}
		squares += e.G[j] * e.G[j]
		slopes -= e.DG[j]
		information += 0.5 * e.DG[j] * e.DG[j]
	}
	most, count := e.power()
	if !(slopes > 0) || !(most > 0) {
		return 0
	}
	c := channel.Unwrap(e.Channel).(channel.Noisy)
	least := leastNoise * most
	now := min(max(c.Noise(), least), most)
	ratio := squares / slopes
	next := now * min(max(ratio, 1/noiseReach), noiseReach)
	l.Information = information
	if weight := information / (information + l.PastInformation); weight < 0.5 {
		own := now + (ratio-1)*count/slopes
		next = min(max(l.fromNoise+weight*(own-l.fromNoise), now/noiseReach), now*noiseReach)
	}
	next = min(max(next, least), most)
	e.SetWorking(c.WithNoise(next - c.Noise()))
	return math.Abs(math.Log(next/now)) * math.Sqrt(count/2)
}

// refitRange moves the ends of the range of s, and the global scale with them:
// a uniform prior whose range is free has no scale of its own.
func (l *Learning) refitRange(e *Engine, t int) float64 {
	gain := channel.Unwrap(e.Channel).(channel.Gain)
	fit, change := gain.Prior.Refit(e.inOrder(), e.Tau, e.B)
	late := max(1, float64(t)/rangePatience)
	if change < rangeTolerance*late*late {
		fit, change = gain.Prior, 0
	}
	c := 1.0
	switch {
	case !l.ScaleFree:
		c = e.scaleOfPrior()
	case change > 0:
		c = (gain.Prior.Lo + gain.Prior.Hi) / (fit.Lo + fit.Hi)
	}
	e.rescale(c)
	gain.Prior = fit.Scaled(c)
	e.SetWorking(gain)
	return change
}

// scaleOfPrior is the factor by which the signals are to be multiplied for the prior to like
// them best: a Newton step to the zero of the derivative by log c of the
// evidence for a prior that is stretched by c,
//
//	Σ_i (x̂(λ-x̂) - C)/Σ,
//
// whose slope is about twice the number of entries that are not zero, Σ C/Σ.
func (e *Engine) scaleOfPrior() float64 {
	active := 0.0
	for i, c := range e.C {
		active += c / e.Sigma[i]
	}
	if !(active > 0) {
		return 1
	}
	step := (e.nextPull - active) / (2 * active)
	return math.Exp(-min(max(step, -gaugeReach), gaugeReach))
}

// SetWorking changes the channel of the sensors in order.
func (e *Engine) SetWorking(c channel.Channel) {
	if f, ok := e.Channel.(channel.Faulty); ok {
		f.Working = c
		c = f
	}
	e.Channel = c
}

// inOrder is the number of readings of each sensor, 0 where it is more likely broken than not.
func (e *Engine) inOrder() []float64 {
	count := slices.Clone(e.Count)
	for mu, broken := range e.Broken {
		if broken > 0.5 {
			count[mu] = 0
		}
	}
	return count
}
