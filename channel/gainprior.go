package channel

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// GainPrior is the distribution of a calibration variable, on [Lo, Hi].
type GainPrior struct {
	Lo, Hi float64 // 0 < Lo < Hi

	// A Gaussian factor exp(-Precision·(s-Center)²/2) on the range: the
	// truncated normal. Precision 0 is the uniform prior.
	Center, Precision float64
}

// Uniform is the calibration prior of the paper, flat on [lo, hi].
func Uniform(lo, hi float64) GainPrior { return GainPrior{Lo: lo, Hi: hi} }

// TruncatedNormal is N(center, sd²) restricted to [lo, hi].
func TruncatedNormal(center, sd, lo, hi float64) GainPrior {
	return GainPrior{Lo: lo, Hi: hi, Center: center, Precision: 1 / (sd * sd)}
}

// NormalOf returns the mean and standard deviation of the normal factor of a calibration's
// distribution, before it is cut to its range; ok is false where it has none.
func NormalOf(c Calibration) (mean, sd float64, ok bool) {
	p, ok := c.(GainPrior)
	if !ok || p.Precision == 0 {
		return 0, 0, false
	}
	return p.Center, 1 / math.Sqrt(p.Precision), true
}

// The statistics of a sensor, in this order: all that readings on which s acts as
// a factor say of it (see [Gain]).
const (
	precision = iota // τ
	field            // B
	readings         // n
	gainWidth
)

// GainStats are the statistics of a sensor with the sums τ, B and n (see [Gain]).
func GainStats(tau, b, n float64) []float64 {
	return []float64{precision: tau, field: b, readings: n}
}

func gainStats(stats []float64, sensor int) *[gainWidth]float64 {
	return (*[gainWidth]float64)(stats[sensor*gainWidth:])
}

// Name implements [Calibration].
func (p GainPrior) Name() string {
	return fmt.Sprintf("lo=%g hi=%g center=%g precision=%g", p.Lo, p.Hi, p.Center, p.Precision)
}

// Width implements [Calibration]: the statistics are τ, B and n.
func (p GainPrior) Width() int { return gainWidth }

// Range implements [Calibration].
func (p GainPrior) Range() (lo, hi float64) { return p.Lo, p.Hi }

// Scaled implements [Calibration].
func (p GainPrior) Scaled(c float64) Calibration { return p.Times(c) }

// Times returns the distribution of c·s.
func (p GainPrior) Times(c float64) GainPrior {
	return GainPrior{Lo: c * p.Lo, Hi: c * p.Hi, Center: c * p.Center, Precision: p.Precision / (c * c)}
}

// Validate reports a parameter that describes no distribution.
func (p GainPrior) Validate() error {
	switch {
	case !(p.Lo > 0) || math.IsInf(p.Lo, 1):
		return fmt.Errorf("the range of s must start above 0, found [%g, %g]", p.Lo, p.Hi)
	case !(p.Hi > p.Lo) || math.IsInf(p.Hi, 1):
		return fmt.Errorf("the range of s must be [a, b] with a < b, found [%g, %g]", p.Lo, p.Hi)
	case !(p.Precision >= 0) || math.IsInf(p.Precision, 1) || math.IsNaN(p.Center) || math.IsInf(p.Center, 0):
		return fmt.Errorf("the calibration prior needs a finite center and a positive standard deviation, found center %g and precision %g", p.Center, p.Precision)
	}
	return nil
}

// Moments returns the prior's own mean and variance.
func (p GainPrior) Moments() (mean, variance float64) {
	_, mean, variance = p.posterior(0, 0, 0)
	return mean, variance
}

// posterior returns log ∫ p(s) s^n e^{-τs²/2+Bs} ds, and the mean and variance
// of that density; the prior only shifts τ and B, and adds its normaliser.
func (p GainPrior) posterior(n, tau, b float64) (logNorm, mean, variance float64) {
	return quadrature.GainMoments(n, tau+p.Precision, b+p.Precision*p.Center, p.Lo, p.Hi)
}

// batch is how many sensors are integrated at a time.
const batch = 64

// Posteriors implements [Calibration].
func (p GainPrior) Posteriors(mean, variance, stats []float64) {
	var logMass [batch]float64
	for from := 0; from < len(mean); from += batch {
		to := min(from+batch, len(mean))
		p.posteriors(logMass[:to-from], mean[from:to], variance[from:to], stats[from*gainWidth:], 1)
	}
}

