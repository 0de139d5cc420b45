package stream

import (
	"math"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	var q quantiles
	if q.at(0.5) != 0 {
		t.Error("of nothing: ", q.at(0.5))
	}
	for k := range 1000 {
		q.add(time.Duration(k+1) * time.Millisecond)
	}
	q.add(100 * time.Hour)
	for p, want := range map[float64]float64{0.1: 100, 0.5: 500, 0.99: 990} {
		if got := q.at(p); math.Abs(got/want-1) > 0.03 {
			t.Errorf("quantile %g is %g ms, expected %g", p, got, want)
		}
	}
}
