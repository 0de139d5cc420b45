package channel

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"github.com/calamp/calamp/internal/quadrature"
)

// ComplexGain is the channel of blind calibration for complex readings: that of sensor µ
// is divided by an unknown s_µ = r e^{iφ}, y = (z+ε)/s, with noise ε of the complex
// normal distribution CN(0, Δ). A complex number is two columns of a block, its real part
// in an even one and its imaginary part in the next, and V is the variance of each
// of the two. With D_k = V_2k + V_2k+1 + Δ, all that the readings say of s is in
//
//	τ = Σₖ |y_k|²/D_k,   B = Σₖ ω_k y_k*/D_k,   n = number of complex readings:
//
// its posterior is q(r, φ) ∝ p(r) p(φ) r^{2n} exp(-τr² + 2 Re(e^{-iφ} r B)), since the
// Jacobian of y = z/s is |s|² in the complex plane, and with that posterior's mean ŝ and
// variance Cˢ = E|s|² - |ŝ|²
//
//	g_k = (ŝ y_k - ω_k)/(D_k/2),   ∂g_k = (Cˢ |y_k|²/D_k² - 1/D_k)·2
//
// are the output functions of each column: circular, the same curvature for both.
// [Block.S] is |ŝ|, and [Block.Phase] the argument of ŝ. Not in the paper.
type ComplexGain struct {
	Prior    ComplexPrior
	NoiseVar float64 // Δ ≥ 0, of both parts together
}

// complexColumns is how many columns a complex number takes.
const complexColumns = 2

// ColumnsOf is how many columns of real numbers one reading is: 2 for a channel of complex
// readings, and 1 for others.
func ColumnsOf(c Channel) int {
	if _, ok := InOrder(c).(ComplexGain); ok {
		return complexColumns
	}
	return 1
}

// Noise implements [Noisy]: the variance of the noise of a column, half of Δ.
func (c ComplexGain) Noise() float64 { return 0.5 * c.NoiseVar }

// WithNoise implements [Noisy]; v is that of a column.
func (c ComplexGain) WithNoise(v float64) Channel {
	c.NoiseVar = 2 * v
	return c
}

// Calibration implements [Calibrating].
func (c ComplexGain) Calibration() Calibration { return c.Prior }

// WithCalibration implements [Calibrating]; the calibration must be a [ComplexPrior].
func (c ComplexGain) WithCalibration(to Calibration) Channel {
	c.Prior = to.(ComplexPrior)
	return c
}

// Name implements [Named].
func (c ComplexGain) Name() string { return "complex gain" }

// Validate reports a parameter that describes no channel.
func (c ComplexGain) Validate() error {
	return errors.Join(c.Prior.Validate(), validNoise(c.NoiseVar))
}

// Output implements [Channel].
func (c ComplexGain) Output(b *Block) {
	norm := c.Prior.logNorm()
	for row := range b.Rows() {
		c.statistics(b, row)
		stats := b.statsOf(row)
		m := c.Prior.moments(stats, 1)
		b.S[row], b.Phase[row], b.SVar[row] = cmplx.Abs(m.Mean), cmplx.Phase(m.Mean), m.Var
		c.derivatives(b, row, m.Mean)
		if b.Unscored {
			b.LogZ[row] = math.NaN()
			continue
		}
		past := pastOf(b, row)
		atPeak := c.Prior.logDensity(m.Peak) + stats[complexReadings]*2*math.Log(cmplx.Abs(m.Peak)) - norm
		if past[complexPrecision] != 0 {
			r := cmplx.Abs(m.Peak)
			atPeak += 2*dot(m.Peak, fieldOf(past)) - past[complexPrecision]*r*r
		}
		b.LogZ[row] = m.LogMass + atPeak + c.logDensity(b, row, m.Peak)
	}
}

// statistics sums τ, B and n of one sensor, on top of what its past holds.
func (c ComplexGain) statistics(b *Block, row int) {
	stats := b.statsOf(row)
	copy(stats, pastOf(b, row))
	for k := row * b.P; k < (row+1)*b.P; k += complexColumns {
		y, omega := pair(b.Y, k), pair(b.Omega, k)
		if missing(y) {
			continue
		}
		inverse := 1 / (b.V[k] + b.V[k+1] + c.NoiseVar)
		stats[complexReadings]++
		stats[complexPrecision] += square(y) * inverse
		field := omega * cmplx.Conj(y)
		stats[complexField] += real(field) * inverse
		stats[complexField+1] += imag(field) * inverse
	}
}

