package evidence

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/tests"
)

// blurred is a problem with sparse signals behind a Gaussian blur with a floor: columns of W are far from independent.
func blurred(seed uint64, m, n, p int, noise float64) (w, y, x *mat.Dense, s []float64) {
	r := rand.New(rand.NewPCG(seed, 5))
	w, x, y = mat.NewDense(m, n, nil), mat.NewDense(n, p, nil), mat.NewDense(m, p, nil)
	for mu := range m {
		for i := range n {
			d := (float64(mu)/float64(m) - float64(i)/float64(n)) * float64(n) / 1.5
			w.Set(mu, i, math.Exp(-0.5*d*d)+0.1*r.Float64())
		}
	}
	for i := range n {
		for k := range p {
			if r.Float64() < 0.1 {
				x.Set(i, k, 1+0.5*r.NormFloat64())
			}
		}
	}
	s = make([]float64, m)
	y.Mul(w, x)
	for mu := range m {
		s[mu] = 0.7 + 0.6*r.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+noise*r.NormFloat64())/s[mu])
		}
	}
	return w, y, x, s
}

// errorOf is the relative error of signals at the best common scale.
func errorOf(fit *Fit, x *mat.Dense) float64 {
	var d mat.Dense
	n, p := x.Dims()
	dot, own := 0.0, 0.0
	for i := range n {
		for k := range p {
			dot += fit.X.At(i, k) * x.At(i, k)
			own += fit.X.At(i, k) * fit.X.At(i, k)
		}
	}
	d.Scale(dot/own, fit.X)
	d.Sub(&d, x)
	return mat.Norm(&d, 2) / mat.Norm(x, 2)
}

// TestSitesBehindBlur is where Gaussian signals leave errors that sparse ones do not have.
func TestSitesBehindBlur(t *testing.T) {
	w, y, x, _ := blurred(1, 60, 48, 6, 1e-3)
	fit := learned(t, New(w, y, false), 150)
	gaussian := errorOf(fit, x)
	fit = learned(t, fit.Sparsely(false, fit.S, mostSites), mostSites)
	if e := errorOf(fit, x); e > 0.01 || e > 0.5*gaussian {
		t.Errorf("error of signals %.3g, and of Gaussian ones %.3g", e, gaussian)
	}
	if !fit.Sparse.settled {
		t.Error("the sites reached no fixed point")
	}
}

// TestSparseInFew: two snapshots are enough to know sparse signals from Gaussian ones, of which each has the variance of its column.
func TestSparseInFew(t *testing.T) {
	for seed := range uint64(3) {
		w, y, _, s := blurred(1+seed, 60, 48, 6, 1e-3)
		if fit := learned(t, New(w, y, false), 150); !fit.SparseInFew(context.Background()) {
			t.Errorf("seed %d: sparse signals are not found to be", seed)
		}
		dense, r := mat.NewDense(48, 6, nil), rand.New(rand.NewPCG(seed, 3))
		dense.Apply(func(i, _ int, _ float64) float64 { return r.NormFloat64() / float64(1+i%8) }, dense)
		y.Mul(w, dense)
		y.Apply(func(mu, _ int, v float64) float64 { return (v + 1e-3*r.NormFloat64()) / s[mu] }, y)
		if fit := learned(t, New(w, y, false), 150); fit.SparseInFew(context.Background()) {
			t.Errorf("seed %d: Gaussian signals are taken for sparse ones", seed)
		}
	}
}

func learned(t *testing.T, fit *Fit, most int) *Fit {
	t.Helper()
	if _, err := fit.Learn(context.Background(), most); err != nil {
		t.Fatal(err)
	}
	return fit
}

// TestSitesAreThePosterior compares the mean of each entry with that of the prior seen through its cavity: a fixed point of
// expectation propagation is where they agree.
func TestSitesAreThePosterior(t *testing.T) {
	tests.Long(t)
	w, y, x, _ := blurred(4, 60, 48, 6, 1e-2)
	r := rand.New(rand.NewPCG(6, 6))
	w.Apply(func(int, int, float64) float64 { return r.NormFloat64() }, w)
	y.Mul(w, x)
	fit := learned(t, New(w, y, false), 150)
	fit = fit.Sparsely(false, fit.S, mostSites)
	for step := 1; step <= 150; step++ {
		if _, err := fit.Step(step); err != nil {
			t.Fatal(err)
		}
	}
	m, most := fit.newMoments(), 0.0
	if err := fit.cavities(true); err != nil {
		t.Fatal(err)
	}
	for k := range 6 {
		for i := range 48 {
			c := fit.Sparse.cavity.At(i, k)
			mean, _ := m.addOf(i, k, fit.Sparse.lambda.At(i, k), c)
			most = max(most, math.Abs(mean-fit.X.At(i, k))/math.Sqrt(fit.C.At(i, k)))
		}
	}
	if most > 0.01 {
		t.Errorf("a posterior mean is %.3g standard deviations from that of the prior seen through the cavity", most)
	}
}

