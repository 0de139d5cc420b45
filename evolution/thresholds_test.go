package evolution

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
)

func TestAlphaCal(t *testing.T) {
	g := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}
	for _, noise := range []float64{0, 1e-8} {
		for _, c := range []struct {
			p    int
			want float64
		}{{2, 0.378}, {3, 0.358}, {5, 0.357}, {10, 0.358}} {
			start := time.Now()
			got, err := AlphaCal(context.Background(), g, channel.Uniform(0.95, 1.05), noise, c.p, nil)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Value-c.want) > 0.002 {
				t.Errorf("P=%d: α_cal = %v, want %g", c.p, got, c.want)
			}
			t.Logf("Δ=%g P=%d: α_cal = %v (%v)", noise, c.p, got, time.Since(start))
		}
	}
	got, err := AlphaCal(context.Background(), g, Known(1), 0, 1, &ThresholdOptions{Tol: 1e-7, Target: 1e-12})
	if want := recovery.AlphaCS(g); err != nil || math.Abs(got.Value-want) > 1e-7 {
		t.Errorf("known gains: %v, α_CS = %g (%v)", got, want, err)
	}
}

// The benchmark is a curve of 20 densities at P = 3, to 1e-3 in α.
func BenchmarkThresholdCurve(b *testing.B) {
	for b.Loop() {
		for i := range 20 {
			g := prior.GaussBernoulli{Density: 0.05 + 0.045*float64(i), SignalVar: 1}
			if _, err := AlphaCal(context.Background(), g, channel.Uniform(0.95, 1.05), 0, 3, &ThresholdOptions{Tol: 1e-3}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
