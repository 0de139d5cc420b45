package teacher

import (
	"math"
	"testing"
)

// Rows are there in all signals or in none, as often and as much correlated as was asked for.
func TestJointSignals(t *testing.T) {
	const n, p, density, variance, correlation = 20000, 3, 0.3, 2, 0.8
	x := JointSignals(n, p, density, variance, correlation, 1)
	rows, squares, products := 0.0, 0.0, 0.0
	for i := range n {
		there := x.At(i, 0) != 0
		for k := range p {
			if (x.At(i, k) != 0) != there {
				t.Fatalf("entry %d is there in some signals only", i)
			}
		}
		if there {
			rows++
			squares += x.At(i, 0) * x.At(i, 0)
			products += x.At(i, 0) * x.At(i, 1)
		}
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{{"density", rows / n, density}, {"variance", squares / rows, variance}, {"covariance", products / rows, variance * correlation}} {
		if math.Abs(c.got/c.want-1) > 0.06 {
			t.Errorf("%s %.3f, expected %.3f", c.what, c.got, c.want)
		}
	}
}
