package search

import (
	"math"
	"testing"
)

func TestGoldenFindsThePeak(t *testing.T) {
	for _, peak := range []float64{-2, 0.3, 1, 3} { // beyond the ends, too
		evaluated := 0
		g := NewGolden(func(x float64) float64 {
			evaluated++
			return -math.Abs(x - peak)
		}, -1, 2)
		narrowed := 0
		for ; g.B-g.A > 1e-9; narrowed++ {
			g.Narrow()
		}
		if want := min(max(peak, -1), 2); math.Abs(0.5*(g.A+g.B)-want) > 1e-9 {
			t.Errorf("found %g, want %g", 0.5*(g.A+g.B), want)
		}
		if evaluated != narrowed+2 {
			t.Errorf("%d evaluations in %d steps", evaluated, narrowed)
		}
	}
}

func TestBracketFindsTheZero(t *testing.T) {
	for name, c := range map[string]struct {
		f              func(x float64) (value, slope float64)
		x, lo, hi      float64
		falling        bool
		want           float64
		steps, atLeast int
	}{
		"rising":             {func(x float64) (float64, float64) { return x*x - 2, 2 * x }, 1, 0, 2, false, math.Sqrt2, 7, 3},
		"falling":            {func(x float64) (float64, float64) { return 2 - x*x, -2 * x }, 1, 0, 2, true, math.Sqrt2, 7, 3},
		"Newton leads out":   {func(x float64) (float64, float64) { return math.Atan(x), 1 / (1 + x*x) }, 3, -4, 20, false, 0, 12, 3},
		"no slope":           {func(x float64) (float64, float64) { return math.Copysign(1, x-0.25), 0 }, 0.9, 0, 1, false, 0.25, 50, 20},
		"wrong slope":        {func(x float64) (float64, float64) { return x - 0.25, -1 }, 0.9, 0, 1, false, 0.25, 50, 20},
		"zero beyond an end": {func(x float64) (float64, float64) { return x - 5, 1 }, 0.5, 0, 1, false, 1, 60, 20},
	} {
		x, b, steps := c.x, Bracket{Lo: c.lo, Hi: c.hi, Falling: c.falling}, 0
		for ; math.Abs(x-c.want) > 1e-12 && steps < 100; steps++ {
			value, slope := c.f(x)
			x = b.Next(x, value, slope)
			if !(x >= b.Lo && x <= b.Hi) {
				t.Fatalf("%s: %g is outside [%g, %g]", name, x, b.Lo, b.Hi)
			}
		}
		if steps > c.steps || steps < c.atLeast {
			t.Errorf("%s: %d steps to %g, want %g in %d to %d", name, steps, x, c.want, c.atLeast, c.steps)
		}
	}
}