// derivatives fills g and ∂g of one sensor from its posterior.
func (c ComplexGain) derivatives(b *Block, row int, mean complex128) {
	sVar := b.SVar[row]
	for k := row * b.P; k < (row+1)*b.P; k += complexColumns {
		y, omega := pair(b.Y, k), pair(b.Omega, k)
		if missing(y) {
			b.G[k], b.G[k+1], b.DG[k], b.DG[k+1] = 0, 0, 0, 0
			continue
		}
		d := b.V[k] + b.V[k+1] + c.NoiseVar
		residual := mean*y - omega
		b.G[k], b.G[k+1] = 2*real(residual)/d, 2*imag(residual)/d
		slope := 2 * (sVar*(square(y)/d) - 1) / d // positive where the phase is hardly known
		b.DG[k], b.DG[k+1] = slope, slope
	}
}

// logDensity is the logarithm of the density of a sensor's readings at the given s, as residuals.
func (c ComplexGain) logDensity(b *Block, row int, at complex128) (total float64) {
	for k := row * b.P; k < (row+1)*b.P; k += complexColumns {
		if y := pair(b.Y, k); !missing(y) {
			d := b.V[k] + b.V[k+1] + c.NoiseVar
			total -= square(at*y-pair(b.Omega, k))/d + math.Log(math.Pi*d)
		}
	}
	return total
}

// ScaleQuadratic implements [Calibrating]: Σ (1-π) 2|ω|²/D.
func (c ComplexGain) ScaleQuadratic(sum float64, b *Block) float64 {
	return Quadratic(sum, b, c.Noise())
}

// ScaleDerivatives implements [Calibrating]: with every B multiplied by c the logarithm of
// the posterior's integral grows as 2 Re ŝ*B, and the variance of s along B gives its curvature.
func (c ComplexGain) ScaleDerivatives(scale float64, b *Block) (first, second float64) {
	for row, pi := range b.Broken {
		stats := b.statsOf(row)
		field := fieldOf(stats)
		if working := 1 - pi; working > 0 {
			m := c.Prior.moments(stats, complex(scale, 0))
			first += working * 2 * dot(m.Mean, field)
			second += working * 4 * square(field) * m.Along
		}
	}
	return first, second
}

// PhaseDerivatives returns the first derivative, and an estimate of the second, in θ of
//
//	Σ_µ (1-π_µ) log ∫ q̃(s; τ_µ, e^{iθ} B_µ) ds
//
// at θ = turn: when all ω are turned by θ. It is zero where nothing is known of phases.
func (c ComplexGain) PhaseDerivatives(turn float64, b *Block) (first, second float64) {
	by := cmplx.Rect(1, turn)
	for row, pi := range b.Broken {
		stats := b.statsOf(row)
		if working := 1 - pi; working > 0 {
			m := c.Prior.moments(stats, by)
			field := by * fieldOf(stats)
			first -= working * 2 * imag(cmplx.Conj(m.Mean)*field)
			second -= working * 2 * max(0, dot(m.Mean, field)-2*square(field)*max(0, m.Var-m.Along))
		}
	}
	return first, second
}

// ComplexPrior is the distribution of a complex calibration variable s = r e^{iφ}: its
// amplitude r, on [Lo, Hi], and its phase.
type ComplexPrior struct {
	Lo, Hi float64 // 0 < Lo ≤ Hi; the same where the amplitude is known

	// A Gaussian factor exp(-Precision·(r-Center)²/2) on the amplitude, or with Log one of log r,
	// exp(-Precision·log²(r/Center)/2)/r, as of [GainPrior].
	Center, Precision float64
	Log               bool

	// Concentration is κ ≥ 0 of the von Mises distribution of the phase about 0: 0 where phases are
	// free, and +Inf where they are known. A nominal phase φ₀ that is not 0 is taken off
	// readings, y e^{iφ₀}, before they are solved.
	Concentration float64

	Pairs *ComplexPairs // of sensors that are read two at a time; nil where every row has one of its own
}

// The statistics of a sensor, in this order.
const (
	complexPrecision = iota // τ
	complexField            // Re B, and Im B
	_
	complexReadings // n
	complexWidth
)

