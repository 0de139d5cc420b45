package channel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sharp are statistics of sensors that are known to sd.
func sharp(values []float64, sd float64) (stats []float64) {
	for _, s := range values {
		stats = append(stats, GainStats(1/(sd*sd), s/(sd*sd), 1)...)
	}
	return stats
}

func TestUniformGainsFillTheirRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	fixed := Uniform(0.9, 1.1)
	above := 0
	const runs, limit = 400, 5
	for range runs {
		values := make([]float64, 60)
		for i := range values {
			values[i] = 0.9 + 0.2*rng.Float64()
		}
		if x, _ := fixed.Contradiction(sharp(values, 1e-6), nil); x > limit {
			above++
			if x > 10 {
				t.Errorf("uniform gains contradict their range by %g", x)
			}
		}
	}
	// Above x with probability (1+x)e^-x, and a normal distribution adds little.
	if expected := runs * (1 + limit) * math.Exp(-limit); float64(above) > 2*expected+3 {
		t.Errorf("above %d in %d of %d runs, expected %.0f", limit, above, runs, expected)
	}
}

func TestOtherGainsContradictTheRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var narrow, normal, shifted, noisy []float64
	for range 200 {
		u, z := 2*rng.Float64()-1, rng.NormFloat64()
		narrow = append(narrow, 1+0.08*u)
		normal = append(normal, 1+0.03*z)
		shifted = append(shifted, 1.03+0.1*u)
		noisy = append(noisy, 1+0.1*z)
	}
	fixed := Uniform(0.9, 1.1)
	for name, values := range map[string][]float64{"narrower": narrow, "normal": normal, "shifted": shifted} {
		if x, _ := fixed.Contradiction(sharp(values, 1e-4), nil); x < 10 {
			t.Errorf("%s gains contradict the range by %g only", name, x)
		}
	}
	if x, _ := fixed.Contradiction(sharp(noisy, 0.1), nil); x > 10 {
		t.Errorf("gains of which nothing is known contradict the range by %g", x)
	}
	omit := make([]bool, len(narrow))
	for i := range omit {
		omit[i] = i >= leastFilled-1
	}
	if x, _ := fixed.Contradiction(sharp(narrow, 1e-4), omit); x != 0 {
		t.Errorf("too few sensors contradict the range by %g", x)
	}
}

func TestLearnsANormalDistribution(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const mean, sd, blur = 1.02, 0.03, 0.01
	var values []float64
	for range 2000 {
		values = append(values, mean+sd*rng.NormFloat64()+blur*rng.NormFloat64())
	}
	values = append(values, 2, 3, 0.2) // broken ones
	stats := sharp(values, blur)
	p := Uniform(0.5, 1.5).Within(stats, nil)
	next, change := p.Refit(stats, nil)
	if change > 1e-3 {
		t.Errorf("not a fixed point: moves by %g standard errors", change)
	}
	m, s, ok := NormalOf(next)
	if !ok || math.Abs(m-mean) > 0.003 || math.Abs(s-sd) > 0.002 {
		t.Errorf("learned N(%g, %g²), the gains are N(%g, %g²)", m, s, mean, sd)
	}
	bound := Uniform(0.9, 1.1).Bounding(next)
	if lo, hi := bound.Range(); lo != 0.9 || hi != 1.1 {
		t.Errorf("bounds [%g, %g]", lo, hi)
	}
}

// Gains that readings cannot tell from equal ones have a spread as large as chance hides, √2/√Σw² twice, and none without readings.
func TestAsFarAsKnown(t *testing.T) {
	const m, blur = 100, 0.1
	equal := NormalAbout(1, 1e-4)
	stats := sharp(slices.Repeat([]float64{1}, m), blur)
	_, got := Typical(AsFarAsKnown(equal, stats, nil, math.Inf(1)))
	if want := 2 * math.Sqrt(2.0/m) * blur * blur; math.Abs(got/want-1) > 0.05 {
		t.Errorf("variance %.4g, expected %.4g", got, want)
	}
	if _, got := Typical(AsFarAsKnown(equal, stats, nil, 1e-6)); math.Abs(got/1e-6-1) > 0.01 {
		t.Errorf("variance %.4g, of which 1e-6 is the most", got)
	}
	if same := AsFarAsKnown(equal, make([]float64, len(stats)), nil, math.Inf(1)); same.Precision != equal.Precision {
		t.Errorf("without readings %+v", same)
	}
}
