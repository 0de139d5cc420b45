package sweep

import "github.com/calamp/calamp"

// Runs that are given up are those of which nothing is to be expected any more: their
// estimates know next to nothing, and stopped learning a while ago. Those that recover after
// all wait near a transition, and even then get better all the time: docs/format/sweep.md
// has how far the recorded planes are from these numbers.
const (
	// An offline run is looked at from this iteration on. Its entries know nothing while their
	// mean variance is more than this part of the prior's, and do not learn when it is still
	// nearly what it was so many iterations before.
	hopelessFrom   = 150
	hopelessWindow = 100
	hopelessVar    = 0.01
	hopelessStill  = 0.9

	// A stream is looked at after every tenth sample. Its entries know nothing while their mean
	// variance is more than this part of the prior's, and its sensors when theirs is.
	hopelessSamples    = 10
	hopelessSampleVar  = 0.05
	hopelessSensorsVar = 0.5
)

// learning remembers how an offline run went.
type learning struct {
	priorVar float64
	vars     []float64 // mean variance of the entries, by iteration
}

// hopeless is asked after every iteration.
func (l *learning) hopeless(it calamp.Iteration) bool {
	l.vars = append(l.vars, it.MeanXVar)
	t := len(l.vars)
	return t >= hopelessFrom && it.MeanXVar > hopelessVar*l.priorVar && it.MeanXVar > hopelessStill*l.vars[t-1-hopelessWindow]
}

// unknown reports whether the entries of a sample with this mean variance are: else the run is not hopeless, whatever is known of sensors.
func (p Point) unknown(variance float64) bool {
	return variance > hopelessSampleVar*p.signal().Variance()
}

// hopeless is asked after a sample whose entries are unknown, with what was measured of it. Gains that are known are not
// waited for.
func (p Point) hopeless(v Values) bool {
	width := p.SRange[1] - p.SRange[0]
	before := width * width / 12
	if p.Complex() {
		_, before = p.complexGain().Moments()
	}
	return before > 0 && v.Get("s_var") > hopelessSensorsVar*before
}
