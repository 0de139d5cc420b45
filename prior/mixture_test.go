package prior

import (
	"math"
	"testing"
)

// TestScaleInformation: minus the second derivative of the evidence along the scale is that of differences, and that of a component about m is 2 + m²/v where noise is small.
func TestScaleInformation(t *testing.T) {
	m := Mixture{Components: []Component{{0.1, 2, 0.1}, {0.2, -1, 0.3}, {0.1, 0, 1}}}
	lambda, sigma := []float64{1.9, -0.8, 0.3, 0.05, 3, 0.7}, []float64{0.01, 0.2, 0.5, 0.01, 2, math.Inf(1)}
	at := func(t float64) (total float64) {
		for i, l := range lambda {
			total += m.LogNorm(l*math.Exp(-t), sigma[i]*math.Exp(-2*t))
		}
		return total
	}
	const h = 1e-3
	if got, want := m.ScaleInformation(lambda, sigma), (2*at(0)-at(h)-at(-h))/(h*h); math.Abs(got-want) > 1e-5*math.Abs(want) {
		t.Errorf("%g, by differences %g", got, want)
	}
	if got, want := (Mixture{Components: []Component{{0.1, 2, 0.1}}}).ScaleInformation([]float64{2}, []float64{1e-24}), (2*4-4)/0.1; math.Abs(got-want) > 1e-9*want {
		t.Errorf("%g, expected %g", got, want)
	}
}
