package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/internal/tests"
)

// louder adds noise of its own to each sensor, and returns the logarithms of their variances.
func louder(r *rand.Rand, y *mat.Dense, size, spread float64) (logs []float64) {
	m, p := y.Dims()
	size *= mat.Norm(y, 2) / math.Sqrt(float64(m*p))
	for mu := range m {
		log := spread * r.NormFloat64()
		logs = append(logs, 2*log)
		for k := range p {
			y.Set(mu, k, y.At(mu, k)+size*math.Exp(log)*r.NormFloat64())
		}
	}
	return logs
}

// TestSlopeOfNoise compares the slope of the evidence along the noise of a sensor with its difference quotient, where the covariance of readings is factored, and where that of entries is.
func TestSlopeOfNoise(t *testing.T) {
	for _, n := range []int{60, 20} {
		w, y, _, _ := overlapping(1, 40, n, 6, 50)
		logs := louder(rand.New(rand.NewPCG(3, 0)), y, 0.02, 0.5)
		f := learned(t, New(w, y, false), 300)
		f.exact, f.Noise = true, 1e-3*f.power()
		f.Unequal = &Unequal{Logs: logs, fixed: true}
		at := func(mu int, by float64) float64 {
			f.Unequal.Logs[mu] += by
			defer func() { f.Unequal.Logs[mu] -= by }()
			if err := f.Solve(); err != nil {
				t.Fatal(err)
			}
			return f.Evidence
		}
		for mu := range 5 {
			const step = 1e-4
			quotient := (at(mu, step) - at(mu, -step)) / (2 * step)
			at(mu, 0)
			noise := f.noiseOf(mu)
			slope := 0.5*noise*floats.Dot(f.G.RawRowView(mu), f.G.RawRowView(mu)) - 0.5*noise*floats.Sum(f.Inverse.RawRowView(mu))
			if math.Abs(slope-quotient) > 1e-6*max(1, math.Abs(slope)) {
				t.Errorf("%d entries, sensor %d: slope %.9g, difference quotient %.9g", n, mu, slope, quotient)
			}
		}
	}
}

// unequally goes on with noise of each sensor, and reports whether the evidence has risen.
func unequally(t *testing.T, f, like *Fit) (next *Fit, risen bool) {
	t.Helper()
	before, err := f.LogEvidence()
	if err != nil {
		t.Fatal(err)
	}
	if next, err = f.Unequally(like); err != nil {
		t.Fatal(err)
	}
	for step := heldFor + 2; step < 200; step++ {
		risen, err := next.Step(step)
		if err != nil {
			t.Fatal(err)
		}
		if next.Ended(step, risen) {
			break
		}
	}
	after, err := next.LogEvidence()
	return next, err == nil && after > before
}

// TestUnequalNoise has images behind random masks, and sensors of which the noise differs by a factor of two either way. It is found, the evidence asks for it, and gains are known better. Of equal noise the evidence
// does not rise.
func TestUnequalNoise(t *testing.T) {
	for seed := range uint64(3) {
		w, y, s, _ := image(seed, 100, 10, 30)
		equal := learned(t, New(w, mat.DenseCopyOf(y), false), 300)
		if score := equal.NoiseScore(); score > 3 {
			if _, risen := unequally(t, equal, nil); risen {
				t.Errorf("seed %d: noise is the same, and its score %.3g", seed, score)
			}
		}
		logs := louder(rand.New(rand.NewPCG(seed, 7)), y, 0.02, 0.7)
		f := learned(t, New(w, y, false), 300)
		score, before := f.NoiseScore(), offBy(f.S, s)
		f, risen := unequally(t, f, nil)
		after, agree := offBy(f.S, s), stat.Correlation(logs, f.Unequal.Logs, nil)
		t.Logf("seed %d: score %.3g, v %.3g, logarithms correlated by %.3g, gains off by %.4f, %.4f before", seed, score, f.Unequal.Variance, agree, after, before)
		if !risen || score < 3 || agree < 0.5 || math.Abs(math.Log(f.Unequal.Variance/1.96)) > math.Log(2) || after > before {
			t.Errorf("seed %d: risen %v, score %.3g, v %.3g, logarithms correlated by %.3g, gains off by %.4f, %.4f before", seed, risen, score, f.Unequal.Variance, agree, after, before)
		}
	}
}

// TestUnequalNoiseOfSparseSignals is the same of sparse signals behind a blur.
func TestUnequalNoiseOfSparseSignals(t *testing.T) {
	tests.Long(t)
	for seed := range uint64(4) {
		w, y, x, s := blurred(seed, 80, 80, 10, 1e-3)
		logs := louder(rand.New(rand.NewPCG(seed, 7)), y, 0.02, 0.7)
		first := learned(t, New(w, y, false), 300)
		f := learned(t, first.Sparsely(false, first.S, mostSites), mostSites)
		before, errorBefore := offBy(f.S, s), errorOf(f, x)
		f, risen := unequally(t, f, first)
		after, errorAfter := offBy(f.S, s), errorOf(f, x)
		t.Logf("seed %d: risen %v, v %.3g, logarithms correlated by %.3g, gains off by %.4f, %.4f before, signals by %.4f, %.4f before", seed, risen, f.Unequal.Variance, stat.Correlation(logs, f.Unequal.Logs, nil), after, before, errorAfter, errorBefore)
		if !risen || after > before || errorAfter > errorBefore {
			t.Errorf("seed %d: risen %v, gains off by %.4f, %.4f before, signals by %.4f, %.4f before", seed, risen, after, before, errorAfter, errorBefore)
		}
	}
}
