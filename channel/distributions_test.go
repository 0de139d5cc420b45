package channel

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
)

// Every distribution of s against brute force: mass, mean, variance and intervals of the density as it is written down.
func TestDistributionsByBruteForce(t *testing.T) {
	each := &Knowledge{Mean: []float64{1.1}, SD: []float64{0.05}}
	log := LogNormal(1, 0.3, 0.1, 8)
	withTail := func(p GainPrior, tail float64) GainPrior { p.Tail = tail; return p }
	known := func(p GainPrior) GainPrior { p.Each = each; return p }
	for i, p := range []GainPrior{
		Uniform(0.5, 1.5), TruncatedNormal(1, 0.1, 0.2, 5), log, withTail(TruncatedNormal(1, 0.02, 0.2, 3), 1e-2), withTail(log, 0.1),
		known(Uniform(0.5, 1.5)), known(log), withTail(known(Uniform(0.3, 3)), 1e-3), withTail(known(TruncatedNormal(0.9, 0.1, 0.3, 3)), 1e-3),
	} {
		for _, s := range [][3]float64{{0, 0, 0}, {30, 40, 2}, {400, 480, 4}, {3000, 5400, 6}} { // τ, B and n
			stats := make([]float64, p.Width())
			if err := p.Inform(stats); err != nil {
				t.Fatal(err)
			}
			copy(stats, GainStats(s[0], s[1], s[2]))
			mass, mean, variance := bruteForce(p, s)
			var gotMean, gotVariance [1]float64
			p.Posteriors(gotMean[:], gotVariance[:], stats)
			if math.Abs(gotMean[0]-mean) > 1e-8*math.Sqrt(variance) || math.Abs(gotVariance[0]/variance-1) > 1e-8 {
				t.Errorf("%d, %v: mean %.12g, variance %.12g; by brute force %.12g, %.12g", i, s, gotMean[0], gotVariance[0], mean, variance)
			}
			if got := p.LogEvidence(stats); math.Abs(got-peakOf(s)-math.Log(mass)) > 1e-9*(1+math.Abs(got)) {
				t.Errorf("%d, %v: evidence %.12g, by brute force %.12g", i, s, got, peakOf(s)+math.Log(mass))
			}
			for _, level := range []float64{0.025, 0.5, 0.99} {
				at := p.Quantile(stats, level)
				below := integrated(p, s, p.Lo, at, 0, 0) / mass
				if math.Abs(below-level) > 1e-7 {
					t.Errorf("%d, %v: quantile %g at %g has %.10g below it", i, s, level, at, below)
				}
			}
			// Multiplying s by a number multiplies its moments.
			scaled := append([]float64(nil), stats...)
			p.ScaleStats(scaled, 2)
			p.Times(2).Posteriors(gotMean[:], gotVariance[:], scaled)
			if math.Abs(gotMean[0]-2*mean) > 1e-8*mean || math.Abs(gotVariance[0]/(4*variance)-1) > 1e-8 {
				t.Errorf("%d, %v: twice s has mean %g and variance %g, want %g and %g", i, s, gotMean[0], gotVariance[0], 2*mean, 4*variance)
			}
		}
	}
}

// priorDensity is p(s), normalised.
func priorDensity(p GainPrior) func(s float64) float64 {
	core := func(s float64) float64 {
		log := p.LogDensity(s)
		if p.Each != nil {
			z := (s - p.Each.Mean[0]) / p.Each.SD[0]
			log -= 0.5 * z * z
		}
		return math.Exp(log)
	}
	norm := panels(core, p.Lo, p.Hi)
	return func(s float64) float64 { return (1-p.Tail)*core(s)/norm + p.Tail/(p.Hi-p.Lo) }
}

func bruteForce(p GainPrior, stats [3]float64) (mass, mean, variance float64) {
	mass = integrated(p, stats, p.Lo, p.Hi, 0, 0)
	mean = integrated(p, stats, p.Lo, p.Hi, 0, 1) / mass
	return mass, mean, integrated(p, stats, p.Lo, p.Hi, mean, 2) / mass
}

// peakOf keeps the exponent in range.
func peakOf(stats [3]float64) float64 {
	if stats[0] == 0 {
		return 0
	}
	return 0.5 * stats[1] * (stats[1] / stats[0])
}

