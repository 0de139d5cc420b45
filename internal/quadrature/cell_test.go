package quadrature

import (
	"math"
	"testing"
)

// The moments of N(0, 1) on a cell have the values of integrals in 60 digits (mpmath's quad of t^k φ(t) over the cell).
func TestNormalCellGolden(t *testing.T) {
	for _, c := range []struct{ a, b, logMass, mean, variance float64 }{
		{-0.5, 0.5, -0.95991633369562232, 1.4378413510643462e-68, 0.080589154600811698},
		{0.25, 0.75, -1.7448778569559151, 0.4896804587052777, 0.020596827671321585},
		{1, 3, -1.8495664205476084, 1.5100495132439839, 0.17345290492412205},
		{-1, 4, -0.17279142332812499, 0.28745172460702697, 0.62912441622910603},
		{0, math.Inf(1), -0.69314718055994531, 0.79788456080286536, 0.36338022763241866},
		{-2, math.Inf(1), -0.023012909328963488, 0.055247862678989959, 0.88645194831142355},
		{7, 8.5, -27.384314905809838, 7.1375346726806325, 0.018245792246408706},
		{30, 30.5, -454.32124422188547, 30.033259534806899, 0.0011037052799451884},
		{3, 13, -6.6077262215103495, 3.2830986549304365, 0.070559186785268117},
		{2.9, 3.3, -6.5839420028269941, 3.0598934144138995, 0.012310772622547958},
		{-0.001, 0.002, -6.7280820235185501, 0.00049999962500011251, 7.4999977499993976e-7},
		{5, 5.000001, -27.234451591028294, 5.0000004999995834, 8.3333333356522717e-14},
		{200, 200.125, -20006.217280898205, 200.00499975002952, 2.4996250565995313e-5},
		{-9, -8.75, -41.493722975125378, -8.8322499985645953, 0.0041344929739995291},
		{-0.3, 0.19, -1.6437351100030829, -0.053908336746403741, 0.019847949382644562},
	} {
		logMass, mean, variance := NormalCell(c.a, c.b)
		back, negative, same := NormalCell(-c.b, -c.a)
		if math.Abs(logMass-c.logMass) > 1e-9*(1+math.Abs(c.logMass)) || math.Abs(mean-c.mean) > 1e-9*math.Sqrt(c.variance)+1e-15*math.Abs(mean) || math.Abs(variance/c.variance-1) > 1e-8 {
			t.Errorf("[%g, %g]: %.17g %.17g %.17g, expected %.17g %.17g %.17g", c.a, c.b, logMass, mean, variance, c.logMass, c.mean, c.variance)
		}
		if back != logMass || negative != -mean || same != variance {
			t.Errorf("[%g, %g] differs from its mirror image", c.a, c.b)
		}
	}
}

// Where the formula changes, at the tail and at a wide cell, values do not jump.
func TestNormalCellIsContinuous(t *testing.T) {
	for _, at := range [][2]float64{{cellTail, cellTail + 1.3}, {0.2, 0.2 + wideCell}, {4, math.Sqrt(16 + 2*cellDepth)}} {
		const h = 1e-9
		l1, m1, v1 := NormalCell(at[0]-h, at[1]-2*h)
		l2, m2, v2 := NormalCell(at[0]+h, at[1]+2*h)
		if math.Abs(l2-l1) > 1e-7 || math.Abs(m2-m1) > 1e-7 || math.Abs(v2-v1) > 1e-7*v1 {
			t.Errorf("about %v: %g %g %g and %g %g %g", at, l1, m1, v1, l2, m2, v2)
		}
	}
}
