package inspect

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp"
)

// TestMoved draws two results of the same sensors, in different scales, one of which has moved.
func TestMoved(t *testing.T) {
	const m, sd = 400, 0.01
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(scale float64) *calamp.Result {
		r := &calamp.Result{Broken: make([]float64, m), ScaleSD: 0.02}
		for sensor := range m {
			s := scale * (1 + float64(sensor)/m) * (1 + sd*rng.NormFloat64())
			r.S, r.SVar = append(r.S, s), append(r.SVar, sd*sd*s*s)
		}
		return r
	}
	a, b := draw(1), draw(1.05)
	b.S[7] *= 1.2
	b.Broken[9], a.Broken[11] = 1, 0.9
	c := compareS(a, b)
	if len(c.Moved) != 1 || c.Moved[0].Sensor != 7 || math.Abs(c.Moved[0].Change-0.2) > 0.06 || math.Abs(c.Moved[0].SD-12.9) > 4 {
		t.Errorf("moved: %+v, expected sensor 7 by 20 %%, 13 sd", c.Moved)
	}
	if len(c.Broke) != 1 || c.Broke[0] != 9 || len(c.Mended) != 1 || c.Mended[0] != 11 {
		t.Errorf("broke %v, mended %v", c.Broke, c.Mended)
	}
	if math.Abs(c.Scale.Ratio-1.05) > 0.005 || math.Abs(*c.Scale.SD-math.Log(c.Scale.Ratio)/math.Hypot(0.02, 0.02)) > 1e-9 {
		t.Errorf("scale %v, %v", c.Scale.Ratio, *c.Scale.SD)
	}
	b.S[7] /= 1.2
	if c := compareS(a, b); len(c.Moved) > 0 || math.Abs(c.RMS-1) > 0.1 {
		t.Errorf("%v moved, %v", c.Moved, c.RMS)
	}
	if c := compareS(a, a); len(c.Moved) > 0 || c.RMS != 0 || c.Scale.Ratio != 1 {
		t.Errorf("a result and itself: %+v", c)
	}
}
