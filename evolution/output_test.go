package evolution

import (
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
)

// Two independent ways to integrate agree: adaptive panels over (y, t) with an
// integral over s at every point, and fixed rules whose nodes in s serve many t. Both
// find that the density has mass one.
func TestFixedRulesAgainstAdaptive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, c := range []struct {
		a, b  float64
		p     int
		delta float64
	}{
		{0.95, 1.05, 1, 1e-5},
		{0.95, 1.05, 3, 0.5},
		{0.95, 1.05, 20, 1e-2},
		{0.95, 1.05, 2, 1e-10},
		{0.95, 1.05, 5, 1e-16},
		{0.3, 1.7, 1, 0.95},
		{0.3, 1.7, 3, 0.1},
		{0.3, 1.7, 20, 1e-3},
		{0.5, 1.5, 2, 1e-12},
	} {
		g := channel.Uniform(c.a, c.b)
		law := matchedLaw(c.p, g, c.delta)
		slow := law.integrate(1e-8, nil)
		fast, _ := matchedAverages(c.p, g, c.delta, 1e-8, nil)
		full, _ := matchedAverages(c.p, g, c.delta, 1e-12, nil)
		for k, n := range [][3]Number{{slow.chiHat, fast.chiHat, full.chiHat}, {slow.mseS, fast.mseS, full.mseS}, {slow.evidence, fast.evidence, full.evidence}} {
			for i := range 2 {
				if d := math.Abs(n[i].Value - n[2].Value); d > n[i].Err+n[2].Err {
					t.Errorf("%+v: number %d, way %d: %v, to full precision %v", c, k, i, n[i], n[2])
				}
			}
			if e := math.Abs(n[0].Value/n[2].Value - 1); e > 2e-11 {
				t.Errorf("%+v: number %d: adaptive %.15g, fixed %.15g: %.1e", c, k, n[0].Value, n[2].Value, e)
			}
		}
		if lack := math.Abs(full.mass.Value - 1); lack > 1e-13 {
			t.Errorf("%+v: the density integrates to 1 - %.1e", c, lack)
		}
	}
}
