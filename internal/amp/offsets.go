package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// offsets is what is known of the sensors' offsets; nil where the channel has none.
func (s *modelState) offsets() channel.Offsetting {
	known, _ := s.calibration.(channel.Offsetting)
	return known
}

// Offsets reports whether the channel has them.
func (s *modelState) Offsets() bool { return s.offsets() != nil }

// Reading is reading j as it would be without its sensor's offset.
func (s *sensorState) Reading(j int) float64 { return s.Y[j] - s.O[s.SensorOf(j)] }

// Readings are all of them.
func (s *sensorState) Readings() []float64 {
	y := make([]float64, len(s.Y))
	for j := range y {
		y[j] = s.Reading(j)
	}
	return y
}

const (
	// leastShiftable is how many signals it takes for a common shift of an entry to be distinguished from signals that
	// are like that: with 6 shifts helped as often as they harmed, from 8 on they helped.
	leastShiftable = 8

	// rowShiftEvery is after how many iterations common shifts are looked for, and rowShiftGain by how
	// much the fields must become likelier (the logarithm).
	rowShiftEvery = 10
	rowShiftGain  = 5

	// mostRowShifts is how often one run looks: shifts that are still found then go to and fro.
	mostRowShifts = 30
)

// rowShifts looks for entries that are off by the same number in all signals, x_ik → x_ik + c, which the offsets
// s∘o → s∘o - W c make up for: AMP, signal by signal, locks on to such a place. The right one is where several
// signals do not have the entry: for δ among the fields λ_ik,
//
//	Σ_k log Z_in(λ_ik - δ, Σ_ik) - Σ_k log Z_in(λ_ik, Σ_ik) > 5.
//
// The offsets follow. Not in the paper.
type rowShifts struct {
	Idle
	by            []float64 // P×N
	lambda, sigma []float64 // P
	looks         int
}

// shifter is an iteration whose fields can be moved: λ → λ - by (P×N). The error is that of a W that cannot be
// read.
type shifter interface {
	Iteration
	shift(by []float64) error
}

func (p *rowShifts) Begin(*Solver) { p.looks = 0 }

// After implements [Part].
func (p *rowShifts) After(s *Solver, l *Line) Verdict {
	if (l.Index-s.began)%rowShiftEvery != 0 || p.looks == mostRowShifts {
		return GoOn
	}
	p.looks++
	if !p.find(s.State) || s.Iteration.(shifter).shift(p.by) != nil {
		return GoOn
	}
	return Disturbed
}

// find looks at all entries, and reports whether any is to be shifted.
func (p *rowShifts) find(e *State) (any bool) {
	clear(p.by)
	for i := range e.N {
		active := 0
		for k := range e.P {
			at := k*e.N + i
			p.lambda[k], p.sigma[k] = e.Lambda[at], e.Sigma[at]
			if e.C[at] > 0.5*e.Sigma[at] {
				active++
			}
		}
		if 2*active <= e.P || math.IsInf(p.sigma[0], 1) {
			continue // an entry that most signals do not have is where it belongs
		}
		delta := p.best(e, i)
		if delta == 0 {
			continue
		}
		any = true
		for k := range e.P {
			p.by[k*e.N+i] = delta
		}
	}
	return any
}

// shift implements [shifter].
func (d *diagonal) shift(by []float64) error {
	for at, b := range by {
		if b != 0 {
			d.Lambda[at] -= b
			prior.At(d.PriorOf(at/d.N), at%d.N).Posterior(d.X[at:at+1], d.C[at:at+1], d.Lambda[at:at+1], d.Sigma[at:at+1])
			d.Centre[at] = d.X[at]
		}
	}
	return nil
}

// shift implements [shifter]: what the channel is given of z moves, too.
func (v *vamp) shift(by []float64) error {
	if err := v.lmmse.forward(v.lmmse.z, by); err != nil {
		return err
	}
	for at, b := range by {
		v.r1[at] -= b
	}
	for j, z := range v.lmmse.z {
		v.p1[j] -= z
	}
	return nil
}

// best is the shift of an entry that makes its fields likeliest; 0 where none makes them likely enough.
func (p *rowShifts) best(e *State, i int) (delta float64) {
	now, most := p.logNorm(e, i, 0), float64(rowShiftGain)
	for _, d := range p.lambda {
		if gain := p.logNorm(e, i, d) - now; gain > most {
			delta, most = d, gain
		}
	}
	return delta
}

func (p *rowShifts) logNorm(e *State, i int, delta float64) (sum float64) {
	for k, l := range p.lambda {
		sum += prior.At(e.PriorOf(k), i).LogNorm(l-delta, p.sigma[k])
	}
	return sum
}
