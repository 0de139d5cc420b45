package stream

import (
	"math"
	"time"
)

// quantiles of durations, in logarithmic bins a fiftieth wide, in constant
// memory.
type quantiles struct {
	bins  [1200]int
	total int
}

func (q *quantiles) add(d time.Duration) {
	k := int(binsPerFactor * math.Log(max(1, float64(d)/float64(time.Microsecond))))
	q.bins[min(k, len(q.bins)-1)]++
	q.total++
}

// at is the duration below which the fraction p of all is, in milliseconds.
func (q *quantiles) at(p float64) float64 {
	sum := 0
	for k, n := range q.bins {
		if sum += n; n > 0 && float64(sum) >= p*float64(q.total) {
			return math.Exp((float64(k)+0.5)/binsPerFactor) / 1000
		}
	}
	return 0
}

const binsPerFactor = 50 // of e
