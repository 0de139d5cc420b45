package channel

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/search"
)

// Faulty is a set of sensors of which some are broken: with probability ε all
// readings of a sensor have nothing to do with the signals, and are N(0, v_f);
// otherwise the sensor is one of the channel Working, any that is no Faulty itself (Schülke, Caltagirone and
// Zdeborová, "Blind sensor calibration using approximate message passing",
// 2015, "Faulty sensors", where working sensors are [AWGN]). With
//
//	Z_out = (1-ε) Z + ε Z_f,   Z_f = ∏ₖ N(y_k; 0, v_f),   π = ε Z_f/Z_out,
//
// the output functions are those of the working sensor, g and ∂g, mixed:
//
//	g_k ← (1-π) g_k,   ∂g_k ← (1-π) ∂g_k + π(1-π) g_k²,
//
// of which the second is positive while a sensor is in doubt. Readings far
// larger than √v_f count with the sensor's own mean square. It has no past: it is a
// channel for offline problems.
type Faulty struct {
	Working Channel // of a sensor in order

	Rate float64 // ε in [0, 1); 0: learned from the readings
	Var  float64 // v_f > 0; 0: learned from the readings
}

// Contaminated is a channel some of whose sensors are broken, as [Faulty] has them, on
// top of the channel of those in order. It writes [Block.Broken].
type Contaminated interface {
	Channel

	// InOrder is the channel of sensors in order, WithInOrder the same with another
	// one in its place.
	InOrder() Channel
	WithInOrder(c Channel) Channel

	// FaultRate is the probability of a sensor to be broken; 0 where it is to be
	// learned.
	FaultRate() float64

	// Known reports whether nothing is to be learned of broken sensors, and Learned
	// replaces what is by its estimate, from the probability of each sensor to be
	// broken (nil before the first iteration) and the M×P readings.
	Known() bool
	Learned(broken, y []float64, p int) Channel
}

// InOrder returns the channel of sensors in order: c itself unless it is [Contaminated].
func InOrder(c Channel) Channel {
	if f, ok := c.(Contaminated); ok {
		return f.InOrder()
	}
	return c
}

// WithInOrder is c with another channel of sensors in order: that one itself, or beside broken sensors.
func WithInOrder(c, working Channel) Channel {
	if f, ok := c.(Contaminated); ok {
		return f.WithInOrder(working)
	}
	return working
}

// InOrder implements [Contaminated].
func (f Faulty) InOrder() Channel { return f.Working }

// WithInOrder implements [Contaminated].
func (f Faulty) WithInOrder(c Channel) Channel {
	f.Working = c
	return f
}

// FaultRate implements [Contaminated]: ε.
func (f Faulty) FaultRate() float64 { return f.Rate }

// Known implements [Contaminated].
func (f Faulty) Known() bool { return f.Rate > 0 && f.Var > 0 }

// Validate reports a parameter that describes no channel.
func (f Faulty) Validate() error {
	if f.Working == nil {
		return fmt.Errorf("faulty sensors need the channel of working ones")
	}
	if _, nested := f.Working.(Contaminated); nested {
		return fmt.Errorf("the channel of working sensors cannot be one of faulty sensors")
	}
	if !(f.Rate >= 0 && f.Rate < 1) {
		return fmt.Errorf("the fraction of broken sensors must be in [0, 1), found %g", f.Rate)
	}
	if !(f.Var >= 0) || math.IsInf(f.Var, 1) {
		return fmt.Errorf("the variance of broken sensors' readings must be finite and not negative, found %g", f.Var)
	}
	return f.Working.Validate()
}

// negligible is a probability that changes no digit of anything.
const negligible = 1e-20

// Output implements [Channel].
func (f Faulty) Output(b *Block) {
	b.Unscored = false
	f.Working.Output(b)
	e := f.evidence()
	var nothing unread // is asked for where a sensor is in doubt
	for row := range b.Rows() {
		from, to := row*b.P, (row+1)*b.P
		logBroken, any := e.of(b.Y[from:to])
		if !any {
			b.Broken[row] = 0 // nothing was read: whether it is broken is unknown
			continue
		}
		if stats := b.statsOf(row); math.IsNaN(b.LogZ[row]) || anyInfinite(stats) {
			clear(stats) // beyond double precision
			b.LogZ[row] = math.Inf(-1)
		}
		if len(b.LogPrior) > 0 {
			b.LogZ[row] += b.LogPrior[row]
		}
		broken, working, logZ := mix(e.logRate+logBroken, e.logWorking+b.LogZ[row])
		b.Broken[row], b.LogZ[row] = broken, logZ
		if broken < negligible {
			continue
		}
		if nothing == (unread{}) {
			nothing = f.unread()
		}
		if working == 0 {
			clear(b.G[from:to])
			clear(b.DG[from:to])
			if len(b.SumDG) > 0 {
				b.SumDG[row] = 0
			}
		} else {
			blend(b, row, broken, working)
		}
		if nothing.sVar > 0 {
			b.S[row], b.SVar[row] = mixMoments(broken, nothing.s, nothing.sVar, b.S[row], b.SVar[row])
		}
		if nothing.offsetVar > 0 && len(b.Offset) > 0 {
			b.Offset[row], b.OffsetVar[row] = mixMoments(broken, 0, nothing.offsetVar, b.Offset[row], b.OffsetVar[row])
		}
	}
}

