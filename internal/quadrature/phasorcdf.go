package quadrature

import (
	"math"
	"math/cmplx"
	"sort"

	"github.com/calamp/calamp/internal/search"
)

// LogBessel is log I₀(κ) e^{-κ}, for κ ≥ 0.
func LogBessel(kappa float64) float64 { return math.Log(newCircular(kappa).scaled) }

// phasorPart is one side of h, as far as it has mass.
type phasorPart struct {
	*phasorSide
	left, right float64 // in u
	weight      float64 // of e^h at its maximum, relative to the part with most
}

// parts are the sides of h that [Phasor.Moments] integrates.
func (p *Phasor) parts() []phasorPart {
	q := p.field()
	var room [mostStretches]stretch
	var parts []phasorPart
	var peaks []float64
	top := math.Inf(-1)
	for i, on := range q.stretches(&room) {
		s := q.newSide(on.lo, on.hi)
		left, right := s.extent(on.lo, on.hi)
		parts = append(parts, phasorPart{phasorSide: s, left: left, right: right})
		peaks = append(peaks, q.exponent(s.turn*complex(s.r0, 0))+s.logPeak())
		top = max(top, peaks[i])
	}
	for i := range parts {
		parts[i].weight = math.Exp(peaks[i] - top)
	}
	return parts
}

// mass is the integral of e^h over r up to at, relative to that of the largest maximum.
func (s *phasorPart) mass(at float64) float64 {
	to := min(s.right, at-s.r0)
	if to <= s.left {
		return 0
	}
	rule := &lineRules[Full]
	half, mid, sum := 0.5*(to-s.left), 0.5*(to+s.left), 0.0
	for i, x := range rule.x {
		sum += rule.w[i] * s.density(mid+half*x)
	}
	return s.weight * half * sum
}

func massOf(parts []phasorPart, at float64) (total float64) {
	for i := range parts {
		total += parts[i].mass(at)
	}
	return total
}

// AmplitudeCDF is the probability of r ≤ at.
func (p *Phasor) AmplitudeCDF(at float64) float64 {
	switch {
	case at >= p.Hi:
		return 1
	case at < p.Lo:
		return 0
	}
	parts := p.parts()
	return massOf(parts, at) / massOf(parts, p.Hi)
}

// AmplitudeQuantile is where [Phasor.AmplitudeCDF] is level, in (0, 1).
func (p *Phasor) AmplitudeQuantile(level float64) float64 {
	if p.Lo == p.Hi {
		return p.Lo
	}
	parts := p.parts()
	total := massOf(parts, p.Hi)
	first, last := &parts[0], &parts[len(parts)-1]
	bracket := search.Bracket{Lo: first.r0 + first.left, Hi: last.r0 + last.right}
	r, width := 0.5*(bracket.Lo+bracket.Hi), bracket.Hi-bracket.Lo
	for range 100 {
		density := 0.0
		for i := range parts {
			s := &parts[i]
			if u := r - s.r0; u >= s.left && u <= s.right {
				density += s.weight * s.density(u)
			}
		}
		next := bracket.Next(r, massOf(parts, r)-level*total, density)
		step := math.Abs(next - r)
		if r = next; step <= 1e-10*width {
			break
		}
	}
	return r
}

const (
	// narrowPhase is the standard deviation of a phase, in radians, below which it is normal.
	narrowPhase = 1e-3

	phaseCells = 64 // in which the distribution of a phase is integrated, to either side: five for a standard deviation
	phaseReach = 12 // standard deviations that they reach
)

// PhaseInterval is the phase of E s, and how far to either side of it φ lies with the
// probability level.
func (p *Phasor) PhaseInterval(level float64) (mean, half float64) {
	m := p.Moments()
	mean = cmplx.Phase(m.Mean)
	size := cmplx.Abs(m.Mean)
	sd := math.Sqrt(max(0, m.Var-m.Along)) / max(size, math.SmallestNonzeroFloat64)
	switch {
	case p.Known:
		return mean, 0
	case sd < narrowPhase:
		return mean, sd * math.Sqrt2 * math.Erfinv(level)
	}
	reach := min(math.Pi, phaseReach*sd)
	step := reach / phaseCells
	top := p.logAt(mean)
	var at [phaseCells + 1]float64 // both densities at a distance from the mean
	for i := range at {
		away := float64(i) * step
		at[i] = math.Exp(p.logAt(mean+away)-top) + math.Exp(p.logAt(mean-away)-top)
	}
	return mean, step * reached(at[:], level)
}

// reached is the argument up to which the integral of an even function, given at 0, 1, 2, ..., is the part level of all of it. Between its values it is a cubic through four.
func reached(at []float64, level float64) float64 {
	last := len(at) - 1
	below := make([]float64, last+1)
	for i := range last {
		before, after := at[max(i-1, 1-i)], at[min(i+2, 2*last-i-2)] // even about both ends
		below[i+1] = below[i] + (13*(at[i]+at[i+1])-before-after)/24
	}
	want := level * below[last]
	i := max(1, min(last, sort.SearchFloat64s(below, want))) - 1
	// Hermite's cubic of the integral, of which the function is the slope.
	from, to, t := below[i], below[i+1], 0.5
	cubic := search.Bracket{Lo: 0, Hi: 1}
	for range 60 {
		s := 1 - t
		value := from*s*s*(1+2*t) + to*t*t*(1+2*s) + t*s*(s*at[i]-t*at[i+1])
		slope := 6*t*s*(to-from) + s*(s-2*t)*at[i] + t*(t-2*s)*at[i+1]
		next := cubic.Next(t, value-want, slope)
		moved := math.Abs(next - t)
		if t = next; moved < 1e-12 {
			break
		}
	}
	return float64(i) + t
}

// logAt is the logarithm of the density at a phase, of any amplitude.
func (p *Phasor) logAt(phase float64) float64 {
	to := cmplx.Rect(1, -phase)
	along := p.Linear + 2*real(to*p.B)
	prior := real(to * p.K)
	if p.Lo == p.Hi {
		return prior + along*p.Lo
	}
	if p.LogPrecision > 0 {
		log, r, _ := LogNormalMoments(p.Power, 2*p.Tau, along, p.LogCenter, p.LogPrecision, p.Lo, p.Hi)
		return prior + log + r*(along-p.Tau*r)
	}
	log, _, _ := GainMoments(p.Power, 2*p.Tau, along, p.Lo, p.Hi)
	return prior + log
}
