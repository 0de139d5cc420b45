package channel

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/search"
)

// OffsetPrior is what is known of sensors with a gain and an offset, y = z/s + o: the distribution of s, and o ~
// N(0, SD²) in the units of the readings. The statistics of a sensor are [OffsetStats].
type OffsetPrior struct {
	Gain GainPrior
	SD   float64 // ≥ 0; +Inf: nothing is known of offsets
}

// Offsetting is a [Calibration] with an offset of every sensor beside its s.
type Offsetting interface {
	Calibration

	// Offsets writes the posterior mean and variance of the offset for each of len(mean) sensors, and OffsetSD
	// is its standard deviation beforehand; the mean is 0.
	Offsets(mean, variance, stats []float64)
	OffsetSD() float64
	WithOffsetSD(sd float64) Calibration

	// Corrected is s(y-o) given the statistics of a sensor.
	Corrected(stats []float64) Line

	// RefitOffsets returns the same with the standard deviation that explains the sensors' statistics best, and by
	// how many of its standard errors it moved. Sensors for which omit, nil or one value a sensor, is true do not count.
	RefitOffsets(stats []float64, omit []bool) (next Calibration, change float64)
}

// Gains is a [Calibration] that has, among other things, a [GainPrior] of s, which WithGains replaces.
type Gains interface {
	Calibration
	Gains() GainPrior
	WithGains(g GainPrior) Bounded
}

// Gains implements [Gains].
func (p GainPrior) Gains() GainPrior { return p }

// WithGains implements [Gains].
func (p GainPrior) WithGains(g GainPrior) Bounded { return g }

// WithGains implements [Gains].
func (p OffsetPrior) WithGains(g GainPrior) Bounded { return OffsetPrior{g, p.SD} }

// Gains implements [Gains].
func (p OffsetPrior) Gains() GainPrior { return p.Gain }

// Validate reports a parameter that describes no distribution.
func (p OffsetPrior) Validate() error {
	if !(p.SD >= 0) {
		return fmt.Errorf("the standard deviation of offsets must not be negative, found %g", p.SD)
	}
	if !p.Gain.normal() {
		return errors.New("offsets need a uniform or normal distribution of s, the same for all sensors")
	}
	return p.Gain.Validate()
}

// Name implements [Calibration].
func (p OffsetPrior) Name() string {
	if math.IsNaN(p.SD) {
		return p.Gain.Name() + " offset=learned"
	}
	return fmt.Sprintf("%s offset=%g", p.Gain.Name(), p.SD)
}

// Width implements [Calibration].
func (p OffsetPrior) Width() int { return offsetWidth }

// Moments implements [Calibration].
func (p OffsetPrior) Moments() (mean, variance float64) { return p.Gain.Moments() }

// Range implements [Calibration].
func (p OffsetPrior) Range() (lo, hi float64) { return p.Gain.Range() }

// OffsetSD implements [Offsetting].
func (p OffsetPrior) OffsetSD() float64 { return p.SD }

// WithOffsetSD implements [Offsetting].
func (p OffsetPrior) WithOffsetSD(sd float64) Calibration {
	p.SD = sd
	return p
}

// Line is a line of two uncertain numbers, its value at some place and its slope: of readings of one sensor what their calibrated values have in common.
type Line struct {
	Place, Value, Slope float64
	ValueVar, SlopeVar  float64
	Covariance          float64 // of value and slope
}

// At is the mean and the variance of the line at y.
func (l Line) At(y float64) (mean, variance float64) {
	d := y - l.Place
	return l.Value + l.Slope*d, l.SlopeVar*d*d + 2*l.Covariance*d + l.ValueVar
}

// Corrected implements [Offsetting]: given s it is N(s(y-ȳ) + ω̄ + ζ, ρ/T₀).
func (p OffsetPrior) Corrected(stats []float64) Line {
	s := offsetStats(stats, 0)
	q := p.Posterior(&s)
	if s.T0 == 0 {
		return Line{Slope: q.S, SlopeVar: q.SVar, ValueVar: (q.SVar + q.S*q.S) * p.variance()}
	}
	return Line{Place: s.Y, Value: s.Omega + q.Zeta, Slope: q.S, ValueVar: q.ZetaVar + q.Rho/s.T0, SlopeVar: q.SVar, Covariance: q.SZeta}
}

// Merge implements [Merging].
func (p OffsetPrior) Merge(stats, more []float64) {
	offsetStats(stats, 0).Merged(offsetStats(more, 0)).put(stats, 0)
}

// Remove implements [Merging].
func (p OffsetPrior) Remove(stats, less []float64) {
	offsetStats(stats, 0).Without(offsetStats(less, 0)).put(stats, 0)
}

func (p OffsetPrior) flat() bool { return math.IsInf(p.SD, 1) }

func (p OffsetPrior) variance() float64 { return p.SD * p.SD }