// blend mixes the outputs of a sensor in doubt.
func blend(b *Block, row int, broken, working float64) {
	all := 0.0
	for k := row * b.P; k < (row+1)*b.P; k++ {
		g := b.G[k]
		all += g
		b.G[k] = working * g
		b.DG[k] = working*b.DG[k] + broken*b.G[k]*g
	}
	if len(b.SumDG) > 0 {
		b.SumDG[row] = working*b.SumDG[row] + broken*working*all*all
	}
}

// mix weighs two log-evidences: the probabilities of the first and of the
// second, and the logarithm of their sum.
func mix(first, second float64) (p, q, logSum float64) {
	if d := first - second; d > 0 {
		e := math.Exp(-d)
		return 1 / (1 + e), e / (1 + e), first + math.Log1p(e)
	} else {
		e := math.Exp(d)
		return e / (1 + e), 1 / (1 + e), second + math.Log1p(e)
	}
}

// mixMoments is the mean and the variance of s where it is known nothing of
// with probability p.
func mixMoments(p, prior, priorVar, mean, variance float64) (m, v float64) {
	if p == 1 {
		return prior, priorVar // whatever the others are
	}
	d := prior - mean
	return mean + p*d, p*priorVar + (1-p)*(variance+p*d*d)
}

// unread is what is known of a broken sensor: the moments of its s, and the variance of its offset, beforehand. Zero is for
// what the working ones do not have.
type unread struct{ s, sVar, offsetVar float64 }

func (f Faulty) unread() (u unread) {
	known := CalibrationOf(f.Working)
	if known == nil {
		return u
	}
	u.s, u.sVar = known.Moments()
	if offsetting, ok := known.(Offsetting); ok {
		u.offsetVar = offsetting.OffsetSD() * offsetting.OffsetSD()
	}
	return u
}

// brokenEvidence is log Z_f, with what is the same for all sensors.
type brokenEvidence struct {
	logRate, logWorking float64 // log ε, log(1-ε)
	variance            float64 // v_f
	limit               float64 // at which sensors clip; 0 where they do not
	logClipped          float64 // of a reading that is clipped as a working sensor's is
}

// wild is the mean square of a sensor's readings, relative to v_f, beyond which
// its own takes the place of v_f: a reading of 1e9 must neither look less unlikely
// of a working sensor than of a broken one, nor hide other broken sensors by what it
// does to v_f.
const wild = 10

func (f Faulty) evidence() brokenEvidence {
	e := brokenEvidence{logRate: math.Log(f.Rate), logWorking: math.Log1p(-f.Rate), variance: f.Var}
	if e.limit = LimitOf(f.Working); e.limit > 0 {
		e.logClipped, _, _ = quadrature.TruncatedNormal(-e.limit / math.Sqrt(f.Var))
	}
	return e
}

// of returns log Z_f of one sensor's readings; any is false where it has none.
func (e *brokenEvidence) of(y []float64) (log float64, any bool) {
	n, square, clipped := 0.0, 0.0, 0.0
	for _, v := range y {
		switch {
		case math.IsNaN(v):
		case Clipped(v, e.limit):
			clipped++
		default:
			n++
			square += v * v
		}
	}
	if clipped > 0 {
		log = clipped * e.logClipped
	}
	if n > 0 {
		v := max(e.variance, square/(wild*n))
		log -= 0.5 * (n*math.Log(2*math.Pi*v) + square/v)
	}
	return log, n+clipped > 0
}

// OutputCorrelated implements [Correlated].
func (f Faulty) OutputCorrelated(s *Sensor) {
	f.Working.(Correlated).OutputCorrelated(s)
	s.Broken = 0
	e := f.evidence()
	logBroken, any := e.of(s.Y)
	if !any {
		return
	}
	if math.IsNaN(s.LogZ) || anyInfinite(s.Stats) {
		clear(s.Stats) // beyond double precision
		s.Quadratic, s.LogZ = 0, math.Inf(-1)
	}
	broken, working, logZ := mix(e.logRate+logBroken, e.logWorking+s.LogZ)
	s.Broken, s.LogZ = broken, logZ
	nothing := f.unread()
	if working == 0 {
		clear(s.G)
		clear(s.DG)
		if nothing.sVar > 0 {
			s.S, s.SVar = nothing.s, nothing.sVar
		}
		return
	}
	p := len(s.Y)
	for k, g := range s.G {
		for l, h := range s.G {
			s.DG[k*p+l] = working*s.DG[k*p+l] + broken*(working*g)*h
		}
	}
	for k := range s.G {
		s.G[k] *= working
	}
	if nothing.sVar > 0 {
		s.S, s.SVar = mixMoments(broken, nothing.s, nothing.sVar, s.S, s.SVar)
	}
}

