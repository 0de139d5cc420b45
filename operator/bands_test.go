package operator_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp/operator"
)

// Every band has entries, they grow with frequency, and the first is the mean alone.
func TestBands(t *testing.T) {
	for _, size := range [][2]int{{33, 33}, {8, 8}, {1, 16}, {5, 12}} {
		h, w := size[0], size[1]
		for _, k := range []int{1, 2, 3, 7, 14} {
			of, err := operator.Bands(h, w, k)
			if err != nil {
				t.Fatal(err)
			}
			lowest, highest := make([]float64, k), make([]float64, k)
			for b := range lowest {
				lowest[b] = math.Inf(1)
			}
			for i, b := range of {
				f := math.Hypot(float64(i/w)/float64(h), float64(i%w)/float64(w))
				lowest[b], highest[b] = min(lowest[b], f), max(highest[b], f)
			}
			for b := range k {
				if math.IsInf(lowest[b], 1) || b > 0 && lowest[b] <= highest[b-1] {
					t.Errorf("%d×%d in %d bands: band %d from %g to %g", h, w, k, b, lowest[b], highest[b])
				}
			}
			if k > 1 && highest[0] != 0 {
				t.Errorf("band 0 reaches %g", highest[0])
			}
		}
	}
	if _, err := operator.Bands(2, 2, 4); err == nil {
		t.Error("four bands of three frequencies")
	}
}