func pastOf(b *Block, row int) []float64 {
	return b.Past[row*complexWidth : (row+1)*complexWidth]
}

func fieldOf(stats []float64) complex128 { return pair(stats, complexField) }

func pair(v []float64, k int) complex128 { return complex(v[k], v[k+1]) }

func missing(y complex128) bool { return math.IsNaN(real(y)) || math.IsNaN(imag(y)) }

func square(z complex128) float64 { return real(z)*real(z) + imag(z)*imag(z) }

// dot is Re a*b.
func dot(a, b complex128) float64 { return real(a)*real(b) + imag(a)*imag(b) }

// Known says that phases are known.
func (p ComplexPrior) Known() bool { return math.IsInf(p.Concentration, 1) }

// Free says that nothing is known of phases beforehand: the phase common to all is then a convention.
func (p ComplexPrior) Free() bool { return p.Concentration == 0 }

// Unknowns is how many real numbers of s are unknown: amplitude, phase, or both.
func (p ComplexPrior) Unknowns() (count int) {
	if p.Lo < p.Hi {
		count++
	}
	if !p.Known() {
		count++
	}
	return count
}

// Validate reports a parameter that describes no distribution.
func (p ComplexPrior) Validate() error {
	switch {
	case p.Lo == p.Hi && p.Known():
		return errors.New("amplitude and phase of s are both known: there is nothing to calibrate")
	case p.Lo == p.Hi && p.Lo > 0 && !math.IsInf(p.Lo, 1):
	default:
		if err := p.Amplitude().Validate(); err != nil {
			return fmt.Errorf("the amplitude: %w", err)
		}
	}
	if !(p.Concentration >= 0) {
		return fmt.Errorf("the concentration κ of the phases must not be negative, found %g", p.Concentration)
	}
	return nil
}

// Amplitude is the distribution of |s|; of no use where that is known.
func (p ComplexPrior) Amplitude() GainPrior {
	return GainPrior{Lo: p.Lo, Hi: p.Hi, Center: p.Center, Precision: p.Precision, Log: p.Log}
}

// WithAmplitude is p with another distribution of |s|, whose tail is left out.
func (p ComplexPrior) WithAmplitude(g GainPrior) ComplexPrior {
	p.Lo, p.Hi, p.Center, p.Precision, p.Log = g.Lo, g.Hi, g.Center, g.Precision, g.Log
	return p
}

// Name implements [Calibration].
func (p ComplexPrior) Name() string {
	return fmt.Sprintf("%s phase concentration=%g", p.Amplitude().Name(), p.Concentration)
}

// Width implements [Calibration]: the statistics are τ, both parts of B, and n.
func (p ComplexPrior) Width() int { return complexWidth }

// Range implements [Calibration]: of the amplitude.
func (p ComplexPrior) Range() (lo, hi float64) { return p.Lo, p.Hi }

// density is that of s with the statistics of its readings, and B multiplied by a factor.
func (p ComplexPrior) density(stats []float64, factor complex128) quadrature.Phasor {
	d := quadrature.Phasor{
		Power: 2 * stats[complexReadings], Tau: stats[complexPrecision], B: factor * fieldOf(stats),
		Known: p.Known(), Lo: p.Lo, Hi: p.Hi,
	}
	if p.Log {
		d.LogCenter, d.LogPrecision = p.Center, p.Precision
	} else {
		d.Linear = p.Precision * p.Center
		d.Tau += 0.5 * p.Precision
	}
	if !d.Known && p.Pairs == nil { // what is known of sensors is in the statistics of their rows
		d.K = complex(p.Concentration, 0)
	}
	return d
}

func (p ComplexPrior) moments(stats []float64, factor complex128) quadrature.PhasorMoments {
	d := p.density(stats, factor)
	return d.Moments()
}

// LogScaled implements [Turning].
func (p ComplexPrior) LogScaled(stats []float64, c float64) float64 {
	scaled := slices.Clone(stats)
	p.ScaleStats(scaled, c)
	m := p.moments(scaled, 1)
	r, n := cmplx.Abs(m.Peak), 2*scaled[complexReadings]
	return m.LogMass + p.logDensity(m.Peak) + n*math.Log(r/c) + 2*dot(m.Peak, fieldOf(scaled)) - scaled[complexPrecision]*r*r
}