const (
	// startRate is where the learning of ε starts, and mostRate where it ends:
	// at higher rates the hypothesis that most sensors are broken explains any readings.
	startRate = 0.05
	mostRate  = 0.5
)

// Learned returns f with a Rate or Var of zero replaced by its estimate, the M
// step of expectation–maximisation: the mean of π over the sensors that read
// something, and the mean square of the readings weighted by it. broken is π
// for each sensor, nil before the first iteration; y are the M×P readings.
// Half a broken sensor, whose readings are like those of most, is added to what was
// seen, so that neither is learned from nothing, and wild readings count as
// the largest that are not.
func (f Faulty) Learned(broken, y []float64, p int) Channel {
	squares, readings := meanSquares(y, p)
	typical := medianPositive(squares)
	var sensors, faults, weight, square float64
	for mu, s := range squares {
		if readings[mu] == 0 {
			continue
		}
		pi := startRate
		if broken != nil {
			pi = broken[mu]
		}
		sensors++
		faults += pi
		weight += pi * readings[mu]
		square += pi * readings[mu] * min(s, wild*typical)
	}
	if f.Rate == 0 {
		f.Rate = min(mostRate, (faults+0.5)/(sensors+1))
	}
	if f.Var == 0 {
		half := 0.5 * float64(p)
		f.Var = max((square+half*typical)/(weight+half), math.SmallestNonzeroFloat64)
	}
	return f
}

// TypicalSquare is the mean square of a sensor's readings, the median of those that read
// anything but zero; 1 if there is none. y are the M×P readings.
func TypicalSquare(y []float64, p int) float64 {
	squares, _ := meanSquares(y, p)
	return medianPositive(squares)
}

// meanSquares are those of each sensor's readings, and their numbers.
func meanSquares(y []float64, p int) (squares, readings []float64) {
	squares, readings = make([]float64, len(y)/p), make([]float64, len(y)/p)
	for mu := range squares {
		for _, v := range y[mu*p : (mu+1)*p] {
			if !math.IsNaN(v) {
				readings[mu]++
				squares[mu] += v * v
			}
		}
		squares[mu] /= max(1, readings[mu])
	}
	return squares, readings
}

// medianPositive is the median of the values above 0; 1 if there is none.
func medianPositive(values []float64) float64 {
	positive := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v <= 0 })
	if len(positive) == 0 {
		return 1
	}
	return search.Select(positive, len(positive)/2)
}

// What follows is that of the working sensors, as far as their channel can do it.

// Noise implements [Noisy].
func (f Faulty) Noise() float64 { return NoiseOf(f.Working) }

// WithNoise implements [Noisy].
func (f Faulty) WithNoise(v float64) Channel {
	if c, ok := f.Working.(Noisy); ok {
		f.Working = c.WithNoise(v)
	}
	return f
}

// Calibration implements [Calibrating]; nil where working sensors are not calibrated.
func (f Faulty) Calibration() Calibration { return CalibrationOf(f.Working) }

// WithCalibration implements [Calibrating].
func (f Faulty) WithCalibration(c Calibration) Channel {
	f.Working = f.Working.(Calibrating).WithCalibration(c)
	return f
}

// ScaleQuadratic implements [Calibrating].
func (f Faulty) ScaleQuadratic(sum float64, b *Block) float64 {
	return f.Working.(Calibrating).ScaleQuadratic(sum, b)
}

// ScaleDerivatives implements [Calibrating]: each sensor with the weight 1-π.
func (f Faulty) ScaleDerivatives(c float64, b *Block) (first, second float64) {
	return f.Working.(Calibrating).ScaleDerivatives(c, b)
}

// ScaleTangent implements [SlowScale].
func (f Faulty) ScaleTangent(at float64, b *Block) func(c float64) (first, second float64) {
	if c, ok := f.Working.(SlowScale); ok {
		return c.ScaleTangent(at, b)
	}
	return nil
}

// AtEdges implements [Edged].
func (f Faulty) AtEdges(lo, hi float64, b *Block) (near, inside *Block) {
	if c, ok := f.Working.(Edged); ok {
		return c.AtEdges(lo, hi, b)
	}
	return nil, nil
}

// Limit implements [Clipping].
func (f Faulty) Limit() float64 { return LimitOf(f.Working) }

// Correlates implements [Correlated].
func (f Faulty) Correlates() error { return Correlates(f.Working) }
