package amp

import (
	"cmp"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
)

const (
	// releaseReach bounds |log c| of a factor by which sensors are brought back.
	releaseReach = 0.2

	// released is how much likelier the readings must be for it.
	released = 3

	// A run that has done this so often has other troubles, and no more factors than
	// mostCandidates are looked at.
	mostReleases   = 5
	mostCandidates = 50
)

// release brings back sensors at an end of the range of s that were called broken while
// the common scale was off. Once out, they no longer hold the scale, which stays where
// it is: a local maximum of the evidence with every sensor at its present weight. So the
// evidence is compared as the mixture that it is,
//
//	Φ(c) = Σ_µ log [(1-ε) Z_µ(c) + ε Z_f,µ] - ½ c² S + κ log c,
//
// at the factors c that put one such sensor just inside.
type release struct {
	Idle
	count int
	at    int // iteration of the latest
	block channel.Block
}

// Begin implements [Part].
func (p *release) Begin(*Solver) { p.count, p.at = 0, 0 }

// AtFixedPoint implements [Part].
func (p *release) AtFixedPoint(s *Solver) Verdict {
	if p.try(s) {
		return Disturbed
	}
	return GoOn
}

// try rescales the estimates if that brings sensors back.
func (p *release) try(s *Solver) bool {
	step, ok := PartOf[*scaleStep](s)
	if !ok || step.off || p.count == mostReleases {
		return false
	}
	e := s.State
	candidates := e.releasing()
	if len(candidates) == 0 {
		return false
	}
	now, best, gain := p.mixture(e, 1), 1.0, float64(released)
	for _, c := range candidates {
		if more := p.mixture(e, c) - now; more > gain {
			best, gain = c, more
		}
	}
	if best == 1 {
		return false
	}
	p.count++
	p.at = s.Iterations
	e.rescale(best)
	s.Scale *= best
	step.next = s.Iterations + scaleStepEvery
	return true
}

// releasing are factors that bring a sensor which was called broken into its range, by a
// standard deviation of its own.
func (s *State) releasing() []float64 {
	lo, hi := s.calibration.Range()
	var factors []float64
	for mu := range s.Broken {
		stats := s.Of(s.Stats, mu)
		if !s.OutOfOrder(mu) || !s.Consistent(mu) {
			continue
		}
		c, fit := 1.0, s.calibration.Fit(stats)
		margin := 1 / (fit * math.Sqrt(s.calibration.Information(stats)))
		switch {
		case fit > hi:
			c = hi / fit * (1 - margin)
		case fit < lo:
			c = lo / fit * (1 + margin)
		}
		if c != 1 && math.Abs(math.Log(c)) < releaseReach { // false for a NaN
			factors = append(factors, c)
		}
	}
	slices.SortFunc(factors, func(a, b float64) int { return cmp.Compare(a, b) })
	if every := (len(factors) + mostCandidates - 1) / mostCandidates; every > 1 {
		some := factors[:0]
		for i := 0; i < len(factors); i += every {
			some = append(some, factors[i])
		}
		factors = some
	}
	return factors
}

// mixture is Φ(c), up to a constant.
func (p *release) mixture(s *State, c float64) float64 {
	b, from := &p.block, &s.sensors
	*b = channel.Block{
		P: from.P, Y: from.Y, V: from.V, Past: from.Past, LogPrior: from.LogPrior,
		Omega: append(b.Omega[:0], from.Omega...),
		G:     append(b.G[:0], from.G...), DG: append(b.DG[:0], from.DG...),
		Stats: append(b.Stats[:0], from.Stats...),
		S:     append(b.S[:0], from.S...), SVar: append(b.SVar[:0], from.SVar...), Phase: append(b.Phase[:0], from.Phase...),
		LogZ: append(b.LogZ[:0], from.LogZ...), Broken: append(b.Broken[:0], from.Broken...),
		Offset: append(b.Offset[:0], from.Offset...), OffsetVar: append(b.OffsetVar[:0], from.OffsetVar...),
	}
	scale(b.Omega, c)
	s.model.Channel.Output(b)
	return sum(b.LogZ) - 0.5*c*c*s.fieldPull + s.addVolume(0)*math.Log(c)
}

// consistentWith is the largest mean χ² of a broken sensor's readings at a calibration
// of its own, for which that calibration is accepted.
const consistentWith = 36

// Consistent reports whether some calibration explains a sensor's readings.
func (s *State) Consistent(mu int) bool {
	stats := s.Of(s.Stats, mu)
	n := s.calibration.Readings(stats)
	fit := s.calibration.Fit(stats)
	return n > 0 && fit > 0 && s.ChiSquare(mu, fit) <= consistentWith*n
}

// ChiSquare compares the readings of sensor mu with what the signals predict, for a
// calibration of s; of a complex s for the phase that suits them best.
func (s *State) ChiSquare(mu int, calibration float64) float64 {
	chi := 0.0
	if s.columns > 1 {
		return s.complexChiSquare(mu, calibration)
	}
	weights, mean := 0.0, 0.0
	for j := mu * s.Each; j < (mu+1)*s.Each; j++ {
		if y := s.Y[j]; !math.IsNaN(y) {
			d := calibration*y - s.Omega[j]
			chi += d * (d / s.Doubt(j))
			weights += 1 / s.Doubt(j)
			mean += d / s.Doubt(j)
		}
	}
	if known := s.offsets(); known != nil && weights > 0 { // what the best offset explains
		free := math.Pow(calibration*known.OffsetSD(), 2) * weights
		chi -= mean * (mean / weights) * (free / (1 + free))
	}
	return chi
}