// TestSitesOfAGaussianPrior has a prior that is one Gaussian: the sites are that prior, and the evidence is that of Gaussian signals.
func TestSitesOfAGaussianPrior(t *testing.T) {
	w, y, _, _ := blurred(2, 30, 24, 4, 1e-2)
	const variance = 0.7
	exact := New(w, y, true)
	if err := exact.Solve(); err != nil {
		t.Fatal(err)
	}
	sites := exact.Sparsely(false, exact.S, mostSites)
	exact.Spread, exact.begun = sites.Spread, true
	exact.Noise, sites.Noise = 0.01, 0.01
	exact.GivenNoise, sites.GivenNoise = 0.01, 0.01
	exact.exact, sites.exact = true, true
	sites.Sparse.Weight, sites.Sparse.Mean, sites.Sparse.Variance = []float64{0, 1}, []float64{0, 0}, []float64{0, variance}
	sites.Sparse.zeros = nil // no entry is zero
	for _, family := range exact.Families {
		for i := range family.Gamma {
			family.Gamma[i] = variance
		}
	}
	if err := exact.Solve(); err != nil {
		t.Fatal(err)
	}
	if err := sites.Solve(); err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 60; step++ {
		sites.Sparse.Weight, sites.Sparse.Variance = []float64{0, 1}, []float64{0, variance} // not learned
		if _, err := sites.stepSites(1); err != nil {
			t.Fatal(err)
		}
	}
	for mu, s := range exact.S {
		if math.Abs(s-sites.S[mu]) > 1e-9 {
			t.Fatalf("s[%d] = %.12g, expected %.12g", mu, sites.S[mu], s)
		}
	}
	var d mat.Dense
	if d.Sub(exact.X, sites.X); mat.Max(&d) > 1e-9 {
		t.Errorf("signals are off by %.3g", mat.Max(&d))
	}
	want := exact.Evidence
	if got := sites.Evidence + sites.evidenceOfSites(); math.Abs(got-want) > 1e-7*math.Abs(want) {
		t.Errorf("evidence %.12g, expected %.12g", got, want)
	}
}

// TestSitesWithoutReadings has missing readings, a sensor without any, and an entry that nothing sees.
func TestSitesWithoutReadings(t *testing.T) {
	w, y, _, _ := blurred(3, 40, 32, 5, 1e-3)
	for k := range 5 {
		y.Set(7, k, math.NaN())
	}
	y.Set(3, 1, math.NaN())
	for mu := range 40 {
		w.Set(mu, 9, 0)
	}
	fit := New(w, y, false)
	if _, err := fit.Learn(context.Background(), 100); err != nil {
		t.Fatal(err)
	}
	fit = fit.Sparsely(true, fit.S, mostSites)
	if _, err := fit.Learn(context.Background(), mostSites); err != nil {
		t.Fatal(err)
	}
	fit.Integrate(nil)
	for _, values := range [][]float64{fit.S, fit.X.RawMatrix().Data, fit.C.RawMatrix().Data} {
		for j, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("value %d is %v", j, v)
			}
		}
	}
}

// TestCavityOfANarrowSite: what readings and all other entries say of an entry does not depend on its own site, though that be as narrow as of an entry that is zero for certain.
func TestCavityOfANarrowSite(t *testing.T) {
	w, y, _, _ := blurred(5, 60, 48, 2, 1e-2)
	fit := New(w, y, false).Sparsely(false, New(w, y, false).S, mostSites)
	fit.held = true
	const i, k = 20, 1
	var lambda, c [2]float64
	for at, gamma := range []float64{1, 1e-15} {
		fit.Families[k].Gamma[i] = gamma
		if err := fit.Solve(); err != nil {
			t.Fatal(err)
		}
		lambda[at], c[at] = fit.without(i, k, 0)
	}
	if c[0] <= 0 || math.Abs(lambda[1]-lambda[0]) > 1e-9*math.Sqrt(c[0]) || math.Abs(c[1]/c[0]-1) > 1e-9 {
		t.Errorf("N(%.12g, %.12g) without a narrow site, and N(%.12g, %.12g) without a wide one", lambda[1], c[1], lambda[0], c[0])
	}
}

// TestTwoValues has pixels that are dark or bright behind masks. With slabs of any size some of the dark ones become a background, which gains make up for.
func TestTwoValues(t *testing.T) {
	tests.Long(t)
	const m, n, p = 72, 96, 20
	r := rand.New(rand.NewPCG(7, 43))
	w, x, y := mat.NewDense(m, n, nil), mat.NewDense(n, p, nil), mat.NewDense(m, p, nil)
	bit := func(part, value float64) float64 {
		if r.Float64() < part {
			return value
		}
		return 0
	}
	w.Apply(func(int, int, float64) float64 { return bit(0.5, 1) }, w)
	x.Apply(func(int, int, float64) float64 { return bit(0.2, 0.9) }, x)
	y.Mul(w, x)
	for mu := range m {
		s := 0.7 + 0.6*r.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+0.3*r.NormFloat64())/s)
		}
	}
	gaussian := learned(t, New(w, y, false), 150)
	flat := learned(t, gaussian.Sparsely(false, gaussian.S, mostSites), mostSites)
	two := learned(t, gaussian.WithTwoValues(flat, mostSites), mostSites)
	if e := errorOf(two, x); e > 0.6*errorOf(flat, x) || !two.Likelier(flat) { // 0.53 of it, of this seed and of two others
		t.Errorf("error of entries with two values %.3g, and %.3g with others", e, errorOf(flat, x))
	}
	w, y, _, _ = blurred(1, 60, 48, 6, 1e-3)
	gaussian = learned(t, New(w, y, false), 150)
	if gaussian.WithTwoValues(learned(t, gaussian.Sparsely(false, gaussian.S, mostSites), mostSites), mostSites) != nil {
		t.Error("entries of all sizes have two values")
	}
}
