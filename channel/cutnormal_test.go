package channel

import (
	"math"
	"testing"
)

// SetNormal gives the mean and the variance that it is given also where the range cuts, and its statistics contradict no range.
func TestNormalsThatTheRangeCuts(t *testing.T) {
	for _, p := range []GainPrior{Uniform(0.7, 1.3), Uniform(0.01, 10), TruncatedNormal(1, 0.2, 0.7, 1.3), LogNormal(1, 0.2, 0.7, 1.3), LogNormal(1, 0.3, 0.1, 10)} {
		for _, tau := range []float64{0, 1e-3, 5, 60, 1e4, 1e8} {
			for _, peak := range []float64{0.5, 0.68, 0.72, 1, 1.2, 1.31, 2} { // of the readings' likelihood
				var mean, variance, gotMean, gotVariance [1]float64
				p.Posteriors(mean[:], variance[:], GainStats(tau, tau*peak, 0))
				stats := make([]float64, p.Width())
				p.SetNormal(stats, mean[0], variance[0])
				p.Posteriors(gotMean[:], gotVariance[:], stats)
				if sd := math.Sqrt(variance[0]); math.Abs(gotMean[0]-mean[0]) > 1e-6*sd || math.Abs(gotVariance[0]/variance[0]-1) > 1e-6 {
					t.Errorf("%s, τ %g, peak %g: N(%g, %g) is stated as (%g, %g)", p.Name(), tau, peak, mean[0], variance[0], gotMean[0], gotVariance[0])
				}
				if excess := p.Excess(stats); excess != 0 {
					t.Errorf("%s: nothing was read, and s peaks %g outside", p.Name(), excess)
				}
			}
		}
	}
}

// A variance that no falling density of this mean has is kept, and the mean gives way; one above the prior's is the prior's.
func TestNormalsWiderThanTheirMeanAllows(t *testing.T) {
	p := Uniform(0.7, 1.3)
	prior := p.Hi - p.Lo
	for _, c := range []struct{ mean, variance, want float64 }{
		{0.71, 1e-3, 1e-3}, {1.299, 1e-2, 1e-2}, {0.8, 0.2, prior * prior / 12}, {1.28, 1, prior * prior / 12},
	} {
		var mean, variance [1]float64
		stats := make([]float64, p.Width())
		p.SetNormal(stats, c.mean, c.variance)
		p.Posteriors(mean[:], variance[:], stats)
		if math.Abs(variance[0]/c.want-1) > 1e-6 || (mean[0]-1)*(c.mean-1) < -1e-9 {
			t.Errorf("N(%g, %g) is stated as (%g, %g)", c.mean, c.variance, mean[0], variance[0])
		}
	}
}

// TestNormalWiderThanThePrior: a variance above that of a normal prior is the prior's, and the mean stays.
func TestNormalWiderThanThePrior(t *testing.T) {
	p := NormalAbout(1, 0.02)
	for _, variance := range []float64{3.9e-4, 4.1e-4, 1e-2} {
		var mean, got [1]float64
		stats := make([]float64, p.Width())
		p.SetNormal(stats, 1.01, variance)
		p.Posteriors(mean[:], got[:], stats)
		if want := min(variance, 4e-4); math.Abs(mean[0]-1.01) > 1e-9 || math.Abs(got[0]/want-1) > 1e-6 {
			t.Errorf("N(1.01, %g) is stated as (%g, %g)", variance, mean[0], got[0])
		}
	}
}
