package channel

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/cholesky"
)

// DisplacedPrior is the calibration that a stream has of sensors with a gain and parameters θ (see [Displaced]): the distribution of s, and θ_j ~ N(0, σ_j²).
// The statistics of a sensor are τ, B and n as of a gain at θ = 0, and
//
//	u = Σₖ ω_j y/D,   v = Σₖ ω_j ω/D,   A = Σₖ ω_j ω_lᵀ/D,
//
// J, J and J(J+1)/2 numbers, the lower triangle row by row. They add up. Given them θ is integrated out, and what is left of s is the density
// of a [GainPrior] with τ - uᵀA⁻¹u and B - uᵀA⁻¹v, A with σ⁻² on its diagonal.
type DisplacedPrior struct {
	Gain GainPrior
	By   *Displacements // whose Spread is σ (J); whoever learns it changes it there
}

// Gains implements [Gains].
func (p DisplacedPrior) Gains() GainPrior { return p.Gain }

// Validate reports a parameter that describes no distribution.
func (p DisplacedPrior) Validate() error {
	for j, sd := range p.By.Spread {
		if !(sd > 0) || math.IsInf(sd, 1) {
			return fmt.Errorf("the spread of parameter %d of the sensors must be positive and finite, found %g", j, sd)
		}
	}
	if p.Gain.Each != nil {
		return errors.New("parameters of sensors need one distribution of s for all sensors")
	}
	return p.Gain.Validate()
}

// Name implements [Calibration].
func (p DisplacedPrior) Name() string {
	return fmt.Sprintf("%s parameters=%d", p.Gain.Name(), len(p.By.Spread))
}

// Width implements [Calibration].
func (p DisplacedPrior) Width() int {
	j := len(p.By.Spread)
	return gainWidth + 2*j + j*(j+1)/2
}

// parts are u, v and the triangle of A within statistics of one sensor.
func (p DisplacedPrior) parts(stats []float64) (u, v, a []float64) {
	j := len(p.By.Spread)
	return stats[gainWidth : gainWidth+j], stats[gainWidth+j : gainWidth+2*j], stats[gainWidth+2*j : p.Width()]
}

// addTo adds statistics of one sensor to sums of others.
func (p DisplacedPrior) addTo(d *displacement, stats []float64) {
	u, v, a := p.parts(stats)
	d.tau, d.shift, d.n = d.tau+stats[precision], d.shift+stats[field], d.n+stats[readings]
	at := 0
	for j := range u {
		d.u[j], d.v[j] = d.u[j]+u[j], d.v[j]+v[j]
		for l := range j + 1 {
			d.factor[j*len(u)+l] += a[at]
			at++
		}
	}
}

// put writes sums, before θ is integrated out, as statistics of a sensor.
func (p DisplacedPrior) put(stats []float64, d *displacement) {
	u, v, a := p.parts(stats)
	stats[precision], stats[field], stats[readings] = d.tau, d.shift, d.n
	copy(u, d.u)
	copy(v, d.v)
	at := 0
	for j := range u {
		at += copy(a[at:], d.factor[j*len(u):j*len(u)+j+1])
	}
}

// solve integrates θ out of statistics of one sensor.
func (p DisplacedPrior) solve(d *displacement, stats []float64) {
	d.clear()
	p.addTo(d, stats)
	d.integrate(p.By.Spread)
}

// asGains are the statistics of s alone, of several sensors.
func (p DisplacedPrior) asGains(stats []float64) []float64 {
	width, d := p.Width(), newDisplacement(len(p.By.Spread))
	out := make([]float64, 0, len(stats)/width*gainWidth)
	for ; len(stats) > 0; stats = stats[width:] {
		p.solve(d, stats[:width])
		out = append(out, GainStats(d.tau, d.shift, d.n)...)
	}
	return out
}

// Moments implements [Calibration].
func (p DisplacedPrior) Moments() (mean, variance float64) { return p.Gain.Moments() }

// Range implements [Calibration].
func (p DisplacedPrior) Range() (lo, hi float64) { return p.Gain.Range() }

// Posteriors implements [Calibration].
func (p DisplacedPrior) Posteriors(mean, variance, stats []float64) {
	p.Gain.Posteriors(mean, variance, p.asGains(stats[:len(mean)*p.Width()]))
}

// Parametric is a [Calibration] that knows parameters θ of sensors beside s.
type Parametric interface {
	Calibration

	// Parameters writes the posterior mean of θ (M×J), its covariance (M×J×J), and its covariance with s (M×J), for sensors of which that
	// of s is known, as by Posteriors.
	Parameters(theta, cov, withS, s, sVar, stats []float64)
}

// Parameters implements [Parametric].
func (p DisplacedPrior) Parameters(theta, cov, withS, s, sVar, stats []float64) {
	js, width, d := len(p.By.Spread), p.Width(), newDisplacement(len(p.By.Spread))
	for mu := range s {
		p.solve(d, stats[mu*width:(mu+1)*width])
		for j := range js {
			theta[mu*js+j] = s[mu]*d.slope[j] - d.constant[j]
			withS[mu*js+j] = sVar[mu] * d.slope[j]
			for l := range js {
				cov[(mu*js+j)*js+l] = d.inverse[j*js+l] + sVar[mu]*d.slope[j]*d.slope[l]
			}
		}
	}
}

// CDF implements [Calibration].
func (p DisplacedPrior) CDF(stats []float64, at float64) float64 {
	return p.Gain.CDF(p.asGains(stats), at)
}

// Quantile implements [Calibration].
func (p DisplacedPrior) Quantile(stats []float64, level float64) float64 {
	return p.Gain.Quantile(p.asGains(stats), level)
}

