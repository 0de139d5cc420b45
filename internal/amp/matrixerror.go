package amp

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/moments"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Entries of W that are wrong independently of each other, by a part η of the row's root mean square w_µ, add to z_µk an error of variance
//
//	η² w_µ² Σ_i x_ik²:
//
// noise that follows the signals. It is the excess of a reading (see noise.go), set anew in every iteration. Errors of one row are the same for
// all signals, so that noise of two signals of a sensor is correlated as the signals themselves are: that is left out, and signals that are alike
// leave more doubt of s than is stated.

// MatrixErrors is the part that keeps this excess, and learns η.
type MatrixErrors struct {
	Idle

	Size  float64 // η
	learn bool
	noise bool      // the noise is learned, too
	given []float64 // what noise a reading has beyond the channel's without it, M or M×P; nil for none
	least float64   // of given
	rows  []float64 // M, w_µ²
	power []float64 // P, Σ_i x²
	moved float64   // of the last fit of η, in standard errors of η²
	sd    float64   // of log η
}

// leastError is the least η that is learned: below, rounding is what is left of readings (see leastNoise).
const leastError = 1e-7

// follows reports whether noise follows the signals.
func (p *Problem) follows() bool { return p.MatrixError > 0 || p.LearnMatrixError }

func (b *planner) followsPossible() error {
	_, noisy := channel.InOrder(b.Model.Channel).(channel.Noisy)
	switch {
	case !noisy:
		return fmt.Errorf("errors of W are counted as noise, and a %T has none: it is no channel.Noisy", channel.InOrder(b.Model.Channel))
	case b.stream() || b.Batch:
		return errors.New("errors of W are for offline problems")
	case b.codes():
		return errors.New("errors of W are for readings that are no codes")
	case b.full() || b.exchangeable():
		return errors.New("errors of W need diagonal covariances")
	case b.LearnSensorNoise:
		return errors.New("errors of W and noise of every sensor are not learned together: leave one of them out")
	case b.joint():
		return errors.New("errors of W are for signals by themselves: leave out that they belong together")
	case b.evidence():
		return errors.New("the evidence of Gaussian signals is for a W that is right")
	}
	return nil
}

func (b *planner) makeUnequalNoise(s *Solver) (Part, error) {
	switch {
	case b.detects():
		return b.own, nil
	case !b.follows():
		return Idle{}, nil
	}
	e := &MatrixErrors{Size: b.MatrixError, learn: b.LearnMatrixError, noise: b.LearnNoise, given: b.Noise, power: make([]float64, b.P)}
	if e.learn && e.Size == 0 {
		e.Size = 1 / math.Sqrt(moments.SignalToNoise) // where learning the noise starts, too
	}
	if e.given != nil {
		e.least = Least(e.given)
	}
	s.State.follows = e
	var err error
	if e.rows, err = operator.RowSquares(b.W, s.State.Threads); err != nil {
		return nil, err
	}
	for mu := range e.rows {
		e.rows[mu] /= float64(b.n)
	}
	return e, nil
}

// Before sets the excess for the present signals.
func (e *MatrixErrors) Before(s *Solver) {
	state := s.State
	columns := prior.ColumnsOf(state.model.Prior)
	for k := range e.power {
		e.power[k] = 0
		for i := k * state.N; i < (k+1)*state.N; i++ {
			e.power[k] += state.X[i]*state.X[i] + state.C[i]
		}
	}
	for k := 0; k+columns <= len(e.power) && columns > 1; k += columns { // each part of a complex reading has half of the error of both
		both := 0.5 * (e.power[k] + e.power[k+1])
		e.power[k], e.power[k+1] = both, both
	}
	for j := range state.excess {
		state.excess[j] = e.Size*e.Size*e.of(j, state.P) + e.told(j, state)
	}
}

// of is the excess of reading j for η = 1.
func (e *MatrixErrors) of(j, p int) float64 { return e.rows[j/p] * e.power[j%p] }

// told is that of the noise alone.
func (e *MatrixErrors) told(j int, s *State) float64 {
	switch len(e.given) {
	case 0:
		return 0
	case s.M:
		return e.given[j/s.P] - e.least
	}
	return e.given[j] - e.least
}

// After moves η towards the stationarity of the Bethe free energy, ½ Σ q (g² + ∂g) = 0 with q the excess for η = 1, as [Learning] does the noise.
func (e *MatrixErrors) After(s *Solver, line *Line) Verdict {
	if !e.learn {
		return GoOn
	}
	return refitted(s, line, e.refit, &e.moved)
}

// refitted refits a part's own hyperparameters every few iterations, and goes on while they move.
func refitted(s *Solver, line *Line, refit func(*State), moved *float64) Verdict {
	if line.Index < firstRefit || s.State.Added > 0 {
		return GoOn
	}
	if line.Index%refitEvery == 0 {
		refit(s.State)
	}
	if *moved > modelTolerance && !(s.State.Standing && *moved < creepTolerance) {
		return Disturbed
	}
	return GoOn
}

func (e *MatrixErrors) refit(s *State) {
	var squares, slopes, own, both, noise float64 // the last three of the information on the logarithms of η² and of the noise
	now := e.Size * e.Size
	for j, y := range s.Y {
		if math.IsNaN(y) {
			continue
		}
		q := e.of(j, s.P)
		squares += q * s.G[j] * s.G[j]
		slopes -= q * s.DG[j]
		d := s.Doubt(j)
		a, b := now*q/d, (s.Noise(j)-s.excess[j])/d
		own, both, noise = own+0.5*a*a, both+0.5*a*b, noise+0.5*b*b
	}
	if !(slopes > 0) {
		return
	}
	information := own
	if e.noise && noise > 0 {
		information = max(0, own-both*both/noise)
	}
	next := now * min(max(squares/slopes, 1./noiseReach), noiseReach)
	next = min(max(next, leastError*leastError), 1)
	e.moved = math.Abs(math.Log(next/now)) * math.Sqrt(information)
	e.Size = math.Sqrt(next)
	e.sd = min(1, 0.5/math.Sqrt(information))
}

// noiseStep is how learning moves a noise variance beside noise that follows the signals, to next, and how far that is in standard errors. Of
// readings of which it is a small part a step in proportion to what they have too much, or too little, of residuals is far too short: where η
// stays, the step is one of scoring, Σ (g² + ∂g) over Σ (∂g)².
func (e *MatrixErrors) noiseStep(s *State, now, ratio float64) (next, change float64) {
	var slope, squares, information float64
	for j, y := range s.Y {
		if math.IsNaN(y) {
			continue
		}
		slope += s.G[j]*s.G[j] + s.DG[j]
		squares += s.DG[j] * s.DG[j]
		share := now / s.Doubt(j)
		information += 0.5 * share * share
	}
	next = now * ratio
	if !e.learn && squares > 0 {
		next = now + slope/squares
	}
	next = now * min(max(next/now, 1./noiseReach), noiseReach)
	return next, math.Abs(math.Log(next/now)) * math.Sqrt(information)
}

// MatrixError is η, and where it was learned the standard deviation of its logarithm; 0 where errors of W are not looked for.
func (s *Solver) MatrixError() (size, sd float64) {
	if e, ok := PartOf[*MatrixErrors](s); ok {
		return e.Size, e.sd
	}
	return 0, 0
}
