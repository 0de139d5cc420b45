package prior

import (
	"math"
	"testing"

	"github.com/calamp/calamp/internal/vector"
)

// What learning expects of an entry is what its field says by the odds, where these are beyond all bounds, too.
func TestExpectIsTheLogistic(t *testing.T) {
	lambda := []float64{0, 0.3, -2, 40, 1e-3, 5, -0.2}
	sigma := []float64{1, 0.1, 1e-9, 1e-3, 1e-12, math.Inf(1), 1e6}
	g := GaussBernoulli{Density: 0.1, SignalMean: 0.2, SignalVar: 2}
	s := newSample(g, lambda, sigma)
	n, total, first, spread := s.expect()
	var want [4]float64
	for i, l := range lambda {
		if math.IsInf(sigma[i], 1) {
			continue
		}
		m, u, odds := vector.Slab(l, sigma[i], g.SignalMean, g.SignalVar)
		on := 1 / (1 + math.Exp(-(math.Log(g.Density) - math.Log1p(-g.Density) + odds)))
		if math.Abs(s.on[i]-on) > 1e-14*on {
			t.Errorf("entry %d is not zero with probability %.16g, want %.16g", i, s.on[i], on)
		}
		for j, v := range []float64{1, on, on * m, on * u} {
			want[j] += v
		}
	}
	for j, got := range []float64{n, total, first, spread} {
		if math.Abs(got-want[j]) > 1e-13*math.Abs(want[j]) {
			t.Errorf("sum %d is %.16g, want %.16g", j, got, want[j])
		}
	}
}
