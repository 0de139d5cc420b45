package dataset

import (
	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
)

// togetherOutputs are those of a result whose gains belong together.
func togetherOutputs(r *calamp.Result) []output {
	smooth, sd := r.SmoothPart()
	if smooth == nil {
		return nil
	}
	found, _ := channel.SmoothOf(r.Calibration.Prior)
	return []output{
		vectorOutput("s_smooth", smooth), vectorOutput("s_smooth_sd", sd),
		scalarOutput("s_amplitude", found.Amplitude), scalarOutput("s_length", found.Length), scalarOutput("s_scatter", found.Scatter),
	}
}
