package channel

import (
	"fmt"
	"math"
	"math/cmplx"
)

// ComplexPairs are sensors of complex gain that are read two at a time, as the antennas of an interferometer: s_µ = s_i s_j* of the sensors i and j that row µ of W is read with. What
// [ComplexPrior] knows is then of each sensor. The phase common to all sensors is in no row.
type ComplexPairs struct {
	Of    [][2]int
	Count int

	// S are the sensors' s that a run has found, at a phase of the first of them of zero, with the standard deviations of log |s| at a fixed common scale, and of phases.
	S              []complex128
	LogSD, PhaseSD []float64
}

// ComplexPairsOf are so many sensors that are read in these pairs. It is an error where products of gains do not determine them, or pairs leave the phases of some open beside those of others.
func ComplexPairsOf(pairs [][2]int, count int) (*ComplexPairs, error) {
	array, err := determined(pairs, count)
	if err != nil {
		return nil, err
	}
	for sensor := range count {
		if array(sensor) != array(0) {
			return nil, fmt.Errorf("sensor %d: no pairs lead from sensor 0 to it, so that its phase beside that one's is open; solve both arrays by themselves", sensor)
		}
	}
	return &ComplexPairs{Of: pairs, Count: count}, nil
}

// Found is p with what a run has found: s at any common phase, and the variances of log |s| and of phases beside that of the first sensor.
func (p *ComplexPairs) Found(s []complex128, logVar, phaseVar []float64) *ComplexPairs {
	found := ComplexPairs{Of: p.Of, Count: p.Count}
	reference := cmplx.Rect(1, -cmplx.Phase(s[0]))
	for i, v := range s {
		found.S = append(found.S, v*reference)
		found.LogSD = append(found.LogSD, math.Sqrt(logVar[i]))
		found.PhaseSD = append(found.PhaseSD, math.Sqrt(phaseVar[i]))
	}
	return &found
}
