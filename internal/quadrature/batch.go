package quadrature

import (
	"math"
	"sync"

	"github.com/calamp/calamp/internal/kernel"
)

// batch is how many sensors are integrated at a time.
const batch = 64

// workspace is what a batch needs.
type workspace struct {
	density [batch]offsetDensity
	plan    [batch]plan
	peak    [batch]float64 // log-density at the mode, but for n log(mode)
	count   [12]int        // sensors of every rule; an array, for clear
	members [batch]uint8   // of one rule
	modes   [batch]float64 // and their logarithms
	mass    [batch]float64 // and its logarithm
	integrals
}

// integrals is what the kernel needs.
type integrals struct {
	d       [batch * kernel.GainFields]float64
	out     [batch * kernel.GainResults]float64
	scratch [mostNodes * kernel.Lanes]float64
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// GainMomentsBatch is [GainMoments] for a block of sensors, whose statistics
// and results have one length; extraTau and extraB, a calibration prior's, are
// added to every τ and B. It allocates nothing. A sensor's result does not
// depend on the others.
func GainMomentsBatch(logNorm, mean, variance, n, tau, b []float64, extraTau, extraB, lo, hi float64) {
	s := workspaces.Get().(*workspace)
	for first := 0; first < len(tau); first += batch {
		end := min(first+batch, len(tau))
		clear(s.count[:])
		for i := first; i < end; i++ {
			s.prepare(i-first, n[i], tau[i]+extraTau, b[i]+extraB, lo, hi)
		}
		s.integrate(mean[first:end], variance[first:end], lo, hi)
		s.logarithms(logNorm[first:end])
	}
	workspaces.Put(s)
}

// pointMass marks a sensor that needs no integral.
const pointMass = -1

// prepare finds the mode of one sensor and how to integrate around it.
func (s *workspace) prepare(i int, n, tau, b, lo, hi float64) {
	mode := min(max(GainMode(n, tau, b), lo), hi)
	slope := gainSlope(n, tau, b, mode)
	d := &s.density[i]
	*d = offsetDensity{n: n, tau: tau, slope: slope, mode: mode}
	s.modes[i], s.mass[i] = mode, 1
	s.peak[i] = mode * (b - 0.5*tau*mode)
	if math.IsNaN(slope) || math.Abs(slope) > math.MaxFloat64/4 || tau > math.MaxFloat64/4 {
		// So steep that double precision sees a point mass.
		s.plan[i] = plan{rule: pointMass}
		return
	}
	s.plan[i] = d.plan(lo, hi)
	s.count[s.plan[i].rule]++
}

// integrate finds the moments of all sensors of a batch, rule by rule.
func (s *workspace) integrate(mean, variance []float64, lo, hi float64) {
	for i := range mean {
		if s.plan[i].rule == pointMass {
			mean[i], variance[i] = s.modes[i], 0
		}
	}
	for r := range rules {
		if s.count[r] == 0 {
			continue
		}
		members := s.members[:0]
		for i := range mean {
			if s.plan[i].rule == r {
				members = append(members, uint8(i))
			}
		}
		s.integrateRule(&rules[r], members)
		for at, i := range members {
			d, p := &s.density[i], &s.plan[i]
			s.mass[i] = p.halfWidth * s.result(at, kernel.GainMass)
			mean[i] = min(max(d.mode+(p.middle+p.halfWidth*s.result(at, kernel.GainFirst)), lo), hi)
			variance[i] = p.halfWidth * p.halfWidth * s.result(at, kernel.GainSecond)
		}
	}
}

// integrateRule runs the kernel for the sensors of one rule. The last group is
// filled up with copies of its first.
func (s *workspace) integrateRule(r *rule, members []uint8) {
	groups := (len(members) + kernel.Lanes - 1) / kernel.Lanes
	for at := range groups * kernel.Lanes {
		i := members[min(at, len(members)-1)]
		d, p := &s.density[i], &s.plan[i]
		to := s.d[at/kernel.Lanes*kernel.GainFields*kernel.Lanes+at%kernel.Lanes:]
		to[kernel.GainSlope*kernel.Lanes] = d.slope
		to[kernel.GainHalfTau*kernel.Lanes] = p.halfTau
		to[kernel.GainCount*kernel.Lanes] = d.n
		to[kernel.GainInverse*kernel.Lanes] = 1 / d.mode
		to[kernel.GainMiddle*kernel.Lanes] = p.middle
		to[kernel.GainHalfWidth*kernel.Lanes] = p.halfWidth
	}
	kernel.GainIntegrals(r.x, r.w, groups, s.d[:], s.scratch[:], s.out[:])
}

func (s *workspace) result(at, what int) float64 {
	return s.out[(at/kernel.Lanes*kernel.GainResults+what)*kernel.Lanes+at%kernel.Lanes]
}

// logarithms finishes the log-normalisers.
func (s *workspace) logarithms(logNorm []float64) {
	padded := (len(logNorm) + kernel.Lanes - 1) / kernel.Lanes * kernel.Lanes
	for i := len(logNorm); i < padded; i++ {
		s.modes[i], s.mass[i] = 1, 1
	}
	kernel.Log(s.modes[:padded])
	kernel.Log(s.mass[:padded])
	for i := range logNorm {
		logNorm[i] = clampFinite(s.peak[i] + s.density[i].n*s.modes[i] + s.mass[i])
	}
}
