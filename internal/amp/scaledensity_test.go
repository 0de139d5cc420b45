package amp

import (
	"math"
	"testing"
)

// TestPlacement compares quantiles with those of densities that are known.
func TestPlacement(t *testing.T) {
	const width = 0.01
	ramp := &scaleGrid{lo: -30 * width, step: 31 * width / placedCells, weight: make([]float64, placedCells+1)}
	for i := range ramp.weight {
		if at := ramp.lo + float64(i)*ramp.step; at <= 0 {
			ramp.weight[i] = math.Exp(at / width)
		}
	}
	mean, sd := ramp.moments()
	exponential := Placement{Mean: mean, SD: sd, parts: []placed{{1, ramp}}}
	narrow, wide := Placement{SD: width}, Placement{Mean: 3 * width, SD: 20 * width}
	mixed := narrow.or(wide, 0.3)
	if want := 0.9 * width; math.Abs(mixed.Mean-want) > 1e-15 {
		t.Errorf("mean of the mixture %g, expected %g", mixed.Mean, want)
	}
	for _, level := range []float64{0.01, 0.1, 0.5, 0.9, 0.99} {
		// To a step of the grid.
		if got, want := exponential.Mean+exponential.Quantile(level), width*math.Log(level); math.Abs(got-want) > ramp.step {
			t.Errorf("quantile %g of a ramp is %g, expected %g", level, got, want)
		}
		at := mixed.Quantile(level) + mixed.Mean
		want := 0.7*narrow.CDF(at) + 0.3*wide.CDF(at-wide.Mean)
		if math.Abs(want-level) > 1e-3 {
			t.Errorf("quantile %g of a mixture has the probability %g", level, want)
		}
		if got := narrow.CDF(narrow.Quantile(level)); math.Abs(got-level) > 1e-14 {
			t.Errorf("quantile %g of a normal distribution has the probability %g", level, got)
		}
	}
	if lo, hi := (Placement{}).Quantile(0.05), (Placement{}).Quantile(0.95); lo != 0 || hi != 0 {
		t.Errorf("a scale that is known lies between %g and %g", lo, hi)
	}
}
