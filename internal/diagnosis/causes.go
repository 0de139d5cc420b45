package diagnosis

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
)

const (
	// largestSquared is the size of numbers beyond which products of some of them
	// overflow, or below whose inverse they vanish.
	largestSquared = 1e100

	// clipsFrom is how many readings of exactly the largest size are no accident, and
	// the part of all readings for large problems.
	clipsFrom = 3
	clipsRate = 1e-3

	// muchClipped is the part of the readings beyond the limit that was given from
	// which on too little is left.
	muchClipped = 0.2

	// fewIterations are less than most problems take.
	fewIterations = 50
)

// extreme tells of numbers whose squares leave double precision.
func (r *Run) extreme() string {
	largest := 0.0
	for _, y := range r.state.Y {
		if a := math.Abs(y); a > largest { // no NaN
			largest = a
		}
	}
	if largest > largestSquared {
		return fmt.Sprintf("some readings are as large as %.2g, and double precision cannot hold their squares; give readings in other units, or mark these as missing", largest)
	}
	if largest > 0 && largest < 1/largestSquared {
		return fmt.Sprintf("no reading is larger than %.2g, and double precision cannot hold their squares; give readings in other units", largest)
	}
	if w := r.state.W.MeanSquare(); w > largestSquared || w < 1/largestSquared {
		return fmt.Sprintf("entries of W have the size %.2g, and double precision cannot hold their products; give them in other units", math.Sqrt(w))
	}
	return ""
}

// clipping finds readings that stop at a limit: they have exactly the same size,
// and nothing exceeds them.
func (r *Run) clipping() string {
	if !r.additive() {
		return "" // a sign, or a code, is what such a sensor reads
	}
	limit := channel.LimitOf(r.model().Channel)
	stated := limit > 0
	count, largest, at := 0, 0.0, 0
	for mu := range r.state.M {
		row := r.state.Y[mu*r.state.Each : (mu+1)*r.state.Each]
		if stuck(row) {
			continue
		}
		for _, y := range row {
			a := math.Abs(y)
			if math.IsNaN(y) {
				continue
			}
			count++
			switch {
			case stated && a >= limit || !stated && a == largest:
				at++
			case !stated && a > largest:
				largest, at = a, 1
			}
		}
	}
	part := float64(at) / float64(max(count, 1))
	switch {
	case stated && part > muchClipped:
		return fmt.Sprintf("%.0f %% of the readings are clipped at %.4g, and carry little information: a larger range of the sensors, or smaller signals, would help", 100*part, limit)
	case !stated && at >= clipsFrom && part > clipsRate:
		return fmt.Sprintf("%d readings have exactly the largest size, %.4g: sensors clip there (--saturation %.4g)", at, largest, largest)
	}
	return ""
}

// stuck says whether all readings of a sensor are the same.
func stuck(row []float64) bool {
	present := slices.DeleteFunc(slices.Clone(row), math.IsNaN)
	return len(present) > 1 && slices.Min(present) == slices.Max(present)
}

// falling compares the changes in the last quarter of a run with those of the quarter before:
// typical ones of both, and the iterations between; n is 0 where they did not fall to less than half.
func (r *Run) falling() (from, to float64, n int) {
	n = len(r.Changes) / 4
	if n == 0 {
		return 0, 0, 0
	}
	end := len(r.Changes)
	from, to = median(r.Changes[end-2*n:end-n]), median(r.Changes[end-n:])
	if !(to < 0.5*from) {
		return from, to, 0
	}
	return from, to, n
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
