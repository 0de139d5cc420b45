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

// TestGoldenEnds: where a width is asked for that double precision does not have, a search ends all the same.
func TestGoldenEnds(t *testing.T) {
	for _, ends := range [][2]float64{{1, 1 + 1e-15}, {1, 1}, {1e300, 1e300 * (1 + 1e-14)}, {0, 5e-324}, {math.NaN(), 1}, {1, math.Inf(1)}, {math.Inf(-1), math.Inf(1)}} {
		steps := 0
		g := NewGolden(func(x float64) float64 { return -x }, ends[0], ends[1])
		for g.B-g.A > 0 && g.Narrow() {
			if steps++; steps > 4000 {
				t.Fatalf("from %g to %g it does not end", ends[0], ends[1])
			}
		}
	}
}

func TestFall(t *testing.T) {
	extreme := []float64{0, 1, -1, 5e-324, -5e-324, 1e-300, 1e-10, 1e10, 1e300, -1e300, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, from := range extreme {
		for _, end := range extreme {
			for _, step := range extreme {
				for _, level := range extreme {
					asked := 0
					x := Fall(func(x float64) bool { asked++; return math.Abs(x-from) > level }, from, end, step, 0.1)
					if asked > 2*MostDoublings+2 {
						t.Fatalf("from %g to %g in steps of %g: asked %d times", from, end, step, asked)
					}
					if (step > 0) == (end > from) && (x > max(from, end) || x < min(from, end)) {
						t.Fatalf("from %g to %g in steps of %g: found %g", from, end, step, x)
					}
				}
			}
		}
	}
	for _, end := range []float64{3, 1e9, -3, -1e9} { // towards either side, to a tenth
		side := math.Copysign(1, end)
		x := Fall(func(x float64) bool { return x*side > 2.7 }, 0, end, 0.01*side, 0.1)
		if x*side < 2.7 || x*side > 3 {
			t.Errorf("towards %g: %g", end, x)
		}
	}
	if x := Fall(func(x float64) bool { return x > 2.7 }, 0, 2, 0.01, 0.1); x != 2 {
		t.Errorf("it never falls, but at %g", x)
	}
}
