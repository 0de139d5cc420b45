package channel

import (
	"math"
	"testing"
)

func TestNormalTable(t *testing.T) {
	table := normalMass()
	for x := -9.5; x < 9.5; x += 1.0 / 771 {
		if got, want := table.below(x), 0.5*math.Erfc(-x/math.Sqrt2); !(math.Abs(got-want) < 1e-10) {
			t.Fatalf("the mass below %g is %g, want %g", x, got, want)
		}
	}
	for _, x := range []float64{math.Inf(1), inside, math.Nextafter(inside, 0), -inside, math.Inf(-1), math.NaN()} {
		want := 0.0
		if x > 0 {
			want = 1
		}
		if got := table.below(x); !(math.Abs(got-want) < 1e-10) {
			t.Errorf("the mass below %g is %g", x, got)
		}
	}
}
