package evolution

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

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

func TestVectorGaussian(t *testing.T) {
	c := mat.NewSymDense(2, []float64{1, 0.6, 0.6, 2})
	const noise, alpha = 0.1, 0.7
	v, err := VectorGaussian(c, noise, alpha)
	if err != nil {
		t.Fatal(err)
	}
	// V⁻¹ = C⁻¹ + α (V+Δ)⁻¹.
	var inverse, prior, d, field mat.Dense
	if inverse.Inverse(v) != nil || prior.Inverse(c) != nil {
		t.Fatal("singular")
	}
	d.Add(v, mat.NewDiagDense(2, []float64{noise, noise}))
	if field.Inverse(&d) != nil {
		t.Fatal("singular")
	}
	field.Scale(alpha, &field)
	field.Add(&field, &prior)
	if !mat.EqualApprox(&field, &inverse, 1e-12) {
		t.Errorf("V = %v is not a fixed point", mat.Formatted(v))
	}
}