// density is that of s, with the prior's own normal in it.
func (p OffsetPrior) density(s *OffsetStats) quadrature.OffsetDensity {
	g := p.Gain
	return quadrature.OffsetDensity{
		N: s.N, Tau: s.Tau + g.Precision, B: s.B + g.Precision*g.Center, T0: s.T0, Y: s.Y, Omega: s.Omega,
		Var: p.variance(), Lo: g.Lo, Hi: g.Hi,
	}
}

// Posterior is what statistics of a sensor say of its s and its offset.
func (p OffsetPrior) Posterior(s *OffsetStats) quadrature.OffsetPosterior {
	d := p.density(s)
	return d.Posterior()
}

// Posteriors implements [Calibration].
func (p OffsetPrior) Posteriors(mean, variance, stats []float64) {
	for mu := range mean {
		s := offsetStats(stats, mu)
		q := p.Posterior(&s)
		mean[mu], variance[mu] = q.S, q.SVar
	}
}

// Offsets implements [Offsetting].
func (p OffsetPrior) Offsets(mean, variance, stats []float64) {
	for mu := range mean {
		s := offsetStats(stats, mu)
		q := p.Posterior(&s)
		mean[mu], variance[mu] = q.Offset, q.OffsetVar
	}
}

// CDF implements [Calibration]: the smaller part is integrated.
func (p OffsetPrior) CDF(stats []float64, at float64) float64 {
	s := offsetStats(stats, 0)
	d := p.density(&s)
	whole := d.Posterior()
	return offsetCDF(d, &whole, at)
}

func offsetCDF(d quadrature.OffsetDensity, whole *quadrature.OffsetPosterior, at float64) float64 {
	return cdfOf(at, d.Lo, d.Hi, whole.S, func(lo, hi float64) float64 {
		cut := d
		cut.Lo, cut.Hi = lo, hi
		q := cut.Posterior()
		return math.Exp(d.LogRatio(q.Mode, whole.Mode) + q.LogMass - whole.LogMass)
	})
}

// Quantile implements [Calibration], as [GainPrior.Quantile].
func (p OffsetPrior) Quantile(stats []float64, level float64) float64 {
	s := offsetStats(stats, 0)
	d := p.density(&s)
	whole := d.Posterior()
	sd := math.Sqrt(whole.SVar)
	bracket := search.Bracket{Lo: d.Lo, Hi: d.Hi}
	at := min(max(whole.S+sd*quadrature.NormalBound(2*level-1), d.Lo), d.Hi)
	for range 60 {
		density := math.Exp(d.LogRatio(at, whole.Mode) - whole.LogMass)
		next := bracket.Next(at, offsetCDF(d, &whole, at)-level, density)
		step := math.Abs(next - at)
		at = next
		if step <= 1e-9*sd {
			break
		}
	}
	return at
}

// asGain are the statistics of a sensor without an offset that say the same of s, with K as it is at the s that the
// spread of the readings is likeliest under: the offset takes a part ρ of a reading.
func (p OffsetPrior) asGain(stats []float64) [gainWidth]float64 {
	s := offsetStats(stats, 0)
	at := 0.5 * (p.Gain.Lo + p.Gain.Hi)
	if s.Tau > 0 {
		at = min(max(s.B/s.Tau, p.Gain.Lo), p.Gain.Hi)
	}
	left := 0.0 // T₀/K
	rho := 1.0
	if !p.flat() {
		w := p.variance() * s.T0 * at * at
		left, rho = s.T0/(1+w), w/(1+w)
	}
	return [gainWidth]float64{
		precision: s.Tau + left*s.Y*s.Y,
		field:     s.B + left*s.Y*s.Omega,
		readings:  max(0, s.N-min(rho, s.N)),
	}
}

// allAsGains is asGain for several sensors.
func (p OffsetPrior) allAsGains(stats []float64) []float64 {
	out := make([]float64, 0, len(stats)/offsetWidth*gainWidth)
	for from := 0; from < len(stats); from += offsetWidth {
		s := p.asGain(stats[from : from+offsetWidth])
		out = append(out, s[:]...)
	}
	return out
}

// Readings implements [Calibration].
func (p OffsetPrior) Readings(stats []float64) float64 { return offsetStats(stats, 0).N }

// Information implements [Calibration].
func (p OffsetPrior) Information(stats []float64) float64 {
	s := p.asGain(stats)
	return s[precision]
}

// Fit implements [Calibration].
func (p OffsetPrior) Fit(stats []float64) float64 {
	s := p.asGain(stats)
	if s[precision] == 0 {
		mean, _ := p.Moments()
		return mean
	}
	return p.Gain.Fit(s[:])
}

// Excess implements [Calibration].
func (p OffsetPrior) Excess(stats []float64) float64 {
	s := p.asGain(stats)
	return p.Gain.Excess(s[:])
}

