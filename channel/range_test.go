package channel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// statisticsOf draws s of m sensors and n readings of each, with a standard deviation of
// sd·s of what they say of s.
func statisticsOf(p GainPrior, m int, n, sd float64) (stats []float64) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range m {
		s := p.Lo + (p.Hi-p.Lo)*rng.Float64()
		t := n / (sd * sd * s * s)
		seen := s * (1 + sd/math.Sqrt(n)*rng.NormFloat64())
		stats = append(stats, GainStats(t, t*seen-n/seen, n)...) // so that the mode is where it was seen
	}
	return stats
}

func TestRefitFindsTheRange(t *testing.T) {
	const m = 300
	for _, truth := range []GainPrior{Uniform(0.95, 1.05), Uniform(0.5, 1.5), Uniform(9, 10)} {
		for _, sd := range []float64{1e-8, 0.02} {
			stats := statisticsOf(truth, m, 10, sd)
			middle := 0.5 * (truth.Lo + truth.Hi)
			for _, h := range []float64{0.02, 0.3} {
				p, change := Uniform((1-h)*middle, (1+h)*middle), 1.0
				for range 30 {
					p, change = p.refit(stats, nil)
				}
				blur := sd * middle / math.Sqrt(10)
				bound := 6 * ((truth.Hi-truth.Lo)/m + blur/math.Sqrt(m))
				if math.Abs(p.Lo-truth.Lo) > bound || math.Abs(p.Hi-truth.Hi) > bound {
					t.Errorf("[%g, %g], sd %g, from ±%g: found [%g, %g], within %g", truth.Lo, truth.Hi, sd, h, p.Lo, p.Hi, bound)
				}
				if change > 1e-3 {
					t.Errorf("[%g, %g], sd %g, from ±%g: still moving by %g", truth.Lo, truth.Hi, sd, h, change)
				}
			}
		}
	}
}

// The masses of a range are those of error functions, sensors outside of it and blurred ones included.
func TestEvidenceOfARange(t *testing.T) {
	p := Uniform(0.9, 1.1)
	for _, sd := range []float64{1e-4, 0.05, 1} {
		peaks, _ := p.peaks(statisticsOf(Uniform(0.8, 1.2), 200, 10, sd), nil)
		want := -200 * math.Log(p.Hi-p.Lo)
		for _, s := range peaks {
			want += logNormalMass((p.Lo-s.mode)*s.inverseSD, (p.Hi-s.mode)*s.inverseSD)
		}
		if got := peaks.evidence(p.Lo, p.Hi); math.Abs(got-want) > 1e-5 {
			t.Errorf("sd %g: evidence %.10g, want %.10g", sd, got, want)
		}
	}
}

// Readings that show no difference between gains, or none at all.
func TestRefitDegenerateRange(t *testing.T) {
	for name, s := range map[string][][]float64{
		"none":       nil,
		"silent":     {GainStats(0, 0, 0), GainStats(0, 0, 0)},
		"one":        {GainStats(1e6, 1e6, 5)},
		"all equal":  {GainStats(1e16, 1e16, 5), GainStats(1e16, 1e16, 5), GainStats(1e16, 1e16, 5)},
		"no meaning": {GainStats(1e-300, 0, 1), GainStats(1, -1e5, 1)},
	} {
		p := Uniform(0.9, 1.1)
		for range 100 {
			var change float64
			p, change = p.refit(slices.Concat(s...), nil)
			if err := p.Validate(); err != nil || math.IsNaN(change) {
				t.Fatalf("%s: %+v, change %g: %v", name, p, change, err)
			}
		}
	}
}

func TestLogNormalMass(t *testing.T) {
	for _, c := range []struct{ a, b, want float64 }{
		{-1, 1, math.Log(0.6826894921370859)},
		{-1e5, 1e5, 0},
		{5, 6, -15.06844609652945},
		{20.5, 21, -214.06675942705857},
		{-31, -30, -454.32124395634315},
		{1e6, 1e6 + 1, -5e11 - math.Log(1e6*math.Sqrt(2*math.Pi))},
	} {
		if got := logNormalMass(c.a, c.b); math.Abs(got-c.want) > 1e-7*(1+math.Abs(c.want)) {
			t.Errorf("[%g, %g]: %.7g, want %.7g", c.a, c.b, got, c.want)
		}
	}
}

// Where no sensor has more than one reading the learned range is no narrower than what is assumed of gains; with two it may be.
func TestRangeOfOneReading(t *testing.T) {
	for _, n := range []float64{1, 2} {
		known := Uniform(0.9, 1.1)
		stats := make([]float64, 50*known.Width())
		for mu := range 50 {
			s := known.of(stats, mu)
			s[readings], s[precision], s[field] = n, 1e4*n, 1e4*n-n // all at s = 1
		}
		for range 100 {
			next, _ := known.Refit(stats, nil)
			known = next.(GainPrior)
		}
		if half := 0.5 * (known.Hi - known.Lo); (half >= 0.0499) != (n == 1) {
			t.Errorf("%g readings a sensor: half-width %g", n, half)
		}
	}
}
