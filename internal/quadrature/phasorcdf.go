package quadrature

import (
	"math"
	"math/cmplx"

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

	phaseCells = 256 // in which the distribution of a phase is integrated, to either side
	phaseReach = 12  // standard deviations that they reach
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
	logs, top := make([]float64, phaseCells+1), math.Inf(-1)
	both := make([]float64, phaseCells+1)
	for i := range logs {
		a, b := p.logAt(mean+float64(i)*step), p.logAt(mean-float64(i)*step)
		if i == 0 {
			top = a
		}
		both[i] = math.Exp(a-top) + math.Exp(b-top)
	}
	for i := range phaseCells {
		logs[i+1] = logs[i] + 0.5*step*(both[i]+both[i+1])
	}
	want := level * logs[phaseCells]
	for i := range phaseCells {
		if logs[i+1] >= want {
			return mean, (float64(i) + (want-logs[i])/(logs[i+1]-logs[i])) * step
		}
	}
	return mean, reach
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