// posteriors is posterior for len(mean) sensors, with every B multiplied by scale, and
// with the mass about the mean in place of logNorm (see [quadrature.GainMomentsBatch]):
// the exponent of the prior's normal and of the readings at the mean is not in it.
func (p GainPrior) posteriors(logMass, mean, variance, stats []float64, scale float64) {
	var n, tau, b [batch]float64
	for from := 0; from < len(mean); from += batch {
		to := min(from+batch, len(mean))
		count := to - from
		for i := range count {
			s := gainStats(stats, from+i)
			n[i], tau[i], b[i] = s[readings], s[precision], scale*s[field]
		}
		quadrature.GainMomentsBatch(logMass[from:to], mean[from:to], variance[from:to], n[:count], tau[:count], b[:count],
			p.Precision, p.Precision*p.Center, p.Lo, p.Hi)
	}
}

// LogEvidence is log ∫ p(s) s^n e^{-τs²/2+Bs} ds: what the readings of a sensor say for
// this prior, but for what does not depend on s.
func (p GainPrior) LogEvidence(stats []float64) float64 {
	s := gainStats(stats, 0)
	logNorm, _, _ := p.posterior(s[readings], s[precision], s[field])
	return logNorm - p.logMass()
}

// ScaleDerivatives returns the first and second derivative in c of
//
//	Σ_µ (1-π_µ) log ∫ p(s) s^n e^{-τ_µ s²/2 + c B_µ s} ds
//
// at c = scale, where π (broken) and the statistics are those of several sensors: the
// posterior means give the first, the variances the second.
func (p GainPrior) ScaleDerivatives(scale float64, broken, stats []float64) (first, second float64) {
	var logMass, s, sVar [batch]float64
	for from := 0; from < len(broken); from += batch {
		to := min(from+batch, len(broken))
		count := to - from
		p.posteriors(logMass[:count], s[:count], sVar[:count], stats[from*gainWidth:], scale)
		for i, pi := range broken[from:to] {
			working := 1 - pi
			if working == 0 {
				continue // its numbers may be beyond double precision
			}
			b := gainStats(stats, from+i)[field]
			first += working * (b * s[i])
			second += working * (b * (b * sVar[i]))
		}
	}
	return first, second
}

// Readings implements [Calibration].
func (p GainPrior) Readings(stats []float64) float64 { return stats[readings] }

// Information implements [Calibration]: τ.
func (p GainPrior) Information(stats []float64) float64 { return stats[precision] }

// Fit implements [Calibration]: the least-squares B/τ.
func (p GainPrior) Fit(stats []float64) float64 {
	return quadrature.GainMode(0, stats[precision], stats[field])
}

// SetNormal implements [Calibration].
func (p GainPrior) SetNormal(stats []float64, mean, variance float64) {
	*gainStats(stats, 0) = [gainWidth]float64{
		precision: max(0, 1/variance-p.Precision),
		field:     mean/variance - p.Precision*p.Center,
	}
}

// Carry implements [Calibration].
func (p GainPrior) Carry(stats []float64, weight, c float64) {
	for i := 0; i < len(stats); i += gainWidth {
		stats[i+precision] *= weight
		stats[i+field] *= weight * c
		stats[i+readings] *= weight
	}
}

// Pull implements [Calibration]: s times what was added to B.
func (p GainPrior) Pull(stats, past []float64, s float64) float64 {
	return s * (stats[field] - past[field])
}

// ScaleStats implements [Calibration].
func (p GainPrior) ScaleStats(stats []float64, c float64) {
	for i := 0; i < len(stats); i += gainWidth {
		stats[i+precision] /= c * c
		stats[i+field] /= c
	}
}

// Excess implements [Calibration].
func (p GainPrior) Excess(stats []float64) float64 {
	tau, b := stats[precision]+p.Precision, stats[field]+p.Precision*p.Center
	if tau == 0 {
		return 0
	}
	mode := quadrature.GainMode(stats[readings], tau, b)
	return (mode - min(max(mode, p.Lo), p.Hi)) * math.Sqrt(tau)
}

// logWeight is the exponent of the prior's normal factor at s, without the constant
// -Precision·Center²/2, which logMass is without, too.
func (p GainPrior) logWeight(s float64) float64 { return p.Precision * s * (p.Center - 0.5*s) }

// logMass is log ∫ of the unnormalised prior density over its range.
func (p GainPrior) logMass() float64 {
	if p.Precision == 0 {
		return math.Log(p.Hi - p.Lo)
	}
	logNorm, _, _ := p.posterior(0, 0, 0)
	return logNorm
}