// SetNormal implements [Calibration]: nothing is then said of the offset.
func (p OffsetPrior) SetNormal(stats []float64, mean, variance float64) {
	var gain [gainWidth]float64
	p.Gain.SetNormal(gain[:], mean, variance)
	OffsetStats{Tau: gain[precision], B: gain[field]}.put(stats, 0)
}

// Carry implements [Calibration].
func (p OffsetPrior) Carry(stats []float64, weight, c float64) {
	for mu := range len(stats) / offsetWidth {
		s := offsetStats(stats, mu)
		s.T0 *= weight
		s.Omega *= c
		s.Tau *= weight
		s.B *= weight * c
		s.N *= weight
		s.put(stats, mu)
	}
}

// Pull implements [Calibration]: E[sB + T₀ω̄ζ]. Where signals are at their fixed point that is Σ g ω and what is quadratic in ω.
func (p OffsetPrior) Pull(stats []float64, s float64) float64 {
	all := offsetStats(stats, 0)
	return s*all.B + all.T0*all.Omega*p.Posterior(&all).Zeta
}

// Scaled implements [Calibration]: offsets are in the units of the readings, and stay.
func (p OffsetPrior) Scaled(c float64) Calibration { return OffsetPrior{p.Gain.Times(c), p.SD} }

// ScaleStats implements [Calibration].
func (p OffsetPrior) ScaleStats(stats []float64, c float64) {
	for mu := range len(stats) / offsetWidth {
		s := offsetStats(stats, mu)
		s.T0 /= c * c
		s.Omega *= c
		s.Tau /= c * c
		s.B /= c
		s.put(stats, mu)
	}
}

// Learns implements [Learnable].
func (p OffsetPrior) Learns() error { return p.Gain.Learns() }

// Refit implements [Learnable], of the gains: offsets have [OffsetPrior.RefitOffsets].
func (p OffsetPrior) Refit(stats []float64, omit []bool) (Calibration, float64) {
	next, change := p.Gain.Refit(p.allAsGains(stats), omit)
	return OffsetPrior{next.(GainPrior), p.SD}, change
}

// Fills implements [Bounded].
func (p OffsetPrior) Fills() error { return p.Gain.Fills() }

// Contradiction implements [Bounded].
func (p OffsetPrior) Contradiction(stats []float64, omit []bool) (most, mean float64) {
	return p.Gain.Contradiction(p.allAsGains(stats), omit)
}

// Within implements [Bounded].
func (p OffsetPrior) Within(stats []float64, omit []bool) Learnable {
	next := p.Gain.Within(p.allAsGains(stats), omit).(GainPrior)
	next.Tail = 0 // no mixture is integrated beside offsets
	return OffsetPrior{next, p.SD}
}

// Bounding implements [Bounded].
func (p OffsetPrior) Bounding(c Calibration) Calibration {
	if o, ok := c.(OffsetPrior); ok {
		o.Gain = o.Gain.Between(p.Gain.Range())
		return o
	}
	return c
}

// LogInside implements [Bounded].
func (p OffsetPrior) LogInside(mean, sd float64) (log float64, outside bool) {
	return p.Gain.LogInside(mean, sd)
}

const (
	leastRefitOffsets = 10   // sensors that tell a spread
	smallestOffset    = 1e-4 // of a learned standard deviation, relative to the typical error of an offset
)

// RefitOffsets implements [Offsetting]: the variance that maximises Σ_µ log N(o_µ; 0, σ²+v_µ), with o_µ and v_µ what the
// readings alone say of the offsets, which is their posterior without the prior N(0, SD²).
func (p OffsetPrior) RefitOffsets(stats []float64, omit []bool) (next Calibration, change float64) {
	var all peaks
	before, blur := p.variance(), 0.0
	for mu := range len(stats) / offsetWidth {
		s := offsetStats(stats, mu)
		if omit != nil && omit[mu] || s.N < 1 {
			continue
		}
		q := p.Posterior(&s)
		information := 1/q.OffsetVar - 1/before
		if !(information > 0) {
			continue
		}
		all = append(all, peak{q.Offset / q.OffsetVar / information, math.Sqrt(information)})
		blur += 1 / information
	}
	if len(all) < leastRefitOffsets || before == 0 || p.flat() {
		return p, 0
	}
	blur /= float64(len(all))
	least := smallestOffset * smallestOffset * blur
	variance, information := max(before, least), 0.0
	for range 200 {
		var excess float64
		information = 0
		for _, o := range all {
			own := o.variance()
			w := 1 / (variance + own)
			excess += w * w * (o.mode*o.mode - own)
			information += w * w
		}
		was := variance
		variance = max(excess/information, least)
		if math.Abs(variance-was) < 1e-9*variance {
			break
		}
	}
	p.SD = math.Sqrt(variance)
	return p, math.Abs(variance-before) * math.Sqrt(0.5*information)
}
