package option

import (
	"math/cmplx"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
)

// ComplexChannel is c with sensors that are read two at a time, where they are.
func (g *Together) ComplexChannel(c channel.ComplexGain) channel.ComplexGain {
	c.Prior.Pairs = g.complex
	return c
}

// Extra is s of each sensor where two read a row, and its standard deviation. Of a complex one that is of |s|, and phases are those beside the first sensor's.
func (g *Together) Extra(res *calamp.Result) []dataset.Extra {
	if g.pairs == "" || res.Calibration == nil {
		return nil
	}
	switch p := res.Calibration.Prior.(type) {
	case channel.GainPrior:
		if g.found == nil {
			return nil
		}
		s, sd := p.OfPairs(res.Calibration.Stats, g.sensors)
		return []dataset.Extra{{Name: "s_sensor", Vector: s}, {Name: "s_sensor_sd", Vector: sd}}
	case channel.ComplexPrior:
		var size, sd, phase []float64
		for i, v := range p.Pairs.S {
			size, phase = append(size, cmplx.Abs(v)), append(phase, cmplx.Phase(v))
			sd = append(sd, cmplx.Abs(v)*p.Pairs.LogSD[i])
		}
		return []dataset.Extra{{Name: "s_sensor", Vector: size}, {Name: "s_sensor_sd", Vector: sd}, {Name: "s_sensor_phase", Vector: phase}, {Name: "s_sensor_phase_sd", Vector: p.Pairs.PhaseSD}}
	}
	return nil
}
