package prior

import (
	"math"
	"testing"
)

// TestCommonShift: for a Gauss–Bernoulli prior the posterior is a sum over supports, which full covariances have.
func TestCommonShift(t *testing.T) {
	g := GaussBernoulli{Density: 0.25, SignalMean: 0.3, SignalVar: 1.2}
	for _, c := range []struct {
		lambda       []float64
		sigma, shift float64
	}{
		{[]float64{0.1, 1.3, -0.4}, 0.2, 0.03},
		{[]float64{0.31, 0.29, 1.7, 0.3}, 1e-4, 0.03},
		{[]float64{0.02, -0.01, 0.9, 0.3, -0.7, 0.01}, 1e-3, 1e-7},
		{[]float64{2, 1, 3}, 0.5, 4},
		{[]float64{0.31, 0.29, 1.7, 0.3}, 1e-4, 4}, // nearly all of it stepped over
	} {
		p := len(c.lambda)
		precision, field := make([]float64, p*p), make([]float64, p)
		for k := range p { // (ΣI + b11ᵀ)⁻¹
			for l := range p {
				precision[k*p+l] = -c.shift / (c.sigma * (c.sigma + float64(p)*c.shift))
				if k == l {
					precision[k*p+l] += 1 / c.sigma
				}
			}
		}
		quadratic := 0.0
		sigma := make([]float64, p)
		for k := range p {
			sigma[k] = c.sigma
			for l, v := range c.lambda {
				field[k] += precision[k*p+l] * v
			}
			quadratic += field[k] * c.lambda[k]
		}
		wantMean, want := make([]float64, p), make([]float64, p*p)
		logNorm, err := g.PosteriorVector(wantMean, want, field, precision)
		if err != nil {
			t.Fatal(err)
		}
		// That of c integrates exp(-(x+c-λ)²/2Σ), which leaves √(Σ^P/det) of the other.
		logNorm += -0.5*quadratic - 0.5*math.Log(1+float64(p)*c.shift/c.sigma)
		mean, variance := make([]float64, p), make([]float64, p)
		var s CommonShift
		s.Posterior(g, mean, variance, c.lambda, sigma, c.shift)
		total := 0.0
		for _, v := range want {
			total += v
		}
		worst := math.Max(math.Abs(s.SumVar-total)/total, math.Abs(s.LogNorm-logNorm)/math.Max(1, math.Abs(logNorm)))
		for k := range p {
			worst = max(worst, math.Abs(mean[k]-wantMean[k])/math.Sqrt(want[k*p+k]), math.Abs(variance[k]-want[k*p+k])/want[k*p+k])
		}
		t.Logf("%v: %.2g, %d nodes", c.lambda, worst, len(s.nodes))
		if !(worst < 1e-10) {
			t.Errorf("%v: off by %.2g", c, worst)
		}
	}
}

// TestCommonShiftAlong: where c adds more to some fields than to others, the sums over a fine grid of c are the same.
func TestCommonShiftAlong(t *testing.T) {
	g := GaussBernoulli{Density: 0.25, SignalMean: 0.3, SignalVar: 1.2}
	along, lambda, sigma := []float64{0.5, -1.2, 0.8}, []float64{0.11, 1.3, -0.4}, []float64{1e-3, 4e-3, 2e-3}
	const shift, steps = 0.04, 400_000
	var total, centre, together, square float64
	mean, variance := make([]float64, 3), make([]float64, 3)
	for j := range steps + 1 {
		c := 10 * math.Sqrt(shift) * (2*float64(j)/steps - 1)
		weight, sum, within := math.Exp(-0.5*c*c/shift), 0.0, 0.0
		var m, v [3]float64
		for k, a := range along {
			weight *= math.Exp(g.LogNorm(lambda[k]-a*c, sigma[k]))
			g.Posterior(m[k:k+1], v[k:k+1], []float64{lambda[k] - a*c}, sigma[k:k+1])
			sum += a * m[k]
			within += a * a * v[k]
		}
		total += weight
		centre += weight * c
		together += weight * sum
		square += weight * (within + sum*sum)
		for k := range along {
			mean[k] += weight * m[k]
			variance[k] += weight * (v[k] + m[k]*m[k])
		}
	}
	got, spread := make([]float64, 3), make([]float64, 3)
	s := CommonShift{Along: along}
	s.Posterior(g, got, spread, lambda, sigma, shift)
	near := func(what string, got, want float64) {
		if !(math.Abs(got-want) < 1e-9*math.Max(1, math.Abs(want))) {
			t.Errorf("%s: %.12g, expected %.12g", what, got, want)
		}
	}
	near("log", s.LogNorm, math.Log(total*20*math.Sqrt(shift)/steps)-0.5*math.Log(2*math.Pi*shift))
	near("c", s.Mean, centre/total)
	near("sum", s.SumVar, square/total-together/total*(together/total))
	for k := range along {
		near("mean", got[k], mean[k]/total)
		near("variance", spread[k], variance[k]/total-mean[k]/total*(mean[k]/total))
	}
}

// TestCommonShiftFarOff: fields that ask for a c beyond what is looked at, and many equal ones whose peak is far narrower than a panel, still have a posterior.
func TestCommonShiftFarOff(t *testing.T) {
	for _, c := range []struct {
		density, field, sigma, shift float64
		count                        int
	}{{1, 200, 1e-3, 0.05, 4}, {0.25, 0.3, 1e-2, 1, 4000}, {0.25, 0.0025, 1e-4, 1, 4000}} {
		g := GaussBernoulli{Density: c.density, SignalMean: 0.3, SignalVar: 1.2}
		lambda, sigma := make([]float64, c.count), make([]float64, c.count)
		mean, variance := make([]float64, c.count), make([]float64, c.count)
		for k := range lambda {
			lambda[k], sigma[k] = c.field, c.sigma
		}
		var s CommonShift
		s.Posterior(g, mean, variance, lambda, sigma, c.shift)
		if len(s.nodes) == 0 || math.IsNaN(s.LogNorm) || math.IsNaN(mean[0]) || !(variance[0] >= 0) {
			t.Errorf("%+v: %d nodes, log %g, mean %g, variance %g", c, len(s.nodes), s.LogNorm, mean[0], variance[0])
		}
	}
}
