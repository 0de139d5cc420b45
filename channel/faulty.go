package channel

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// Faulty is a set of sensors of which some are broken: with probability ε all
// readings of a sensor have nothing to do with the signals, and are N(0, v_f);
// otherwise the sensor is one of the channel Working (Schülke, Caltagirone and
// Zdeborová, "Blind sensor calibration using approximate message passing",
// 2015, "Faulty sensors", where working sensors are [AWGN]). With
//
//	Z_out = (1-ε) Z + ε Z_f,   Z_f = ∏ₖ N(y_k; 0, v_f),   π = ε Z_f/Z_out,
//
// the output functions are those of the working sensor, g and ∂g, mixed:
//
//	g_k ← (1-π) g_k,   ∂g_k ← (1-π) ∂g_k + π(1-π) g_k²,
//
// of which the second is positive while a sensor is in doubt. It has no past: it
// is a channel for offline problems.
type Faulty struct {
	Working Channel // of a sensor in order: [Gain] or [AWGN]

	Rate float64 // ε in [0, 1); 0: learned from the readings
	Var  float64 // v_f > 0; 0: learned from the readings
}

// Unwrap returns the channel of a sensor in order: c itself unless it is Faulty.
func Unwrap(c Channel) Channel {
	if f, ok := c.(Faulty); ok {
		return f.Working
	}
	return c
}

// Validate reports a parameter that describes no channel.
func (f Faulty) Validate() error {
	if f.Working == nil {
		return fmt.Errorf("faulty sensors need the channel of working ones")
	}
	if _, nested := f.Working.(Faulty); nested {
		return fmt.Errorf("the channel of working sensors cannot be one of faulty sensors")
	}
	if !(f.Rate >= 0 && f.Rate < 1) {
		return fmt.Errorf("the fraction of broken sensors must be in [0, 1), found %g", f.Rate)
	}
	if !(f.Var >= 0) || math.IsInf(f.Var, 1) {
		return fmt.Errorf("the variance of broken sensors' readings must be finite and not negative, found %g", f.Var)
	}
	if v, ok := f.Working.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// Output implements [Channel].
func (f Faulty) Output(b *Block) {
	f.Working.Output(b)
	odds := math.Log(f.Rate) - math.Log1p(-f.Rate)
	s, sVar := f.calibration()
	for row := range b.Rows() {
		from, to := row*b.P, (row+1)*b.P
		logBroken, any := f.logBroken(b.Y[from:to])
		if !any {
			b.Broken[row] = 0 // nothing was read: it stays what nobody knows
			continue
		}
		broken, working, logZ := mix(odds+logBroken, b.LogZ[row])
		b.Broken[row] = broken
		b.LogZ[row] = math.Log1p(-f.Rate) + logZ
		for k := from; k < to; k++ {
			g := b.G[k]
			b.G[k] = working * g
			b.DG[k] = working * (b.DG[k] + broken*g*g)
		}
		if sVar > 0 {
			b.S[row], b.SVar[row] = mixMoments(broken, s, sVar, b.S[row], b.SVar[row])
		}
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
	d := prior - mean
	return mean + p*d, p*priorVar + (1-p)*(variance+p*d*d)
}

// calibration is what is known of the s of a broken sensor: its prior.
func (f Faulty) calibration() (mean, variance float64) {
	if g, ok := f.Working.(Gain); ok {
		return g.Prior.Moments()
	}
	return 0, 0
}

// logBroken is log Z_f of one sensor's readings, clipped where a working
// sensor's are; any is false where it has none.
func (f Faulty) logBroken(y []float64) (log float64, any bool) {
	gain, _ := f.Working.(Gain)
	n, clipped, square := 0.0, 0.0, 0.0
	for _, v := range y {
		switch {
		case math.IsNaN(v):
		case gain.Clips(v):
			clipped++
		default:
			n++
			square += v * v
		}
	}
	log = -0.5 * (n*math.Log(2*math.Pi*f.Var) + square/f.Var)
	if clipped > 0 {
		beyond, _, _ := quadrature.TruncatedNormal(-gain.Saturation / math.Sqrt(f.Var))
		log += clipped * beyond
	}
	return log, n+clipped > 0
}

// OutputCorrelated implements [Correlated] where the working sensors' channel does.
func (f Faulty) OutputCorrelated(s *Sensor) {
	f.Working.(Correlated).OutputCorrelated(s)
	s.Broken = 0
	logBroken, any := f.logBroken(s.Y)
	if !any {
		return
	}
	broken, working, logZ := mix(math.Log(f.Rate)-math.Log1p(-f.Rate)+logBroken, s.LogZ)
	s.Broken, s.LogZ = broken, math.Log1p(-f.Rate)+logZ
	p := len(s.Y)
	for k, g := range s.G {
		for l, h := range s.G {
			s.DG[k*p+l] = working * (s.DG[k*p+l] + broken*g*h)
		}
	}
	for k := range s.G {
		s.G[k] *= working
	}
	if prior, priorVar := f.calibration(); priorVar > 0 {
		s.S, s.SVar = mixMoments(broken, prior, priorVar, s.S, s.SVar)
	}
}

const (
	// startRate is where the learning of ε starts, and mostRate where it ends:
	// that most sensors are broken explains any readings, once believed.
	startRate = 0.05
	mostRate  = 0.5
)

// Learned returns f with a Rate or Var of zero replaced by its estimate, the M
// step of expectation–maximisation: the mean of π over the sensors that read
// something, and the mean square of the readings weighted by it. broken is π
// for each sensor, nil before the first iteration; y are the M×P readings.
// Half a broken sensor, with readings like all others, is added to what was seen, so that
// neither parameter is learned from nothing.
func (f Faulty) Learned(broken, y []float64, p int) Faulty {
	var sensors, faults, readings, square, brokenReadings, brokenSquare float64
	for mu := range len(y) / p {
		pi, seen := startRate, 0.0
		if broken != nil {
			pi = broken[mu]
		}
		for _, v := range y[mu*p : (mu+1)*p] {
			if !math.IsNaN(v) {
				seen++
				square += v * v
				brokenSquare += pi * v * v
			}
		}
		if seen > 0 {
			sensors++
			faults += pi
		}
		readings += seen
		brokenReadings += pi * seen
	}
	if f.Rate == 0 {
		f.Rate = min(mostRate, (faults+0.5)/(sensors+1))
	}
	if f.Var == 0 {
		half := 0.5 * readings / max(1, sensors)
		f.Var = (brokenSquare + half*square/max(1, readings)) / max(math.SmallestNonzeroFloat64, brokenReadings+half)
	}
	return f
}

// WithNoise is the channel with noise of variance v in addition, at working
// sensors.
func (f Faulty) WithNoise(v float64) Channel {
	if c, ok := f.Working.(interface{ WithNoise(v float64) Channel }); ok {
		f.Working = c.WithNoise(v)
	}
	return f
}
