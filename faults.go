package calamp

import "github.com/calamp/calamp/channel"

// learnFaults re-estimates what is not given of the broken sensors, from the
// probability of each sensor to be one; nil before the first iteration.
func (r *run) learnFaults(broken []float64) {
	if f, ok := r.problem.Channel.(channel.Faulty); ok {
		r.engine.Channel = f.Learned(broken, r.engine.Y, r.p)
	}
}
