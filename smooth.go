package calamp

import "github.com/calamp/calamp/channel"

// SmoothPart is what s would be without scatter (M, in the units of S), and its standard deviation at a fixed common scale, where gains belong together
// ([channel.Places]); nil elsewhere, and for a result read from a file. Of broken sensors it is what the others say.
func (r *Result) SmoothPart() (s, sd []float64) {
	if r.Calibration == nil {
		return nil, nil
	}
	if _, together := channel.SmoothOf(r.Calibration.Prior); !together {
		return nil, nil
	}
	s, sd = r.Calibration.Prior.(channel.Gains).Gains().SmoothPart(r.Calibration.Stats, nil)
	for mu, v := range s {
		sd[mu] *= v
	}
	return s, sd
}