// Readings implements [Calibration].
func (p DisplacedPrior) Readings(stats []float64) float64 { return stats[readings] }

// Information implements [Calibration].
func (p DisplacedPrior) Information(stats []float64) float64 {
	return p.Gain.Information(p.asGains(stats))
}

// Fit implements [Calibration].
func (p DisplacedPrior) Fit(stats []float64) float64 {
	gain := p.asGains(stats)
	if gain[precision] == 0 {
		mean, _ := p.Moments()
		return mean
	}
	return p.Gain.Fit(gain)
}

// Excess implements [Calibration].
func (p DisplacedPrior) Excess(stats []float64) float64 { return p.Gain.Excess(p.asGains(stats)) }

// SetNormal implements [Calibration]: nothing is then said of θ.
func (p DisplacedPrior) SetNormal(stats []float64, mean, variance float64) {
	clear(stats)
	p.Gain.SetNormal(stats[:gainWidth], mean, variance)
}

// Carry implements [Calibration].
func (p DisplacedPrior) Carry(stats []float64, weight, c float64) {
	p.scaled(stats, weight, weight*c, weight*c, weight*c*c, weight)
}

// ScaleStats implements [Calibration].
func (p DisplacedPrior) ScaleStats(stats []float64, c float64) {
	p.scaled(stats, 1/(c*c), 1/c, 1/c, 1, 1)
}

// scaled multiplies τ, B, u, v with A, and n of several sensors.
func (p DisplacedPrior) scaled(stats []float64, tau, b, turn, constant, n float64) {
	for width := p.Width(); len(stats) > 0; stats = stats[width:] {
		stats[precision], stats[field], stats[readings] = tau*stats[precision], b*stats[field], n*stats[readings]
		u, v, a := p.parts(stats[:width])
		for _, of := range []struct {
			values []float64
			by     float64
		}{{u, turn}, {v, constant}, {a, constant}} {
			for i := range of.values {
				of.values[i] *= of.by
			}
		}
	}
}

// Pull implements [Calibration].
func (p DisplacedPrior) Pull(stats []float64, s float64) float64 {
	return p.Gain.Pull(p.asGains(stats), s) + p.ofSquares(stats, nil)
}

// ofSquares is what θ takes of Σ ω²/D of sensors that work,
//
//	vᵀA⁻¹v + Σ_j (E[θ_j²]/σ_j² - 1),
//
// by which the evidence rises with the scale (see [Displaced.ScaleQuadratic]).
func (p DisplacedPrior) ofSquares(stats, broken []float64) (sum float64) {
	width, js, d := p.Width(), len(p.By.Spread), newDisplacement(len(p.By.Spread))
	s, sVar := make([]float64, len(stats)/width), make([]float64, len(stats)/width)
	p.Posteriors(s, sVar, stats)
	for mu := range s {
		p.solve(d, stats[mu*width:(mu+1)*width])
		square := cholesky.Dot(d.v, d.constant)
		for j, spread := range p.By.Spread {
			theta := s[mu]*d.slope[j] - d.constant[j]
			square += (theta*theta+d.inverse[j*js+j]+sVar[mu]*d.slope[j]*d.slope[j])/(spread*spread) - 1
		}
		if broken != nil {
			square *= 1 - broken[mu]
		}
		sum += square
	}
	return sum
}

// Scaled implements [Calibration]: θ moves rows, of whatever size signals are.
func (p DisplacedPrior) Scaled(c float64) Calibration {
	return DisplacedPrior{p.Gain.Times(c), p.By}
}

// WithGains implements [Gains].
func (p DisplacedPrior) WithGains(g GainPrior) Bounded { return DisplacedPrior{g, p.By} }

// Learns implements [Learnable].
func (p DisplacedPrior) Learns() error { return p.Gain.Learns() }

// Refit implements [Learnable].
func (p DisplacedPrior) Refit(stats []float64, omit []bool) (Calibration, float64) {
	next, change := p.Gain.Refit(p.asGains(stats), omit)
	return DisplacedPrior{next.(GainPrior), p.By}, change
}

// Fills implements [Bounded].
func (p DisplacedPrior) Fills() error { return p.Gain.Fills() }

// Contradiction implements [Bounded].
func (p DisplacedPrior) Contradiction(stats []float64, omit []bool) (most, mean float64) {
	return p.Gain.Contradiction(p.asGains(stats), omit)
}

// Within implements [Bounded].
func (p DisplacedPrior) Within(stats []float64, omit []bool) Learnable {
	return DisplacedPrior{p.Gain.Within(p.asGains(stats), omit).(GainPrior), p.By}
}

// Bounding implements [Bounded].
func (p DisplacedPrior) Bounding(c Calibration) Calibration {
	if d, ok := c.(DisplacedPrior); ok {
		return d.WithGains(d.Gain.Between(p.Gain.Range()))
	}
	return c
}

// LogInside implements [Bounded].
func (p DisplacedPrior) LogInside(mean, sd float64) (log float64, outside bool) {
	return p.Gain.LogInside(mean, sd)
}

// ofParameters is what u, v and A of a past add to minus twice the logarithm of the density of s and θ.
func (p DisplacedPrior) ofParameters(stats []float64, s float64, theta []float64) (square float64) {
	u, v, a := p.parts(stats)
	at := 0
	for j, t := range theta {
		square += 2 * t * (v[j] - s*u[j])
		for l := range j + 1 {
			term := a[at] * t * theta[l]
			if l < j {
				term *= 2
			}
			square += term
			at++
		}
	}
	return square
}
