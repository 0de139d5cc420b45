package smooth

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestScatterOfALargeDetector: pixels in a plane whose gains vary over a third of it have a scatter of 1 %, which what a kernel of a few columns leaves out must not take.
func TestScatterOfALargeDetector(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of arithmetic")
	}
	const rows, columns, scatter, known = 62, 64, 0.01, 0.003
	r := rand.New(rand.NewPCG(1, 45))
	var positions, mean, variance, truth []float64
	for i := range rows {
		for j := range columns {
			positions = append(positions, float64(j), float64(i))
			truth = append(truth, math.Log(1+0.3*math.Sin(float64(j)/20)*math.Cos(float64(i)/15)))
			mean = append(mean, truth[len(truth)-1]+scatter*r.NormFloat64()+known*r.NormFloat64())
			variance = append(variance, known*known)
		}
	}
	places, err := At(positions, 2)
	if err != nil {
		t.Fatal(err)
	}
	field := New(places, 0.2)
	for range 30 {
		var change float64
		if field, _, change = field.Fit(mean, variance); change < 0.1 {
			break
		}
	}
	p, off, stated := field.Posterior(mean, variance), 0.0, 0.0
	for i, v := range truth {
		off += (p.Smooth[i] - v) * (p.Smooth[i] - v) / float64(len(truth))
		stated += p.SmoothVar[i] / float64(len(truth))
	}
	if math.Abs(field.Scatter/scatter-1) > 0.1 || off > 2*stated {
		t.Errorf("scatter %.3g, expected %.3g; the smooth part is off by %.3g, %.3g stated", field.Scatter, scatter, math.Sqrt(off), math.Sqrt(stated))
	}
}