// integrated is ∫ p(s) s^n e^{-τs²/2+Bs} (s-c)^power ds, but for a factor e^peakOf.
func integrated(p GainPrior, stats [3]float64, lo, hi, c float64, power float64) float64 {
	density := priorDensity(p)
	return panels(func(s float64) float64 {
		return density(s) * math.Exp(stats[2]*math.Log(s)+s*(stats[1]-0.5*stats[0]*s)-peakOf(stats)) * math.Pow(s-c, power)
	}, lo, hi)
}

func panels(f func(float64) float64, lo, hi float64) (sum float64) {
	const count = 200
	for i := range count {
		a, b := lo+(hi-lo)*float64(i)/count, lo+(hi-lo)*float64(i+1)/count
		sum += quad.Fixed(f, a, b, 12, quad.Legendre{}, 0)
	}
	return sum
}

// The derivatives along the scale are those of the evidence, of which only the readings' part scales.
func TestScaleOfDistributions(t *testing.T) {
	each := &Knowledge{Mean: []float64{1.1}, SD: []float64{0.05}}
	p := Uniform(0.3, 3)
	p.Each, p.Tail = each, 1e-3
	log := LogNormal(1, 0.3, 0.1, 8)
	log.Tail = 0.01
	for _, p := range []GainPrior{log, p} {
		stats := make([]float64, p.Width())
		if err := p.Inform(stats); err != nil {
			t.Fatal(err)
		}
		copy(stats, GainStats(400, 460, 4))
		at := func(c float64) float64 {
			scaled := append([]float64(nil), stats...)
			scaled[field] *= c
			return p.LogEvidence(scaled)
		}
		const h = 1e-4
		first, second := p.ScaleDerivatives(1, []float64{0}, stats)
		if want := (at(1+h) - at(1-h)) / (2 * h); math.Abs(first/want-1) > 1e-6 {
			t.Errorf("first derivative %g, by differences %g", first, want)
		}
		if want := (at(1+h) - 2*at(1) + at(1-h)) / (h * h); math.Abs(second/want-1) > 1e-4 {
			t.Errorf("second derivative %g, by differences %g", second, want)
		}
	}
}

// A sensor in the core has what it would have without a tail; one far out has what its readings say.
func TestTail(t *testing.T) {
	p := NormalAbout(1, 0.01)
	p.Tail = LikeNoOther
	for _, at := range []float64{1, 1.03, 3} {
		stats := GainStats(1e6, 1e6*at, 10)
		var mean, variance [1]float64
		p.Posteriors(mean[:], variance[:], stats)
		if math.Abs(mean[0]-at) > 0.01 {
			t.Errorf("readings want %g, mean %g", at, mean[0])
		}
	}
	if _, variance := Typical(p); math.Abs(math.Sqrt(variance)/0.01-1) > 1e-9 {
		t.Errorf("the standard deviation of the many is %g", math.Sqrt(variance))
	}
}

// SetNormal followed by the posterior gives the same normal distribution, of a sensor in the core or far out, and the narrower the core the
// less may be left of the statistics: what says less than the core does says nothing of the tail.
func TestNormalBesideATail(t *testing.T) {
	for _, p := range []GainPrior{learnedNormal(1, 1e-4), learnedNormal(1, 1e-8), learnedLogNormal(1, 1e-2)} {
		core := 1 / math.Sqrt(p.Precision)
		for _, want := range [][2]float64{{3, 1e-3}, {0.3, 1e-3}, {1 + core, 0.1 * core}, {1 - 2*core, 0.01 * core}, {1 + 1e-3*core, 1.01 * core}, {1 - 1e-3*core, 0.999 * core}} {
			stats := make([]float64, p.Width())
			p.SetNormal(stats, want[0], want[1]*want[1])
			var mean, variance [1]float64
			p.Posteriors(mean[:], variance[:], stats)
			off := 0.05 * want[1]
			if p.Log { // not a normal distribution
				off = 0.1 * want[1]
			}
			if want[1] > 0.99*core && math.Abs(want[0]-1) < core { // the statistics say little or nothing beside the prior, with its tail
				if chance, _, _ := p.InTail(stats); chance > 2*LikeNoOther {
					t.Errorf("%s: N(%g, %g²) is in the tail with probability %g", p.Name(), want[0], want[1], chance)
				}
				continue
			}
			if math.Abs(mean[0]-want[0]) > off || math.Abs(math.Sqrt(variance[0])/want[1]-1) > 0.1 {
				t.Errorf("%s: N(%g, %g²) is stated as N(%g, %g²)", p.Name(), want[0], want[1], mean[0], math.Sqrt(variance[0]))
			}
		}
	}
}