// logDensity is the exponent of the prior at s, but for the constant e^κ.
func (p ComplexPrior) logDensity(s complex128) float64 {
	r, amplitude := cmplx.Abs(s), p.Amplitude()
	log := amplitude.logWeight(r)
	if p.Log {
		log = amplitude.LogDensity(r)
	}
	if !p.Known() {
		log -= p.Concentration * (1 - real(s)/r)
	}
	return log
}

// logNorm is the logarithm of the integral of the prior with that exponent.
func (p ComplexPrior) logNorm() (norm float64) {
	switch {
	case p.Lo == p.Hi:
	case p.Log:
		norm = p.Amplitude().logNormalMass()
	default:
		norm = p.Amplitude().logMass()
	}
	if !p.Known() {
		norm += quadrature.LogBessel(p.Concentration)
	}
	return norm
}

// Moments implements [Calibration]: |E s| and E|s|² - |E s|².
func (p ComplexPrior) Moments() (mean, variance float64) {
	m := p.moments(make([]float64, complexWidth), 1)
	return cmplx.Abs(m.Mean), m.Var
}

// Posteriors implements [Calibration]: |ŝ| and Cˢ.
func (p ComplexPrior) Posteriors(mean, variance, stats []float64) {
	for mu := range mean {
		m := p.moments(stats[mu*complexWidth:][:complexWidth], 1)
		mean[mu], variance[mu] = cmplx.Abs(m.Mean), m.Var
	}
}

// ComplexStats are the statistics of a sensor with the sums τ and B over n readings (see [ComplexGain]).
func ComplexStats(tau float64, b complex128, n float64) []float64 {
	return []float64{complexPrecision: tau, complexField: real(b), complexField + 1: imag(b), complexReadings: n}
}

// Posterior is the posterior mean of s, and its variance, of both parts together.
func (p ComplexPrior) Posterior(stats []float64) (mean complex128, variance float64) {
	m := p.moments(stats, 1)
	return m.Mean, m.Var
}

// CDF implements [Calibration]: of the amplitude.
func (p ComplexPrior) CDF(stats []float64, at float64) float64 {
	d := p.density(stats, 1)
	return d.AmplitudeCDF(at)
}

// Quantile implements [Calibration]: of the amplitude.
func (p ComplexPrior) Quantile(stats []float64, level float64) float64 {
	d := p.density(stats, 1)
	return d.AmplitudeQuantile(level)
}

// PhaseInterval returns the posterior mean phase and how far to either side of it the phase
// lies with the given probability: π where it may be anywhere.
func (p ComplexPrior) PhaseInterval(stats []float64, level float64) (mean, half float64) {
	d := p.density(stats, 1)
	return d.PhaseInterval(level)
}

// Readings implements [Calibration].
func (p ComplexPrior) Readings(stats []float64) float64 { return stats[complexReadings] }

// Information implements [Calibration]: 2τ, of the amplitude.
func (p ComplexPrior) Information(stats []float64) float64 { return 2 * stats[complexPrecision] }

// Fit implements [Calibration]: the least-squares |B|/τ.
func (p ComplexPrior) Fit(stats []float64) float64 {
	return cmplx.Abs(fieldOf(stats)) / stats[complexPrecision]
}

// PhaseOf is e^{iφ} of the phase that maximises the likelihood of the statistics: that of B, or 1 where phases are known.
func (p ComplexPrior) PhaseOf(stats []float64) complex128 {
	field := fieldOf(stats)
	if p.Known() || field == 0 {
		return 1
	}
	return field / complex(cmplx.Abs(field), 0)
}

// SetNormal implements [Calibration]. The phase is 0, as the arguments do not specify it.
func (p ComplexPrior) SetNormal(stats []float64, mean, variance float64) {
	p.SetPosterior(stats, complex(mean, 0), variance)
}

// SetPosterior implements [Turning]: CN(mean, variance) where amplitude and phase are unknown. Where only one of them is, s moves along
// one line, which has half of that variance: the other half is taken in beforehand.
func (p ComplexPrior) SetPosterior(stats []float64, mean complex128, variance float64) {
	variance *= 2 / float64(max(1, p.Unknowns()))
	copy(stats, ComplexStats(1/variance, mean/complex(variance, 0), 0))
}

