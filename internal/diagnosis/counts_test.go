package diagnosis

import (
	"math"
	"testing"
)

// A reading that was left out counts once, whether the state still has it or not.
func TestReadingsCountOnce(t *testing.T) {
	missing := math.NaN()
	y := []float64{1, 2, missing, missing, 5}
	outlying := []float64{0, 0.9, 0.9, 0, 0.2}
	if n := readings(y, outlying); n != 4 {
		t.Errorf("%d readings, expected 4", n)
	}
}
