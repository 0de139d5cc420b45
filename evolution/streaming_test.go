package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/prior"
)

// With a Gaussian prior nothing of earlier batches is lost: every batch is a Gaussian
// problem with a smaller prior variance, which has a closed form.
func TestStreaming(t *testing.T) {
	const noise, alpha = 0.05, 0.4
	got, err := Streaming(context.Background(), Calibrated(prior.Gaussian(0, 1), noise, alpha), 6, &Options{Tol: 1e-11})
	if err != nil {
		t.Fatal(err)
	}
	variance := 1.0
	for k, p := range got {
		variance = gaussianError(variance, noise, alpha)
		if e := math.Abs(p.MSEX.Value/variance - 1); e > 1e-10 {
			t.Errorf("batch %d: %v, closed form %.12g", k+1, p.MSEX, variance)
		}
	}
	// A problem in which batches one at a time do worse than all rows at once.
	m := paperModel(0.2, 0.2, 1e-4, 3)
	batches, err := Streaming(context.Background(), m, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Alpha *= 3
	once, err := FixedPoint(context.Background(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !(batches[2].MSEX.Value > once.MSEX.Value) || !(batches[2].MSEX.Value < batches[0].MSEX.Value) {
		t.Errorf("batches %v, %v, all at once %v", batches[0].MSEX, batches[2].MSEX, once.MSEX)
	}
}

// gaussianError solves 1/E = 1/c + α/(E+Δ), that is E² + E(Δ + (α-1)c) - Δc = 0,
// without cancellation.
func gaussianError(c, noise, alpha float64) float64 {
	b := noise + (alpha-1)*c
	root := math.Hypot(b, 2*math.Sqrt(noise*c))
	if b > 0 {
		return 2 * noise * c / (b + root)
	}
	return 0.5 * (root - b)
}