// Carry implements [Calibration].
func (p ComplexPrior) Carry(stats []float64, weight, c float64) {
	for s := range slices.Chunk(stats, complexWidth) {
		s[complexPrecision] *= weight
		s[complexField] *= weight * c
		s[complexField+1] *= weight * c
		s[complexReadings] *= weight
	}
}

// Pull implements [Calibration]: 2 Re ŝ*B. The phase of ŝ is that of the posterior.
func (p ComplexPrior) Pull(stats []float64, s float64) float64 {
	mean := p.moments(stats, 1).Mean
	if mean == 0 {
		return 0
	}
	return 2 * s * dot(mean, fieldOf(stats)) / cmplx.Abs(mean)
}

// Turning is a [Calibration] of complex numbers. What it says as a [Calibration] is of the amplitude.
type Turning interface {
	Gains

	// Phases is the concentration κ of the phases, 0 where they are free and +Inf where they are known, and WithPhases the
	// same with another one. Unknowns is how many real numbers of s are unknown: amplitude, phase, or both.
	Phases() float64
	WithPhases(kappa float64) Turning
	Unknowns() int

	// PhaseInterval returns the posterior mean phase and how far to either side of it the phase lies with the given
	// probability: π where it may be anywhere.
	PhaseInterval(stats []float64, level float64) (mean, half float64)

	// PhaseSpread is the κ that the statistics of several sensors are likeliest under, and the logarithm of how much likelier they are than
	// under the present one; AboutNominal that of how much likelier they are than with phases that may be anywhere. Sensors for which omit
	// is true do not count.
	PhaseSpread(stats []float64, omit []bool) (likeliest, logRatio float64)
	AboutNominal(stats []float64, omit []bool) float64

	// Turn makes statistics, of several sensors at once, those that a later sample inherits when all signals so far
	// are turned by so many radians, with s as it is.
	Turn(stats []float64, theta float64)

	// Posterior is the posterior mean of s of one sensor, and its variance, of both parts together.
	Posterior(stats []float64) (mean complex128, variance float64)

	// LogScaled is the logarithm of the probability, up to a constant, of what statistics say of s when s is c times
	// as large. For statistics that are so precise that s is normal it loses digits.
	LogScaled(stats []float64, c float64) float64

	// SetPosterior writes statistics (of no reading) with which the posterior, were nothing else known, has about this
	// mean and variance.
	SetPosterior(stats []float64, mean complex128, variance float64)
}

// PhasesOf is the concentration κ of the phases of s; +Inf where s is real, or none.
func PhasesOf(c Calibration) float64 {
	if t, ok := c.(Turning); ok {
		return t.Phases()
	}
	return math.Inf(1)
}

// PhasesFree says that nothing is known of phases beforehand: the phase common to all is then a convention.
func PhasesFree(c Calibration) bool { return PhasesOf(c) == 0 }

// PhasesKnown says that s is real, or phases are known.
func PhasesKnown(c Calibration) bool { return math.IsInf(PhasesOf(c), 1) }

// Phases implements [Turning].
func (p ComplexPrior) Phases() float64 { return p.Concentration }

// WithPhases implements [Turning].
func (p ComplexPrior) WithPhases(kappa float64) Turning {
	p.Concentration = kappa
	return p
}

// Turn implements [Turning].
func (p ComplexPrior) Turn(stats []float64, theta float64) {
	by := cmplx.Rect(1, theta)
	for s := range slices.Chunk(stats, complexWidth) {
		b := by * fieldOf(s)
		s[complexField], s[complexField+1] = real(b), imag(b)
	}
}

// Scaled implements [Calibration].
func (p ComplexPrior) Scaled(c float64) Calibration {
	return p.WithAmplitude(p.Amplitude().Times(c))
}

// ScaleStats implements [Calibration].
func (p ComplexPrior) ScaleStats(stats []float64, c float64) {
	for s := range slices.Chunk(stats, complexWidth) {
		s[complexPrecision] /= c * c
		s[complexField] /= c
		s[complexField+1] /= c
	}
}

// Excess implements [Calibration]: of the amplitude.
func (p ComplexPrior) Excess(stats []float64) float64 {
	if p.Lo == p.Hi {
		return 0
	}
	return p.Amplitude().Excess(p.amplitudes(stats))
}
