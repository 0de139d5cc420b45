package recovery

import (
	"math"
	"testing"

	"github.com/calamp/calamp/internal/field"

	"github.com/calamp/calamp/prior"
)

// The reference values were computed independently, by quadrature in another language.
func TestAlphaCS(t *testing.T) {
	for _, c := range []struct{ rho, want float64 }{
		{0.1, 0.20756}, {0.3, 0.48021}, {0.5, 0.68570}, {0.7, 0.84631}, {0.9, 0.96439},
	} {
		got := AlphaCS(prior.GaussBernoulli{Density: c.rho, SignalVar: 1})
		if math.Abs(got-c.want) > 1e-5 {
			t.Errorf("α_CS(%g) = %.6f, want %.5f", c.rho, got, c.want)
		}
		// The scale of the signals has no influence.
		if scaled := AlphaCS(prior.GaussBernoulli{Density: c.rho, SignalVar: 50}); math.Abs(scaled-got) > 1e-8 {
			t.Errorf("α_CS(%g) = %.10f at variance 50, %.10f at 1", c.rho, scaled, got)
		}
	}
	if got := AlphaCS(prior.Gaussian(0, 1)); math.Abs(got-1) > 1e-8 {
		t.Errorf("α_CS(1) = %g, want 1", got)
	}
}

// However far the mean is from zero, on the way from a variance of its square some entries are not separated from zero.
func TestAlphaCSOfFarMeans(t *testing.T) {
	at := func(mean float64) float64 {
		return AlphaCS(prior.GaussBernoulli{Density: 0.2, SignalMean: mean, SignalVar: 1})
	}
	if far, farther := at(100), at(1e4); math.Abs(far-farther) > 1e-4 || far < 0.35 {
		t.Errorf("α_CS(0.2) = %.6f for a mean of 100 standard deviations, %.6f for 10⁴", far, farther)
	}
}

// With the best threshold the bound is where ℓ₁ minimisation recovers: 0.3288 at ρ = 0.1 (Donoho, Maleki, Montanari 2009).
func TestMostAlphaCS(t *testing.T) {
	for rho := 0.01; rho <= 1; rho += 0.09 {
		for _, mean := range []float64{0, 2, 100} {
			least, most := AlphaCS(prior.GaussBernoulli{Density: rho, SignalMean: mean, SignalVar: 1}), MostAlphaCS(rho)
			if !(least <= most+1e-12) || most > 1 {
				t.Errorf("ρ = %g, mean %g: α_CS = %g, bounded by %g", rho, mean, least, most)
			}
		}
	}
	if got := MostAlphaCS(0.1); math.Abs(got-0.3288) > 1e-3 {
		t.Errorf("bound at ρ = 0.1: %.5f", got)
	}
}

func BenchmarkAlphaCS(b *testing.B) {
	for b.Loop() {
		AlphaCS(prior.GaussBernoulli{Density: 0.3, SignalVar: 1})
	}
}

// The reference values come with the equations.
func TestComplexAlphaCS(t *testing.T) {
	for _, c := range []struct{ rho, want float64 }{
		{0.1, 0.16917}, {0.3, 0.41060}, {0.5, 0.60930}, {0.7, 0.78162}, {0.9, 0.93237},
	} {
		got := ComplexAlphaCS(prior.ComplexGaussBernoulli{Density: c.rho, SignalVar: 3})
		if math.Abs(got-c.want) > 1e-4 {
			t.Errorf("α_CS(%g) = %.6f, want %.5f", c.rho, got, c.want)
		}
	}
	if got := ComplexAlphaCS(prior.ComplexGaussBernoulli{Density: 1, SignalVar: 1}); math.Abs(got-1) > 1e-8 {
		t.Errorf("α_CS(1) = %g, want 1", got)
	}
}

// TestSupremumIsBounded: α_CS takes at most a hundred integrals, whatever the signals are, and lies between the density and the bound
// that takes none.
func TestSupremumIsBounded(t *testing.T) {
	for _, density := range []float64{1e-60, 1e-12, 1e-6, 1e-3, 0.2, 0.999, 1} {
		for _, mean := range []float64{0, 1e-60, 1, 1e3, 1e4, 1e60} {
			ratio := min(mean, 1e4)
			g, calls := prior.GaussBernoulli{Density: density, SignalMean: ratio, SignalVar: 1}, 0
			alpha := supremum(density, 1+ratio*ratio, func(sigma, tol float64) float64 {
				calls++
				f := field.Matched(g, sigma)
				return f.Integrate(tol).Variance.Value
			})
			if calls > 100 {
				t.Errorf("density %g, mean %g: %d integrals", density, mean, calls)
			}
			if most := MostAlphaCS(density); !(alpha >= density && alpha <= most*(1+1e-9)) {
				t.Errorf("density %g, mean %g: α_CS = %g, expected %g to %g", density, mean, alpha, density, most)
			}
			if again := AlphaCS(prior.GaussBernoulli{Density: density, SignalMean: mean, SignalVar: 1}); again != alpha {
				t.Errorf("density %g, mean %g: %g and %g", density, mean, again, alpha)
			}
		}
		calls := 0
		supremum(density, 1, func(sigma, tol float64) float64 {
			calls++
			return field.ComplexVariance(prior.ComplexGaussBernoulli{Density: density, SignalVar: 1}, sigma, tol).Value
		})
		if calls > 100 {
			t.Errorf("density %g, complex: %d integrals", density, calls)
		}
	}
}
